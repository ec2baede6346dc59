// Bulk copies by TMA without a tensor map (sm_90): contiguous bytes between global and shared
// memory. Both addresses and the size are multiples of 16 bytes. Rings of whole rows are filled by
// them.
#pragma once
#include "mbarrier.cuh"

// Global to shared memory; the mbarrier counts the bytes. It has no L2 eviction hint, because bulk
// loads with evict_first were slower on an H200.
__device__ __forceinline__ void bulk_load(uint32 target, const void* source, uint32 bytes,
                                          uint32 mbarrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(target),
        "l"(source), "r"(bytes), "r"(mbarrier)
        : "memory");
}

// Shared to global memory, in the thread's open bulk group. `tma.cuh` commits groups and waits for
// them.
__device__ __forceinline__ void bulk_store(void* target, uint32 source, uint32 bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(target),
                 "r"(source), "r"(bytes)
                 : "memory");
}
