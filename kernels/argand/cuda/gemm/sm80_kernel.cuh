// Complex matrix products with mma.sync (sm_80 and newer): one family for tf32, 3xtf32, 3xfp16,
// fp16 and bf16.
//
// C = alpha op(A) op(B) + beta C in one launch. Operands stay interleaved complex64 until they are
// in registers: a ring of shared-memory stages receives raw tiles, and each warp rounds, splits and
// scales what it reads. Four real products a complex one: re += ar br, re += ai (-bi), im += ar bi,
// im += ai br, for each pair of terms that the precision keeps.
#pragma once
#include "sm80_epilogue.cuh"

// Tiles of C that share columns of B run together this many at a time, so that they meet in L2.
constexpr uint32 kRasterGroupM = 8;

// Which tile of which product this block computes.
struct Tile {
    int64 batch, row, column;
};

template <GemmPlan plan>
__device__ __forceinline__ Tile find_tile(const GemmArguments& args) {
    // A grid's blocks fit 32 bits, in which divisions take a fraction of what they take in 64.
    const uint32 rows = static_cast<uint32>((args.m + plan.block_m - 1) / plan.block_m);
    const uint32 columns = static_cast<uint32>((args.n + plan.block_n - 1) / plan.block_n);
    const uint32 batch = blockIdx.x / (rows * columns), tile = blockIdx.x % (rows * columns);
    const uint32 group = tile / (kRasterGroupM * columns),
                 inside = tile % (kRasterGroupM * columns);
    const uint32 height = min(rows - group * kRasterGroupM, kRasterGroupM);
    return {args.first_batch + batch, int64(group * kRasterGroupM + inside % height) * plan.block_m,
            int64(inside / height) * plan.block_n};
}

// One block computes one block_m x block_n tile of one product.
template <GemmPlan plan>
__device__ __forceinline__ void gemm_mma(const GemmArguments& args) {
    static_assert(plan.block_k % kMmaK<plan.operand> == 0, "whole instructions");
    static_assert(plan.promote_every % plan.block_k == 0, "promoted between stages");
    extern __shared__ __align__(16) float2 stages[];
    constexpr int kStage = plan.a_size() + plan.b_size();
    const Tile tile = find_tile<plan>(args);
    const float2* a = args.a + tile.batch * args.a_batch + tile.row * args.a_line;
    const float2* b = args.b + tile.batch * args.b_batch + tile.column * args.b_line;
    const int steps = static_cast<int>((args.k + plan.block_k - 1) / plan.block_k);

    auto load = [&](int step) {
        if (step < steps) {
            float2* stage = stages + step % plan.stages * kStage;
            const int64 k = int64(step) * plan.block_k;
            load_tile<plan, plan.block_m, plan.block_k, plan.a_k_fast>(
                stage, a + k * args.a_k, args.a_line, args.a_k, args.m - tile.row, args.k - k);
            load_tile<plan, plan.block_n, plan.block_k, plan.b_k_fast>(
                stage + plan.a_size(), b + k * args.b_k, args.b_line, args.b_k,
                args.n - tile.column, args.k - k);
        }
        cp_async_commit();
    };

    constexpr int kWarps = plan.warps_m * plan.warps_n;
    const int warp = threadIdx.x / kWarp % kWarps, lane = threadIdx.x % kWarp;
    const int share = threadIdx.x / kWarp / kWarps;
    const int a_line = warp / plan.warps_n * plan.warp_m() + lane / 4;
    const int b_line = warp % plan.warps_n * plan.warp_n() + lane / 4;
    const float flip_b = args.flip_b ? -1.0f : 1.0f;
#pragma unroll
    for (int stage = 0; stage < plan.stages - 1; ++stage) load(stage);

    // Of the tile's lines.
    const uint32* a_largest = args.a_largest + tile.batch * args.a_largest_batch + tile.row;
    const uint32* b_largest = args.b_largest + tile.batch * args.b_largest_batch + tile.column;
    if constexpr (plan.looks) {
        __shared__ uint32 found[plan.block_m + plan.block_n];
        for (int i = threadIdx.x; i < plan.block_m + plan.block_n; i += plan.threads())
            found[i] = 0;
        cp_async_wait<0>();  // all of k is in the stages
        __syncthreads();
        look_at_lines<plan, plan.block_m, plan.a_k_fast>(found, stages, kStage, steps);
        look_at_lines<plan, plan.block_n, plan.b_k_fast>(found + plan.block_m,
                                                         stages + plan.a_size(), kStage, steps);
        __syncthreads();
        a_largest = found;
        b_largest = found + plan.block_m;
    }
    int a_exponent[plan.warp_m() / 8] = {};
    float a_scale[plan.warp_m() / 8] = {}, b_scale[plan.warp_n() / 8] = {};
    if constexpr (plan.scaled) {
#pragma unroll
        for (int i = 0; i < plan.warp_m() / 8; ++i) {
            const int line = a_line + 8 * i;
            a_exponent[i] = tile.row + line < args.m ? scale_exponent(a_largest[line]) : 0;
            a_scale[i] = power_of_two(a_exponent[i]);
        }
#pragma unroll
        for (int j = 0; j < plan.warp_n() / 8; ++j) {
            const int line = b_line + 8 * j;
            const bool inside = tile.column + line < args.n;
            b_scale[j] = power_of_two(inside ? scale_exponent(b_largest[line]) : 0);
        }
    }

    // Tensor cores truncate when they accumulate: left there, the error of a split operand would
    // grow with k to 1e-4. Moved into fp32 registers every few steps it stays at fp32's, flat in k:
    // what rounding loses of one slice is where the next begins.
    constexpr bool kPromotes = plan.promote_every > 0;
    Accumulators<plan> sum, total;
    sum.clear();
    if constexpr (kPromotes) total.clear();
    for (int step = 0; step < steps; ++step) {
        cp_async_wait<plan.stages - 2>();
        // All warps see the stage that has arrived, and have left the one that is filled next.
        __syncthreads();
        load(step + plan.stages - 1);
        const float2* stage = stages + step % plan.stages * kStage;
        multiply_stage<plan>(sum, stage, stage + plan.a_size(), a_line, b_line,
                             share * (plan.block_k / plan.warps_k), a_scale, b_scale, flip_b);
        if constexpr (kPromotes) {
            constexpr int kSteps = plan.promote_every / plan.block_k;
            if ((step + 1) % kSteps == 0 || step + 1 == steps) total.take(sum);
        }
    }
    Accumulators<plan>& result = kPromotes ? total : sum;
    if constexpr (plan.warps_k > 1) {
        __syncthreads();  // no stage is read any more
        join_shares<plan>(result, reinterpret_cast<float*>(stages), share);
        if (share > 0) return;
    }
    const int64 row = tile.row + a_line;
    const int64 first = warp % plan.warps_n * plan.warp_n() + lane % 4 * 2;
    store<plan>(args, result, tile.batch, row, tile.column + first, a_exponent, b_largest + first);
}
