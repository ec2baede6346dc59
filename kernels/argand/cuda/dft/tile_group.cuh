// A group of warps of a block that compute one tile or transform at a time: its indices, its named
// barrier, a maximum over its threads. All kernels but those of powers of two work in groups.
#pragma once
#include "plan.cuh"

// Indices of a thread in its group, and of the group in the block.
template <int Warps>
struct TileGroup {
    static constexpr int kThreads = Warps * kWarp;
    int index;
    int thread;
    int warp;
    int lane;

    // The group of this thread. The thread index is opaque: the compiler would otherwise keep the
    // addresses of all stages in registers, and spill.
    static __device__ __forceinline__ TileGroup current() {
        const int thread = opaque_thread();
        return {thread / kThreads, thread % kThreads, thread % kThreads / kWarp, thread % kWarp};
    }

    __device__ __forceinline__ void sync() const {
        if constexpr (Warps == 1) {
            __syncwarp();
        } else {
            asm volatile("bar.sync %0, %1;" ::"r"(1 + index), "n"(kThreads) : "memory");
        }
    }
};

// Maximum over the threads of the group, returned to all of them. `scratch` has one value per warp.
template <int Warps>
__device__ __forceinline__ float group_max(float value, float* scratch,
                                           const TileGroup<Warps>& group) {
#pragma unroll
    for (int other = 1; other < kWarp; other *= 2)
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, other));
    if constexpr (Warps > 1) {
        if (group.lane == 0) scratch[group.warp] = value;
        group.sync();
#pragma unroll
        for (int warp = 0; warp < Warps; ++warp) value = fmaxf(value, scratch[warp]);
    }
    return value;
}

// Prefetches a transform to L2.
template <int Length>
__device__ __forceinline__ void prefetch_to_l2(const float2* x, int thread, int threads) {
    constexpr int kLine = 16;  // elements of 128 bytes
    for (int i = thread * kLine; i < Length; i += threads * kLine)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(x + i));
}
