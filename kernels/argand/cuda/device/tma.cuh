// TMA by tensor map (sm_90): boxes of a tensor between global and shared memory. Loads fill what
// lies beyond the tensor's edges with zeros and are counted by an mbarrier; stores are clipped
// there.
#pragma once
#include "mbarrier.cuh"

// The first address from the start of dynamic shared memory, which is aligned to 16 bytes, at
// which a swizzle begins: they repeat every 1024 bytes.
__device__ __forceinline__ uint32 swizzle_start(const void* memory) {
    return (shared_address(memory) + 1023u) & ~1023u;
}

// The 128 bytes that cuTensorMapEncodeTiled encodes.
struct alignas(64) TensorMap {
    unsigned char opaque[128];
};

__device__ __forceinline__ void prefetch_tensor_map(const TensorMap& map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

__device__ __forceinline__ void tma_load(uint32 target, const TensorMap& map, uint32 mbarrier,
                                         int x, int y, int z) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(target),
        "l"(&map), "r"(mbarrier), "r"(x), "r"(y), "r"(z)
        : "memory");
}

__device__ __forceinline__ void tma_load(uint32 target, const TensorMap& map, uint32 mbarrier,
                                         int x, int y, int z, int w) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(target),
        "l"(&map), "r"(mbarrier), "r"(x), "r"(y), "r"(z), "r"(w)
        : "memory");
}

// Results are not read again soon, so they should not displace operands from L2. These are the bits
// of the policy that createpolicy.fractional.L2::evict_first makes for a fraction of 1.
constexpr unsigned long long kEvictFirst = 0x12f0000000000000ull;

// Stores a box of shared memory in the thread's open bulk group.
__device__ __forceinline__ void tma_store(const TensorMap& map, uint32 source, int x, int y, int z,
                                          bool condition) {
    // A predicate in place of a branch, because wgmma may be in flight (ptxas C7520).
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\n"
        "@p cp.async.bulk.tensor.3d.global.shared::cta.bulk_group.L2::cache_hint "
        "[%0, {%2, %3, %4}], [%1], %5;\n}\n" ::"l"(&map),
        "r"(source), "r"(x), "r"(y), "r"(z), "l"(kEvictFirst), "r"(int(condition))
        : "memory");
}

__device__ __forceinline__ void tma_store_commit() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Returns when all but the latest `Pending` groups of this thread have been read from shared
// memory, which may then be overwritten.
template <int Pending>
__device__ __forceinline__ void tma_store_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory");
}
