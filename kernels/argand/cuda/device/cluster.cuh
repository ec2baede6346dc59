// Thread block clusters (sm_90): their barrier and distributed shared memory. Blocks that share a
// row or a transform exchange partial results by them.
#pragma once
#include "shared.cuh"

__device__ __forceinline__ void cluster_arrive() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
// Arrives without a fence, which would wait for the thread's loads and stores in flight. Other
// blocks see that the thread has arrived, but of what it has written only the mbarriers that
// `mbarrier_cluster_init_fence` has published.
__device__ __forceinline__ void cluster_arrive_relaxed() {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ __forceinline__ int cluster_rank() {
    uint32 rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return static_cast<int>(rank);
}

// The shared::cluster address of `pointer` in the shared memory of the cluster's block `rank`.
__device__ __forceinline__ uint32 map_shared_rank(const void* pointer, int rank) {
    uint32 address;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(address)
        : "r"(shared_address(pointer)), "r"(rank));
    return address;
}
// The shared::cluster address of `own`, an address in shared memory, in the cluster's block `rank`.
__device__ __forceinline__ uint32 map_shared_rank(uint32 own, int rank) {
    uint32 address;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(own), "r"(rank));
    return address;
}

// Loads and stores by such addresses.
__device__ __forceinline__ uint32 load_cluster_32(uint32 address) {
    uint32 found;
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(found) : "r"(address) : "memory");
    return found;
}
__device__ __forceinline__ uint64 load_cluster_64(uint32 address) {
    uint64 found;
    asm volatile("ld.shared::cluster.u64 %0, [%1];" : "=l"(found) : "r"(address) : "memory");
    return found;
}
__device__ __forceinline__ void store_cluster(uint32 address, float x) {
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(address), "f"(x) : "memory");
}
__device__ __forceinline__ void store_cluster(uint32 address, double x) {
    asm volatile("st.shared::cluster.f64 [%0], %1;" ::"r"(address), "d"(x) : "memory");
}

// Stores 8 or 16 bytes to a block of the cluster and completes them at an mbarrier of that block,
// which expects bytes as it does of TMA. A thread that has waited there sees them without a fence.
__device__ __forceinline__ void store_cluster_async(uint32 address, float2 x, uint32 mbarrier) {
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::
            "r"(address),
        "f"(x.x), "f"(x.y), "r"(mbarrier)
        : "memory");
}
__device__ __forceinline__ void store_cluster_async(uint32 address, float4 x, uint32 mbarrier) {
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], "
        "{%1, %2, %3, %4}, [%5];" ::"r"(address),
        "f"(x.x), "f"(x.y), "f"(x.z), "f"(x.w), "r"(mbarrier)
        : "memory");
}

// Arrives at an mbarrier of any block of the cluster, after what this thread has read.
__device__ __forceinline__ void mbarrier_arrive_cluster(uint32 address) {
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(address) : "memory");
}
