// The residual b - A x and the norms by which the host finds the backward error of x, in fp64.
#pragma once
#include "device/complex.cuh"
#include "device/types.cuh"

constexpr int kResidualThreads = 256, kMeasureThreads = 512;
constexpr int kResidualTile = 32;  // rows and columns of A that a block holds

struct ResidualArguments {
    const void* a;      // (n, n), contiguous: its rows one after another, or its columns
    const void* x;      // (n, columns), column-major
    double2* partials;  // (splits, columns + 1, n): parts of A x, and of the sums of |A|'s rows
    int64 n, columns;
    int64 splits, width;  // a block sums `width` columns of A, of a split
    int by_rows;          // whether A's rows follow each other
};

__device__ __forceinline__ double2 widened(float2 x) { return {x.x, x.y}; }
__device__ __forceinline__ double2 widened(double2 x) { return x; }

// Blocks, from the fastest index on: 32 rows of A, a split, `kColumns` columns of x. A thread has
// one row, and each of the warps every eighth column of A.
template <typename OfA, typename OfX, int kColumns>
__device__ __forceinline__ void sum_products(const ResidualArguments& args) {
    constexpr int kTile = kResidualTile, kWarps = kResidualThreads / kWarp;
    __shared__ double2 tile[kTile][kTile + 1];  // by columns of A
    __shared__ double2 right[kColumns][kTile];
    const auto* const a = static_cast<const Complex<OfA>*>(args.a);
    const auto* const x = static_cast<const Complex<OfX>*>(args.x);
    const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
    const int64 n = args.n, tiles = (n + kTile - 1) / kTile, place = blockIdx.x / tiles;
    const int64 row = blockIdx.x % tiles * kTile, split = place % args.splits;
    const int64 column = place / args.splits * kColumns;
    const int64 first = split * args.width, last = min(n, first + args.width);
    double2 sums[kColumns] = {};
    double size = 0;
    for (int64 j = first; j < last; j += kTile) {
        __syncthreads();
        // Lanes read neighbours, along rows or columns.
        const int64 along = args.by_rows ? j : row, across = args.by_rows ? row : j;
#pragma unroll
        for (int t = warp; t < kTile; t += kWarps) {
            double2 value{};
            if (along + lane < n && across + t < n)
                value = widened(a[(across + t) * n + along + lane]);
            tile[args.by_rows ? lane : t][args.by_rows ? t : lane] = value;
        }
        for (int i = threadIdx.x; i < kColumns * kTile; i += kResidualThreads) {
            const int64 c = column + i / kTile, k = j + i % kTile;
            right[i / kTile][i % kTile] =
                c < args.columns && k < n ? widened(x[c * n + k]) : double2{};
        }
        __syncthreads();
#pragma unroll
        for (int t = warp; t < kTile; t += kWarps) {
            const double2 value = tile[t][lane];
            if (column == 0) size += sqrt(value.x * value.x + value.y * value.y);
#pragma unroll
            for (int c = 0; c < kColumns; ++c) multiply_add(sums[c], value, right[c][t]);
        }
    }
    double2* const found = args.partials + split * (args.columns + 1) * n + row;
#pragma unroll
    for (int c = 0; c <= kColumns; ++c) {
        __syncthreads();
        tile[warp][lane] = c < kColumns ? sums[c < kColumns ? c : 0] : double2{size, 0};
        __syncthreads();
        const int64 to = c < kColumns ? column + c : args.columns;
        const bool has = c < kColumns ? to < args.columns : column == 0;
        if (warp == 0 && has && row + lane < n) {
            double2 sum{};
#pragma unroll
            for (int w = 0; w < kWarps; ++w) sum.x += tile[w][lane].x, sum.y += tile[w][lane].y;
            found[to * n + lane] = sum;
        }
    }
}

struct MeasureArguments {
    const double2* partials;  // as in ResidualArguments
    const void* x;
    const char* b;      // (n, columns), with any steps
    const int* info;    // getrf's: a column without a pivot, from 1 on, or 0
    double* measures;   // (columns + 1, 3): the largest magnitudes of the residual, of x and of b
                        // in each column; the norm of A
    void* result;       // (n, columns), row-major: x in the type of b
    double* error;      // the largest backward error of a column; NaN where there is none
    uint32* ended;      // 0: blocks that have ended
    int64 n, columns, splits;
    int64 b_row, b_column;  // bytes from element to element
};

// The larger one; NaN where there is one, which fmax would drop.
__device__ __forceinline__ double larger(double x, double y) { return y > x || y != y ? y : x; }

// The largest value of a block's threads, for its first warp.
__device__ __forceinline__ double largest_of_block(double value) {
    constexpr int kWarps = kMeasureThreads / kWarp;
    __shared__ double shared[kWarps];
#pragma unroll
    for (int mask = kWarp / 2; mask > 0; mask /= 2)
        value = larger(value, __shfl_xor_sync(0xffffffffu, value, mask));
    __syncthreads();
    if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = value;
    __syncthreads();
    double found = 0;
    for (double one : shared) found = larger(found, one);
    return found;
}

// ||r|| / (||A|| ||x|| + ||b||) of the columns, by the block that ends last.
__device__ __forceinline__ void write_error(const MeasureArguments& args) {
    const double norm = __ldcg(args.measures + 3 * args.columns);
    double worst = 0;
    for (int64 column = threadIdx.x; column < args.columns; column += kMeasureThreads) {
        const double* const found = args.measures + 3 * column;
        const double scale = norm * __ldcg(found + 1) + __ldcg(found + 2);
        // A column of b that is 0 has the solution 0. Infinities and NaN become NaN.
        const double error = __ldcg(found) / (scale > 0 ? scale : 1);
        worst = larger(worst, error + 0 * scale);
    }
    worst = largest_of_block(worst);
    if (threadIdx.x == 0) *args.error = *args.info ? 0.0 / 0.0 : worst;
}

// A block has one column of x; the last one has the norm of A.
template <typename OfB, typename OfX>
__device__ __forceinline__ void measure_residual(const MeasureArguments& args) {
    using Result = Complex<OfB>;
    __shared__ bool is_last;
    const int64 n = args.n, column = blockIdx.x;
    const bool is_norm = column == args.columns;
    double found[3] = {};
    for (int64 i = threadIdx.x; i < n; i += kMeasureThreads) {
        double2 sum{};
#pragma unroll 4
        for (int64 split = 0; split < args.splits; ++split) {
            const double2 part = args.partials[(split * (args.columns + 1) + column) * n + i];
            sum.x += part.x, sum.y += part.y;
        }
        if (is_norm) {
            found[0] = larger(found[0], sum.x);
        } else {
            const double2 x = widened(static_cast<const Complex<OfX>*>(args.x)[column * n + i]);
            const double2 b = widened(*reinterpret_cast<const Result*>(
                args.b + i * args.b_row + column * args.b_column));
            static_cast<Result*>(args.result)[i * args.columns + column] = {OfB(x.x), OfB(x.y)};
            found[0] = larger(found[0], hypot(b.x - sum.x, b.y - sum.y));
            found[1] = larger(found[1], hypot(x.x, x.y));
            found[2] = larger(found[2], hypot(b.x, b.y));
        }
    }
    for (int part = 0; part < 3; ++part) {
        const double largest = largest_of_block(found[part]);
        if (threadIdx.x == 0) args.measures[3 * column + part] = largest;
    }
    if (threadIdx.x == 0) {
        __threadfence();
        is_last = atomicAdd(args.ended, 1) == args.columns;
        __threadfence();
    }
    __syncthreads();
    if (is_last) write_error(args);
}
