// Slices of k in a cluster: each block computes a slice of the same tile, sends the accumulators of
// each part of the tile to the block that stores it (st.async, whose bytes an mbarrier counts), and
// adds what it receives in the order of the slices, so results repeat bit for bit. Nothing goes
// through global memory and no launch follows. A part is a few times eight columns; where a tile
// has fewer parts than blocks, the last blocks send theirs and store none.
#pragma once
#include "device/cluster.cuh"
#include "sm90_epilogue_direct.cuh"
#include "sm90_ring.cuh"

// The plan of the columns that one block stores.
template <WgmmaPlan plan>
constexpr WgmmaPlan part_plan() {
    WgmmaPlan part = plan;
    part.block_n = plan.block_n / plan.parts();
    return part;
}

template <WgmmaPlan plan>
struct ClusterSlices {
    static constexpr WgmmaPlan kPart = part_plan<plan>();
    static constexpr int kEights = kPart.block_n / 8;  // of columns
    static constexpr int kVectorBytes = plan.tile_threads() * 16;
    static constexpr int kPartBytes = 2 * kEights * kVectorBytes;
    uint32 parts, mbarrier;  // what this block receives, by slices

    __device__ __forceinline__ explicit ClusterSlices(uint32 base) {
        const Ring<plan> ring(base, 0);
        parts = ring.parts();
        mbarrier = ring.parts_full();
    }

    // One thread initializes the mbarrier before the block arrives at the cluster's barrier.
    __device__ __forceinline__ void init() const {
        mbarrier_init(mbarrier, 1);
        if (stores_part()) mbarrier_arrive_expect_tx(mbarrier, plan.cluster * kPartBytes);
    }

    // Whether this block stores a part.
    static __device__ __forceinline__ bool stores_part() {
        return plan.parts() == plan.cluster || cluster_rank() < plan.parts();
    }

    // Sends the accumulators of a thread of those that hold the tile.
    __device__ __forceinline__ void send(int thread, const float (&re)[plan.block_n / 2],
                                         const float (&im)[plan.block_n / 2]) const {
        const uint32 own = parts + cluster_rank() * kPartBytes + thread * 16;
#pragma unroll
        for (int part = 0; part < plan.parts(); ++part) {
            const uint32 to = map_shared_rank(own, part), full = map_shared_rank(mbarrier, part);
#pragma unroll
            for (int i = 0; i < 2 * kEights; ++i) {  // eights of columns by the lane's two rows
                const int at = 2 * (part * 2 * kEights + i);
                store_cluster_async(to + i * kVectorBytes,
                                    float4{re[at], im[at], re[at + 1], im[at + 1]}, full);
            }
        }
    }

    // Adds the slices of the block's own part.
    __device__ __forceinline__ void receive(int thread, float (&re)[kPart.block_n / 2],
                                            float (&im)[kPart.block_n / 2]) const {
        mbarrier_wait(mbarrier, 0);
#pragma unroll
        for (int i = 0; i < 2 * kEights; ++i) {
            float4 sum = load_shared_16(parts + thread * 16 + i * kVectorBytes);
#pragma unroll
            for (int slice = 1; slice < plan.cluster; ++slice) {
                const float4 x = load_shared_16(parts + slice * kPartBytes + thread * 16 +
                                                i * kVectorBytes);
                sum = {sum.x + x.x, sum.y + x.y, sum.z + x.z, sum.w + x.w};
            }
            re[2 * i] = sum.x;
            im[2 * i] = sum.y;
            re[2 * i + 1] = sum.z;
            im[2 * i + 1] = sum.w;
        }
    }
};

// The end of a work item: exchange, and the epilogue of this block's part of the tile.
template <WgmmaPlan plan>
__device__ __forceinline__ void store_cluster_part(const WgmmaArguments& args, uint32 base,
                                                   WgmmaTile tile, int row0, int thread,
                                                   const float (&re)[plan.block_n / 2],
                                                   const float (&im)[plan.block_n / 2]) {
    using Slices = ClusterSlices<plan>;
    const Slices slices(base);
    slices.send(thread, re, im);
    if (!slices.stores_part()) return;
    float own_re[Slices::kPart.block_n / 2], own_im[Slices::kPart.block_n / 2];
    slices.receive(thread, own_re, own_im);
    tile.n0 += cluster_rank() * Slices::kPart.block_n;
    store_rows<Slices::kPart>(args, tile, row0, thread % kWarp, own_re, own_im);
}
