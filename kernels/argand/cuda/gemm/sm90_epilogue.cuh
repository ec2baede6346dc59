// Results of the wgmma family: scaled back, alpha X + beta C, stored.
#pragma once
#include "device/complex.cuh"
#include "device/scaling.cuh"
#include "sm90_fragments.cuh"
#include "sm90_scheduler.cuh"

// Where results go: pairs of fp32, or of the 16-bit operand format.
template <WgmmaPlan plan>
struct Output {
    static __device__ __forceinline__ uint32 rounded(float2 x) {
        return plan.operand == Operand::bf16 ? pack_bf16(x.x, x.y) : pack_fp16(x.x, x.y);
    }

    static __device__ __forceinline__ void one(void* out, int64 at, float2 x) {
        if constexpr (plan.half_output) {
            static_cast<uint32*>(out)[at] = rounded(x);
        } else {
            static_cast<float2*>(out)[at] = x;
        }
    }

    static __device__ __forceinline__ void two(void* out, int64 at, float2 x, float2 y) {
        if constexpr (plan.half_output) {
            *reinterpret_cast<uint2*>(static_cast<uint32*>(out) + at) = {rounded(x), rounded(y)};
        } else {
            *reinterpret_cast<float4*>(static_cast<float2*>(out) + at) = {x.x, x.y, y.x, y.y};
        }
    }
};

// A result scaled back by what its row and its column were scaled by.
template <WgmmaPlan plan>
__device__ __forceinline__ float2 scaled_back(float2 x, float2 row, float2 column) {
    if constexpr (plan.scaled) {
        const float first = row.x * column.x, second = row.y * column.y;
        return {x.x * first * second, x.y * first * second};
    } else {
        return x;
    }
}

// Whether results are the sums as they are, scaled back: then a code of its own, which is short,
// stores them. All cases in one take a hundred kilobytes, and the instructions of a tile's end are
// not in the cache when they are wanted.
__device__ __forceinline__ bool is_plain(const WgmmaArguments& args) {
    return args.alpha_re == 1.0f && args.alpha_im == 0.0f && args.beta_re == 0.0f &&
           args.beta_im == 0.0f && !args.flip_result;
}

// What scales the columns of a tile back. Each lane reads every 32nd at once, so that memory is
// waited for once a tile and not before each few columns, and all lanes of a warp tell each other.
template <WgmmaPlan plan>
struct ColumnScales {
    float2 mine[(plan.block_n + kWarp - 1) / kWarp];

    __device__ __forceinline__ ColumnScales(const WgmmaArguments& args, const WgmmaTile& tile,
                                            int lane) {
        if constexpr (plan.scaled) {
            const float2* scales =
                args.y_unscale + (args.y_batched ? int64(tile.batch) * args.columns : 0);
#pragma unroll
            for (int i = 0; i < (plan.block_n + kWarp - 1) / kWarp; ++i) {
                mine[i] = __ldg(scales + min(tile.column + kWarp * i + lane, args.columns - 1));
            }
        }
    }

    // Of column `first` + `offset` of the tile, of which eight from `first` on are wanted.
    __device__ __forceinline__ float2 of(int first, int offset) const {
        if constexpr (plan.scaled) {
            const float2& held = mine[first / kWarp];
            const int from = first % kWarp + offset;
            return {__shfl_sync(~0u, held.x, from), __shfl_sync(~0u, held.y, from)};
        } else {
            return {};
        }
    }
};

// Stores a warp's 16 rows, all of them there, where neighbours in a row can be stored at once.
template <WgmmaPlan plan>
__device__ __forceinline__ void store_whole_rows(const WgmmaArguments& args, const WgmmaTile& tile,
                                                 int row0, int lane,
                                                 const float (&re)[plan.block_n / 2],
                                                 const float (&im)[plan.block_n / 2]) {
    const int64 product = int64(tile.batch) + int64(tile.part) * args.batches;
    const int rows[2] = {row0 + fragment_row<plan>(lane, 0), row0 + fragment_row<plan>(lane, 1)};
    const ColumnScales<plan> scales(args, tile, lane);
    float2 x_unscale[2] = {};
    int64 at[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        if constexpr (plan.scaled) {
            const int64 first = args.x_batched ? int64(tile.batch) * args.rows : 0;
            x_unscale[h] = __ldg(args.x_unscale + first + rows[h]);
        }
        at[h] = product * args.out_batch + rows[h] * args.out_row + tile.column + 2 * (lane % 4);
    }
#pragma unroll
    for (int j = 0; j < plan.block_n / 8; ++j) {
        const float2 unscale[2] = {scales.of(8 * j, 2 * (lane % 4)),
                                   scales.of(8 * j, 2 * (lane % 4) + 1)};
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int i = 4 * j + 2 * h;
            Output<plan>::two(args.out, at[h] + 8 * j,
                              scaled_back<plan>({re[i], im[i]}, x_unscale[h], unscale[0]),
                              scaled_back<plan>({re[i + 1], im[i + 1]}, x_unscale[h], unscale[1]));
        }
    }
}

// Stores a warp's 16 rows straight from its accumulators, at any strides: of each eight columns a
// lane holds the columns 2 (lane % 4) and the next of its two rows.
template <WgmmaPlan plan>
__device__ __forceinline__ void store_rows(const WgmmaArguments& args, const WgmmaTile& tile,
                                           int row0, int lane, const float (&re)[plan.block_n / 2],
                                           const float (&im)[plan.block_n / 2]) {
    const bool whole = is_plain(args) && args.column_pairs && row0 + 16 <= args.rows &&
                       tile.column + plan.block_n <= args.columns;
    // The same in all lanes, and known to be: else what lanes tell each other has a second code.
    if (__shfl_sync(~0u, int(whole), 0)) {
        store_whole_rows<plan>(args, tile, row0, lane, re, im);
        return;
    }
    const int64 product = int64(tile.batch) + int64(tile.part) * args.batches;
    const int rows[2] = {row0 + fragment_row<plan>(lane, 0), row0 + fragment_row<plan>(lane, 1)};
    const bool first_row = rows[0] < args.rows;  // the second row is never above the first
    if (!plan.scaled && !first_row) return;      // else its lane tells the others what it read
    const ColumnScales<plan> scales(args, tile, lane);
    float2 x_unscale[2];
    if constexpr (plan.scaled) {
        const float2* unscale =
            args.x_unscale + (args.x_batched ? int64(tile.batch) * args.rows : 0);
#pragma unroll
        for (int h = 0; h < 2; ++h) x_unscale[h] = __ldg(unscale + min(rows[h], args.rows - 1));
    }
    int64 out_at[2], c_at[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        out_at[h] = product * args.out_batch + rows[h] * args.out_row;
        c_at[h] = int64(tile.batch) * args.c_batch + rows[h] * args.c_row;
    }
    const bool second_row = rows[1] < args.rows;
#pragma unroll
    for (int j = 0; j < plan.block_n / 8; ++j) {
        const int column = tile.column + 8 * j + 2 * (lane % 4);
        const float2 unscale[2] = {scales.of(8 * j, 2 * (lane % 4)),
                                   scales.of(8 * j, 2 * (lane % 4) + 1)};
        if (!first_row || column >= args.columns) continue;
        const bool second_column = column + 1 < args.columns;
        float2 z[2][2];
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            if (e == 1 && !second_column) continue;
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                if (h == 1 && !second_row) continue;
                const int at = 4 * j + 2 * h + e;
                const float2 x = scaled_back<plan>({re[at], im[at]}, x_unscale[h], unscale[e]);
                z[h][e] =
                    conjugate_and_combine(args, x, args.c + c_at[h] + (column + e) * args.c_column);
            }
        }
        if (args.row_pairs && second_row) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                if (e == 1 && !second_column) continue;
                Output<plan>::two(args.out, out_at[0] + (column + e) * args.out_column, z[0][e],
                                  z[1][e]);
            }
        } else {
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                if (h == 1 && !second_row) continue;
                const int64 at = out_at[h] + column * args.out_column;
                if (args.column_pairs && second_column) {
                    Output<plan>::two(args.out, at, z[h][0], z[h][1]);
                } else {
                    Output<plan>::one(args.out, at, z[h][0]);
                    if (second_column) Output<plan>::one(args.out, at + args.out_column, z[h][1]);
                }
            }
        }
    }
}

// The same through shared memory: boxes of 16 rows x 16 columns, written without bank conflicts and
// sent off by the copy engine while the next tile is multiplied. `staging` is this warp's two
// boxes. Of the tile's boxes those from `first_box` to `end_box` leave; the sums begin with those
// of `from_box`. `plain` says that they are the results, or that alpha is in them already.
template <WgmmaPlan plan, bool plain, int first_box, int end_box, int from_box, int kCount>
__device__ __forceinline__ void stage_rows(const WgmmaArguments& args, const TensorMap& out_map,
                                           const WgmmaTile& tile, int row0, int lane,
                                           uint32 staging, const float (&re)[kCount],
                                           const float (&im)[kCount]) {
    // Products may be under way where there is a head: then no branches, but predicates. (The same
    // in all lanes, and known to be: else what they tell each other has a second code.)
    if (plan.head == 0 && __shfl_sync(~0u, int(row0 >= args.rows), 0)) return;
    const int product = tile.batch + tile.part * args.batches;
    const int rows[2] = {fragment_row<plan>(lane, 0), fragment_row<plan>(lane, 1)};
    const int64 c_row0 = int64(tile.batch) * args.c_batch + row0 * args.c_row;
    const ColumnScales<plan> scales(args, tile, lane);
    float2 x_unscale[2];
    if constexpr (plan.scaled) {
        const float2* unscale =
            args.x_unscale + (args.x_batched ? int64(tile.batch) * args.rows : 0);
#pragma unroll
        for (int h = 0; h < 2; ++h)
            x_unscale[h] = __ldg(unscale + min(row0 + rows[h], args.rows - 1));
    }
#pragma unroll
    for (int box = first_box; box < end_box; ++box) {
        const int column0 = tile.column + box * kStoreSide;
        const uint32 target = staging + box % 2 * kStoreBytes;
        // The box before the last has left its place.
        tma_store_wait_read<1>();
        __syncwarp();
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            float2 z[2][2];
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const int column = min(column0 + 8 * j + 2 * (lane % 4) + e, args.columns - 1);
                const float2 unscale = scales.of(box * kStoreSide + 8 * j, 2 * (lane % 4) + e);
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const int at = 4 * (2 * (box - from_box) + j) + 2 * h + e;
                    const float2 x = scaled_back<plan>({re[at], im[at]}, x_unscale[h], unscale);
                    if constexpr (plain) {
                        z[h][e] = x;
                    } else {
                        const int row = min(rows[h], args.rows - 1 - row0);
                        z[h][e] = conjugate_and_combine(
                            args, x, args.c + c_row0 + row * args.c_row + column * args.c_column);
                    }
                }
            }
            if constexpr (plan.rows_fast && !plan.neighbour_rows()) {
                // Rows h of column 2 t + e; eight lanes of neighbouring rows fill half a line.
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int h = i / 2, e = i % 2, line = 8 * j + 2 * (lane % 4) + e;
                    const int chunk = rows[h] / 2 ^ (line & 7);
                    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(
                                     target + line * kSwizzleBytes + chunk * 16 + rows[h] % 2 * 8),
                                 "f"(z[h][e].x), "f"(z[h][e].y)
                                 : "memory");
                }
                continue;
            }
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                // Two neighbours along the contiguous axis: rows (rows_fast) of column 2 t + i, or
                // columns of row i.
                const int line = plan.rows_fast ? 8 * j + 2 * (lane % 4) + i : rows[i];
                const int chunk = plan.rows_fast ? lane / 4 : 4 * j + lane % 4;
                const float2 first = z[plan.rows_fast ? 0 : i][plan.rows_fast ? i : 0];
                const float2 second = z[plan.rows_fast ? 1 : i][plan.rows_fast ? i : 1];
                asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(
                                 target + line * kSwizzleBytes + ((chunk ^ (line & 7)) << 4)),
                             "f"(first.x), "f"(first.y), "f"(second.x), "f"(second.y)
                             : "memory");
            }
        }
        fence_proxy_async_shared();
        __syncwarp();
        tma_store(out_map, target, plan.rows_fast ? row0 : column0, plan.rows_fast ? column0 : row0,
                  product, lane == 0 && row0 < args.rows && column0 < args.columns);
        tma_store_commit();
    }
}
