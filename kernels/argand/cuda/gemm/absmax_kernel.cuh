// The absmax kernel: finds the row absmax of one or both operands before a product, for precisions
// that scale rows. mma.sync products run it where k is long, packing where its blocks cannot
// exchange the absmax (pack_kernel.cuh).
#pragma once
#include "device/scaling.cuh"

constexpr int kAbsmaxWarps = 8;  // of a block

// A complex matrix of rows by k, in batches; a row is a row of A or a column of B. Strides count
// complex numbers. Blocks divide it into `row_blocks` a batch and read all of k.
struct AbsmaxSource {
    const float2* x;
    uint32* row_absmax;  // (batches, rows): bits of the absmax
    int64 rows, k;
    int64 row_stride, k_stride, batch_stride;
    int64 row_blocks;
};

struct AbsmaxArguments {
    AbsmaxSource a, b;
    int64 a_blocks;  // of the grid; the others read b
};

// Finds the largest finite magnitude of each row. A k-major source has a warp for each row, its
// lanes along k; else a block has 32 rows, its lanes along the rows and its warps along k.
template <bool KMajor>
__device__ __forceinline__ void find_row_absmax(const AbsmaxSource& source, int64 block) {
    const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    const int64 batch = block / source.row_blocks, row_block = block % source.row_blocks;
    const float2* x = source.x + batch * source.batch_stride;
    uint32* row_absmax = source.row_absmax + batch * source.rows;
    if constexpr (KMajor) {
        const int64 row = row_block * kAbsmaxWarps + warp;
        if (row >= source.rows) return;
        uint32 absmax = 0;
#pragma unroll 8
        for (int64 at = lane; at < source.k; at += kWarp) {
            absmax = max(absmax,
                         component_absmax_bits(x[row * source.row_stride + at * source.k_stride]));
        }
        absmax = __reduce_max_sync(0xffffffffu, absmax);
        if (lane == 0) row_absmax[row] = absmax;
    } else {
        __shared__ uint32 warp_absmax[kAbsmaxWarps][kWarp];
        const int64 row = row_block * kWarp + lane;
        uint32 absmax = 0;
        if (row < source.rows) {
#pragma unroll 8
            for (int64 at = warp; at < source.k; at += kAbsmaxWarps) {
                absmax =
                    max(absmax,
                        component_absmax_bits(x[row * source.row_stride + at * source.k_stride]));
            }
        }
        warp_absmax[warp][lane] = absmax;
        __syncthreads();
        if (warp > 0 || row >= source.rows) return;
#pragma unroll
        for (int i = 1; i < kAbsmaxWarps; ++i) absmax = max(absmax, warp_absmax[i][lane]);
        row_absmax[row] = absmax;
    }
}
