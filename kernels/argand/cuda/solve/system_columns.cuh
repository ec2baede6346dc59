// A and b of a system beside each other, column-major and in the type of the factorization.
#pragma once
#include "device/complex.cuh"
#include "device/types.cuh"

constexpr int kCopyThreads = 256;
constexpr int kCopyTile = 32;  // rows and columns that a block copies

struct CopyArguments {
    const void* a;      // (n, n), contiguous: its rows one after another, or its columns
    const char* b;      // (n, columns), with any steps
    void* system;       // (n, n + columns), column-major
    uint32* state;      // of the kernels that follow, which this one sets to 0
    int64 n, columns;
    int64 b_row, b_column;  // bytes from element to element
    int state_numbers;
    int by_rows;  // whether A's rows follow each other
};

template <typename Given>
__device__ __forceinline__ Given element(const CopyArguments& args, int64 row, int64 column) {
    if (column < args.n)
        return static_cast<const Given*>(
            args.a)[args.by_rows ? row * args.n + column : column * args.n + row];
    return *reinterpret_cast<const Given*>(args.b + row * args.b_row +
                                           (column - args.n) * args.b_column);
}

// Lanes read neighbours, along A's rows or columns, and write neighbours along columns.
template <typename Given, typename Working>
__device__ __forceinline__ void copy_columns(const CopyArguments& args) {
    constexpr int kTile = kCopyTile, kWarps = kCopyThreads / kWarp;
    using Number = Complex<Working>;
    __shared__ Number tile[kTile][kTile + 1];  // by columns
    const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
    const int64 n = args.n, tiles = (n + kTile - 1) / kTile;
    const int64 row = blockIdx.x % tiles * kTile, column = blockIdx.x / tiles * kTile;
    if (blockIdx.x == 0)
        for (int i = threadIdx.x; i < args.state_numbers; i += kCopyThreads) args.state[i] = 0;
#pragma unroll
    for (int t = warp; t < kTile; t += kWarps) {
        const int i = args.by_rows ? t : lane, j = args.by_rows ? lane : t;
        if (row + i < n && column + j < n + args.columns) {
            const auto value = element<Complex<Given>>(args, row + i, column + j);
            tile[j][i] = {Working(value.x), Working(value.y)};
        }
    }
    __syncthreads();
#pragma unroll
    for (int t = warp; t < kTile; t += kWarps)
        if (row + lane < n && column + t < n + args.columns)
            static_cast<Number*>(args.system)[(column + t) * n + row + lane] = tile[t][lane];
}
