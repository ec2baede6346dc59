// The direct epilogue: a consumer warp stores its 16 rows from its accumulators, at any strides. It
// serves 16-bit results, strides that TMA cannot write, and tiles that leave no registers for store
// boxes.
#pragma once
#include "sm90_epilogue.cuh"

// Stores the 16 rows of a warp where all of them and all columns lie inside Z, and the epilogue
// only descales.
template <WgmmaPlan plan>
__device__ __forceinline__ void store_full_rows(const WgmmaArguments& args, const WgmmaTile& tile,
                                                int row0, int lane,
                                                const float (&re)[plan.block_n / 2],
                                                const float (&im)[plan.block_n / 2]) {
    const int64 product = int64(tile.batch) + int64(tile.slice) * args.batches;
    const int rows[2] = {row0 + fragment_row<plan>(lane, 0), row0 + fragment_row<plan>(lane, 1)};
    const ColumnDescales<plan> descales(args, tile, lane);
    float2 x_descale[2] = {};
    int64 at[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        if constexpr (plan.scaled) {
            const int64 first = args.x_batched ? int64(tile.batch) * args.m : 0;
            x_descale[h] = __ldg(args.x_descale + first + rows[h]);
        }
        at[h] = product * args.out_stride_batch + rows[h] * args.out_stride_m + tile.n0 +
                2 * (lane % 4);
    }
#pragma unroll
    for (int j = 0; j < plan.block_n / 8; ++j) {
        const float2 y_descale[2] = {descales.at(8 * j, 2 * (lane % 4)),
                                     descales.at(8 * j, 2 * (lane % 4) + 1)};
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int i = 4 * j + 2 * h;
            Output<plan>::store_pair(
                args.out, at[h] + 8 * j, descale<plan>({re[i], im[i]}, x_descale[h], y_descale[0]),
                descale<plan>({re[i + 1], im[i + 1]}, x_descale[h], y_descale[1]));
        }
    }
}

// Stores the 16 rows of a warp. Of each eight columns a lane holds columns 2 (lane % 4) and the
// next, of two rows.
template <WgmmaPlan plan>
__device__ __forceinline__ void store_rows(const WgmmaArguments& args, const WgmmaTile& tile,
                                           int row0, int lane, const float (&re)[plan.block_n / 2],
                                           const float (&im)[plan.block_n / 2]) {
    const bool full_rows = only_descales(args) && args.store_pairs_n && row0 + 16 <= args.m &&
                           tile.n0 + plan.block_n <= args.n;
    // The shuffle makes the branch warp-uniform for the compiler, which else generates the shuffles
    // of ColumnDescales twice, also for divergent lanes.
    if (__shfl_sync(~0u, int(full_rows), 0)) {
        store_full_rows<plan>(args, tile, row0, lane, re, im);
        return;
    }
    const int64 product = int64(tile.batch) + int64(tile.slice) * args.batches;
    const int rows[2] = {row0 + fragment_row<plan>(lane, 0), row0 + fragment_row<plan>(lane, 1)};
    const bool first_row = rows[0] < args.m;  // the second row is never above the first
    if (!plan.scaled && !first_row) return;   // with scales, every lane takes part in shuffles
    const ColumnDescales<plan> descales(args, tile, lane);
    float2 x_descale[2];
    if constexpr (plan.scaled) {
        const float2* x_descales =
            args.x_descale + (args.x_batched ? int64(tile.batch) * args.m : 0);
#pragma unroll
        for (int h = 0; h < 2; ++h) x_descale[h] = __ldg(x_descales + min(rows[h], args.m - 1));
    }
    int64 out_at[2], c_at[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        out_at[h] = product * args.out_stride_batch + rows[h] * args.out_stride_m;
        c_at[h] = int64(tile.batch) * args.c_stride_batch + rows[h] * args.c_stride_m;
    }
    const bool second_row = rows[1] < args.m;
#pragma unroll
    for (int j = 0; j < plan.block_n / 8; ++j) {
        const int column = tile.n0 + 8 * j + 2 * (lane % 4);
        const float2 y_descale[2] = {descales.at(8 * j, 2 * (lane % 4)),
                                     descales.at(8 * j, 2 * (lane % 4) + 1)};
        if (!first_row || column >= args.n) continue;
        const bool second_column = column + 1 < args.n;
        float2 z[2][2];
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            if (e == 1 && !second_column) continue;
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                if (h == 1 && !second_row) continue;
                const int at = 4 * j + 2 * h + e;
                const float2 x = descale<plan>({re[at], im[at]}, x_descale[h], y_descale[e]);
                z[h][e] = conjugate_and_combine(args, x,
                                                args.c + c_at[h] + (column + e) * args.c_stride_n);
            }
        }
        if (args.store_pairs_m && second_row) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                if (e == 1 && !second_column) continue;
                Output<plan>::store_pair(args.out, out_at[0] + (column + e) * args.out_stride_n,
                                         z[0][e], z[1][e]);
            }
        } else {
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                if (h == 1 && !second_row) continue;
                const int64 at = out_at[h] + column * args.out_stride_n;
                if (args.store_pairs_n && second_column) {
                    Output<plan>::store_pair(args.out, at, z[h][0], z[h][1]);
                } else {
                    Output<plan>::store(args.out, at, z[h][0]);
                    if (second_column)
                        Output<plan>::store(args.out, at + args.out_stride_n, z[h][1]);
                }
            }
        }
    }
}
