// How large the lines of both operands are, for the precisions that scale them.
#pragma once
#include "device/scaling.cuh"

constexpr int kWarp = 32;

// A complex matrix of lines by k in batches; strides count complex numbers. `largest` (batches,
// lines) holds zeros before. Warps divide it into line_blocks x k_blocks a batch.
struct ScanSource {
    const float2* x;
    uint32* largest;
    int64 lines, k;
    int64 line_stride, k_stride, batch_stride;
    int64 line_blocks, k_blocks, batches;
};

struct ScanArguments {
    ScanSource a, b;
    int64 a_blocks;  // of the grid; the others look at b
};

// The bits of the largest finite magnitude of each line. A warp looks at Lines x Depth (KFast: one
// line after another, lanes along k; else lanes along the lines).
template <bool KFast, int Lines, int Depth>
__device__ __forceinline__ void largest_magnitudes(const ScanSource& source, int64 block) {
    static_assert(KFast || Lines == kWarp, "a lane for each line");
    const int64 warp = (block * blockDim.x + threadIdx.x) / kWarp;
    const int lane = threadIdx.x % kWarp;
    const int64 line0 = warp % source.line_blocks * Lines;
    const int64 k0 = warp / source.line_blocks % source.k_blocks * Depth;
    const int64 batch = warp / (source.line_blocks * source.k_blocks);
    if (batch >= source.batches) return;
    const int64 end = k0 + Depth < source.k ? k0 + Depth : source.k;
    const float2* x = source.x + batch * source.batch_stride;
    uint32* largest = source.largest + batch * source.lines + line0;
    auto magnitude = [](float2 value) {
        return max(finite_magnitude(value.x), finite_magnitude(value.y));
    };
    if constexpr (KFast) {
#pragma unroll
        for (int i = 0; i < Lines; ++i) {
            if (line0 + i >= source.lines) break;
            uint32 found = 0;
#pragma unroll 8
            for (int64 at = k0 + lane; at < end; at += kWarp) {
                const int64 place = (line0 + i) * source.line_stride + at * source.k_stride;
                found = max(found, magnitude(x[place]));
            }
            found = __reduce_max_sync(0xffffffffu, found);
            if (lane == 0) atomicMax(largest + i, found);
        }
    } else if (line0 + lane < source.lines) {
        const float2* line = x + (line0 + lane) * source.line_stride;
        uint32 found = 0;
#pragma unroll 16
        for (int64 at = k0; at < end; ++at) found = max(found, magnitude(line[at * source.k_stride]));
        atomicMax(largest + lane, found);
    }
}
