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

// Stores the results of two rows, `row_stride` apart, and two columns, from `at` on; the second row
// and column where they lie inside Z.
template <WgmmaPlan plan>
__device__ __forceinline__ void store_square(const WgmmaArguments& args, const float2 (&z)[2][2],
                                             int64 at, int64 row_stride, bool second_row,
                                             bool second_column) {
    if (args.store_pairs_m && second_row) {
        Output<plan>::store_pair(args.out, at, z[0][0], z[1][0]);
        if (second_column)
            Output<plan>::store_pair(args.out, at + args.out_stride_n, z[0][1], z[1][1]);
        return;
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        if (h == 1 && !second_row) continue;
        const int64 row = at + h * row_stride;
        if (args.store_pairs_n && second_column) {
            Output<plan>::store_pair(args.out, row, z[h][0], z[h][1]);
        } else {
            Output<plan>::store(args.out, row, z[h][0]);
            if (second_column) Output<plan>::store(args.out, row + args.out_stride_n, z[h][1]);
        }
    }
}

// Stores the 16 rows of a warp. Of each eight columns a lane holds columns 2 (lane % 4) and the
// next, of two rows.
template <WgmmaPlan plan>
__device__ __forceinline__ void store_rows(const WgmmaArguments& args, const WgmmaTile& tile,
                                           int row0, int lane, float (&re)[plan.block_n / 2],
                                           float (&im)[plan.block_n / 2]) {
    const bool full_rows = only_descales(args) && args.store_pairs_n && row0 + 16 <= args.m &&
                           tile.n0 + plan.block_n <= args.n;
    // The shuffle makes the branch warp-uniform for the compiler, which else generates the shuffles
    // of ColumnDescales twice, also for divergent lanes.
    if (__shfl_sync(~0u, int(full_rows), 0)) {
        store_full_rows<plan>(args, tile, row0, lane, re, im);
        return;
    }
    constexpr int kSecond = plan.adjacent_rows() ? 1 : 8;  // from a lane's first row to its other
    const int row = row0 + fragment_row<plan>(lane, 0);
    const bool first_row = row < args.m, second_row = row + kSecond < args.m;
    if (!plan.scaled && !first_row) return;  // with scales, every lane takes part in shuffles
    float2 x_descale[2];
    if constexpr (plan.scaled) {
        const float2* x_descales =
            args.x_descale + (args.x_batched ? int64(tile.batch) * args.m : 0);
#pragma unroll
        for (int h = 0; h < 2; ++h)
            x_descale[h] = __ldg(x_descales + min(row + h * kSecond, args.m - 1));
    }
    const int64 product = int64(tile.batch) + int64(tile.slice) * args.batches;
    int column = tile.n0 + 2 * (lane % 4);
    int64 out_at = product * args.out_stride_batch + row * args.out_stride_m +
                   column * args.out_stride_n;
    const float2* c = args.c + int64(tile.batch) * args.c_stride_batch + row * args.c_stride_m +
                      column * args.c_stride_n;
#pragma unroll 1
    for (int first = 0; first < plan.block_n; first += kGeneralColumns<plan>) {
        const ColumnDescales<plan, kGeneralColumns<plan>> descales(args, tile, lane, first);
#pragma unroll
        for (int j = 0; j < kGeneralColumns<plan> / 8; ++j) {
            const float2 y_descale[2] = {descales.at(8 * j, 2 * (lane % 4)),
                                         descales.at(8 * j, 2 * (lane % 4) + 1)};
            if (first_row && column < args.n) {
                float2 z[2][2];
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int h = i / 2, e = i % 2, at = 4 * j + i;
                    z[h][e] = descale<plan>({re[at], im[at]}, x_descale[h], y_descale[e]);
                }
                const bool second_column = column + 1 < args.n;
                combine_square(args, z, c, kSecond * args.c_stride_m, true, second_row,
                               second_column);
                store_square<plan>(args, z, out_at, kSecond * args.out_stride_m, second_row,
                                   second_column);
            }
            column += 8;
            out_at += 8 * args.out_stride_n;
            c += 8 * args.c_stride_n;
        }
        shift<kGeneralColumns<plan> / 2>(re);
        shift<kGeneralColumns<plan> / 2>(im);
    }
}
