// The end of a product whose k is cut in slices: by groups of warps (sliced K), by the blocks of a
// cluster (split-K), or both. Every block first adds what its groups of warps have, then sends each
// part of the tile to the block that stores it, through distributed shared memory. The order of
// additions is fixed, so results repeat bit for bit, and the product remains one launch. Where
// several clusters share a tile, each stores its partial tile in global memory, and the last to
// arrive reduces them.
#pragma once
#include "device/cluster.cuh"
#include "device/mbarrier.cuh"
#include "sm80_epilogue.cuh"
#include "sm80_scales.cuh"
#include "sm80_scheduler.cuh"

// How partial sums lie in shared memory: in vectors of two neighbouring columns of one row, as a
// lane holds them, {re, im, re, im}.
template <MmaPlan plan>
struct SliceVectors {
    static constexpr int kGroup = kWarp * plan.warps_m * plan.warps_n;  // threads that hold a tile
    static constexpr int kColumns = plan.warp_n() / 8;
    static constexpr int kTile = plan.block_m * plan.block_n / 2;
    // Vectors that one block of the cluster stores, the last one those that are left.
    static constexpr int kPart = (kTile + plan.cluster - 1) / plan.cluster;
    static __device__ __forceinline__ int part_of(int rank) {
        if constexpr (kTile % plan.cluster == 0) return kPart;
        return min(kPart, kTile - rank * kPart);
    }
    // Index at which a block has what another one sent: one part after another, without its own.
    static __device__ __forceinline__ uint32 sent(uint32 from, uint32 to) {
        return (from - (from > to)) * kPart;
    }

    // The row and the first column of a vector in the tile. Unsigned, because a signed division
    // has to round to zero.
    __device__ __forceinline__ static int2 place(uint32 vector) {
        const uint32 fragment = vector / kGroup, thread = vector % kGroup;
        const uint32 warp = thread / kWarp, lane = thread % kWarp;
        return {static_cast<int>(warp / plan.warps_n * plan.warp_m() + fragment / kColumns * 8 +
                                 lane / 4),
                static_cast<int>(warp % plan.warps_n * plan.warp_n() + fragment % kColumns * 8 +
                                 lane % 4 * 2)};
    }

    // Calls `function(vector)` for those of `inside` vectors, of at most `count`, that are this
    // thread's. A few rounds are unrolled, so that one does not wait for the loads and the sums of
    // the one before.
    template <int count, typename Function>
    __device__ __forceinline__ static void for_each(Function function, int inside = count) {
        constexpr uint32 kThreads = plan.threads(), kRounds = (count + kThreads - 1) / kThreads;
        constexpr int kUnroll = kRounds <= 4 ? kRounds : 1;
#pragma unroll kUnroll
        for (uint32 round = 0; round < kRounds; ++round) {
            const uint32 vector = round * kThreads + threadIdx.x;
            if ((count % kThreads == 0 && inside == count) || vector < inside) function(vector);
        }
    }
};

// The exchange of partial sums between the blocks of a cluster. A block's mbarrier counts the bytes
// that it receives: a cluster barrier after plain stores would have each thread wait until all of
// its loads and stores are done (MEMBAR.ALL.GPU), and then for the other blocks.
template <MmaPlan plan>
struct SliceExchange {
    uint32 mbarrier;

    // All threads begin it, before any block sends. Without a cluster it does nothing.
    __device__ __forceinline__ SliceExchange() {
        if constexpr (plan.cluster > 1) {
            __shared__ uint64 received;
            mbarrier = shared_address(&received);
            if (threadIdx.x == 0) {
                // Keeps the branch: where it is predicated, racecheck counts the initialisation as
                // one by every lane.
                __syncwarp(1);
                mbarrier_init(mbarrier, 1);
                mbarrier_cluster_init_fence();
                const int vectors =
                    (plan.cluster - 1) * SliceVectors<plan>::part_of(cluster_rank());
                mbarrier_arrive_expect_tx(mbarrier, vectors * uint32(sizeof(float4)));
            }
            cluster_arrive_relaxed();
        }
    }

    // Waits until all blocks of the cluster have begun.
    __device__ __forceinline__ void wait_for_blocks() const { cluster_wait(); }

    // Sends a vector to block `rank`, where it lies as `to` here.
    __device__ __forceinline__ void send(const float4* to, int rank, const float4& x) const {
        store_cluster_async(map_shared_rank(to, rank), x, map_shared_rank(mbarrier, rank));
    }

    __device__ __forceinline__ void receive() const { mbarrier_wait(mbarrier, 0); }
};

// A sum of vectors in a fixed order. Split precisions keep the rounding error of each addition
// (Knuth's TwoSum), so that slices do not add to their error. Those of a known k are ten at most,
// for which the bound has room (workflow/accuracy/promotion.py).
template <MmaPlan plan>
struct VectorSum {
    static constexpr bool kKeepsError = plan.terms > 1 && plan.whole_k == 0;
    float sum[4], error[4];

    __device__ __forceinline__ explicit VectorSum(const float4& x)
        : sum{x.x, x.y, x.z, x.w}, error{0.0f, 0.0f, 0.0f, 0.0f} {}

    __device__ __forceinline__ void add(const float4& x) {
        const float addends[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float old = sum[i];
            sum[i] = old + addends[i];
            if constexpr (kKeepsError) {
                const float added = sum[i] - old;
                error[i] += (old - (sum[i] - added)) + (addends[i] - added);
            }
        }
    }

    __device__ __forceinline__ float4 total() const {
        float found[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            found[i] = sum[i];
            // The error of an infinite sum is not a number.
            if constexpr (kKeepsError) found[i] += is_finite(sum[i]) ? error[i] : 0.0f;
        }
        return {found[0], found[1], found[2], found[3]};
    }
};

// Descales a vector at this row and column of the tile. `a_absmax` and `b_absmax` point to the
// tile's first row and column; `rows` and `columns` of the tile are inside the matrix.
template <MmaPlan plan>
__device__ __forceinline__ float4 descale_vector(const float4& x, int2 place,
                                                 const uint32* a_absmax, const uint32* b_absmax,
                                                 int64 rows, int64 columns) {
    if (place.x >= rows || place.y >= columns) return x;
    const int row = scale_exponent<plan.operand>(a_absmax[place.x]);
    const bool second = place.y + 1 < columns;
    const float2 left =
        split_power_of_two(-(row + scale_exponent<plan.operand>(b_absmax[place.y])));
    const float2 right = split_power_of_two(
        -(row + (second ? scale_exponent<plan.operand>(b_absmax[place.y + 1]) : 0)));
    return {x.x * left.x * left.y, x.y * left.x * left.y, x.z * right.x * right.y,
            x.w * right.x * right.y};
}

// Split-K across clusters: `store` stores the partial sums of this block's part of a tile in global
// memory, and the last block to arrive reduces those of all clusters, in their order.
template <MmaPlan plan>
struct GridReduction {
    using Vectors = SliceVectors<plan>;
    float4* part;  // partial sums of this block's part by the first cluster
    uint32* arrived;
    int cluster;  // of those that share the tile

    __device__ __forceinline__ GridReduction(const GemmArguments& args, uint32 tile) {
        int rank = 0;
        if constexpr (plan.cluster > 1) rank = cluster_rank();
        constexpr int64 kCluster = int64(plan.cluster) * Vectors::kPart;
        part = args.partials + tile * args.grid_slices * kCluster + rank * Vectors::kPart;
        arrived = args.arrived + tile * plan.cluster + rank;
        cluster = cluster_of_tile<plan>(args);
    }

    // A partial sum of cluster `number` of the tile.
    __device__ __forceinline__ float4* at(int number, int vector) const {
        return part + int64(number) * (plan.cluster * Vectors::kPart) + vector;
    }

    __device__ __forceinline__ void store(int vector, const float4& x) const {
        __stcg(at(cluster, vector), x);
    }

    // Whether this block is the last. All of its threads call it. The release of one thread, after
    // a barrier, covers the stores of all, and its acquire, before one, the loads of all.
    __device__ __forceinline__ bool is_last(const GemmArguments& args) const {
        __shared__ uint32 before;
        __syncthreads();
        if (threadIdx.x == 0) {
            uint32 old;
            asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;"
                         : "=r"(old)
                         : "l"(arrived)
                         : "memory");
            before = old;
        }
        __syncthreads();
        if (before + 1 < args.grid_slices) return false;
        if (threadIdx.x == 0) *arrived = 0;  // for the next launch
        return true;
    }

    __device__ __forceinline__ float4 total(const GemmArguments& args, int vector) const {
        VectorSum<plan> sum(__ldcg(at(0, vector)));
#pragma unroll 8
        for (int other = 1; other < args.grid_slices; ++other)
            sum.add(__ldcg(at(other, vector)));
        return sum.total();
    }
};

// Writes the accumulators of a lane to shared memory, from its first vector on.
template <MmaPlan plan>
__device__ __forceinline__ void store_to_shared(const Accumulators<plan>& accumulators,
                                                float4* own) {
    using Vectors = SliceVectors<plan>;
#pragma unroll
    for (int i = 0; i < plan.warp_m() / 8; ++i) {
#pragma unroll
        for (int j = 0; j < Vectors::kColumns; ++j) {
            const int e = 2 * (i % 2);
            const auto& re = accumulators.re[i / 2][j];
            const auto& im = accumulators.im[i / 2][j];
            own[(i * Vectors::kColumns + j) * Vectors::kGroup] = {re[e], im[e], re[e + 1],
                                                                  im[e + 1]};
        }
    }
}

// Reduces the accumulators of all slices and stores the results. `stages` is the ring, whose stages
// are no longer read; behind it is room for the partial sums of other blocks. `exchange` has begun
// where there are any.
template <MmaPlan plan>
__device__ __forceinline__ void reduce_and_store(const GemmArguments& args, const Tile<plan>& tile,
                                                 const Scales<plan>& scales,
                                                 const Accumulators<plan>& accumulators,
                                                 float2* stages,
                                                 const SliceExchange<plan>& exchange) {
    using Vectors = SliceVectors<plan>;
    static_assert(16 * plan.warps_k * Vectors::kTile <=
                      8 * plan.stages * plan.stage_elements(),
                  "the accumulators of all groups of warps must fit the stages");
    auto* memory = reinterpret_cast<float4*>(stages);
    auto* received = reinterpret_cast<float4*>(stages + plan.stages * plan.stage_elements());
    float4* own = memory + threadIdx.x / Vectors::kGroup * Vectors::kTile +
                  threadIdx.x % Vectors::kGroup;
    store_to_shared<plan>(accumulators, own);
    __syncthreads();
    const VectorEpilogue<plan> epilogue(args, tile.batch, tile.m0, tile.n0);
    const GridReduction<plan> grid(args, tile_number<plan>(args));
    // Stores a result, or the partial sum that the last cluster to arrive reduces.
    auto finish = [&](const float4& x, int vector, int2 place) {
        if constexpr (plan.grid_split) {
            grid.store(vector, x);
        } else {
            epilogue.store(args, x, place);
        }
    };
    const uint32 rank = plan.cluster > 1 ? cluster_rank() : 0;
    if constexpr (plan.cluster > 1) exchange.wait_for_blocks();
    Vectors::template for_each<Vectors::kTile>([&](uint32 vector) {
        VectorSum<plan> sum(memory[vector]);
#pragma unroll
        for (int group = 1; group < plan.warps_k; ++group)
            sum.add(memory[group * Vectors::kTile + vector]);
        float4 x = sum.total();
        const int2 place = Vectors::place(vector);
        if constexpr (plan.scaled)
            x = descale_vector<plan>(x, place, scales.a_absmax, scales.b_absmax, epilogue.rows,
                                     epilogue.columns);
        if constexpr (plan.cluster > 1) {
            const uint32 to = vector / Vectors::kPart;
            if (to == rank) {
                memory[vector] = x;
            } else {
                exchange.send(received + Vectors::sent(rank, to) + vector % Vectors::kPart, to, x);
            }
        } else {
            finish(x, vector, place);
        }
    });
    uint32 first = 0;  // vector of the tile that this block's part begins with
    int part = Vectors::kPart;
    if constexpr (plan.cluster > 1) {
        exchange.receive();
        part = Vectors::part_of(cluster_rank());
        first = cluster_rank() * Vectors::kPart;
        // Where a part is whole passes of the block, each thread reads the sums that it wrote.
        if constexpr (Vectors::kPart % plan.threads() != 0) __syncthreads();
        auto add_and_finish = [&](uint32 vector) {
            auto of_slice = [&](uint32 slice) {
                return slice == rank ? memory[first + vector]
                                     : received[Vectors::sent(slice, rank) + vector];
            };
            VectorSum<plan> sum(of_slice(0));
#pragma unroll
            for (uint32 slice = 1; slice < plan.cluster; ++slice) sum.add(of_slice(slice));
            finish(sum.total(), vector, Vectors::place(first + vector));
        };
        Vectors::template for_each<Vectors::kPart>(add_and_finish, part);
    }
    if constexpr (plan.grid_split) {
        if (!grid.is_last(args)) return;
        auto add_and_store = [&](uint32 vector) {
            epilogue.store(args, grid.total(args, vector), Vectors::place(first + vector));
        };
        Vectors::template for_each<Vectors::kPart>(add_and_store, part);
    }
}
