// The tile scheduler of the mma.sync family: which tile, and which split-K slice of it, a block
// computes. The kernel is not persistent: a block has one.
#pragma once
#include "device/cluster.cuh"
#include "device/quotient.cuh"
#include "sm80_plan.cuh"
#include "triangle.cuh"

// Rasterization: tiles run in groups of `kRasterGroupM` tile rows, so that concurrent tiles share
// columns of B in L2.
constexpr uint32 kRasterGroupM = 8;

// Sizes of the product. They are read once: a read after a barrier would be another one.
template <MmaPlan plan>
struct Sizes {
    Stride<plan> m, n, k;

    __device__ __forceinline__ explicit Sizes(const GemmArguments& args)
        : m(static_cast<Stride<plan>>(args.m)),
          n(static_cast<Stride<plan>>(args.n)),
          k(static_cast<Stride<plan>>(args.k)) {}
};

// The tile that a block computes, alone or with the other blocks of its cluster.
template <MmaPlan plan>
struct Tile {
    Stride<plan> batch, m0, n0;
};

// Tiles of `Size` in a length. Unsigned, because a signed division has to round to zero.
template <int Size>
__device__ __forceinline__ uint32 tiles_of(int64 length) {
    return static_cast<uint32>((static_cast<uint64>(length) + (Size - 1)) / Size);
}
template <int Size>
__device__ __forceinline__ uint32 tiles_of(int length) {
    return (static_cast<uint32>(length) + (Size - 1)) / Size;
}

// The number of the block's tile in the launch.
template <MmaPlan plan>
__device__ __forceinline__ uint32 tile_number(const GemmArguments& args) {
    const uint32 cluster = blockIdx.x / plan.cluster;
    return plan.grid_split ? quotient(cluster, args.grid_slices) : cluster;
}

// The number of the block's cluster among those that share its tile.
template <MmaPlan plan>
__device__ __forceinline__ int cluster_of_tile(const GemmArguments& args) {
    const uint32 cluster = blockIdx.x / plan.cluster;
    return static_cast<int>(cluster - quotient(cluster, args.grid_slices) * args.grid_slices);
}

// The tile of this block: products one after the other, each in raster order.
template <MmaPlan plan>
__device__ __forceinline__ Tile<plan> tile_at(const GemmArguments& args) {
    using Size = Stride<plan>;
    const auto first_batch = static_cast<Size>(args.first_batch);
    // The number of blocks fits 32 bits, in which divisions are several times as fast as in 64.
    const uint32 tiles_m = tiles_of<plan.block_m>(static_cast<Size>(args.m));
    if constexpr (plan.triangle) {
        static_assert(plan.block_m == plan.block_n, "tiles of a triangle must be square");
        const uint32 tiles = tiles_m * (tiles_m + 1) / 2, block = tile_number<plan>(args);
        const uint32 batch = block < tiles ? 0 : quotient(block, tiles);
        const TriangleTile tile = triangle_tile_at(block - batch * tiles, tiles_m, kRasterGroupM);
        return {first_batch + Size(batch), Size(tile.row) * plan.block_m,
                Size(tile.column) * plan.block_n};
    }
    const uint32 tiles_n = tiles_of<plan.block_n>(static_cast<Size>(args.n));
    // A division takes a small product longer than an MMA: those without a remainder are left out.
    uint32 batch = 0, group = 0, in_group = tile_number<plan>(args);
    if (in_group >= min(tiles_m, kRasterGroupM) * tiles_n) {  // beyond the first group of the first
        const uint32 tiles = tiles_m * tiles_n, group_tiles = kRasterGroupM * tiles_n;
        batch = quotient(in_group, tiles);
        in_group -= batch * tiles;
        group = in_group < group_tiles ? 0 : quotient(in_group, group_tiles);
        in_group -= group * group_tiles;
    }
    const uint32 height = min(tiles_m - group * kRasterGroupM, kRasterGroupM);
    const uint32 column = in_group < height ? 0 : quotient(in_group, height);
    return {first_batch + Size(batch),
            Size(group * kRasterGroupM + in_group - column * height) * plan.block_m,
            Size(column) * plan.block_n};
}

// The k-tiles of a tile that a block multiplies: all of them, or those of a split-K slice.
template <MmaPlan plan>
struct KTiles {
    int first, count;

    // The k before the first of them.
    __device__ __forceinline__ Stride<plan> first_k() const {
        return Stride<plan>(first) * plan.block_k;
    }
};

// The k-tiles of `k` that this block multiplies.
template <MmaPlan plan>
__device__ __forceinline__ KTiles<plan> k_tiles_at(const GemmArguments& args, Stride<plan> k) {
    int slices = plan.cluster, slice = 0;
    if constexpr (plan.cluster > 1) slice = cluster_rank();
    if constexpr (plan.whole_k > 0) {
        // Their number is a constant. Those of the last slices that lie beyond k are zeros.
        constexpr int kCount = (plan.whole_k + plan.block_k - 1) / plan.block_k;
        return {slice * kCount, kCount};
    }
    const int all = static_cast<int>(tiles_of<plan.block_k>(k));
    if constexpr (plan.cluster == 1 && !plan.grid_split) return {0, all};
    if constexpr (plan.grid_split) {
        slices *= args.grid_slices;
        slice += cluster_of_tile<plan>(args) * plan.cluster;
    }
    const int of_slice = static_cast<int>(plan.grid_split ? quotient(all + slices - 1, slices)
                                                          : (all + slices - 1u) / slices);
    const int first = slice * of_slice;
    return {first, max(0, min(of_slice, all - first))};  // the last slices of a short k are empty
}
