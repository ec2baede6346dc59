// The tile scheduler of the wgmma family: which tile, split-K slice or stream-K part each block
// computes, and in which order. The producer thread runs it and publishes each work item to the
// consumers through shared memory.
//
// The kernel is persistent. Blocks first take data-parallel tiles, wave after wave. Where the last
// wave would fill only some multiprocessors, its tiles become stream-K tiles: their k-tiles are cut
// into equal ranges, one a block, so a range may hold the end of one tile and the beginning of the
// next. The block that owns the last k-tile of a tile reduces the partial tiles of the others, in
// their order, and runs the epilogue; so results repeat bit for bit. Each block computes the
// partial tile that it gives away before the tile that it finishes, so no block waits for one that
// waits for it. Data-parallel tiles come first because blocks in step share their operand reads in
// L2.
#pragma once
#include "device/shared.cuh"
#include "sm90_plan.cuh"
#include "triangle.cuh"

// A tile of Z and the k-tiles of it that are computed: all of k, a split-K slice, or a stream-K
// range.
struct WgmmaTile {
    int batch, slice, m0, n0, first_k_tile, num_k_tiles;
};

// The number of a tile's product among those that are stored: those of a slice lie together.
__device__ __forceinline__ int64 stored_product(const WgmmaArguments& args, const WgmmaTile& tile) {
    return int64(tile.batch) + int64(tile.slice) * args.batches;
}

struct WgmmaWork {
    WgmmaTile tile;
    bool stores_partial;       // the accumulators go to the block that owns the last k-tile
    int first_peer, end_peer;  // blocks whose partial tiles are reduced
};

// Tile number `index` of the launch, in raster order; consecutive products, each with its slices.
template <WgmmaPlan plan>
__device__ __forceinline__ WgmmaTile wgmma_tile_at(const WgmmaArguments& args, uint32 index) {
    const uint32 tiles_m = (opaque(args.m) + plan.block_m() - 1) / plan.block_m();
    if constexpr (plan.triangle) {
        const uint32 tiles = tiles_m * (tiles_m + 1) / 2;
        uint32 product = index / tiles, in_product = index - product * tiles;
        if constexpr (plan.fused_pack) {
            const uint32 products = args.batches * args.split_k_slices;
            const TriangleIndex own = triangle_index(index, products, tiles, gridDim.x);
            product = own.triangle;
            in_product = own.tile;
        }
        const TriangleTile tile = triangle_tile_at(in_product, tiles_m, raster_group_m(tiles_m));
        const int slices = opaque(args.split_k_slices), slice = product % slices;
        const int first_k_tile = slice * args.k_tiles_per_slice;
        const int num_k_tiles = (args.k + plan.block_k - 1) / plan.block_k;
        return {int(product / slices),
                slice,
                int(tile.row) * plan.block_m(),
                int(tile.column) * plan.block_n,
                first_k_tile,
                max(0, min(args.k_tiles_per_slice, num_k_tiles - first_k_tile))};
    }
    const uint32 tiles_n = (opaque(args.n) + plan.tile_stride_n() - 1) / plan.tile_stride_n();
    const uint32 product = index / (tiles_m * tiles_n), tile = index % (tiles_m * tiles_n);
    const uint32 group_m = raster_group_m(tiles_n);
    const uint32 group = tile / (group_m * tiles_n), in_group = tile % (group_m * tiles_n);
    const uint32 height = min(tiles_m - group * group_m, group_m);
    const int slices = opaque(args.split_k_slices);
    const int slice = product % slices, num_k_tiles = (args.k + plan.block_k - 1) / plan.block_k;
    const int first_k_tile = slice * args.k_tiles_per_slice;
    return {int(product / slices),
            slice,
            int(group * group_m + in_group % height) * plan.block_m(),
            int(in_group / height) * plan.tile_stride_n(),
            first_k_tile,
            max(0, min(args.k_tiles_per_slice, num_k_tiles - first_k_tile))};
}

// Sets this block's work item number `work_index`. Returns false where there are no more.
template <WgmmaPlan plan>
__device__ __forceinline__ bool schedule_work(const WgmmaArguments& args, uint32 work_index,
                                              WgmmaWork& work) {
    const uint32 block = block_index(), data_parallel = opaque(args.data_parallel_tiles);
    const uint32 blocks = opaque(gridDim.x);
    if constexpr (plan.cluster > 1) {  // a block has a slice of one tile
        if (work_index > 0) return false;
        work.tile = wgmma_tile_at<plan>(args, block / plan.cluster);
        work.stores_partial = false;
        work.first_peer = work.end_peer = 0;
        const int num_k_tiles = work.tile.num_k_tiles;
        work.tile.first_k_tile =
            min(int(block % plan.cluster) * args.k_tiles_per_block, num_k_tiles);
        work.tile.num_k_tiles = min(args.k_tiles_per_block, num_k_tiles - work.tile.first_k_tile);
        return true;
    }
    uint32 tile_index = block + work_index * blocks;
    work.stores_partial = false;
    work.first_peer = work.end_peer = 0;
    int first_k_tile = 0, end_k_tile = 0;  // the range of a stream-K tile
    if (tile_index >= data_parallel) {
        // The range of this block, in k-tiles from the first stream-K tile on.
        const int num_k_tiles = (opaque(args.k) + plan.block_k - 1) / plan.block_k;
        const int k_tiles_per_block = opaque(args.k_tiles_per_block);
        const int begin = block * k_tiles_per_block;
        const int end = min(begin + k_tiles_per_block, int(args.stream_k_tiles) * num_k_tiles);
        if (begin >= end) return false;
        const int first_tile = begin / num_k_tiles, last_tile = (end - 1) / num_k_tiles;
        const bool ends_tile = end >= (first_tile + 1) * num_k_tiles;
        const bool stores_partial = !ends_tile || last_tile > first_tile;
        // Stream-K tiles only follow full waves, so every block has done equally many tiles.
        const uint32 stream_k_index = work_index - data_parallel / blocks;
        work.stores_partial = stores_partial && stream_k_index == 0;
        if (!work.stores_partial && (!ends_tile || stream_k_index > stores_partial)) return false;
        const int tile = work.stores_partial ? last_tile : first_tile;
        tile_index = data_parallel + tile;
        first_k_tile = max(begin - tile * num_k_tiles, 0);
        end_k_tile = min(end - tile * num_k_tiles, num_k_tiles);
        if (!work.stores_partial) {
            work.first_peer = tile * num_k_tiles / k_tiles_per_block;
            work.end_peer = block;
        }
    }
    work.tile = wgmma_tile_at<plan>(args, args.first_tile + tile_index);
    if (end_k_tile > 0) {
        work.tile.first_k_tile = first_k_tile;
        work.tile.num_k_tiles = end_k_tile - first_k_tile;
    }
    return true;
}

constexpr uint32 kWorkFull = 48, kWorkEmpty = 56;  // mbarriers, in bytes from the slot

// Writes a work item, or that there is none (`more` is false), into its slot. The producer thread
// calls it: scheduling takes many dependent divisions, so it is done once, ahead of the consumers.
__device__ __forceinline__ void publish_work(uint32 slot, uint32 work_index, const WgmmaWork& work,
                                             bool more) {
    mbarrier_wait(slot + kWorkEmpty, work_index / kWorkSlots % 2 ^ 1);
    const WgmmaTile& tile = work.tile;
    store_shared_16(slot, tile.batch, tile.slice, tile.m0, tile.n0);
    store_shared_16(slot + 16, tile.first_k_tile, tile.num_k_tiles, work.stores_partial, more);
    store_shared_16(slot + 32, work.first_peer, work.end_peer, 0u, 0u);
    mbarrier_arrive(slot + kWorkFull);
}

// Waits for work item `work_index` and returns its k-tiles, -1 where there is none.
__device__ __forceinline__ int wait_for_work(uint32 slot, uint32 work_index) {
    mbarrier_wait(slot + kWorkFull, work_index / kWorkSlots % 2);
    const uint4 x = load_shared_words(slot + 16);
    return x.w ? int(x.y) : -1;
}

// The work item of a slot, read again at each use because no registers can hold it.
__device__ __forceinline__ WgmmaWork read_work(uint32 slot) {
    const uint4 x = load_shared_words(slot), y = load_shared_words(slot + 16);
    const uint4 z = load_shared_words(slot + 32);
    return {
        {int(x.x), int(x.y), int(x.z), int(x.w), int(y.x), int(y.y)}, y.z != 0, int(z.x), int(z.y)};
}
