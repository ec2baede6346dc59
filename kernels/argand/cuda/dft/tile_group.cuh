// Warps that work on one transform or tile, and what they do together.
#pragma once
#include "plan.cuh"

// The warps of a block that work on one tile at a time.
template <int Warps>
struct TileGroup {
    static constexpr int kThreads = Warps * kWarp;
    int index;
    int thread;
    int warp;
    int lane;

    // Of this thread. What is derived of it is derived here anew: the compiler would keep what every
    // stage derives for all tiles, and spill.
    static __device__ __forceinline__ TileGroup current() {
        int thread = threadIdx.x;
        asm volatile("" : "+r"(thread));
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

// The largest of what the group's threads have, for all of them. `scratch` has a place for each of its
// warps.
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

// Asks for a transform in the second-level cache.
template <int Length>
__device__ __forceinline__ void prefetch_to_l2(const float2* x, int thread, int threads) {
    constexpr int kLine = 16;  // elements of 128 bytes
    for (int i = thread * kLine; i < Length; i += threads * kLine)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(x + i));
}
