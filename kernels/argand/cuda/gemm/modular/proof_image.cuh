// B' x and A'(B' x) of a proof: products of an operand's integers, rounded again, and a vector
// modulo the prime.
#pragma once
#include "proof.cuh"

struct ImageArguments {
    const void* x;         // the operand: lines by k
    const int* exponents;  // (batches, lines)
    const uint2* column;   // of lines: what B' multiplies
    const uint64* vector;  // (batches, 2, k): what A' multiplies
    uint64* sums;          // (batches, 2, k) of B', real parts (batches, lines) of A'
    int64 line_stride, k_stride, batch_stride;
    int64 exponent_batch, vector_batch, sum_batch;
    int lines, k, batches, conjugate;
};

// A number below 2^32 that is congruent to a sum below 2^62.
__device__ __forceinline__ uint32 below_word(uint64 x) {
    return uint32(x & kPrime) + uint32(x >> 31);
}

// Terms of a sum that a warp adds before it adds to memory.
template <bool lanes_sum>
constexpr int kImageTerms = lanes_sum ? 1024 : 256;

// Sums of a warp: lanes hold terms of each, or each lane has one of its own.
template <bool lanes_sum>
constexpr int kImageSums = lanes_sum ? 2 : kWarp;

// Adds what a warp has of its sums to memory: of B' both parts, of A' the real part with a minus.
// `outs` is the number of sums, `first` the lane's first one.
template <bool lines_summed, bool lanes_sum, int Count>
__device__ __forceinline__ void add_sums(const ImageArguments& args, int batch, int first, int outs,
                                         const int (&own_exponents)[Count],
                                         ProofSum<false> (&re)[Count],
                                         ProofSum<false> (&im)[Count]) {
    const int lane = threadIdx.x % kWarp;
#pragma unroll
    for (int i = 0; i < Count; ++i) {
        const bool finite = own_exponents[i] != kNotFinite;
        uint64 sums[2] = {finite ? modulo(re[i].folded()) : 0, finite ? modulo(im[i].folded()) : 0};
        constexpr int kParts = lines_summed ? 2 : 1;
#pragma unroll
        for (int part = 0; part < kParts; ++part) {
            if (!lines_summed) sums[part] = kPrime - sums[part];
            if (lanes_sum) sums[part] = warp_sum(sums[part]);
            if (first + i < outs && (!lanes_sum || lane == 0)) {
                atomicAdd(args.sums + batch * args.sum_batch + int64(part) * args.k + first + i,
                          sums[part]);
            }
        }
    }
}

// Adds B' x to the sums (lines_summed), or subtracts the real part of A' times a vector. T is the
// type in which the integers are rounded. Lanes read what is contiguous: terms of a sum, or several
// sums.
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
    ProofSum<false> re[kOwn], im[kOwn];
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
        const int out = min(first + i, outs - 1);  // what lies beyond is not stored
        source[i] = static_cast<const Complex<Source>*>(args.x) + batch * args.batch_stride +
                    out * out_stride;
        own_exponents[i] = lines_summed ? 0 : exponents[out];
    }
#pragma unroll 4
    for (int term = first_term + (lanes_sum ? lane : 0); term < end;
         term += lanes_sum ? kWarp : 1) {
        const int exponent = lines_summed ? exponents[term] : 0;
        uint2 v{};
        if (lines_summed) {
            if (exponent != kNotFinite) v = args.column[term];
        } else {
            const uint64* at = args.vector + batch * args.vector_batch + term;
            v = {below_word(at[0]), below_word(at[args.k])};
        }
#pragma unroll
        for (int i = 0; i < kOwn; ++i) {
            const int power = lines_summed ? exponent : own_exponents[i];
            const PowerOfTwo<T> scale(power == kNotFinite ? 0 : power);
            const Complex<Source> x = source[i][term * term_stride];
            const int a = congruent(nearest_integer(scale(T(x.x))));
            const int b = congruent(nearest_integer(scale(T(args.conjugate ? -x.y : x.y))));
            re[i].add(a, v.x);
            re[i].add(-b, v.y);
            if (lines_summed) {
                im[i].add(a, v.y);
                im[i].add(b, v.x);
            }
        }
    }
    add_sums<lines_summed, lanes_sum>(args, batch, first, outs, own_exponents, re, im);
}
