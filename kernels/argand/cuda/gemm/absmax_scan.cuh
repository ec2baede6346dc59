// How large the lines of both operands are, for the precisions that scale them.
#pragma once
#include "device/scaling.cuh"

constexpr int kScanWarps = 8;  // of a block

// A complex matrix of lines by k in batches; strides count complex numbers. Blocks divide it into
// line_blocks a batch, each looking at all of k.
struct ScanSource {
    const float2* x;
    uint32* largest;  // (batches, lines)
    int64 lines, k;
    int64 line_stride, k_stride, batch_stride;
    int64 line_blocks;
};

struct ScanArguments {
    ScanSource a, b;
    int64 a_blocks;  // of the grid; the others look at b
};

// The bits of the largest finite magnitude of each line. With KFast a warp takes a line, its lanes
// along k; else a block takes 32 lines, its lanes along the lines and its warps along k.
template <bool KFast>
__device__ __forceinline__ void largest_magnitudes(const ScanSource& source, int64 block) {
    const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    const int64 batch = block / source.line_blocks, line_block = block % source.line_blocks;
    const float2* x = source.x + batch * source.batch_stride;
    uint32* largest = source.largest + batch * source.lines;
    if constexpr (KFast) {
        const int64 line = line_block * kScanWarps + warp;
        if (line >= source.lines) return;
        uint32 found = 0;
#pragma unroll 8
        for (int64 at = lane; at < source.k; at += kWarp) {
            found = max(found,
                        component_absmax_bits(x[line * source.line_stride + at * source.k_stride]));
        }
        found = __reduce_max_sync(0xffffffffu, found);
        if (lane == 0) largest[line] = found;
    } else {
        __shared__ uint32 parts[kScanWarps][kWarp];
        const int64 line = line_block * kWarp + lane;
        uint32 found = 0;
        if (line < source.lines) {
#pragma unroll 8
            for (int64 at = warp; at < source.k; at += kScanWarps) {
                found =
                    max(found,
                        component_absmax_bits(x[line * source.line_stride + at * source.k_stride]));
            }
        }
        parts[warp][lane] = found;
        __syncthreads();
        if (warp > 0 || line >= source.lines) return;
#pragma unroll
        for (int i = 1; i < kScanWarps; ++i) found = max(found, parts[i][lane]);
        largest[line] = found;
    }
}
