// The direct epilogue: a consumer warp stores its 16 rows from its accumulators, at any strides. It
// serves 16-bit results, strides that TMA cannot write, and tiles that leave no registers for store
// boxes.
#pragma once
#include "sm90_epilogue.cuh"

// One of two values, without a branch.
__device__ __forceinline__ uint32 select(bool first, uint32 x, uint32 y) { return first ? x : y; }
__device__ __forceinline__ float select(bool first, float x, float y) { return first ? x : y; }
__device__ __forceinline__ float2 select(bool first, const float2& x, const float2& y) {
    return {first ? x.x : y.x, first ? x.y : y.y};
}

// The first or the second column of the lane `lanes` further among the four that hold a row. After
// the last of them come the first ones of the next eight columns. Rows differ in their shift, so
// each lane selects: branches would run one after the other.
template <WgmmaPlan plan>
__device__ __forceinline__ typename Output<plan>::Value column_of_next(
    const typename Output<plan>::Value (&held)[2], const typename Output<plan>::Value (&next)[2],
    int lanes, bool second, int lane) {
    const int t = lane % 4;
    const auto one = select(t < lanes, next[0], held[0]), two = select(t < lanes, next[1], held[1]);
    return Output<plan>::from_lane(select(second, two, one), lane / 4 * 4 + (t + lanes) % 4);
}

// Stores the 16 rows of a warp where the columns of Z are contiguous and the epilogue only
// descales. A lane holds columns 2 t and 2 t + 1 of each eight, t = lane % 4, of two rows, and
// stores them as one vector. With `kShifts` rows may begin anywhere in a sector of L2 (four
// columns): a lane stores the two columns `shift` further along, where `shift` columns of the row
// lie before its first whole sector, and those are stored alone. Four lanes then write 64 bytes of
// whole sectors at once; a sector that is written in part costs as much as two. Where tiles share
// columns, the tile before stores the first `shift` of this one, too.
template <WgmmaPlan plan, bool kShifts>
__device__ __forceinline__ void store_contiguous_rows(const WgmmaArguments& args,
                                                      const WgmmaTile& tile, int row0, int lane,
                                                      const float (&re)[plan.block_n / 2],
                                                      const float (&im)[plan.block_n / 2]) {
    using Out = Output<plan>;
    using Value = typename Out::Value;
    constexpr int kEights = plan.block_n / 8, kSector = 4;
    static_assert(plan.shared_columns == 0 || (plan.shared_columns == kSector && !plan.half_output),
                  "tiles share a sector of complex64");
    const int64 product = stored_product(args, tile);
    const ColumnDescales<plan> descales(args, tile, lane);
    const int t = lane % 4, columns = min(plan.block_n, args.n - tile.n0);
    float2 x_descale[2];
    Value* to[2];  // of the lane's first pair of columns
    bool inside[2];
    int shift[2] = {}, own[2], left[2];  // columns to store of a row, and from the lane's first on
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int row = row0 + fragment_row<plan>(lane, h);
        inside[h] = row < args.m;
        x_descale[h] = row_descale<plan>(args, tile, row);
        to[h] = Out::at(args.out, product * args.out_stride_batch + row * args.out_stride_m +
                                      tile.n0 + 2 * t);
        own[h] = stored_columns<plan>(tile, row, columns);
        int end = own[h];
        if constexpr (kShifts) {
            const uint32 at = static_cast<uint32>(reinterpret_cast<uint64>(to[h])) / sizeof(Value);
            shift[h] = (2 * t - at) % kSector;
            if constexpr (plan.shared_columns > 0)
                end = min(end, plan.tile_stride_n() + shift[h]);
        }
        left[h] = inside[h] ? end - 2 * t - shift[h] : 0;
    }
    const MirrorImage<plan> image(args, tile, row0 + fragment_row<plan>(lane, 0), tile.n0 + 2 * t);
    Value held[2][2], next[2][2];  // results of these eight columns and of the next, by row, column
    auto find = [&](int j, Value (&found)[2][2]) {
        const float2 y_descale[2] = {descales.at(8 * j, 2 * t), descales.at(8 * j, 2 * t + 1)};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float2 x = {re[4 * j + i], im[4 * j + i]};
            float2 z = descale<plan>(x, x_descale[i / 2], y_descale[i % 2]);
            if constexpr (plan.mirror) {
                const int rows = fragment_row<plan>(lane, i / 2) - fragment_row<plan>(lane, 0);
                image.store(args, rows, 8 * j + i % 2, z, inside[i / 2]);
            }
            found[i / 2][i % 2] = Out::value_of(z);
        }
    };
    find(0, next);
#pragma unroll
    for (int j = 0; j < kEights; ++j) {
#pragma unroll
        for (int i = 0; i < 4; ++i) held[i / 2][i % 2] = next[i / 2][i % 2];
        if (j + 1 < kEights) find(j + 1, next);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            Value first = held[h][0], second = held[h][1];
            Value* at = to[h] + 8 * j;
            if constexpr (kShifts) {
                const Value nearer = column_of_next<plan>(held[h], next[h], 1, shift[h] == 3, lane);
                const Value further = column_of_next<plan>(held[h], next[h], shift[h] == 3 ? 2 : 1,
                                                           shift[h] == 2, lane);
                if (j == 0 && inside[h] && (plan.shared_columns == 0 || tile.n0 == 0)) {
                    if (2 * t < shift[h] && 2 * t < own[h]) *at = first;
                    if (2 * t + 1 < shift[h] && 2 * t + 1 < own[h]) at[1] = second;
                }
                first = select(shift[h] == 0, first, select(shift[h] == 1, second, nearer));
                second = select(shift[h] == 0, second, select(shift[h] == 1, nearer, further));
                at += shift[h];
            }
            Out::store_inside(at, first, second, left[h], 8 * j);
        }
    }
}

// Stores a tile where rows of Z are contiguous, as in C^T = B^T A^T of a row-major C. A lane holds
// two adjacent rows; in columns that begin in the middle of a vector it stores its second row and
// the first of the lane with the next rows. Eight lanes write 128 bytes of a column at once.
template <WgmmaPlan plan>
__device__ __forceinline__ void store_contiguous_columns(const WgmmaArguments& args,
                                                         const WgmmaTile& tile, int row0, int lane,
                                                         const float (&re)[plan.block_n / 2],
                                                         const float (&im)[plan.block_n / 2]) {
    static_assert(!plan.descales_rows(), "rows of an interleaved X are not scaled beforehand");
    using Out = Output<plan>;
    using Value = typename Out::Value;
    const int64 product = stored_product(args, tile);
    const int t = lane % 4, own = fragment_row<plan>(lane, 0), rows = min(16, args.m - row0);
    const ColumnDescales<plan> descales(args, tile, lane);
    Value* column_start = Out::at(args.out, product * args.out_stride_batch + row0 + own +
                                                (tile.n0 + 2 * t) * args.out_stride_n);
#pragma unroll
    for (int i = 0; i < plan.block_n / 4; ++i) {
        const int j = i / 2, e = i % 2, column = tile.n0 + 8 * j + 2 * t + e;
        const int at = 4 * j + e;
        const float2 factors = descales.at(8 * j, 2 * t + e);
        Value first = Out::value_of(descale<plan>({re[at], im[at]}, {}, factors)),
              second = Out::value_of(descale<plan>({re[at + 2], im[at + 2]}, {}, factors));
        const Value after = Out::from_lane(first, lane_of_next_rows<plan>(lane));
        Value* to = column_start + (8 * j + e) * args.out_stride_n;
        const bool inside = column < args.n;
        const bool within =
            static_cast<uint32>(reinterpret_cast<uint64>(to)) % (2 * sizeof(Value)) != 0;
        if (within && inside && own == 0 && rows > 0) *to = first;
        Out::store_inside(to + within, select(within, second, first),
                          select(within, after, second), inside ? rows - own - within : 0, 0);
    }
}

// Stores the 16 rows of a warp at any strides. In each eight columns a lane holds columns
// 2 (lane % 4) and the next, in two rows.
template <WgmmaPlan plan>
__device__ __forceinline__ void store_strided_rows(const WgmmaArguments& args,
                                                   const WgmmaTile& tile, int row0, int lane,
                                                   const float (&re)[plan.block_n / 2],
                                                   const float (&im)[plan.block_n / 2]) {
    static_assert(!plan.mirror, "results with contiguous columns are mirrored, by whole rows");
    const int64 product = stored_product(args, tile);
    const int rows[2] = {row0 + fragment_row<plan>(lane, 0), row0 + fragment_row<plan>(lane, 1)};
    const bool has_row = rows[0] < args.m;  // the second row is never above the first
    if (!plan.scaled && !has_row) return;   // with scales, every lane takes part in shuffles
    const ColumnDescales<plan> descales(args, tile, lane);
    float2 x_descale[2] = {};
    if constexpr (plan.descales_rows()) {
#pragma unroll
        for (int h = 0; h < 2; ++h) x_descale[h] = row_descale<plan>(args, tile, rows[h]);
    }
    int64 out_at[2], c_at[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        out_at[h] = product * args.out_stride_batch + rows[h] * args.out_stride_m;
        c_at[h] = int64(tile.batch) * args.c_stride_batch + rows[h] * args.c_stride_m;
    }
    const bool second_row = rows[1] < args.m;
    // In 128 columns an X scaled in each stage leaves no registers for four complex results beside
    // four elements of C: results are squared at once, and C is loaded for two of them.
    constexpr bool kSquaresAtOnce = plan.epilogue == Epilogue::combine && plan.power &&
                                    plan.scales_stages() && plan.block_n == 128;
#pragma unroll
    for (int j = 0; j < plan.block_n / 8; ++j) {
        const int column = tile.n0 + 8 * j + 2 * (lane % 4);
        const float2 y_descale[2] = {descales.at(8 * j, 2 * (lane % 4)),
                                     descales.at(8 * j, 2 * (lane % 4) + 1)};
        if (!has_row || column >= args.n) continue;
        const bool second_column = column + 1 < args.n;
        typename Conditional<kSquaresAtOnce, float, float2>::Type z[2][2];
        float2 c[2][2];
        const auto load_c = [&](int h, int e) {
            c[h][e] = load_or_zero<CacheAllLevels>(
                args.c + c_at[h] + (column + e) * args.c_stride_n,
                adds_c(args) && (h == 0 || second_row) && (e == 0 || second_column));
        };
        // What all four results need at once.
        if constexpr (plan.epilogue == Epilogue::combine && !kSquaresAtOnce) {
#pragma unroll
            for (int i = 0; i < 4; ++i) load_c(i / 2, i % 2);
        }
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            if (e == 1 && !second_column) continue;
            if constexpr (kSquaresAtOnce) {
                load_c(0, e);
                load_c(1, e);
            }
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                if (h == 1 && !second_row) continue;
                const int at = 4 * j + 2 * h + e;
                const float2 x = descale<plan>({re[at], im[at]}, x_descale[h], y_descale[e]);
                const float2 result = epilogue_result<plan>(args, x, c[h][e]);
                if constexpr (kSquaresAtOnce) {
                    z[h][e] = Output<plan>::value_of(result);
                } else {
                    z[h][e] = result;
                }
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

// Stores the 16 rows of a warp as the plan's epilogue does.
template <WgmmaPlan plan>
__device__ __forceinline__ void store_rows(const WgmmaArguments& args, const WgmmaTile& tile,
                                           int row0, int lane, const float (&re)[plan.block_n / 2],
                                           const float (&im)[plan.block_n / 2]) {
    if constexpr (plan.epilogue == Epilogue::descale_rows) {
        store_contiguous_rows<plan, false>(args, tile, row0, lane, re, im);
    } else if constexpr (plan.epilogue == Epilogue::descale_shifted_rows) {
        store_contiguous_rows<plan, true>(args, tile, row0, lane, re, im);
    } else if constexpr (plan.epilogue == Epilogue::descale_columns) {
        store_contiguous_columns<plan>(args, tile, row0, lane, re, im);
    } else {
        store_strided_rows<plan>(args, tile, row0, lane, re, im);
    }
}
