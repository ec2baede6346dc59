// Complex matrix products with mma.sync, for every card from sm_80 on: one kernel for tf32, 3xtf32,
// 3xfp16, fp16 and bf16. It is one launch, except that scaled precisions with a long k need the
// absmax kernel before (absmax_kernel.cuh).
//
// A block computes one tile, or the blocks of a cluster a slice of its k each. A ring of
// shared-memory stages receives raw tiles by cp.async, and each warp rounds, splits and scales the
// fragments that it loads. A complex product is four real ones: re += ar br, re += ai (-bi), im +=
// ar bi, im += ai br, for each pair of terms that the precision keeps.
#pragma once
#include "sm80_mainloop.cuh"
#include "sm80_scheduler.cuh"
#include "sm80_slices.cuh"

// The kernel: one block computes one block_m x block_n tile of one product, or a slice of its k.
template <MmaPlan plan>
__device__ __forceinline__ void gemm_mma(const GemmArguments& args) {
    static_assert(plan.block_k % kMmaK<plan.operand> == 0, "a k-tile must be whole MMAs");
    static_assert(plan.promotion_interval % plan.block_k == 0,
                  "promotion must fall between k-tiles");
    extern __shared__ __align__(16) float2 stages[];
    using Size = Stride<plan>;
    const Sizes<plan> sizes(args);
    const Tile<plan> tile = tile_at<plan>(args);
    const KTiles<plan> k_tiles = k_tiles_at<plan>(args, sizes.k);
    Mainloop<plan> mainloop(args, tile, sizes, k_tiles, stages);
    const Lane<plan> lane;
    // The columns of a triangle are those of A^H.
    const float b_sign = plan.one_tile || args.conjugate_b ? -1.0f : 1.0f;
    mainloop.load_first();
    // After the first loads are issued, which it does not wait for.
    const SliceExchange<plan> exchange;
    const LaneOperands<plan> operands(lane, stages);
    Scales<plan> scales(args, tile);
    if constexpr (plan.finds_absmax) scales.find_absmax(tile, sizes, k_tiles, stages);
    if constexpr (plan.scaled) scales.read(tile, sizes, lane.a_row, lane.b_column);

    Accumulators<plan> mma, fp32;
    mainloop.template run<plan.splits_by_products()>(operands, scales, b_sign, mma, fp32);
    Accumulators<plan>& accumulators = plan.promotes() ? fp32 : mma;
    const Size row0 = tile.m0 + lane.a_row;
    const int first_column = lane.result_column();
    if constexpr (plan.splits_by_products()) {
        const int rows_left = static_cast<int>(min(sizes.m - row0, Size(plan.block_m)));
        const int columns_left =
            static_cast<int>(min(sizes.n - tile.n0, Size(plan.block_n))) - first_column;
        const bool finite = accumulators.finite(rows_left, columns_left);
        if constexpr (plan.whole_k > 0) {
            // The stages still hold all of k, so each warp sees to its own results.
            if (!__all_sync(~0u, finite))
                mainloop.template run<false>(operands, scales, b_sign, mma, fp32);
        } else if (__syncthreads_or(!finite)) {
            // No stage is read any more, and none is being filled.
            mainloop = Mainloop<plan>(args, tile, sizes, k_tiles, stages);
            mainloop.template load_first<true>();
            mainloop.template run<false>(operands, scales, b_sign, mma, fp32);
        }
    }

    if (args.conjugate_result) accumulators.conjugate();
    if constexpr (plan.sliced()) {
        __syncthreads();  // no stage is read any more
        // The addresses again: kept through the mainloop they would spill at two terms.
        if constexpr (plan.scaled && !plan.finds_absmax)
            scales.locate(args, tile, static_cast<Size>(opaque(static_cast<uint32>(tile.batch))));
        reduce_and_store<plan>(args, tile, scales, accumulators, stages, exchange);
    } else {
        store_accumulators<plan>(args, accumulators, tile.batch, row0, tile.n0 + first_column,
                                 scales.a_exponent, scales.b_absmax + first_column, stages);
    }
}
