// Products of a warpgroup with Hankel matrices.
//
// wgmma<sign>(sums, rows, columns, keep) of plan.columns() stands before this header (dft_plan.py).
#pragma once
#include "device/warpgroup.cuh"
#include "folded_product.cuh"
#include "hankel_plan.cuh"
#include "tile_scheduler.cuh"

// The terms of e or o of a slice, as wgmma takes rows: (row, k) of (g, 2 t), (g + 8, 2 t), and 8 on.
template <Products products>
struct HankelRows {
    uint32 words[products.terms][4];

    // The first `Terms` of them.
    template <int Terms>
    __device__ __forceinline__ void put(int i, float low, float high) {
        if constexpr (products.operand == Operand::bf16) {
            words[0][i] = pack_bf16(low, high);
        } else {
            words[0][i] = pack_fp16(low, high);
            if constexpr (Terms == 2) {
                const float2 big = fp16_values(words[0][i]);
                words[1][i] = pack_fp16(low - big.x, high - big.y);
            }
        }
    }

    // Keeps the compiler from moving what makes them past the products of other slices.
    template <int Terms>
    __device__ __forceinline__ void settle() {
#pragma unroll
        for (int i = 0; i < 4 * Terms; ++i) asm volatile("" : "+r"(words[i / 4][i % 4]));
    }
};

// What a lane folds of a slice: numbers of its transform, and their mirror images.
struct HankelPairs {
    float2 x[4], y[4];

    // `places` are those of the lane's first two k.
    template <HankelPlan plan>
    __device__ __forceinline__ void read(const unsigned char* line, const uint32* places, int slice,
                                         int t) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const uint32 pair = places[8 * slice + 4 * (i / 2)];
            const uint32 at = i % 2 ? pair >> 16 : pair & 0xffffu;
            x[i] = *reinterpret_cast<const float2*>(line + at);
            y[i] = *reinterpret_cast<const float2*>(line + (8 * plan.length - at));
            if (plan.ragged() && 16 * slice + 8 * (i / 2) + 2 * t + i % 2 >= plan.half())
                x[i] = y[i] = {0.0f, 0.0f};
        }
    }

    // The first `Terms` of e and o; one of two where they are folded once more. `total` is e's sum.
    template <int Terms, Products products>
    __device__ __forceinline__ void fold(HankelRows<products>& even, HankelRows<products>& odd,
                                         float2& total, float scale) const {
#pragma unroll
        for (int word = 0; word < 2; ++word) {
            float2 e[2], o[2];
#pragma unroll
            for (int c = 0; c < 2; ++c) {
                fold_pair<products>(x[2 * word + c], y[2 * word + c], scale, e[c], o[c]);
                if constexpr (Terms == products.terms) {
                    total.x += e[c].x;
                    total.y += e[c].y;
                }
            }
            even.template put<Terms>(2 * word, e[0].x, e[1].x);
            even.template put<Terms>(2 * word + 1, e[0].y, e[1].y);
            odd.template put<Terms>(2 * word, o[0].y, o[1].y);
            odd.template put<Terms>(2 * word + 1, o[0].x, o[1].x);
        }
        even.template settle<Terms>();
        odd.template settle<Terms>();
    }
};

// Tiles of 8 x 8 without gaps: from one to the next 128 bytes, along k and along the columns.
__device__ __forceinline__ uint64 describe_cores(uint32 address) {
    return uint64(8) << 32 | 8u << 16 | (address & 0x3ffff) >> 4;
}

// The sums of a warpgroup's columns: P and Q.
//
// Tensor cores cut what they add towards zero, by a part of the last place of the sum. So the small
// products of all slices are summed before the first large one, while sums have small places.
template <HankelPlan plan>
struct HankelSums {
    static constexpr int kCount = plan.columns() / 2;
    static constexpr int kTerms = plan.products.terms, kPlane = plan.cores() * 128;
    using Rows = HankelRows<plan.products>;
    float p[kCount], q[kCount];

    // Of the rows' term `Own` and the table's term `Other`, added to what is there where `keep`.
    template <int Own, int Other>
    __device__ __forceinline__ void product(const Rows& even, const Rows& odd, uint32 table, int slice,
                                            int keep) {
        const uint32 at = table + 256 * slice;
        wgmma<1>(p, even.words[Own], describe_cores(at + Other * kPlane), keep);
        wgmma<1>(q, odd.words[Own], describe_cores(at + (kTerms + Other) * kPlane), keep);
    }

    // What comes first: the small products of two terms, all of one.
    __device__ __forceinline__ void multiply(const Rows& even, const Rows& odd, uint32 table,
                                             int slice) {
        const int later = slice != 0;
        wgmma_fence();
        if constexpr (kTerms == 2) {
            product<1, 0>(even, odd, table, slice, later);
            product<0, 1>(even, odd, table, slice, 1);
        } else {
            product<0, 0>(even, odd, table, slice, later);
        }
        wgmma_commit();
    }

    __device__ __forceinline__ void multiply_large(const Rows& even, const Rows& odd, uint32 table,
                                                   int slice) {
        wgmma_fence();
        product<0, 0>(even, odd, table, slice, 1);
        wgmma_commit();
    }

    __device__ __forceinline__ void finish() {
        wgmma_wait<0>();
        settle(p);
        settle(q);
    }

    // The power of four below what has been summed so far, twice: 8 bits of each sum, four in a word. Sums
    // go on with what is left.
    uint32 put_aside[plan.aside ? kCount / 2 : 1];

    __device__ __forceinline__ void start_anew() {
        finish();
#pragma unroll
        for (int i = 0; i < kCount; i += 2)
            put_aside[i / 2] = __byte_perm(__byte_perm(take(p[i]), take(p[i + 1]), 0x0073),
                                           __byte_perm(take(q[i]), take(q[i + 1]), 0x0073), 0x5410);
    }

    // What was put aside is added again, less by what it was given back too much.
    __device__ __forceinline__ void add_aside(float factor) {
#pragma unroll
        for (int i = 0; i < kCount; i += 2) {
            const uint32 word = put_aside[i / 2];
            p[i] = fmaf(__uint_as_float(__byte_perm(word, 0x00800000u, 0x0654)), factor, p[i]);
            p[i + 1] = fmaf(__uint_as_float(__byte_perm(word, 0x00800000u, 0x1654)), factor, p[i + 1]);
            q[i] = fmaf(__uint_as_float(__byte_perm(word, 0x00800000u, 0x2654)), factor, q[i]);
            q[i + 1] = fmaf(__uint_as_float(__byte_perm(word, 0x00800000u, 0x3654)), factor, q[i + 1]);
        }
    }

    // A sum's sign and the upper bits of its exponent are the first of its bytes.
    static __device__ __forceinline__ uint32 take(float& sum) {
        const uint32 bits = __float_as_uint(sum);
        sum -= __uint_as_float((bits & 0xff000000u) | 0x00800000u);
        return bits;
    }
};

// `work(Rows, slice)` for slices from `First` to `Last`, two at a time with rows 0 and 1: rows of one are
// made while products of the other run. What uses rows waits until all but the latest `Pending` groups
// of products are done.
template <int Rows, int Pending>
struct SliceRows {
    static constexpr int index = Rows, pending = Pending;
};

template <int First, int Last, typename Work>
__device__ __forceinline__ void each_slice(Work work) {
#pragma unroll 1
    for (int slice = First; slice + 1 < Last; slice += 2) {
        work(SliceRows<0, 1>{}, slice);
        work(SliceRows<1, 1>{}, slice + 1);
    }
    // Else the compiler has all products wait for each other.
    if constexpr ((Last - First) % 2) work(SliceRows<0, 0>{}, Last - 1);
}
