// A proof of exact products on a GPU: A'(B' x) = C' x modulo a prime, on the integers. B' and A' are
// rounded anew from the operands and the exponents; the kernel that decodes adds C' x
// (decode_proof.cuh). Sums are of integers modulo the prime, so their order changes nothing.
// argand/gemm/modular/proof_constants.py derives what decoding takes.
#pragma once
#include "norms.cuh"

constexpr int64 kPrime = (1ll << 31) - 1;
constexpr int kProofDigits = 4;  // bytes of a random number

// A number congruent to x modulo kPrime, between -2^32 and 2^33.
__device__ __forceinline__ int64 fold(int64 x) { return (x & kPrime) + (x >> 31); }

// x modulo kPrime, from 0 to kPrime - 1.
__device__ __forceinline__ uint32 modulo(int64 x) {
    x = fold(fold(x));  // from -2 to 2^31 + 1
    if (x < 0) x += kPrime;
    return uint32(x >= kPrime ? x - kPrime : x);
}

// Random number `index` of a key: the first word of Philox 4x32-10 (Salmon et al., SC 2011).
__device__ __forceinline__ uint32 random_word(uint32 index, uint64 key) {
    uint32 counter[4] = {index, 0, 0, 0}, low = uint32(key), high = uint32(key >> 32);
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const uint64 first = uint64(counter[0]) * 0xd2511f53u;
        const uint64 second = uint64(counter[2]) * 0xcd9e8d57u;
        counter[0] = uint32(second >> 32) ^ counter[1] ^ low;
        counter[2] = uint32(first >> 32) ^ counter[3] ^ high;
        counter[1] = uint32(second);
        counter[3] = uint32(first);
        low += 0x9e3779b9u;
        high += 0xbb67ae85u;
    }
    return counter[0];
}

struct ProofResult {
    uint32 wrong, first;  // how many rows are wrong, and the first of them
    uint64 key;           // of the random numbers; the host writes it
};

struct BeginProofArguments {
    ProofResult* result;
    uint32* x;           // (columns), modulo kPrime
    uint32* scaled_x;    // the same times `scale`
    uint32* fragments;   // (columns / kColumnBlock, 8, 32), as decode_proof.cuh multiplies them
    uint64* image;       // B' x, of image_words numbers; becomes 0, as do the sums
    uint64* sums;
    int64 image_words, sum_words;
    int columns, scale;  // columns in whole blocks
};

// Makes x, and clears what sums go to. T is the result's, which decides the order of columns.
template <typename T>
__device__ __forceinline__ void begin_proof(const BeginProofArguments& args) {
    const uint64 key = args.result->key;
    const int64 first = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
    if (first == 0) {
        args.result->wrong = 0;
        args.result->first = ~0u;
    }
    for (int64 i = first; i < args.columns; i += step) {
        const uint32 x = modulo(random_word(i, key));
        args.x[i] = x;
        args.scaled_x[i] = modulo(int64(x) * args.scale);
    }
    // Register r of lane l of an MMA's B operand: digit l / 4 of the columns whose residues are
    // bytes 16 r + 4 (l % 4) on of a row.
    for (int64 i = first; i < args.columns / kColumnBlock * 8 * kWarp; i += step) {
        const int lane = i % kWarp, digit = lane / 4;
        const int byte = i / kWarp % 8 * 16 + lane % 4 * 4;
        const int64 block = i / (8 * kWarp) * kColumnBlock;
        uint32 word = 0;
#pragma unroll
        for (int at = 0; at < 4; ++at) {
            const uint32 x = random_word(block + column_of_byte<T>(byte + at), key);
            if (digit < kProofDigits) word |= (x >> 8 * digit & 0xffu) << 8 * at;
        }
        args.fragments[i] = word;
    }
    for (int64 i = first; i < args.image_words; i += step) args.image[i] = 0;
    for (int64 i = first; i < args.sum_words; i += step) args.sums[i] = 0;
}

struct ImageArguments {
    const void* x;         // the operand: lines by k
    const int* exponents;  // (batches, lines)
    const uint32* reals;   // of lines: what B' multiplies
    const uint64* vector;  // (batches, k, 2): what A' multiplies
    uint64* sums;          // (batches, k, 2) of B', (batches, lines, 2) of A'
    int64 line_stride, k_stride, batch_stride;
    int64 exponent_batch, vector_batch, sum_batch;
    int lines, k, batches, conjugate;
};

// An operand's integer, as encoding rounds it, or one congruent to it modulo kPrime.
__device__ __forceinline__ int integer_of(float x, const PowerOfTwo<float>& scale) {
    return __float2int_rn(scale(x));
}
__device__ __forceinline__ int integer_of(double x, const PowerOfTwo<double>& scale) {
    return int(modulo(__double2ll_rn(scale(x))));
}

// Terms of a sum that a warp adds before it adds to memory.
template <bool lanes_sum>
constexpr int kImageTerms = lanes_sum ? 1024 : 256;
// Sums of a warp: lanes hold terms of each, or each lane has one of its own.
template <bool lanes_sum>
constexpr int kImageSums = lanes_sum ? 4 : kWarp;

// Adds B' x to the sums (lines_summed), or subtracts A' times a complex vector. T is the type in
// which the integers are rounded. Lanes read what is contiguous: terms of a sum, or several sums.
template <typename T, typename Source, bool lines_summed, bool lanes_sum>
__device__ __forceinline__ void add_image(const ImageArguments& args) {
    constexpr int kOwn = lanes_sum ? kImageSums<true> : 1;
    const int lane = threadIdx.x % kWarp;
    const int outs = lines_summed ? args.k : args.lines;
    const int terms = lines_summed ? args.lines : args.k;
    const int64 out_stride = lines_summed ? args.k_stride : args.line_stride;
    const int64 term_stride = lines_summed ? args.line_stride : args.k_stride;
    const int out_groups = (outs + kImageSums<lanes_sum> - 1) / kImageSums<lanes_sum>;
    const int term_groups = (terms + kImageTerms<lanes_sum> - 1) / kImageTerms<lanes_sum>;
    uint32 index = blockIdx.x * (blockDim.x / kWarp) + threadIdx.x / kWarp;
    const int first = index % out_groups * kImageSums<lanes_sum> + (lanes_sum ? 0 : lane);
    index /= out_groups;
    const int first_term = index % term_groups * kImageTerms<lanes_sum>;
    const int batch = index / term_groups;
    if (batch >= args.batches) return;
    const int end = min(first_term + kImageTerms<lanes_sum>, terms);
    const int* const exponents = args.exponents + batch * args.exponent_batch;
    const Complex<Source>* source[kOwn];
    int own_exponents[kOwn];
    int64 re[kOwn] = {}, im[kOwn] = {};
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
        const int out = min(first + i, outs - 1);  // what lies beyond is not stored
        source[i] = static_cast<const Complex<Source>*>(args.x) + batch * args.batch_stride +
                    out * out_stride;
        own_exponents[i] = lines_summed ? 0 : exponents[out];
    }
#pragma unroll(lanes_sum ? 2 : 4)
    for (int term = first_term + (lanes_sum ? lane : 0); term < end;
         term += lanes_sum ? kWarp : 1) {
        const int exponent = lines_summed ? exponents[term] : 0;
        int v_re, v_im = 0;
        if (lines_summed) {
            v_re = exponent == kNotFinite ? 0 : int(args.reals[term]);
        } else {
            const uint64* v = args.vector + batch * args.vector_batch + 2 * int64(term);
            v_re = int(modulo(v[0]));
            v_im = int(modulo(v[1]));
        }
#pragma unroll
        for (int i = 0; i < kOwn; ++i) {
            const int power = lines_summed ? exponent : own_exponents[i];
            const PowerOfTwo<T> scale(power == kNotFinite ? 0 : power);
            const Complex<Source> x = source[i][term * term_stride];
            const int64 a = integer_of(T(x.x), scale), found = integer_of(T(x.y), scale);
            const int64 b = args.conjugate ? -found : found;
            re[i] += fold(lines_summed ? a * v_re : a * v_re - b * v_im);
            im[i] += fold(lines_summed ? b * v_re : a * v_im + b * v_re);
        }
    }
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
        const bool finite = own_exponents[i] != kNotFinite;
        uint64 sums[2] = {modulo(finite ? re[i] : 0), modulo(finite ? im[i] : 0)};
#pragma unroll
        for (int part = 0; part < 2; ++part) {
            if (!lines_summed) sums[part] = kPrime - sums[part];
            if (lanes_sum) sums[part] = warp_sum(sums[part]);
            if (first + i < outs && (!lanes_sum || lane == 0)) {
                atomicAdd(args.sums + batch * args.sum_batch + 2 * int64(first + i) + part,
                          sums[part]);
            }
        }
    }
}

struct EndProofArguments {
    const uint64* sums;  // (rows, 2): C' x - A'(B' x)
    ProofResult* result;
    int64 rows;
};

__device__ __forceinline__ void end_proof(const EndProofArguments& args) {
    const int64 row = int64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (row >= args.rows) return;
    if (modulo(args.sums[2 * row]) != 0 || modulo(args.sums[2 * row + 1]) != 0) {
        atomicAdd(&args.result->wrong, 1u);
        atomicMin(&args.result->first, uint32(min(row, int64(0xffffffff))));
    }
}
