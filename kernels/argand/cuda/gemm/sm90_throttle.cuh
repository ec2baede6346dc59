// Blocks that keep pace: none loads far ahead of the slowest.
//
// What blocks of a turn share comes from memory once as long as whoever wants it later still finds
// it in the second-level cache. But blocks drift apart, turn by turn, and where k is long the
// foremost is soon further ahead than the cache holds. So before every `pace_period`-th stage
// loading waits until all blocks have been `pace_lead` stages before it. Waiting is for speed only:
// who has waited for kThrottleTimeout, because a block has not started yet, waits no more.
#pragma once
#include "device/clock.cuh"
#include "sm90_plan.cuh"

constexpr long long kThrottleTimeout = 200000;  // nanoseconds

// Before stage `stage` of all that the block has of whole tiles; `waits` as returned before. One
// thread.
__device__ __forceinline__ bool throttle_producer(const WgmmaArguments& args, uint32 k_tile,
                                                  bool waits) {
    const uint32 interval = args.throttle_interval;
    if ((k_tile + args.maximum_lead) % interval == 0) {
        asm volatile("red.relaxed.gpu.global.add.u32 [%0], 1;" ::"l"(args.throttle) : "memory");
    }
    if (!waits || k_tile == 0 || k_tile % interval != 0) return waits;
    // Who waits counts for no later place before all have counted for this one.
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

// The last block whose loading is over leaves zeros for the next launch. One thread.
__device__ __forceinline__ void reset_throttle(const WgmmaArguments& args) {
    __threadfence();
    if (atomicAdd(args.throttle + 1, 1u) + 1 < gridDim.x) return;
    __threadfence();
    args.throttle[0] = 0;
    args.throttle[1] = 0;
}
