// The global timer, which is the same on all multiprocessors. Waits that only serve speed time out
// by it.
#pragma once

__device__ __forceinline__ long long nanoseconds() {
    long long time;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
    return time;
}
