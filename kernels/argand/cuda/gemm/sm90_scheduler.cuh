// What each block of the wgmma family works on, and in which order.
//
// Blocks stay and take whole tiles in turns. Where the last turn would leave many of them idle, its
// tiles are cut along k into equal shares, one a block, tile after tile: a share holds the end of
// one tile, the beginning of the next, or something in between. Who has a tile's end adds the sums
// of its other pieces, in order, and stores the result; the others leave theirs in memory. A block
// takes what it leaves to others before what it waits for, so that the waiting is short and always
// ends. Whole tiles come first: as long as blocks keep step, their reads of shared operands meet on
// the way.
#pragma once
#include "device/shared.cuh"
#include "sm90_plan.cuh"

// A tile of one product: all of k, one part of it, or a piece.
struct WgmmaTile {
    int batch, slice, m0, n0, first_k_tile, num_k_tiles;
};

struct WgmmaWork {
    WgmmaTile tile;
    bool stores_partial;       // the sums are left to another block
    int first_peer, end_peer;  // the blocks whose sums are to be added
};

// The same number, which the compiler takes for another: what is derived from it again is not kept
// in registers, of which the products leave none, while they run.
__device__ __forceinline__ uint32 opaque(uint32 x) {
    asm volatile("" : "+r"(x));
    return x;
}

// The thread's and the block's number, read when they are wanted: nothing of them is kept either.
__device__ __forceinline__ int thread_index() {
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
}

__device__ __forceinline__ uint32 block_index() {
    uint32 block;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
    return block;
}

template <WgmmaPlan plan>
__device__ __forceinline__ WgmmaTile wgmma_tile_at(const WgmmaArguments& args, uint32 index) {
    const uint32 tiles_m = (opaque(args.m) + plan.block_m() - 1) / plan.block_m();
    const uint32 tiles_n = (opaque(args.n) + plan.block_n - 1) / plan.block_n;
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
            int(in_group / height) * plan.block_n,
            first_k_tile,
            max(0, min(args.k_tiles_per_slice, num_k_tiles - first_k_tile))};
}

// This block's work number `turn`; false where there is no more.
template <WgmmaPlan plan>
__device__ __forceinline__ bool schedule_work(const WgmmaArguments& args, uint32 work_index,
                                              WgmmaWork& work) {
    const uint32 block = block_index(), data_parallel = opaque(args.data_parallel_tiles);
    const uint32 blocks = opaque(gridDim.x);
    uint32 tile_index = block + work_index * blocks;
    work.stores_partial = false;
    work.first_peer = work.end_peer = 0;
    int first_k_tile = 0, end_k_tile = 0;  // stages of the tile
    if (tile_index >= data_parallel) {
        // Its share's stages, counted from the first split tile's first on.
        const int num_k_tiles = (opaque(args.k) + plan.block_k - 1) / plan.block_k;
        const int k_tiles_per_block = opaque(args.k_tiles_per_block);
        const int begin = block * k_tiles_per_block;
        const int end = min(begin + k_tiles_per_block, int(args.stream_k_tiles) * num_k_tiles);
        if (begin >= end) return false;
        const int first_tile = begin / num_k_tiles, last_tile = (end - 1) / num_k_tiles;
        const bool ends_tile = end >= (first_tile + 1) * num_k_tiles;
        const bool stores_partial = !ends_tile || last_tile > first_tile;
        // All blocks have equally many whole tiles where others are split.
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

// Finding work takes many divisions, one after the other. So the loading thread does it, which is
// ahead, and tells the multiplying warps: what, and whether there is any.
constexpr uint32 kWorkFull = 48, kWorkEmpty = 56;  // barriers

__device__ __forceinline__ void publish_work(uint32 slot, uint32 work_index, const WgmmaWork& work,
                                             bool more) {
    mbarrier_wait(slot + kWorkEmpty, work_index / kWorkSlots % 2 ^ 1);
    const WgmmaTile& tile = work.tile;
    store_shared_16(slot, tile.batch, tile.slice, tile.m0, tile.n0);
    store_shared_16(slot + 16, tile.first_k_tile, tile.num_k_tiles, work.stores_partial, more);
    store_shared_16(slot + 32, work.first_peer, work.end_peer, 0u, 0u);
    mbarrier_arrive(slot + kWorkFull);
}

// Returns how many stages there are of work number `turn`, -1 where there is none.
__device__ __forceinline__ int wait_for_work(uint32 slot, uint32 work_index) {
    mbarrier_wait(slot + kWorkFull, work_index / kWorkSlots % 2);
    const uint4 x = load_shared_words(slot + 16);
    return x.w ? int(x.y) : -1;
}

// The same work, as often as it is wanted: nothing of it is kept in registers.
__device__ __forceinline__ WgmmaWork read_work(uint32 slot) {
    const uint4 x = load_shared_words(slot), y = load_shared_words(slot + 16);
    const uint4 z = load_shared_words(slot + 32);
    return {
        {int(x.x), int(x.y), int(x.z), int(x.w), int(y.x), int(y.y)}, y.z != 0, int(z.x), int(z.y)};
}
