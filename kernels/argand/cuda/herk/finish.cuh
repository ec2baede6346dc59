// The last kernels of a Hermitian product whose epilogue does not mirror its lower triangle: they
// write the upper triangle of a full result, or gather the lower one row by row, and make the
// diagonal real.
#pragma once
#include "device/triangle.cuh"

// Arguments of both kernels. Strides count complex numbers.
struct FinishArguments {
    void* matrix;      // (batch, n, n), of which the lower triangle is read, or n rows to gather
    void* triangle;    // (batch, n (n + 1) / 2), where it is gathered
    const void* c;     // of the same shape as `triangle`, null where beta is 0
    int64 stride_m, stride_n, stride_batch;
    int64 triangle_stride, triangle_stride_batch;
    int64 c_stride, c_stride_batch;
    double beta;
    int n, first_row;  // rows of `matrix`, of which the first is this row of the triangle
};

constexpr int kSide = 32, kMirrorThreads = 256, kGatherThreads = 128;

// Writes the conjugate of a tile of the lower triangle where it belongs in the upper one, and makes
// the diagonal real. A block mirrors one tile.
template <typename Complex>
__device__ __forceinline__ void mirror_tile(const FinishArguments& args) {
    __shared__ Complex tile[kSide][kSide + 1];
    const uint32 rows = (args.n + kSide - 1) / kSide, each = rows * (rows + 1) / 2;
    const uint32 batch = blockIdx.x / each, index = blockIdx.x - batch * each;
    const uint32 tile_row = triangle_row(index);
    const int row0 = tile_row * kSide;
    const int column0 = (index - tile_row * (tile_row + 1) / 2) * kSide;
    Complex* x = static_cast<Complex*>(args.matrix) + batch * args.stride_batch;
    const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
#pragma unroll
    for (int i = warp; i < kSide; i += kMirrorThreads / kWarp) {
        const int row = row0 + i, column = column0 + lane;
        if (row >= args.n || column > row) continue;
        Complex* at = x + row * args.stride_m + column * args.stride_n;
        Complex value = *at;
        if (row == column) {
            value.y = 0;
            *at = value;
        }
        tile[i][lane] = value;
    }
    __syncthreads();
#pragma unroll
    for (int i = warp; i < kSide; i += kMirrorThreads / kWarp) {
        const int row = column0 + i, column = row0 + lane;
        if (column >= args.n || row >= column) continue;
        Complex value = tile[lane][i];
        value.y = -value.y;
        x[row * args.stride_m + column * args.stride_n] = value;
    }
}

// Gathers one row of the lower triangle, plus beta C, a block.
template <typename Complex, typename Real>
__device__ __forceinline__ void gather_row(const FinishArguments& args) {
    const int64 batch = blockIdx.x / args.n;
    const int64 index = blockIdx.x - batch * args.n;
    const int row = args.first_row + index;
    const Complex* from = static_cast<const Complex*>(args.matrix) + batch * args.stride_batch +
                          index * args.stride_m;
    const int64 first = int64(row) * (row + 1) / 2;
    Complex* to = static_cast<Complex*>(args.triangle) + batch * args.triangle_stride_batch +
                  first * args.triangle_stride;
    const Complex* c =
        static_cast<const Complex*>(args.c) + batch * args.c_stride_batch + first * args.c_stride;
    for (int column = threadIdx.x; column <= row; column += kGatherThreads) {
        Complex value = from[column * args.stride_n];
        if (args.c) {
            const Complex addend = c[column * args.c_stride];
            value.x += Real(args.beta) * addend.x;
            value.y += Real(args.beta) * addend.y;
        }
        if (column == row) value.y = 0;
        to[column * args.triangle_stride] = value;
    }
}
