// mbarriers in shared memory (sm_90, where no other is said): each phase counts arrivals and the
// bytes of TMA copies. Producer and consumer warpgroups hand the stages of a ring to each other by
// a pair of them, full and empty.
#pragma once
#include "shared.cuh"

__device__ __forceinline__ void mbarrier_init(uint32 mbarrier, uint32 arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(mbarrier), "r"(arrivals)
                 : "memory");
}

// Makes this thread's writes to shared memory visible to TMA and wgmma.
__device__ __forceinline__ void fence_proxy_async_shared() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Makes initialised mbarriers visible to the cluster's blocks that wait for its barrier.
__device__ __forceinline__ void mbarrier_cluster_init_fence() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Makes initialised mbarriers visible to TMA. Call it before the block's first barrier.
__device__ __forceinline__ void mbarrier_init_fence() {
    mbarrier_cluster_init_fence();
    fence_proxy_async_shared();
}

__device__ __forceinline__ void mbarrier_arrive(uint32 mbarrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(mbarrier) : "memory");
}

// Arrives once, and adds `bytes` of TMA copies to what the current phase waits for.
__device__ __forceinline__ void mbarrier_arrive_expect_tx(uint32 mbarrier, uint32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(mbarrier),
                 "r"(bytes)
                 : "memory");
}

// Returns when the phase of this parity is complete. The loop holds no trap and no assertion: with
// one, ptxas exceeds the registers that setmaxnreg grants and spills.
__device__ __forceinline__ void mbarrier_wait(uint32 mbarrier, uint32 parity) {
    uint32 done = 0;
    while (!done) {
        asm volatile(
            "{\n.reg .pred p;\n"
            "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
            "selp.b32 %0, 1, 0, p;\n}\n"
            : "=r"(done)
            : "r"(mbarrier), "r"(parity)
            : "memory");
    }
}

// As mbarrier_wait, on sm_80 too, which has no wait that suspends the thread.
__device__ __forceinline__ void mbarrier_spin(uint32 mbarrier, uint32 parity) {
#if __CUDA_ARCH__ >= 900
    mbarrier_wait(mbarrier, parity);
#else
    uint32 done = 0;
    while (!done) {
        asm volatile(
            "{\n.reg .pred p;\n"
            "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
            "selp.b32 %0, 1, 0, p;\n}\n"
            : "=r"(done)
            : "r"(mbarrier), "r"(parity)
            : "memory");
    }
#endif
}

// Arrives once the thread's cp.async copies so far are complete (sm_80 and newer); counted among
// the arrivals that the mbarrier was initialised for.
__device__ __forceinline__ void cp_async_arrive(uint32 mbarrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(mbarrier) : "memory");
}
