// The CTA throttle: producers wait so that no block loads far ahead of the slowest, because the
// tiles of a wave share operands in L2.
//
// Blocks drift apart wave by wave, and with a long k the lead soon exceeds what L2 holds; late
// blocks then read from memory again. Before every `throttle_interval`-th k-tile a producer waits
// until all blocks are at most `maximum_lead` k-tiles behind. Waiting is for speed only: after
// kThrottleTimeout, for instance because a block has not started yet, a producer stops waiting.
#pragma once
#include "device/clock.cuh"
#include "sm90_plan.cuh"

// Nanoseconds: long beside the time of `throttle_interval` k-tiles, a few microseconds.
constexpr long long kThrottleTimeout = 200000;

// Called before k-tile `k_tile` of all data-parallel tiles of this block, with the value that the
// last call returned: whether the producer still waits. Producer thread.
__device__ __forceinline__ bool throttle_producer(const WgmmaArguments& args, uint32 k_tile,
                                                  bool waits) {
    const uint32 interval = args.throttle_interval;
    if ((k_tile + args.maximum_lead) % interval == 0) {
        asm volatile("red.relaxed.gpu.global.add.u32 [%0], 1;" ::"l"(args.throttle) : "memory");
    }
    if (!waits || k_tile == 0 || k_tile % interval != 0) return waits;
    // Each block arrives once an interval, and only after it has passed the wait of the interval
    // before, so one counter serves all intervals.
    const uint32 expected = k_tile / interval * gridDim.x;
    const long long start = nanoseconds();
    uint32 arrived = 0;
    while (arrived < expected) {
        asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];"
                     : "=r"(arrived)
                     : "l"(args.throttle)
                     : "memory");
        if (nanoseconds() - start > kThrottleTimeout) return false;
    }
    return true;
}

// The last block to finish resets the counters for the next launch. Producer thread.
__device__ __forceinline__ void reset_throttle(const WgmmaArguments& args) {
    __threadfence();
    if (atomicAdd(args.throttle + 1, 1u) + 1 < gridDim.x) return;
    __threadfence();
    args.throttle[0] = 0;
    args.throttle[1] = 0;
}
