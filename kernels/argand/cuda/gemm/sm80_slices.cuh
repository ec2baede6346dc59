// The end of a product whose k is cut in slices: by groups of warps (sliced K), by the blocks of a
// cluster (split-K), or both. Every block first adds what its groups of warps have, then sends each
// part of the tile to the block that stores it, through distributed shared memory. The order of
// additions is fixed, so results repeat bit for bit, and the product remains one launch. Where
// several clusters share a tile, each stores its partial tile in global memory, and the last to
// arrive reduces them.
#pragma once
#include "device/cluster.cuh"
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
    // Vectors that one block of the cluster stores.
    static constexpr int kPart = kTile / plan.split_k_slices;
    static_assert(kTile % plan.split_k_slices == 0, "blocks must store equal parts");

    // The row and the first column of a vector in the tile.
    __device__ __forceinline__ static int2 place(int vector) {
        const int fragment = vector / kGroup, thread = vector % kGroup;
        const int warp = thread / kWarp, lane = thread % kWarp;
        return {warp / plan.warps_n * plan.warp_m() + fragment / kColumns * 8 + lane / 4,
                warp % plan.warps_n * plan.warp_n() + fragment % kColumns * 8 + lane % 4 * 2};
    }
};

// A sum of vectors in a fixed order. Split precisions keep the rounding error of each addition
// (Knuth's TwoSum), so that slices do not add to their error.
template <MmaPlan plan>
struct VectorSum {
    float sum[4], error[4];

    __device__ __forceinline__ explicit VectorSum(const float4& x)
        : sum{x.x, x.y, x.z, x.w}, error{0.0f, 0.0f, 0.0f, 0.0f} {}

    __device__ __forceinline__ void add(const float4& x) {
        const float addends[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float old = sum[i];
            sum[i] = old + addends[i];
            if constexpr (plan.terms > 1) {
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
            if constexpr (plan.terms > 1) found[i] += is_finite(sum[i]) ? error[i] : 0.0f;
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

// Split-K across clusters: `share` stores the partial sums of this block's part of a tile in global
// memory, and the last block to arrive reduces those of all clusters, in their order.
template <MmaPlan plan>
struct GridReduction {
    using Vectors = SliceVectors<plan>;
    float4* part;  // partial sums of this block's part by the first cluster
    uint32* arrived;
    int slice;

    __device__ __forceinline__ GridReduction(const GemmArguments& args, uint32 tile) {
        int rank = 0;
        if constexpr (plan.split_k_slices > 1) rank = cluster_rank();
        constexpr int64 kCluster = int64(plan.split_k_slices) * Vectors::kPart;
        part = args.partials + tile * args.grid_slices * kCluster + rank * Vectors::kPart;
        arrived = args.arrived + tile * plan.split_k_slices + rank;
        slice = blockIdx.x / plan.split_k_slices % args.grid_slices;
    }

    __device__ __forceinline__ float4* of(int cluster, int vector) const {
        return part + int64(cluster) * (plan.split_k_slices * Vectors::kPart) + vector;
    }

    __device__ __forceinline__ void share(int vector, const float4& x) const {
        __stcg(of(slice, vector), x);
    }

    // Whether this block is the last. All of its threads call it.
    __device__ __forceinline__ bool is_last(const GemmArguments& args) const {
        __shared__ uint32 before;
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) before = atomicAdd(arrived, 1u);
        __syncthreads();
        if (before + 1 < args.grid_slices) return false;
        __threadfence();
        if (threadIdx.x == 0) *arrived = 0;  // for the next launch
        return true;
    }

    __device__ __forceinline__ float4 total(const GemmArguments& args, int vector) const {
        VectorSum<plan> sum(__ldcg(of(0, vector)));
#pragma unroll 8
        for (int cluster = 1; cluster < args.grid_slices; ++cluster)
            sum.add(__ldcg(of(cluster, vector)));
        return sum.total();
    }
};

// Writes the accumulators of a lane to shared memory, from its first vector on.
template <MmaPlan plan>
__device__ __forceinline__ void share_accumulators(const Accumulators<plan>& accumulators,
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

// Reduces the accumulators of all slices and stores the results. `stages` is the ring, of which no
// stage is read any more; behind it is room for the partial sums of other blocks.
template <MmaPlan plan>
__device__ __forceinline__ void reduce_and_store(const GemmArguments& args, const Tile<plan>& tile,
                                                 const Scales<plan>& scales,
                                                 const Accumulators<plan>& accumulators,
                                                 float2* stages) {
    using Vectors = SliceVectors<plan>;
    static_assert(16 * plan.warps_k * Vectors::kTile <=
                      8 * plan.stages * plan.stage_elements(),
                  "the accumulators of all groups of warps must fit the stages");
    auto* memory = reinterpret_cast<float4*>(stages);
    auto* received = reinterpret_cast<float4*>(stages + plan.stages * plan.stage_elements());
    float4* own = memory + threadIdx.x / Vectors::kGroup * Vectors::kTile +
                  threadIdx.x % Vectors::kGroup;
    share_accumulators<plan>(accumulators, own);
    __syncthreads();
    const VectorEpilogue<plan> epilogue(args, tile.batch, tile.m0, tile.n0);
    const GridReduction<plan> grid(args, tile_number<plan>(args));
    // Stores a result, or the partial sum that the last cluster to arrive reduces.
    auto finish = [&](const float4& x, int vector, int2 place) {
        if constexpr (plan.grid_split) {
            grid.share(vector, x);
        } else {
            epilogue.store(args, x, place);
        }
    };
    if constexpr (plan.split_k_slices > 1) cluster_wait();  // all blocks of the cluster have begun
    for (int vector = threadIdx.x; vector < Vectors::kTile; vector += plan.threads()) {
        VectorSum<plan> sum(memory[vector]);
#pragma unroll
        for (int group = 1; group < plan.warps_k; ++group)
            sum.add(memory[group * Vectors::kTile + vector]);
        float4 x = sum.total();
        const int2 place = Vectors::place(vector);
        if constexpr (plan.scaled)
            x = descale_vector<plan>(x, place, scales.a_absmax, scales.b_absmax, epilogue.rows,
                                     epilogue.columns);
        if constexpr (plan.split_k_slices > 1) {
            float4* to = received + cluster_rank() * Vectors::kPart + vector % Vectors::kPart;
            store_cluster_shared(map_shared_rank(to, vector / Vectors::kPart), x);
        } else {
            finish(x, vector, place);
        }
    }
    int first = 0;  // vector of the tile that this block's part begins with
    if constexpr (plan.split_k_slices > 1) {
        cluster_arrive();
        cluster_wait();
        first = cluster_rank() * Vectors::kPart;
        for (int vector = threadIdx.x; vector < Vectors::kPart; vector += plan.threads()) {
            VectorSum<plan> sum(received[vector]);
#pragma unroll
            for (int slice = 1; slice < plan.split_k_slices; ++slice)
                sum.add(received[slice * Vectors::kPart + vector]);
            finish(sum.total(), vector, Vectors::place(first + vector));
        }
    }
    if constexpr (plan.grid_split) {
        if (!grid.is_last(args)) return;
        for (int vector = threadIdx.x; vector < Vectors::kPart; vector += plan.threads())
            epilogue.store(args, grid.total(args, vector), Vectors::place(first + vector));
    }
}
