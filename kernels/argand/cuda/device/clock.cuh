// The time, the same on all multiprocessors.
#pragma once

__device__ __forceinline__ long long nanoseconds() {
    long long time;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
    return time;
}
