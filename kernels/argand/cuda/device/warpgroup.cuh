// Warpgroups of Hopper (sm_90a): synchronization of wgmma, ping-pong, matrix descriptors,
// setmaxnreg. The wgmma instruction itself is generated for a plan's format and width by
// argand/runtime/compile/wgmma.py.
#pragma once
#include "types.cuh"

constexpr int kWarpgroupThreads = 4 * kWarp;

// Orders this thread's register writes before the wgmma that follow.
__device__ __forceinline__ void wgmma_fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Returns when at most `Pending` of the latest committed groups are still in flight.
template <int Pending>
__device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

// Keeps the compiler from moving reads of accumulators above the wgmma_wait before it.
template <int Count>
__device__ __forceinline__ void wgmma_fence_operand(float (&x)[Count]) {
#pragma unroll
    for (int i = 0; i < Count; ++i) asm volatile("" : "+f"(x[i])::"memory");
}

template <int Count>
__device__ __forceinline__ void wgmma_fence_operand(int (&x)[Count]) {
#pragma unroll
    for (int i = 0; i < Count; ++i) asm volatile("" : "+r"(x[i])::"memory");
}

// Named barriers of two consumer warpgroups, 0 and 1; __syncthreads is barrier 0.
constexpr int kPingPongBarrier = 1, kWarpgroupBarrier = 3;

// Ping-pong: two consumer warpgroups issue their MMAs in turn.
__device__ __forceinline__ void ping_pong_wait(int warpgroup) {
    asm volatile("bar.sync %0, %1;" ::"r"(kPingPongBarrier + warpgroup),
                 "n"(2 * kWarpgroupThreads)
                 : "memory");
}

__device__ __forceinline__ void ping_pong_arrive(int warpgroup) {
    asm volatile("bar.arrive %0, %1;" ::"r"(kPingPongBarrier + 1 - warpgroup),
                 "n"(2 * kWarpgroupThreads)
                 : "memory");
}

// Synchronizes the threads of one warpgroup.
__device__ __forceinline__ void sync_warpgroup(int warpgroup) {
    asm volatile("bar.sync %0, %1;" ::"r"(kWarpgroupBarrier + warpgroup), "n"(kWarpgroupThreads)
                 : "memory");
}

// The number of the thread's warpgroup. The shuffle makes it warp-uniform for the compiler:
// setmaxnreg needs whole warpgroups on one branch.
__device__ __forceinline__ int warpgroup_role() {
    return __shfl_sync(0xffffffffu, int(threadIdx.x / kWarpgroupThreads), 0);
}

template <int Registers>
__device__ __forceinline__ void warpgroup_reg_dealloc() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}

template <int Registers>
__device__ __forceinline__ void warpgroup_reg_alloc() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

// The matrix descriptor of a k-major tile in shared memory whose rows of `RowBytes` (32, 64 or 128)
// are swizzled by TMA; the tile begins at a multiple of 8 rows. Bits 0-13: address / 16. Bits
// 32-45: bytes from 8 rows to the next 8, / 16. Bits 62-63: the swizzle (PTX ISA, matrix
// descriptor).
template <int RowBytes>
__device__ __forceinline__ constexpr uint64 make_matrix_descriptor(uint32 address) {
    static_assert(RowBytes == 32 || RowBytes == 64 || RowBytes == 128,
                  "RowBytes must be a swizzle's width");
    constexpr uint32 kSwizzle = RowBytes == 128 ? 1 : RowBytes == 64 ? 2 : 3;
    constexpr uint32 kHigh = (8 * RowBytes >> 4) | kSwizzle << 30;
    // Bits 16-29, the leading dimension's stride, are not used by swizzled k-major tiles.
    return uint64(kHigh) << 32 | (address & 0x3ffff) >> 4 | 1u << 16;
}
