// The copy engine without a tensor map: bytes in a piece, at multiples of 16 on both sides (sm_90).
#pragma once
#include "mbarrier.cuh"

// Counted by the barrier. Without a hint that the second level should drop what was read: with one
// the engine was slower on an H200.
__device__ __forceinline__ void bulk_load(uint32 target, const void* source, uint32 bytes,
                                          uint32 mbarrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(target),
        "l"(source), "r"(bytes), "r"(mbarrier)
        : "memory");
}

// The other way, in the group of the thread's stores (`tma.cuh` ends and awaits groups).
__device__ __forceinline__ void bulk_store(void* target, uint32 source, uint32 bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(target),
                 "r"(source), "r"(bytes)
                 : "memory");
}
