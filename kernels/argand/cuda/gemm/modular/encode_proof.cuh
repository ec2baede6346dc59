// The part of encoding in a proof (proof.cuh): A'(B' x) of a line whose integers a warp
// holds, and B' x of lines that lie transposed in shared memory.
#pragma once
#include "proof.cuh"

struct EncodeProof {
    // Modulo kPrime: x of B's lines; or of A B' x, of each product or of all, in whole blocks of k.
    const uint2* vector;
    // Sums of the proof: for B (batches, 2, k), to which kernels add; for A (batches, lines), from
    // which they subtract.
    uint64* sums;
    int64 vector_batch, sum_batch;  // numbers from product to product
};

// Subtracts the real part of the product of a block of a line of A and B' x from the line's sum. A
// lane holds the integers l, l + 32, ... of the block. All lanes of a warp.
template <typename Integer>
__device__ __forceinline__ void subtract_line_image(const EncodeProof& proof,
                                                    const Integer (&re)[kLineNumbers],
                                                    const Integer (&im)[kLineNumbers], int batch,
                                                    int line, int block) {
    const int lane = threadIdx.x % kWarp;
    const uint2* vector = proof.vector + batch * proof.vector_batch + block * kLineBlock + lane;
    ProofSum<kSmallIntegers> sum;
#pragma unroll
    for (int i = 0; i < kLineNumbers; ++i) {
        // Numbers beyond k are multiplied by 0.
        const uint2 y = vector[i * kWarp];
        sum.add(congruent(re[i]), y.x);
        sum.add(-congruent(im[i]), y.y);
    }
    // A folded number is below 2^33, which eight times the prime exceeds.
    const uint64 total = warp_sum(uint64(8 * kPrime - sum.folded()));
    if (lane == 0) atomicAdd(proof.sums + batch * proof.sum_batch + line, total);
}

// The scale of a line's numbers, and its number of x; zero where it does not count.
template <typename T>
struct LineFactor {
    T first, second;
    uint2 x;
};

template <typename T>
__device__ __forceinline__ LineFactor<T> line_factor(const EncodeProof& proof, int line,
                                                     int exponent) {
    const bool counts = exponent != kNotFinite;
    const PowerOfTwo<T> scale(counts ? exponent : 0);
    return {scale.first, scale.second, counts ? proof.vector[line] : uint2{}};
}

// Adds the lines of a tile to B' x, from `first_k` on, a thread those at one k. All threads of a
// CTA, after a barrier that follows the last store to the tile or the factors.
template <typename T, typename Source, int lines, int pitch>
__device__ __forceinline__ void add_image_of_lines(const EncodeProof& proof,
                                                   const Complex<Source>* tile,
                                                   const LineFactor<T>* factors, bool conjugate,
                                                   int batch, int first_k, int count) {
    constexpr int kTogether = kLineNumbers;  // whose products are added in 64 bits
    static_assert(lines % kTogether == 0);
    for (int k = threadIdx.x; k < count; k += blockDim.x) {
        // Folded numbers are above -2^32, which so many times the prime keep positive.
        int64 real = 4 * kPrime * (lines / kTogether), imag = real;
#pragma unroll 1
        for (int first = 0; first < lines; first += kTogether) {
            ProofSum<kSmallIntegers> re, im;
#pragma unroll 4
            for (int line = first; line < first + kTogether; ++line) {
                const LineFactor<T> factor = factors[line];
                const Complex<Source> x = tile[line * pitch + k];
                const PowerOfTwo<T> scale(factor.first, factor.second);
                const int a = congruent(nearest_integer(scale(T(x.x))));
                const int b = congruent(nearest_integer(scale(T(conjugate ? -x.y : x.y))));
                re.add(a, factor.x.x);
                re.add(-b, factor.x.y);
                im.add(a, factor.x.y);
                im.add(b, factor.x.x);
            }
            real += re.folded();
            imag += im.folded();
        }
        uint64* sums = proof.sums + batch * proof.sum_batch + first_k + k;
        atomicAdd(sums, uint64(real));
        atomicAdd(sums + (proof.sum_batch >> 1), uint64(imag));
    }
}
