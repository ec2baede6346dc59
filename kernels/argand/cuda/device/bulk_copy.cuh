// The copy engine without a tensor map: bytes in a piece, at multiples of 16 on both sides (sm_90).
#pragma once
#include "tensor_copy.cuh"

// Counted by the barrier. What is read once should not displace other things from the second level.
__device__ __forceinline__ void copy_bulk(uint32 target, const void* source, uint32 bytes,
                                          uint32 barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
        "[%0], [%1], %2, [%3], %4;" ::"r"(target),
        "l"(source), "r"(bytes), "r"(barrier), "l"(kEvictFirst)
        : "memory");
}
