// The end of a product whose k is cut in slices: by groups of warps (sliced K), by the blocks of a
// cluster (split-K), or both. Every block first adds what its groups of warps have, then sends each
// part of the tile to the block that stores it, through distributed shared memory. The order of
// additions is fixed, so results repeat bit for bit, and the product remains one launch. Where
// several clusters share a tile, each stores its partial tile in global memory, and the last to
// arrive reduces them.
#pragma once
#include "device/cluster.cuh"
#include "sm80_epilogue.cuh"

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

// Reduces the accumulators of all slices and stores the results. `memory` is the shared memory of
// the stages, of which none is read any more; `received` takes the partial sums of other blocks.
template <MmaPlan plan>
__device__ __forceinline__ void reduce_and_store(const GemmArguments& args,
                                                 const Accumulators<plan>& accumulators,
                                                 Stride<plan> batch, Stride<plan> m0,
                                                 Stride<plan> n0, uint32 tile, float4* memory,
                                                 float4* received, const uint32* a_absmax,
                                                 const uint32* b_absmax) {
    using Vectors = SliceVectors<plan>;
    static_assert(16 * plan.warps_k * Vectors::kTile <=
                      8 * plan.stages * (plan.a_tile_elements() + plan.b_tile_elements()),
                  "the accumulators of all groups of warps must fit the stages");
    float4* own = memory + threadIdx.x / Vectors::kGroup * Vectors::kTile +
                  threadIdx.x % Vectors::kGroup;
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
    __syncthreads();
    using Size = Stride<plan>;
    const int rows = static_cast<int>(min(static_cast<Size>(args.m) - m0, Size(plan.block_m)));
    const int columns = static_cast<int>(min(static_cast<Size>(args.n) - n0, Size(plan.block_n)));
    const auto stride_m = static_cast<Size>(args.out_stride_m);
    const auto stride_n = static_cast<Size>(args.out_stride_n);
    float2* out_tile = args.out + batch * args.out_stride_batch + int64(m0) * stride_m +
                       int64(n0) * stride_n;
    const bool combined = combines(args);
    const float2* c = args.c + batch * args.c_stride_batch;
    float2* out = args.out + batch * args.out_stride_batch;
    auto store = [&](const float4& x, int2 place) {
        if (place.x >= rows || place.y >= columns) return;
        float2 results[2] = {{x.x, x.y}, {x.z, x.w}};
        const int64 row = m0 + place.x, column = n0 + place.y;
        if (combined) combine_pair(args, c, row, column, results);
        if constexpr (plan.mirror) {
            store_hermitian(args, out, row, column, results[0]);
            store_hermitian(args, out, row, column + 1, results[1]);
            return;
        }
        float2* at = out_tile + int64(place.x) * stride_m + int64(place.y) * stride_n;
        const bool second = place.y + 1 < columns;
        if (second && args.store_pairs_n) {
            store_two(at, results[0], results[1]);
        } else {
            *at = results[0];
            if (second) at[stride_n] = results[1];
        }
    };
    const GridReduction<plan> grid(args, tile);
    // Stores a result, or the partial sum that the last cluster to arrive reduces.
    auto finish = [&](const float4& x, int vector, int2 place) {
        if constexpr (plan.grid_split) {
            grid.share(vector, x);
        } else {
            store(x, place);
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
            x = descale_vector<plan>(x, place, a_absmax, b_absmax, rows, columns);
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
            store(grid.total(args, vector), Vectors::place(first + vector));
    }
}
