// cp.async: asynchronous copies of 8 or 16 bytes from global to shared memory (sm_80 and newer).
// They fill the rings of the kernels that do not use TMA.
#pragma once
#include "shared.cuh"

// Copies `valid` (0..Bytes) bytes and fills the rest with zeros. With valid = 0 the source is not
// read. Copies of 16 bytes bypass L1; copies of 8 bytes cannot.
template <int Bytes>
__device__ __forceinline__ void cp_async(uint32 target, const void* source, int valid) {
    static_assert(Bytes == 8 || Bytes == 16, "one or two complex64");
    if constexpr (Bytes == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(source),
                     "r"(valid)
                     : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(target), "l"(source),
                     "r"(valid)
                     : "memory");
    }
}

template <int Bytes>
__device__ __forceinline__ void cp_async(void* target, const void* source, int valid) {
    cp_async<Bytes>(shared_address(target), source, valid);
}

__device__ __forceinline__ void cp_async_commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Returns when at most `Pending` of this thread's latest groups are still in flight.
template <int Pending>
__device__ __forceinline__ void cp_async_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

// Copies 16 bytes to a shared-memory address where `there` is positive; without a branch.
__device__ __forceinline__ void cp_async_16_if(int there, uint32 target, const void* source) {
    asm volatile("{\n.reg .pred p;\n"
                 "setp.gt.s32 p, %0, 0;\n"
                 "@p cp.async.cg.shared.global [%1], [%2], 16;\n}\n"
                 ::"r"(there), "r"(target), "l"(source)
                 : "memory");
}

// Copies 16 bytes to a shared-memory address.
__device__ __forceinline__ void cp_async_16(uint32 target, const void* source) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(target), "l"(source) : "memory");
}
