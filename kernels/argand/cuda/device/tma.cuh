// The copy engine: boxes of a tensor in global memory to shared memory, zeros beyond its edges.
#pragma once
#include "mbarrier.cuh"

// What cuTensorMapEncodeTiled writes.
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

// Results are not read again soon: they should not displace operands from the second-level cache.
// (The policy that createpolicy.fractional.L2::evict_first gives for all of an access.)
constexpr unsigned long long kEvictFirst = 0x12f0000000000000ull;

// The other way: a box in shared memory to global memory, clipped at the tensor's edges. The stores
// of one thread form groups in order.
__device__ __forceinline__ void tma_store(const TensorMap& map, uint32 source, int x, int y, int z,
                                          bool condition) {
    // A predicate and not a branch: products may be under way.
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
// memory.
template <int Pending>
__device__ __forceinline__ void tma_store_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory");
}

// What this thread wrote to shared memory may be read by the copy engine.
__device__ __forceinline__ void fence_proxy_async_shared() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
