// The epilogue of the mma.sync family: a warp descales its accumulators, computes alpha x + beta C
// (linear_combination.cuh) and stores complex64 from registers, at any strides.
#pragma once
#include "device/predicated_load.cuh"
#include "device/scaling.cuh"
#include "linear_combination.cuh"
#include "sm80_one_tile.cuh"
#include "sm80_warp_mma.cuh"

// Computes the results of two neighbouring columns of one row, of which the first is inside the
// matrix.
__device__ __forceinline__ void combine_pair(const GemmArguments& args, const float2* c, int64 row,
                                             int64 column, float2 (&x)[2]) {
    const float2* c_at = c + row * args.c_stride_m + column * args.c_stride_n;
    const float2 addends[2] = {
        load_or_zero<CacheAllLevels>(c_at, adds_c(args)),
        load_or_zero<CacheAllLevels>(c_at + args.c_stride_n,
                                     adds_c(args) && column + 1 < args.n)};
#pragma unroll
    for (int e = 0; e < 2; ++e) x[e] = linear_combination(args, x[e], addends[e]);
}

// Computes alpha x + beta C in the accumulators of a warp. `c` is that of the lane's first element.
// The C of all rows of a small warp is loaded at once, else that of one row after the other.
template <MmaPlan plan>
__device__ __forceinline__ void combine_accumulators(const GemmArguments& args, const float2* c,
                                                     int rows_left, int columns_left,
                                                     Accumulators<plan>& accumulators) {
    const auto stride_m = static_cast<Stride<plan>>(args.c_stride_m);
    const auto stride_n = static_cast<Stride<plan>>(args.c_stride_n);
    constexpr int kRows = plan.warp_m() / 8, kColumns = plan.warp_n() / 8;
    constexpr int kTogether = plan.small_warps() ? kRows : 1;
#pragma unroll
    for (int first = 0; first < kRows; first += kTogether) {
        float2 addends[kTogether][kColumns][2];
        auto each = [&](auto function) {
#pragma unroll
            for (int i = 0; i < kTogether; ++i)
#pragma unroll
                for (int j = 0; j < kColumns; ++j)
#pragma unroll
                    for (int e = 0; e < 2; ++e) function(first + i, j, e, addends[i][j][e]);
        };
        each([&](int i, int j, int e, float2& addend) {
            const bool inside = 8 * i < rows_left && 8 * j + e < columns_left;
            const float2* at = c + int64(8 * i) * stride_m + int64(8 * j + e) * stride_n;
            addend = load_or_zero<CacheAllLevels>(at, adds_c(args) && inside);
        });
        each([&](int i, int j, int e, const float2& addend) {
            float& re = accumulators.re[i / 2][j][2 * (i % 2) + e];
            float& im = accumulators.im[i / 2][j][2 * (i % 2) + e];
            const float2 x = linear_combination(args, {re, im}, addend);
            re = x.x;
            im = x.y;
        });
    }
}

// Descales accumulators: multiplies them by the powers of two of their row and their column.
template <MmaPlan plan>
__device__ __forceinline__ void descale_accumulators(Accumulators<plan>& accumulators,
                                                     const int (&a_exponent)[plan.warp_m() / 8],
                                                     const uint32* b_absmax, int columns_left) {
#pragma unroll
    for (int j = 0; j < plan.warp_n() / 8; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            if (8 * j + e >= columns_left) continue;
            const int b_exponent = scale_exponent<plan.operand>(b_absmax[8 * j + e]);
#pragma unroll
            for (int i = 0; i < plan.warp_m() / 8; ++i) {
                const int exponent = -(a_exponent[i] + b_exponent);
                float& re = accumulators.re[i / 2][j][2 * (i % 2) + e];
                float& im = accumulators.im[i / 2][j][2 * (i % 2) + e];
                re = scale_by_power(re, exponent);
                im = scale_by_power(im, exponent);
            }
        }
}

// Stores two neighbouring numbers at 16 bytes; by assignment it may become two stores.
__device__ __forceinline__ void store_two(float2* at, const float2& x, const float2& y) {
    asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(at), "f"(x.x), "f"(x.y), "f"(y.x),
                 "f"(y.y)
                 : "memory");
}

// Stores results at any stride of columns.
template <MmaPlan plan>
__device__ __forceinline__ void store_strided(float2* out, Stride<plan> stride_m,
                                              Stride<plan> stride_n, int rows_left,
                                              int columns_left,
                                              const Accumulators<plan>& accumulators) {
    each_result<plan>([=, &accumulators](int i, int j, int e) {
        const int at = 2 * (i % 2) + e;
        if (8 * i < rows_left && 8 * j + e < columns_left)
            out[int64(8 * i) * stride_m + int64(8 * j + e) * stride_n] = {
                accumulators.re[i / 2][j][at], accumulators.im[i / 2][j][at]};
    });
}

// Stores results of contiguous columns, in whole 16 bytes. A row that begins in the middle of such
// a pair is moved by one column: a lane stores the second column of the lane before with its own
// first one, so that four lanes write 64 bytes of a row at once. `out` is that of the lane's first
// element, whose row is `below` columns below the diagonal; what is mirrored is stored up to the
// diagonal. All lanes of a warp call it.
template <MmaPlan plan>
__device__ __forceinline__ void store_results(float2* out, Stride<plan> stride_m, int rows_left,
                                              int columns_left, int below,
                                              const Accumulators<plan>& accumulators) {
    constexpr int kEights = plan.warp_n() / 8;
    const int t = threadIdx.x % 4, source = threadIdx.x % kWarp / 4 * 4 + (t + 3) % 4;
    // The rows of a lane are eight apart, so all begin alike.
    const bool moved = static_cast<uint32>(reinterpret_cast<uint64>(out)) % 16 != 0;
    const bool any_moved = __any_sync(~0u, moved);
    float2* row = moved ? out - 1 : out;
#pragma unroll
    for (int i = 0; i < plan.warp_m() / 8; ++i, row += int64(8) * stride_m) {
        const bool inside = 8 * i < rows_left;
        const int end = plan.mirror ? min(columns_left, below + 8 * i + 1) : columns_left;
        float2 before = {};
#pragma unroll
        for (int j = 0; j < kEights; ++j) {
            const auto& re = accumulators.re[i / 2][j];
            const auto& im = accumulators.im[i / 2][j];
            const int e = 2 * (i % 2);
            float2 x = {re[e], im[e]}, y = {re[e + 1], im[e + 1]};
            const float2 last = y;
            if (any_moved) {
                // The first of four lanes asks the last for that of the eight columns before.
                const float2 given = t == 3 ? before : y;
                const float2 left = {__shfl_sync(~0u, given.x, source),
                                     __shfl_sync(~0u, given.y, source)};
                before = y;
                if (moved) {
                    y = x;
                    x = left;
                }
            }
            // Columns from that of x on which are inside the matrix; the warp before has x itself
            // where it is moved across the warp's edge.
            const int left_inside = inside ? end - 8 * j + (moved ? 1 : 0) : 0;
            const bool mine = !moved || j > 0 || t > 0;
            float2* at = row + 8 * j;
            if (mine && left_inside >= 2) store_two(at, x, y);
            if (mine && left_inside == 1) *at = x;
            if (!mine && left_inside >= 2) at[1] = y;
            if (j + 1 == kEights && moved && t == 3 && left_inside >= 3) at[2] = last;
        }
    }
}

// Stores the mirror image of a result below the diagonal. `out` is that of the batch.
__device__ __forceinline__ void store_mirrored(const GemmArguments& args, float2* out, int64 row,
                                               int64 column, float2 x) {
    if (row < args.m && column < row) out[column * args.out_stride_m + row] = {x.x, -x.y};
}

// Stores a result up to the diagonal, which is real, and its mirror image.
__device__ __forceinline__ void store_hermitian(const GemmArguments& args, float2* out, int64 row,
                                                int64 column, float2 x) {
    if (column > row) return;
    out[row * args.out_stride_m + column * args.out_stride_n] = {x.x, column < row ? x.y : 0.0f};
    store_mirrored(args, out, row, column, x);
}

// Stores the mirror images of results, and makes those on the diagonal real. `row0` and `column0`
// are the first of the lane, `out` is that of the batch.
template <MmaPlan plan>
__device__ __forceinline__ void mirror_accumulators(const GemmArguments& args, float2* out,
                                                    int64 row0, int64 column0,
                                                    Accumulators<plan>& accumulators) {
    each_result<plan>([=, &args, &accumulators](int i, int j, int e) {
        const int64 row = row0 + 8 * i, column = column0 + 8 * j + e;
        const int at = 2 * (i % 2) + e;
        float& im = accumulators.im[i / 2][j][at];
        if (row == column) im = 0.0f;
        store_mirrored(args, out, row, column, {accumulators.re[i / 2][j][at], im});
    });
}

// `row0` and `column0` are the first of the lane; `b_absmax` begins with that column.
template <MmaPlan plan>
__device__ __forceinline__ void store_accumulators(const GemmArguments& args,
                                                   Accumulators<plan>& accumulators,
                                                   Stride<plan> batch, Stride<plan> row0,
                                                   Stride<plan> column0,
                                                   const int (&a_exponent)[plan.warp_m() / 8],
                                                   const uint32* b_absmax, float2* stages) {
    using Size = Stride<plan>;
    const int rows_left =
        static_cast<int>(min(static_cast<Size>(args.m) - row0, Size(plan.warp_m())));
    const int columns_left =
        static_cast<int>(min(static_cast<Size>(args.n) - column0, Size(plan.warp_n() + 2)));
    if constexpr (plan.scaled)
        descale_accumulators<plan>(accumulators, a_exponent, b_absmax, columns_left);
    if (combines(args)) {
        const float2* c = args.c + batch * args.c_stride_batch +
                          int64(row0) * static_cast<Size>(args.c_stride_m) +
                          int64(column0) * static_cast<Size>(args.c_stride_n);
        combine_accumulators<plan>(args, c, rows_left, columns_left, accumulators);
    }
    const auto stride_m = static_cast<Size>(args.out_stride_m);
    const auto stride_n = static_cast<Size>(args.out_stride_n);
    float2* out = args.out + batch * args.out_stride_batch + int64(row0) * stride_m +
                  int64(column0) * stride_n;
    if constexpr (plan.mirror && plan.one_tile) {
        __syncthreads();  // no stage is read any more
        store_through_shared<plan>(args, args.out + batch * args.out_stride_batch,
                                   static_cast<int>(row0), static_cast<int>(column0), accumulators,
                                   stages);
        return;
    }
    if constexpr (plan.mirror)
        mirror_accumulators<plan>(args, args.out + batch * args.out_stride_batch, row0, column0,
                                  accumulators);
    if (stride_n == 1) {
        store_results<plan>(out, stride_m, rows_left, columns_left,
                            static_cast<int>(row0 - column0), accumulators);
    } else {
        store_strided<plan>(out, stride_m, stride_n, rows_left, columns_left, accumulators);
    }
}

// The epilogue of reduced slices: computes alpha x + beta C of two neighbouring columns of one row
// and stores them.
template <MmaPlan plan>
struct VectorEpilogue {
    using Size = Stride<plan>;
    Size m0, n0;
    int rows, columns;  // of the tile, inside the matrix
    Size stride_m, stride_n;
    float2* out_tile;
    bool combined;
    const float2* c;
    float2* out;

    __device__ __forceinline__ VectorEpilogue(const GemmArguments& args, Size batch, Size m0,
                                              Size n0)
        : m0(m0),
          n0(n0),
          rows(static_cast<int>(min(static_cast<Size>(args.m) - m0, Size(plan.block_m)))),
          columns(static_cast<int>(min(static_cast<Size>(args.n) - n0, Size(plan.block_n)))),
          stride_m(static_cast<Size>(args.out_stride_m)),
          stride_n(static_cast<Size>(args.out_stride_n)),
          out_tile(args.out + batch * args.out_stride_batch + int64(m0) * stride_m +
                   int64(n0) * stride_n),
          combined(combines(args)),
          c(args.c + batch * args.c_stride_batch),
          out(args.out + batch * args.out_stride_batch) {}

    // Stores two neighbouring results `x`, of which the first is at row and column `place` of the
    // tile.
    __device__ __forceinline__ void store(const GemmArguments& args, const float4& x,
                                          int2 place) const {
        if (place.x >= rows || place.y >= columns) return;
        float2 results[2] = {{x.x, x.y}, {x.z, x.w}};
        const int64 row = m0 + place.x, column = n0 + place.y;
        if (combined) combine_pair(args, c, row, column, results);
        if constexpr (plan.mirror) {
            store_hermitian(args, out, row, column, results[0]);
            store_hermitian(args, out, row, column + 1, results[1]);
            return;
        }
        float2* at = out_tile + int64(place.x) * stride_m + int64(place.y) * stride_n;
        const bool second = place.y + 1 < columns;
        if (second && args.store_pairs_n) {
            store_two(at, results[0], results[1]);
        } else {
            *at = results[0];
            if (second) at[stride_n] = results[1];
        }
    }
};
