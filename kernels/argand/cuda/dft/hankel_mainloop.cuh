// The mainloop of the Hankel kernel (hankel.cuh): a lane folds a k-tile of its transform into
// fragments, and a warpgroup multiplies them by core matrices of the table by wgmma.
//
// argand/dft/plan.py writes the instruction in front of this header: wgmma<sign>(accumulators,
// rows, columns, accumulate) of plan.columns() columns.
#pragma once
#include "device/warpgroup.cuh"
#include "folded_product.cuh"
#include "hankel_plan.cuh"
#include "tile_scheduler.cuh"

// The A fragment of the terms of e or o of a k-tile: (row, k) = (g, 2 t), (g + 8, 2 t), then k + 8.
template <Precision precision>
struct HankelFragment {
    uint32 words[precision.terms][4];

    // Stores the first `Terms` terms.
    template <int Terms>
    __device__ __forceinline__ void store(int i, float low, float high) {
        const float pair[2] = {low, high};
        uint32 of_register[Terms];
        split<precision.operand, Terms, precision.roundings[0], precision.roundings[1], true>(
            pair, of_register);
#pragma unroll
        for (int term = 0; term < Terms; ++term) words[term][i] = of_register[term];
    }

    // Keeps the compiler from moving the instructions that compute the fragment past other MMAs.
    template <int Terms>
    __device__ __forceinline__ void settle() {
#pragma unroll
        for (int i = 0; i < 4 * Terms; ++i) asm volatile("" : "+r"(words[i / 4][i % 4]));
    }
};

// The fragments of e and of o of a k-tile.
template <Precision precision>
struct FoldedFragments {
    HankelFragment<precision> even, odd;
};

// Elements of a k-tile that a lane folds, and their mirror images.
struct MirroredPairs {
    float2 x[4], y[4];

    // `offsets` points to those of the lane's first two k. `MayBeLast` says whether the k-tile may
    // be the last one, whose numbers past half the length are zeros. Selects in every k-tile would
    // add a tenth to the instructions of the mainloop.
    template <HankelPlan plan, bool MayBeLast>
    __device__ __forceinline__ void load(const unsigned char* line, const uint32* offsets,
                                         int k_tile, int t) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const uint32 pair = offsets[8 * k_tile + 4 * (i / 2)];
            const uint32 at = i % 2 ? pair >> 16 : pair & 0xffffu;
            x[i] = *reinterpret_cast<const float2*>(line + at);
            y[i] = *reinterpret_cast<const float2*>(line + (8 * plan.length - at));
            const int k = 8 * (i / 2) + 2 * t + i % 2, largest_k = 8 * (i / 2) + 6 + i % 2;
            if (MayBeLast && plan.has_partial_k_tile() && largest_k >= plan.half_length() % 16 &&
                16 * k_tile + k >= plan.half_length())
                x[i] = y[i] = {0.0f, 0.0f};
        }
    }

    // Folds into the first `Terms` terms of e and o; into one of two where the k-tile is folded a
    // second time. `even_sum` accumulates e the first time.
    template <int Terms, Precision precision>
    __device__ __forceinline__ void make_fragments(FoldedFragments<precision>& fragments,
                                                   float2& even_sum, float scale) const {
        auto& even = fragments.even;
        auto& odd = fragments.odd;
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

// The matrix descriptor without swizzle: core matrices, of 8 rows by 16 bytes, are 128 bytes apart
// along k (bits 16-29, in 16 bytes) and along columns (bits 32-45; PTX ISA, matrix descriptor).
__device__ __forceinline__ uint64 core_matrix_descriptor(uint32 address) {
    return uint64(8) << 32 | 8u << 16 | (address & 0x3ffff) >> 4;
}

// The accumulators of a warpgroup's columns, P and Q (folded_product.cuh). Each MMA truncates the
// accumulator in proportion to its size, so the products with low-order terms of all k-tiles are
// accumulated in a first pass, while accumulators are small.
template <HankelPlan plan>
struct HankelAccumulator {
    static constexpr int kCount = plan.columns() / 2;
    static constexpr int kTerms = plan.precision.terms, kTermBytes = plan.core_matrices() * 128;
    using Fragments = FoldedFragments<plan.precision>;
    float p[kCount], q[kCount];

    // MMAs of one term of the fragment and one of the table.
    template <int FragmentTerm, int TableTerm>
    __device__ __forceinline__ void mma_terms(const Fragments& fragments, uint32 table, int k_tile,
                                              int accumulate) {
        const uint32 at = table + 256 * k_tile;
        wgmma<1>(p, fragments.even.words[FragmentTerm],
                 core_matrix_descriptor(at + TableTerm * kTermBytes), accumulate);
        wgmma<1>(q, fragments.odd.words[FragmentTerm],
                 core_matrix_descriptor(at + (kTerms + TableTerm) * kTermBytes), accumulate);
    }

    // The first pass: products with low-order terms of two, all products of one.
    __device__ __forceinline__ void mma_first_pass(const Fragments& fragments, uint32 table,
                                                   int k_tile) {
        const int accumulate = k_tile != 0;
        wgmma_fence();
        if constexpr (kTerms == 2) {
            mma_terms<1, 0>(fragments, table, k_tile, accumulate);
            mma_terms<0, 1>(fragments, table, k_tile, 1);
        } else {
            mma_terms<0, 0>(fragments, table, k_tile, accumulate);
        }
        wgmma_commit();
    }

    __device__ __forceinline__ void mma_high_order(const Fragments& fragments, uint32 table,
                                                   int k_tile) {
        wgmma_fence();
        mma_terms<0, 0>(fragments, table, k_tile, 1);
        wgmma_commit();
    }

    __device__ __forceinline__ void finish() {
        wgmma_wait<0>();
        wgmma_fence_operand(p);
        wgmma_fence_operand(q);
    }

    // Promotion, once in a long mainloop: the leading power of each accumulator moves out of it, so
    // that later MMAs truncate a smaller one. The power is the sign and the upper seven bits of the
    // exponent, 8 bits of each accumulator, four in a word.
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

    // Adds the promoted powers again. `scale` removes the bias compensation of truncations that
    // they did not go through.
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

    // Subtracts the leading power from an accumulator. The highest byte of the returned word holds
    // it.
    static __device__ __forceinline__ uint32 split_leading_bits(float& accumulator) {
        const uint32 bits = __float_as_uint(accumulator);
        accumulator -= __uint_as_float((bits & 0xff000000u) | 0x00800000u);
        return bits;
    }
};

// `body(slot, k_tile)` for k-tiles from First to Last, alternating between fragments 0 and 1: one
// fragment is computed while the MMAs of the other run. Before a fragment is overwritten, all but
// the latest `pending` groups of MMAs have to be complete. Where `may_be_last` is false, the k-tile
// is not Last - 1.
template <int Index, int Pending, bool MayBeLast>
struct FragmentSlot {
    static constexpr int index = Index, pending = Pending;
    static constexpr bool may_be_last = MayBeLast;
};

template <int First, int Last, typename Body>
__device__ __forceinline__ void for_each_k_tile(Body body) {
#pragma unroll 1
    for (int k_tile = First; k_tile + 1 < Last; k_tile += 2) {
        body(FragmentSlot<0, 1, false>{}, k_tile);
        body(FragmentSlot<1, 1, (Last - First) % 2 == 0>{}, k_tile + 1);
    }
    // No group may be pending here: the compiler would serialise all MMAs.
    if constexpr ((Last - First) % 2) body(FragmentSlot<0, 0, true>{}, Last - 1);
}

// The mainloop of a lane: it folds its transform k-tile after k-tile while the warpgroup's MMAs of
// the k-tile before run. With two terms it does so twice, because the products with low-order terms
// come first; the high-order fragments of the first k-tiles stay in registers for the second pass.
template <HankelPlan plan>
struct HankelMainloop {
    static constexpr int kTerms = plan.precision.terms, kCachedKTiles = plan.cached_k_tiles;
    const unsigned char* line;      // the lane's transform
    const uint32* gather_offsets;   // of the lane's first two k
    uint32 table;                   // address of the warpgroup's columns in shared memory
    int t;                          // lane of its quad
    float scale;                    // power of two that the transform is multiplied by
    HankelAccumulator<plan> accumulator;
    float2 even_sum;                // sum of the lane's e
    MirroredPairs pairs;
    FoldedFragments<plan.precision> fragments[2], cached[kCachedKTiles ? kCachedKTiles : 1];

    // Loads a k-tile and folds it into its first `Terms` terms, as soon as all but the latest
    // `Pending` groups of MMAs are complete, which may read the fragments.
    template <int Terms, int Pending, bool MayBeLast>
    __device__ __forceinline__ void fold(int k_tile, FoldedFragments<plan.precision>& folded) {
        pairs.load<plan, MayBeLast>(line, gather_offsets, k_tile, t);
        wgmma_wait<Pending>();
        pairs.make_fragments<Terms>(folded, even_sum, scale);
    }

    __device__ __forceinline__ void run() {
        even_sum = {0.0f, 0.0f};
#pragma unroll
        for (int k_tile = 0; k_tile < kCachedKTiles; ++k_tile) {
            fold<kTerms, 1, true>(k_tile, cached[k_tile]);
            accumulator.mma_first_pass(cached[k_tile], table, k_tile);
        }
        for_each_k_tile<kCachedKTiles, plan.num_k_tiles()>([&](auto slot, int k_tile) {
            fold<kTerms, slot.pending, slot.may_be_last>(k_tile, fragments[slot.index]);
            accumulator.mma_first_pass(fragments[slot.index], table, k_tile);
        });
        if constexpr (kTerms == 2) run_high_order();
    }

    __device__ __forceinline__ void run_high_order() {
#pragma unroll
        for (int k_tile = 0; k_tile < kCachedKTiles; ++k_tile)
            accumulator.mma_high_order(cached[k_tile], table, k_tile);
        for_each_k_tile<kCachedKTiles, plan.num_k_tiles()>([&](auto slot, int k_tile) {
            if constexpr (plan.promotion_k_tile && slot.index == 0)
                if (k_tile == plan.promotion_k_tile) accumulator.promote();
            fold<1, slot.pending, slot.may_be_last>(k_tile, fragments[slot.index]);
            accumulator.mma_high_order(fragments[slot.index], table, k_tile);
        });
    }

    // Waits for the MMAs and completes the sums. `bias_step` is the table's bias compensation of
    // 1 / 16 of a k-tile, which promoted powers do not need for the k-tiles after the promotion.
    __device__ __forceinline__ void finish(float bias_step) {
        even_sum = quad_sum(even_sum);
        accumulator.finish();
        if constexpr (plan.promotion_k_tile)
            accumulator.add_promoted(
                1.0f - 16 * (plan.num_k_tiles() - plan.promotion_k_tile) * bias_step);
    }
};
