// A proof of exact products on a GPU: Re A'(B' x) = Re C' x modulo a prime, on the integers, for
// complex x. A number of C' that differs in either part changes the real part of what it is
// multiplied to, so imaginary parts need no comparison. The kernels that encode add B' x and
// subtract A'(B' x) (encode_proof.cuh), or where they cannot others that round the operands again
// (proof_image.cuh); the kernel that decodes adds C' x (decode_proof.cuh). Sums are of integers
// modulo the prime, so their order changes nothing. argand/gemm/modular/proof_constants.py derives
// what decoding takes.
#pragma once
#include "device/philox.cuh"
#include "norms.cuh"

constexpr int64 kPrime = (1ll << 31) - 1;
constexpr int kProofDigits = 4;  // bytes of a random number; x has two a column

// A number congruent to x modulo kPrime, between -2^32 and 2^33.
__device__ __forceinline__ int64 fold(int64 x) { return (x & kPrime) + (x >> 31); }

// x modulo kPrime, from 0 to kPrime - 1.
__device__ __forceinline__ uint32 modulo(int64 x) {
    x = fold(fold(x));  // from -2 to 2^31 + 1
    if (x < 0) x += kPrime;
    return uint32(x >= kPrime ? x - kPrime : x);
}

// c + a b in one instruction. The compiler takes five where a factor is used again.
__device__ __forceinline__ int64 multiply_add(int a, int b, int64 c) {
    asm("mad.wide.s32 %0, %1, %2, %0;" : "+l"(c) : "r"(a), "r"(b));
    return c;
}

// An integer below 2^62 as one congruent to it modulo kPrime, below 2^31 in magnitude: 2^31 is 1.
__device__ __forceinline__ int congruent(int x) { return x; }
__device__ __forceinline__ int congruent(int64 x) {
    const int high = int(x >> 31);
    return int(x & kPrime) - (high < 0 ? 0 : int(kPrime)) + high;
}

// A sum of products of integers below 2^31 in magnitude and other numbers: of 16 integers that are
// `small` and numbers below 2^31, or of 2^15 integers and halves of numbers below 2^32.
template <bool small>
struct ProofSum {
    int64 low = 0, high = 0;

    __device__ __forceinline__ void add(int x, uint32 y) {
        if constexpr (small) {
            low = multiply_add(x, int(y), low);
        } else {
            low = multiply_add(x, int(y & 0xffff), low);
            high = multiply_add(x, int(y >> 16), high);
        }
    }
    // A congruent number, between -2^32 and 2^33.
    __device__ __forceinline__ int64 folded() const {
        return small ? fold(low) : fold(fold(low) + fold(high) * 65536);
    }
};

// In memory of the host, which writes 0, all ones and a key before a call and reads it afterwards.
struct ProofResult {
    uint32 wrong, first;  // how many rows are wrong, and the first of them
    uint64 key;           // of the random numbers
};

struct BeginProofArguments {
    const ProofResult* result;
    uint2* x;            // (columns), modulo kPrime
    int2* scaled_x;      // its conjugate times `scale`, between -kPrime / 2 and kPrime / 2
    uint32* fragments;   // (columns / kColumnBlock, 8, 32), as decode_proof.cuh multiplies them
    uint64* image;       // B' x, of image_words numbers; becomes 0, as do the sums
    uint64* sums;
    int64 image_words, sum_words;
    int columns, scale;  // columns in whole blocks
};

// Makes x, and clears what sums go to. T is the result's, which decides the order of columns.
template <typename T>
__device__ __forceinline__ void begin_proof(const BeginProofArguments& args) {
    __shared__ uint64 key;
    if (threadIdx.x == 0) key = args.result->key;
    __syncthreads();
    const int64 first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
    for (int64 i = first; i < args.columns; i += step) {
        const uint2 words = philox_words(i, key);
        const uint2 x = {modulo(words.x), modulo(words.y)};
        args.x[i] = x;
        const auto scaled = [&](uint32 part) {
            const uint32 found = modulo(int64(part) * args.scale);
            return int(found) - (found > kPrime / 2 ? int(kPrime) : 0);
        };
        args.scaled_x[i] = {scaled(x.x), -scaled(x.y)};
    }
    // Register r of lane l of an MMA's B operand: digit l / 4 % 4 of the real part, or from lane 16
    // on of the imaginary one, of the columns whose residues are bytes 16 r + 4 (l % 4) on of a
    // row. A lane's registers lie beside each other in fours.
    for (int64 i = first; i < args.columns / kColumnBlock * 8 * kWarp; i += step) {
        const int lane = i / 4 % kWarp, digit = lane / 4;
        const int byte = (i / (4 * kWarp) % 2 * 4 + i % 4) * 16 + lane % 4 * 4;
        const int64 block = i / (8 * kWarp) * kColumnBlock;
        uint32 word = 0;
#pragma unroll
        for (int at = 0; at < 4; ++at) {
            const uint2 words = philox_words(block + column_of_byte<T>(byte + at), key);
            const uint32 part = digit < kProofDigits ? words.x : words.y;
            word |= (part >> digit % kProofDigits * 8 & 0xffu) << 8 * at;
        }
        args.fragments[i] = word;
    }
    for (int64 i = first; i < args.image_words; i += step) args.image[i] = 0;
    for (int64 i = first; i < args.sum_words; i += step) args.sums[i] = 0;
}

struct ReduceImageArguments {
    const uint64* image;  // B' x, (products, 2, k)
    uint32* vector;       // becomes the same modulo kPrime, (products, k, 2) and what is beyond k
    int64 words, k, vector_pitch;  // of all products; of one
};

// Reduces B' x, so that encoding A multiplies numbers of 31 bits.
__device__ __forceinline__ void reduce_image(const ReduceImageArguments& args) {
    const int64 i = int64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= args.words) return;
    const int64 line = i / args.k, product = line / 2, part = line % 2;
    args.vector[product * args.vector_pitch + 2 * (i % args.k) + part] = modulo(args.image[i]);
}

struct EndProofArguments {
    const uint64* sums;  // of rows: Re (C' x - A'(B' x))
    ProofResult* result;
    int64 rows;
};

__device__ __forceinline__ void end_proof(const EndProofArguments& args) {
    const int64 row = int64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (row >= args.rows) return;
    if (modulo(args.sums[row]) != 0) {
        atomicAdd(&args.result->wrong, 1u);
        atomicMin(&args.result->first, uint32(min(row, int64(0xffffffff))));
    }
}
