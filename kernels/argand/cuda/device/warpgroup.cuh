// Warpgroups of Hopper (sm_90a): asynchronous products and the registers that each role may use.
#pragma once
#include "types.cuh"

using uint64 = unsigned long long;

// Registers written by this thread may be read by the products that follow.
__device__ __forceinline__ void wgmma_fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Returns when at most `Pending` of the latest committed groups are under way.
template <int Pending>
__device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

// Keeps the compiler from reading accumulators before the wait that stands above.
template <int Count>
__device__ __forceinline__ void wgmma_fence_operand(float (&x)[Count]) {
#pragma unroll
    for (int i = 0; i < Count; ++i) asm volatile("" : "+f"(x[i])::"memory");
}

template <int Registers>
__device__ __forceinline__ void warpgroup_reg_dealloc() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}

template <int Registers>
__device__ __forceinline__ void warpgroup_reg_alloc() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

// Describes a K-major tile in shared memory whose lines of `RowBytes` (32, 64 or 128) the copy
// engine has swizzled; the tile begins at a multiple of 8 lines. Bits 0-13: address / 16; 32-45:
// bytes from 8 lines to the next 8, / 16; 62-63: the swizzle (PTX ISA, matrix descriptor).
template <int RowBytes>
__device__ __forceinline__ constexpr uint64 make_matrix_descriptor(uint32 address) {
    static_assert(RowBytes == 32 || RowBytes == 64 || RowBytes == 128, "a swizzle's width");
    constexpr uint32 kSwizzle = RowBytes == 128 ? 1 : RowBytes == 64 ? 2 : 3;
    constexpr uint32 kHigh = (8 * RowBytes >> 4) | kSwizzle << 30;
    // Bits 16-29, the other stride, are not used by swizzled K-major tiles.
    return uint64(kHigh) << 32 | (address & 0x3ffff) >> 4 | 1u << 16;
}
