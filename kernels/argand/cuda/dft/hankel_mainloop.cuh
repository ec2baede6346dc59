// Products of a warpgroup with Hankel matrices.
//
// wgmma<sign>(sums, rows, columns, keep) of plan.columns() stands before this header (dft_plan.py).
#pragma once
#include "device/warpgroup.cuh"
#include "folded_product.cuh"
#include "hankel_plan.cuh"
#include "tile_scheduler.cuh"

// The terms of e or o of a slice, as wgmma takes rows: (row, k) of (g, 2 t), (g + 8, 2 t), and 8 on.
template <Precision precision>
struct HankelFragment {
    uint32 words[precision.terms][4];

    // The first `Terms` of them.
    template <int Terms>
    __device__ __forceinline__ void store(int i, float low, float high) {
        if constexpr (precision.operand == Operand::bf16) {
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
struct MirroredPairs {
    float2 x[4], y[4];

    // `places` are those of the lane's first two k.
    template <HankelPlan plan>
    __device__ __forceinline__ void load(const unsigned char* line, const uint32* offsets,
                                         int k_tile, int t) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const uint32 pair = offsets[8 * k_tile + 4 * (i / 2)];
            const uint32 at = i % 2 ? pair >> 16 : pair & 0xffffu;
            x[i] = *reinterpret_cast<const float2*>(line + at);
            y[i] = *reinterpret_cast<const float2*>(line + (8 * plan.length - at));
            if (plan.has_partial_k_tile() &&
                16 * k_tile + 8 * (i / 2) + 2 * t + i % 2 >= plan.half_length())
                x[i] = y[i] = {0.0f, 0.0f};
        }
    }

    // The first `Terms` of e and o; one of two where they are folded once more. `total` is e's sum.
    template <int Terms, Precision precision>
    __device__ __forceinline__ void make_fragments(HankelFragment<precision>& even,
                                                   HankelFragment<precision>& odd, float2& even_sum,
                                                   float scale) const {
#pragma unroll
        for (int word = 0; word < 2; ++word) {
            float2 e[2], o[2];
#pragma unroll
            for (int c = 0; c < 2; ++c) {
                fold_pair<precision>(x[2 * word + c], y[2 * word + c], scale, e[c], o[c]);
                if constexpr (Terms == precision.terms) {
                    even_sum.x += e[c].x;
                    even_sum.y += e[c].y;
                }
            }
            even.template store<Terms>(2 * word, e[0].x, e[1].x);
            even.template store<Terms>(2 * word + 1, e[0].y, e[1].y);
            odd.template store<Terms>(2 * word, o[0].y, o[1].y);
            odd.template store<Terms>(2 * word + 1, o[0].x, o[1].x);
        }
        even.template settle<Terms>();
        odd.template settle<Terms>();
    }
};

// Tiles of 8 x 8 without gaps: from one to the next 128 bytes, along k and along the columns.
__device__ __forceinline__ uint64 core_matrix_descriptor(uint32 address) {
    return uint64(8) << 32 | 8u << 16 | (address & 0x3ffff) >> 4;
}

// The sums of a warpgroup's columns: P and Q.
//
// Tensor cores cut what they add towards zero, by a part of the last place of the sum. So the small
// products of all slices are summed before the first large one, while sums have small places.
template <HankelPlan plan>
struct HankelAccumulator {
    static constexpr int kCount = plan.columns() / 2;
    static constexpr int kTerms = plan.precision.terms, kTermBytes = plan.core_matrices() * 128;
    using Fragment = HankelFragment<plan.precision>;
    float p[kCount], q[kCount];

    // Of the rows' term `Own` and the table's term `Other`, added to what is there where `keep`.
    template <int FragmentTerm, int TableTerm>
    __device__ __forceinline__ void mma_terms(const Fragment& even, const Fragment& odd,
                                              uint32 table, int k_tile, int accumulate) {
        const uint32 at = table + 256 * k_tile;
        wgmma<1>(p, even.words[FragmentTerm], core_matrix_descriptor(at + TableTerm * kTermBytes),
                 accumulate);
        wgmma<1>(q, odd.words[FragmentTerm],
                 core_matrix_descriptor(at + (kTerms + TableTerm) * kTermBytes), accumulate);
    }

    // What comes first: the small products of two terms, all of one.
    __device__ __forceinline__ void mma_first_pass(const Fragment& even, const Fragment& odd,
                                                   uint32 table, int k_tile) {
        const int accumulate = k_tile != 0;
        wgmma_fence();
        if constexpr (kTerms == 2) {
            mma_terms<1, 0>(even, odd, table, k_tile, accumulate);
            mma_terms<0, 1>(even, odd, table, k_tile, 1);
        } else {
            mma_terms<0, 0>(even, odd, table, k_tile, accumulate);
        }
        wgmma_commit();
    }

    __device__ __forceinline__ void mma_high_order(const Fragment& even, const Fragment& odd,
                                                   uint32 table, int k_tile) {
        wgmma_fence();
        mma_terms<0, 0>(even, odd, table, k_tile, 1);
        wgmma_commit();
    }

    __device__ __forceinline__ void finish() {
        wgmma_wait<0>();
        settle(p);
        settle(q);
    }

    // The power of four below what has been summed so far, twice: 8 bits of each sum, four in a word. Sums
    // go on with what is left.
    uint32 promoted[plan.promotion_k_tile ? kCount / 2 : 1];

    __device__ __forceinline__ void promote() {
        finish();
#pragma unroll
        for (int i = 0; i < kCount; i += 2)
            promoted[i / 2] = __byte_perm(
                __byte_perm(split_leading_bits(p[i]), split_leading_bits(p[i + 1]), 0x0073),
                __byte_perm(split_leading_bits(q[i]), split_leading_bits(q[i + 1]), 0x0073),
                0x5410);
    }

    // What was put aside is added again, less by what it was given back too much.
    __device__ __forceinline__ void add_promoted(float scale) {
#pragma unroll
        for (int i = 0; i < kCount; i += 2) {
            const uint32 word = promoted[i / 2];
            p[i] = fmaf(__uint_as_float(__byte_perm(word, 0x00800000u, 0x0654)), scale, p[i]);
            p[i + 1] =
                fmaf(__uint_as_float(__byte_perm(word, 0x00800000u, 0x1654)), scale, p[i + 1]);
            q[i] = fmaf(__uint_as_float(__byte_perm(word, 0x00800000u, 0x2654)), scale, q[i]);
            q[i + 1] =
                fmaf(__uint_as_float(__byte_perm(word, 0x00800000u, 0x3654)), scale, q[i + 1]);
        }
    }

    // A sum's sign and the upper bits of its exponent are the first of its bytes.
    static __device__ __forceinline__ uint32 split_leading_bits(float& accumulator) {
        const uint32 bits = __float_as_uint(accumulator);
        accumulator -= __uint_as_float((bits & 0xff000000u) | 0x00800000u);
        return bits;
    }
};

// `work(Rows, slice)` for slices from `First` to `Last`, two at a time with rows 0 and 1: rows of one are
// made while products of the other run. What uses rows waits until all but the latest `Pending` groups
// of products are done.
template <int Index, int Pending>
struct FragmentSlot {
    static constexpr int index = Index, pending = Pending;
};

template <int First, int Last, typename Body>
__device__ __forceinline__ void for_each_k_tile(Body body) {
#pragma unroll 1
    for (int k_tile = First; k_tile + 1 < Last; k_tile += 2) {
        body(FragmentSlot<0, 1>{}, k_tile);
        body(FragmentSlot<1, 1>{}, k_tile + 1);
    }
    // Else the compiler has all products wait for each other.
    if constexpr ((Last - First) % 2) body(FragmentSlot<0, 0>{}, Last - 1);
}
