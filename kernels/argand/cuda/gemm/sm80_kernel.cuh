// Complex matrix products with mma.sync, for every card from sm_80 on: one kernel for tf32, 3xtf32,
// 3xfp16, fp16 and bf16. It is one launch, except that scaled precisions with a long k need the
// absmax scan before (absmax_scan.cuh).
//
// A block computes one tile, or the blocks of a cluster a slice of its k each. A ring of
// shared-memory stages receives raw tiles by cp.async, and each warp rounds, splits and scales the
// fragments that it loads. A complex product is four real ones: re += ar br, re += ai (-bi), im +=
// ar bi, im += ai br, for each pair of terms that the precision keeps.
#pragma once
#include "device/conditional.cuh"
#include "device/quotient.cuh"
#include "sm80_slices.cuh"
#include "triangle.cuh"

// Rasterization: tiles run in groups of `kRasterGroupM` tile rows, so that concurrent tiles share
// columns of B in L2.
constexpr uint32 kRasterGroupM = 8;

// The tile that a block computes, alone or with the other blocks of its cluster.
template <MmaPlan plan>
struct Tile {
    Stride<plan> batch, m0, n0;
};

// Tiles of `Size` in a length. Unsigned, because a signed division has to round to zero.
template <int Size>
__device__ __forceinline__ uint32 tiles_of(int64 length) {
    return static_cast<uint32>((static_cast<uint64>(length) + (Size - 1)) / Size);
}
template <int Size>
__device__ __forceinline__ uint32 tiles_of(int length) {
    return (static_cast<uint32>(length) + (Size - 1)) / Size;
}

// The number of the block's tile in the launch.
template <MmaPlan plan>
__device__ __forceinline__ uint32 tile_number(const GemmArguments& args) {
    const uint32 cluster = blockIdx.x / plan.split_k_slices;
    return plan.grid_split ? cluster / args.grid_slices : cluster;
}

template <MmaPlan plan>
__device__ __forceinline__ Tile<plan> tile_at(const GemmArguments& args) {
    using Size = Stride<plan>;
    const auto first_batch = static_cast<Size>(args.first_batch);
    // The number of blocks fits 32 bits, in which divisions are several times as fast as in 64.
    const uint32 tiles_m = tiles_of<plan.block_m>(static_cast<Size>(args.m));
    if constexpr (plan.triangle) {
        static_assert(plan.block_m == plan.block_n, "tiles of a triangle must be square");
        const uint32 tiles = tiles_m * (tiles_m + 1) / 2, block = tile_number<plan>(args);
        const uint32 batch = block < tiles ? 0 : quotient(block, tiles);
        const TriangleTile tile = triangle_tile_at(block - batch * tiles, tiles_m, kRasterGroupM);
        return {first_batch + Size(batch), Size(tile.row) * plan.block_m,
                Size(tile.column) * plan.block_n};
    }
    const uint32 tiles_n = tiles_of<plan.block_n>(static_cast<Size>(args.n));
    // A division takes a small product longer than an MMA: those without a remainder are left out.
    uint32 batch = 0, group = 0, in_group = tile_number<plan>(args);
    if (in_group >= min(tiles_m, kRasterGroupM) * tiles_n) {  // behind the first group of the first
        const uint32 tiles = tiles_m * tiles_n, group_tiles = kRasterGroupM * tiles_n;
        batch = quotient(in_group, tiles);
        in_group -= batch * tiles;
        group = in_group < group_tiles ? 0 : quotient(in_group, group_tiles);
        in_group -= group * group_tiles;
    }
    const uint32 height = min(tiles_m - group * kRasterGroupM, kRasterGroupM);
    const uint32 column = in_group < height ? 0 : quotient(in_group, height);
    return {first_batch + Size(batch),
            Size(group * kRasterGroupM + in_group - column * height) * plan.block_m,
            Size(column) * plan.block_n};
}

// The kernel: one block computes one block_m x block_n tile of one product.
template <MmaPlan plan>
__device__ __forceinline__ void gemm_mma(const GemmArguments& args) {
    static_assert(plan.block_k % kMmaK<plan.operand> == 0, "a k-tile must be whole MMAs");
    static_assert(plan.promotion_interval % plan.block_k == 0,
                  "promotion must fall between k-tiles");
    extern __shared__ __align__(16) float2 stages[];
    constexpr int kStageElements = plan.a_tile_elements() + plan.b_tile_elements();
    using Size = Stride<plan>;
    const auto m = static_cast<Size>(args.m), n = static_cast<Size>(args.n),
               all_k = static_cast<Size>(args.k);
    const Tile<plan> tile = tile_at<plan>(args);
    const Size mma_k = plan.whole_k > 0 ? Size(plan.whole_k) : all_k;
    int num_k_tiles = static_cast<int>(tiles_of<plan.block_k>(mma_k));
    int first_k_tile = 0;
    if constexpr (plan.split_k_slices > 1 || plan.grid_split) {
        int slices = plan.split_k_slices, slice = 0;
        if constexpr (plan.split_k_slices > 1) {
            cluster_arrive();
            slice = cluster_rank();
        }
        if constexpr (plan.grid_split) {
            slices *= args.grid_slices;
            slice += blockIdx.x / plan.split_k_slices % args.grid_slices * plan.split_k_slices;
        }
        const int slice_k_tiles = (num_k_tiles + slices - 1) / slices;
        first_k_tile = slice * slice_k_tiles;
        // The last slices of a short k are empty.
        num_k_tiles = max(0, min(slice_k_tiles, num_k_tiles - first_k_tile));
    }

    const Size first_k = Size(first_k_tile) * plan.block_k;
    using ACopies = TileCopies<plan, plan.block_m, plan.a_k_major>;
    using BCopies = TileCopies<plan, plan.block_n, plan.b_k_major>;
    auto first_a_copies = [&] {
        return ACopies(of_batch(args.a, tile.batch, args.a_stride_batch), args.a_stride_m,
                       args.a_stride_k, tile.m0, first_k, m, stages);
    };
    auto first_b_copies = [&] {
        return BCopies(of_batch(args.b, tile.batch, args.b_stride_batch), args.b_stride_n,
                       args.b_stride_k, tile.n0, first_k, n, stages + plan.a_tile_elements());
    };
    ACopies a_copies = first_a_copies();
    BCopies b_copies = first_b_copies();
    auto load = [&](int k_tile, int stage) {
        if (k_tile < num_k_tiles) {
            const Size k = first_k + Size(k_tile) * plan.block_k;
            const int k_left = static_cast<int>(min(all_k - k, Size(plan.block_k)));
            const uint32 offset = stage * kStageElements * sizeof(float2);
            a_copies.fill(offset, k_left, k_tile);
            b_copies.fill(offset, k_left, k_tile);
        }
        cp_async_commit();
    };

    constexpr int kWarps = plan.warps_m * plan.warps_n;
    const int warp = threadIdx.x / kWarp % kWarps, lane = threadIdx.x % kWarp;
    const int k_group = threadIdx.x / kWarp / kWarps;
    const int a_row = warp / plan.warps_n * plan.warp_m() + lane / 4;
    const int b_column = warp % plan.warps_n * plan.warp_n() + lane / 4;
    const float b_sign = args.conjugate_b ? -1.0f : 1.0f;
    // In small products one copy of the code is read faster than several.
    constexpr int kUnroll = plan.warps_k > 1 ? 1 : plan.stages;
#pragma unroll kUnroll
    for (int stage = 0; stage < plan.stages_at_once(); ++stage) load(stage, stage);

    // The addresses from which this lane multiplies, in the first stage. Opaque: else each pass
    // computes them anew.
    const int group_k = k_group * (plan.block_k / plan.warps_k);
    const uint32 lane_a = opaque(
        shared_address(stages) +
        element_bytes<plan.a_k_major, plan.a_pitch()>(a_row, group_k + lane % 4));
    const uint32 lane_b = opaque(
        shared_address(stages + plan.a_tile_elements()) +
        element_bytes<plan.b_k_major, plan.b_pitch()>(b_column, group_k + lane % 4));

    // The absmax of the tile's rows of A and columns of B.
    const uint32* a_absmax = args.a_absmax + tile.batch * args.a_absmax_stride_batch + tile.m0;
    const uint32* b_absmax = args.b_absmax + tile.batch * args.b_absmax_stride_batch + tile.n0;
    if constexpr (plan.finds_absmax) {
        __shared__ uint32 absmax[plan.block_m + plan.block_n];
        for (int i = threadIdx.x; i < plan.block_m + plan.block_n; i += plan.threads())
            absmax[i] = 0;
        cp_async_wait<0>();  // all of k is in the stages
        __syncthreads();
        const int slice_k =
            static_cast<int>(min(Size(num_k_tiles) * plan.block_k, all_k - first_k));
        find_block_absmax<plan, plan.block_m, plan.a_k_major>(absmax, stages, kStageElements,
                                                              slice_k, m - tile.m0);
        find_block_absmax<plan, plan.block_n, plan.b_k_major>(
            absmax + plan.block_m, stages + plan.a_tile_elements(), kStageElements, slice_k,
            n - tile.n0);
        __syncthreads();
        a_absmax = absmax;
        b_absmax = absmax + plan.block_m;
    }
    constexpr int kRowEights = plan.warp_m() / 8;
    constexpr int kColumnEights = plan.warp_n() / 8;
    int a_exponent[kRowEights] = {};
    float a_scale[kRowEights] = {}, b_scale[kColumnEights] = {};
    if constexpr (plan.scaled) {
#pragma unroll
        for (int i = 0; i < plan.warp_m() / 8; ++i) {
            const int row = a_row + 8 * i;
            a_exponent[i] = tile.m0 + row < m ? scale_exponent<plan.operand>(a_absmax[row]) : 0;
            a_scale[i] = power_of_two(a_exponent[i]);
        }
#pragma unroll
        for (int j = 0; j < plan.warp_n() / 8; ++j) {
            const int column = b_column + 8 * j;
            const bool inside = tile.n0 + column < n;
            b_scale[j] = power_of_two(inside ? scale_exponent<plan.operand>(b_absmax[column]) : 0);
        }
    }

    // Tensor cores truncate when they accumulate, so without promotion the error of a split
    // precision would grow with k. Promotion every `promotion_interval` keeps it at that of one
    // interval.
    constexpr bool kPromotes = plan.promotion_interval > 0;
    Accumulators<plan> mma_accumulators, fp32_accumulators;
    auto& result = kPromotes ? fp32_accumulators : mma_accumulators;
    // The sum over the k-tiles, of which the first are on their way. `moderate` takes operands to
    // be less than 2^115.
    auto multiply_k_tiles = [&]<bool moderate>() {
        mma_accumulators.clear();
        if constexpr (kPromotes) fp32_accumulators.clear();
        int read = 0, filled = plan.stages - 1;
        auto multiply_stage = [&](uint32 stage, Size k_left, auto between) {
            multiply_k_tile<plan, moderate>(mma_accumulators, lane_a + stage, lane_b + stage,
                                            group_k, k_left, a_scale, b_scale, b_sign, between);
        };
        int k_tile = 0;
        auto promote = [&] {
            if constexpr (kPromotes) {
                constexpr int kPromotionTiles = plan.promotion_interval / plan.block_k;
                if ((k_tile + 1) % kPromotionTiles == 0 || k_tile + 1 == num_k_tiles)
                    fp32_accumulators.promote(mma_accumulators);
            }
        };
        if constexpr (plan.copies_between) {
            // Between the MMAs of a k-tile a warp copies the one that takes the stage before.
            constexpr int kParts = plan.block_k / kMmaK<plan.operand>;
            for (; k_tile + plan.stages - 1 < num_k_tiles; ++k_tile) {
                cp_async_wait<plan.stages - 2>();
                __syncthreads();
                const Size k = first_k + Size(k_tile + plan.stages - 1) * plan.block_k;
                const int k_left = static_cast<int>(min(all_k - k, Size(plan.block_k)));
                const uint32 next = filled * kStageElements * sizeof(float2);
                const uint32 stage = read * kStageElements * sizeof(float2);
                multiply_stage(stage, plan.block_k, [&](int part) {
                    a_copies.fill_part(next, k_left, part, kParts);
                    b_copies.fill_part(next, k_left, part, kParts);
                });
                cp_async_commit();
                promote();
                filled = read;
                read = read + 1 == plan.stages ? 0 : read + 1;
            }
        }
        // A tile is seldom computed again.
        constexpr bool kAgain = plan.splits_by_products() && !moderate;
        constexpr int kUnrolled = plan.whole_k > 0 && !kAgain ? plan.stages_at_once() : 1;
#pragma unroll kUnrolled
        for (; k_tile < num_k_tiles; ++k_tile) {
            cp_async_wait<plan.stages_at_once() - 1>();
            // The stage is visible to all warps, and all have left the one that is filled next.
            __syncthreads();
            if constexpr (plan.whole_k > 0 || plan.copies_between) {
                cp_async_commit();  // of nothing
            } else {
                load(k_tile + plan.stages - 1, filled);
            }
            filled = read;
            const uint32 stage = read * kStageElements * sizeof(float2);
            read = read + 1 == plan.stages ? 0 : read + 1;
            const Size k_left = mma_k - Size(first_k_tile + k_tile) * plan.block_k;
            multiply_stage(stage, k_left, [](int) {});
            promote();
        }
        result.join(b_sign);
    };
    multiply_k_tiles.template operator()<plan.splits_by_products()>();
    const Size row0 = tile.m0 + a_row;
    const int first_column = warp % plan.warps_n * plan.warp_n() + lane % 4 * 2;
    if constexpr (plan.splits_by_products()) {
        const int rows_left = static_cast<int>(min(m - row0, Size(plan.block_m)));
        const int columns_left =
            static_cast<int>(min(n - tile.n0, Size(plan.block_n))) - first_column;
        // No stage is read any more, and none is being filled.
        if (__syncthreads_or(!result.finite(rows_left, columns_left))) {
            a_copies = first_a_copies();
            b_copies = first_b_copies();
            for (int stage = 0; stage < plan.stages_at_once(); ++stage) load(stage, stage);
            multiply_k_tiles.template operator()<false>();
        }
    }
    if (args.conjugate_result) result.conjugate();
    if constexpr (plan.sliced()) {
        __syncthreads();  // no stage is read any more
        reduce_and_store<plan>(args, result, tile.batch, tile.m0, tile.n0, tile_number<plan>(args),
                               reinterpret_cast<float4*>(stages),
                               reinterpret_cast<float4*>(stages + plan.stages * kStageElements),
                               a_absmax, b_absmax);
    } else {
        store_accumulators<plan>(args, result, tile.batch, row0, tile.n0 + first_column, a_exponent,
                                 b_absmax + first_column);
    }
}
