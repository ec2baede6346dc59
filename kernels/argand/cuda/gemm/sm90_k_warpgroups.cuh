// Two consumer warpgroups that share the k of the same 64 rows. Each takes every second stage of
// the ring: what a warp waits for between its MMAs, to load, split and promote, is hidden by the
// warp of the other one. At the end of a work item the first adds the accumulators of the second to
// its own and goes on to the epilogue, while the second begins the next item.
#pragma once
#include "device/shared.cuh"
#include "sm90_ring.cuh"

// The k-tiles of a work item that are warpgroup `group`'s, where `before` k-tiles came before the
// item.
__device__ __forceinline__ int own_k_tiles(int num_k_tiles, uint32 before, int group) {
    const int first = (before + group) % 2;  // of the item's k-tiles
    return (num_k_tiles + 1 - first) / 2;
}

// Leaves the accumulators of the second warpgroup in shared memory, where the first adds them to
// its own. Both call it for each work item.
template <WgmmaPlan plan>
__device__ __forceinline__ void add_k_warpgroups(const Ring<plan>& ring, uint32 work_index,
                                                 int thread, float (&re)[plan.block_n / 2],
                                                 float (&im)[plan.block_n / 2]) {
    constexpr int kVectors = plan.block_n / 4, kBytes = kWarpgroupThreads * 16;
    const uint32 at = ring.exchange() + thread % kWarpgroupThreads * 16, parity = work_index % 2;
    if (thread >= kWarpgroupThreads) {
        mbarrier_wait(ring.exchange_empty(), parity ^ 1);
#pragma unroll
        for (int q = 0; q < kVectors; ++q) {
            store_shared_16(at + q * kBytes,
                            float4{re[2 * q], im[2 * q], re[2 * q + 1], im[2 * q + 1]});
        }
        mbarrier_arrive(ring.exchange_full());
        return;
    }
    mbarrier_wait(ring.exchange_full(), parity);
#pragma unroll
    for (int q = 0; q < kVectors; ++q) {
        const float4 x = load_shared_16(at + q * kBytes);
        re[2 * q] += x.x;
        im[2 * q] += x.y;
        re[2 * q + 1] += x.z;
        im[2 * q + 1] += x.w;
    }
    mbarrier_arrive(ring.exchange_empty());
}
