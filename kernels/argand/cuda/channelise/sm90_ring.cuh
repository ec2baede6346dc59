// The ring of batches between filter warps and transform warps (sm_90a), in one block or in a
// cluster.
#pragma once
#include "device/cluster.cuh"
#include "device/mbarrier.cuh"
#include "plan.cuh"

// How warps are specialised. `plan.threads` are those of a transform group.
struct Specialization {
    int turn;    // spectra of whole windows of taps and whole batches
    int depth;   // frames of a filter warp in shared memory
    int slots;   // batches of the ring
    int groups;  // of transform warps
    int filter_registers;
    int transform_registers;
    bool arrive_per_lane;  // each lane arrives at mbarriers, not one of a warp
    int cluster;           // blocks that share the columns
};

// The ring of batches of a block, and what says that one is full or empty. Every block has an
// mbarrier for the empty slots of each block.
template <ChannelisePlan plan, Specialization roles>
struct BatchRing {
    static constexpr int C = roles.cluster, kWarp = 32;
    static constexpr int kArrivals = roles.arrive_per_lane ? kWarp : 1;  // of a warp
    float2* tiles;
    uint32 full, empty;  // mbarriers, of 8 bytes each
    int rank;            // of the block whose ring it is
    int slot = 0;
    uint32 parity = 0;

    __device__ __forceinline__ float2* tile() const {
        return tiles + slot * (plan.group_bytes() / 8);
    }
    __device__ __forceinline__ uint32 is_full() const { return full + slot * 8; }
    __device__ __forceinline__ uint32 is_empty() const {
        return empty + (rank * roles.slots + slot) * 8;
    }

    __device__ __forceinline__ void advance(int by) {
        slot += by;
        if (slot >= roles.slots) {
            slot -= roles.slots;
            parity ^= 1;
        }
    }
    // Advances to the next batch, which another block transforms.
    __device__ __forceinline__ void advance_rank() {
        if (C == 1 || ++rank == C) {
            rank = 0;
            advance(1);
        }
    }
    // A filter warp arrives after what its lanes have written. One lane arrives after __syncwarp;
    // compute-sanitizer does not follow that order, so for it every lane arrives. For what other
    // blocks of a cluster write, bytes are counted instead (`BatchLine`).
    __device__ __forceinline__ void fill(int own_rank) const {
        if (C > 1 && rank != own_rank) return;
        if constexpr (!roles.arrive_per_lane) __syncwarp();
        if (roles.arrive_per_lane || threadIdx.x % kWarp == 0) mbarrier_arrive(is_full());
    }
    // A transform group waits for the bytes of a batch; one thread announces those of other blocks.
    __device__ __forceinline__ void wait_full(int bytes, int thread) const {
        if (C > 1 && thread == 0) mbarrier_arrive_expect_tx(is_full(), bytes / C * (C - 1));
        mbarrier_wait(is_full(), parity);
    }
    // A transform warp arrives, at all blocks, after what its lanes have read.
    __device__ __forceinline__ void release() const {
        const int lane = threadIdx.x % kWarp;
        if constexpr (!roles.arrive_per_lane) __syncwarp();
        if constexpr (C == 1) {
            if (roles.arrive_per_lane || lane == 0) mbarrier_arrive(is_empty());
        } else {
#pragma unroll
            for (int to = 0; to < C; ++to)
                if (roles.arrive_per_lane || lane == to)
                    mbarrier_arrive_cluster(map_shared_rank(is_empty(), to));
        }
    }
};

// Where a filter thread writes: in its own block's shared memory, or in that of the batch's block.
template <int Cluster>
struct BatchLine {
    float2* own = nullptr;
    uint32 address = 0, mbarrier = 0;  // 0 where the batch is the block's own

    __device__ __forceinline__ BatchLine() {}
    template <typename Ring>
    __device__ __forceinline__ BatchLine(const Ring& ring, int own_rank, int place) {
        own = ring.tile() + place;
        if constexpr (Cluster > 1) {
            address = map_shared_rank(shared_address(own), ring.rank);
            mbarrier = ring.rank == own_rank ? 0 : map_shared_rank(ring.is_full(), ring.rank);
        }
    }
    __device__ __forceinline__ void store(int at, float2 x) const {
        if (Cluster == 1 || mbarrier == 0) {
            own[at] = x;
        } else {
            store_cluster_async(address + at * 8, x, mbarrier);
        }
    }
};
