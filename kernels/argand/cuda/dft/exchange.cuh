// Exchanges of numbers between the threads of the fp32 kernels of powers of two, through shared
// memory: first real, then imaginary parts, so that half of the memory suffices.
#pragma once
#include "device/types.cuh"

// Number i becomes what `load(i)` returns once each thread has called `store(i, part)` for all of
// its numbers. `sync` separates stores from loads. The caller synchronizes before the next stores.
template <int Count, typename Store, typename Load, typename Sync>
__device__ __forceinline__ void exchange_through_shared(float2 (&values)[Count], Store store,
                                                        Load load, Sync sync) {
#pragma unroll
    for (int i = 0; i < Count; ++i) store(i, values[i].x);
    sync();
#pragma unroll
    for (int i = 0; i < Count; ++i) values[i].x = load(i);
    sync();
#pragma unroll
    for (int i = 0; i < Count; ++i) store(i, values[i].y);
    sync();
#pragma unroll
    for (int i = 0; i < Count; ++i) values[i].y = load(i);
}
