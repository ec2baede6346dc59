// Barriers in shared memory that also count the bytes of asynchronous copies (sm_90).
#pragma once
#include "cp_async.cuh"

__device__ __forceinline__ void mbarrier_init(uint32 mbarrier, uint32 arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(mbarrier), "r"(arrivals)
                 : "memory");
}

// Makes initialised barriers visible to the copy engine.
__device__ __forceinline__ void mbarrier_init_fence() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void mbarrier_arrive(uint32 mbarrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(mbarrier) : "memory");
}

// Arrives, and has the mbarrier wait for that many bytes more.
__device__ __forceinline__ void mbarrier_arrive_expect_tx(uint32 mbarrier, uint32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(mbarrier),
                 "r"(bytes)
                 : "memory");
}

// Returns when the phase of this parity is over. No trap or assertion may stand in the loop: the
// assembler would then not keep to the registers that setmaxnreg grants, and spill.
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
