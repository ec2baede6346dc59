// The part of encoding in a proof (proof.cuh): A'(B' x) of a line whose integers a warp
// holds, and B' x of lines that lie transposed in shared memory.
#pragma once
#include "proof.cuh"

struct EncodeProof {
    // Modulo kPrime: x of B's lines; or of A B' x, of each product or of all, in whole blocks of k.
    const uint32* vector;
    uint64* sums;  // of B (batches, k, 2), which are added to; of A (batches, lines, 2), subtracted from
    int64 vector_batch, sum_batch;  // numbers from product to product
};

// Subtracts the product of a block of a line of A and B' x from the line's sums. A lane holds the
// integers l, l + 32, ... of the block. All lanes of a warp.
template <typename Integer>
__device__ __forceinline__ void subtract_line_image(const EncodeProof& proof,
                                                    const Integer (&re)[kLineNumbers],
                                                    const Integer (&im)[kLineNumbers], int batch,
                                                    int line, int block) {
    const int lane = threadIdx.x % kWarp;
    const uint2* vector =
        reinterpret_cast<const uint2*>(proof.vector + batch * proof.vector_batch) +
        block * kLineBlock + lane;
    ProofSum<kSmallIntegers> real, imag;
#pragma unroll
    for (int i = 0; i < kLineNumbers; ++i) {
        // Numbers beyond k are multiplied by 0.
        const uint2 y = vector[i * kWarp];
        const int a = congruent(re[i]), b = congruent(im[i]);
        real.add(a, y.x);
        real.add(-b, y.y);
        imag.add(a, y.y);
        imag.add(b, y.x);
    }
    uint64* sums = proof.sums + batch * proof.sum_batch + 2 * int64(line);
    // A folded number is below 2^33, which eight times the prime exceeds.
    const uint64 first = warp_sum(uint64(8 * kPrime - real.folded()));
    const uint64 second = warp_sum(uint64(8 * kPrime - imag.folded()));
    if (lane < 2) atomicAdd(sums + lane, lane == 0 ? first : second);
}

// The scale of a line's numbers, and its number of x; zero where it does not count.
template <typename T>
struct LineFactor {
    T first, second;
    uint32 x;
};

template <typename T>
__device__ __forceinline__ LineFactor<T> line_factor(const EncodeProof& proof, int line,
                                                     int exponent) {
    const bool counts = exponent != kNotFinite;
    const PowerOfTwo<T> scale(counts ? exponent : 0);
    return {scale.first, scale.second, counts ? proof.vector[line] : 0};
}

// Adds the lines of a tile to B' x, from `first_k` on, a thread those at one k. All threads of a CTA,
// after a barrier behind the last store to the tile or the factors.
template <typename T, typename Source, int lines, int pitch>
__device__ __forceinline__ void add_image_of_lines(const EncodeProof& proof,
                                                   const Complex<Source>* tile,
                                                   const LineFactor<T>* factors, bool conjugate,
                                                   int batch, int first_k, int count) {
    static_assert(lines <= 2 * kLineNumbers, "so many products are added in 64 bits");
    for (int k = threadIdx.x; k < count; k += blockDim.x) {
        ProofSum<kSmallIntegers> re, im;
#pragma unroll 4
        for (int line = 0; line < lines; ++line) {
            const LineFactor<T> factor = factors[line];
            const Complex<Source> x = tile[line * pitch + k];
            const PowerOfTwo<T> scale(factor.first, factor.second);
            re.add(congruent(nearest_integer(scale(T(x.x)))), factor.x);
            im.add(congruent(nearest_integer(scale(T(conjugate ? -x.y : x.y)))), factor.x);
        }
        uint64* sums = proof.sums + batch * proof.sum_batch + 2 * int64(first_k + k);
        // A folded number is above -2^32, which four times the prime keeps positive.
        atomicAdd(sums, uint64(re.folded() + 4 * kPrime));
        atomicAdd(sums + 1, uint64(im.folded() + 4 * kPrime));
    }
}
