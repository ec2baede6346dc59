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
    int batch, part, row, column, first_step, steps;
};

struct WgmmaWork {
    WgmmaTile tile;
    bool left;       // the sums are left to another block
    int first, end;  // the blocks whose sums are to be added
};

// The same number, which the compiler takes for another: what is derived from it again is not kept
// in registers, of which the products leave none, while they run.
__device__ __forceinline__ uint32 forgotten(uint32 x) {
    asm volatile("" : "+r"(x));
    return x;
}

// The thread's and the block's number, read when they are wanted: nothing of them is kept either.
__device__ __forceinline__ int this_thread() {
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
}

__device__ __forceinline__ uint32 this_block() {
    uint32 block;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
    return block;
}

template <WgmmaPlan plan>
__device__ __forceinline__ WgmmaTile find_wgmma_tile(const WgmmaArguments& args, uint32 index) {
    const uint32 rows = (forgotten(args.m) + plan.block_m() - 1) / plan.block_m();
    const uint32 columns = (forgotten(args.n) + plan.block_n - 1) / plan.block_n;
    const uint32 product = index / (rows * columns), tile = index % (rows * columns);
    const uint32 most = raster_group_m(columns);
    const uint32 group = tile / (most * columns), inside = tile % (most * columns);
    const uint32 height = min(rows - group * most, most);
    const int parts = forgotten(args.split_k_slices);
    const int part = product % parts, steps = (args.k + plan.block_k - 1) / plan.block_k;
    const int first = part * args.k_tiles_per_slice;
    return {int(product / parts),
            part,
            int(group * most + inside % height) * plan.block_m(),
            int(inside / height) * plan.block_n,
            first,
            max(0, min(args.k_tiles_per_slice, steps - first))};
}

// This block's work number `turn`; false where there is no more.
template <WgmmaPlan plan>
__device__ __forceinline__ bool find_work(const WgmmaArguments& args, uint32 turn,
                                          WgmmaWork& work) {
    const uint32 block = this_block(), whole = forgotten(args.data_parallel_tiles);
    const uint32 blocks = forgotten(gridDim.x);
    uint32 index = block + turn * blocks;
    work.left = false;
    work.first = work.end = 0;
    int piece = 0, piece_end = 0;  // stages of the tile
    if (index >= whole) {
        // Its share's stages, counted from the first split tile's first on.
        const int steps = (forgotten(args.k) + plan.block_k - 1) / plan.block_k;
        const int share = forgotten(args.k_tiles_per_block), begin = block * share;
        const int end = min(begin + share, int(args.stream_k_tiles) * steps);
        if (begin >= end) return false;
        const int first_tile = begin / steps, last_tile = (end - 1) / steps;
        const bool ends_tile = end >= (first_tile + 1) * steps;
        const bool leaves = !ends_tile || last_tile > first_tile;
        // All blocks have equally many whole tiles where others are split.
        const uint32 later = turn - whole / blocks;
        work.left = leaves && later == 0;
        if (!work.left && (!ends_tile || later > leaves)) return false;
        const int tile = work.left ? last_tile : first_tile;
        index = whole + tile;
        piece = max(begin - tile * steps, 0);
        piece_end = min(end - tile * steps, steps);
        if (!work.left) {
            work.first = tile * steps / share;
            work.end = block;
        }
    }
    work.tile = find_wgmma_tile<plan>(args, args.first_tile + index);
    if (piece_end > 0) {
        work.tile.first_step = piece;
        work.tile.steps = piece_end - piece;
    }
    return true;
}

// Finding work takes many divisions, one after the other. So the loading thread does it, which is
// ahead, and tells the multiplying warps: what, and whether there is any.
constexpr uint32 kToldFull = 48, kToldEmpty = 56;  // barriers

__device__ __forceinline__ void tell_work(uint32 place, uint32 turn, const WgmmaWork& work,
                                          bool more) {
    mbarrier_wait(place + kToldEmpty, turn / kWorkSlots % 2 ^ 1);
    const WgmmaTile& tile = work.tile;
    store_shared_16(place, tile.batch, tile.part, tile.row, tile.column);
    store_shared_16(place + 16, tile.first_step, tile.steps, work.left, more);
    store_shared_16(place + 32, work.first, work.end, 0u, 0u);
    mbarrier_arrive(place + kToldFull);
}

// Returns how many stages there are of work number `turn`, -1 where there is none.
__device__ __forceinline__ int wait_for_work(uint32 place, uint32 turn) {
    mbarrier_wait(place + kToldFull, turn / kWorkSlots % 2);
    const uint4 x = load_shared_words(place + 16);
    return x.w ? int(x.y) : -1;
}

// The same work, as often as it is wanted: nothing of it is kept in registers.
__device__ __forceinline__ WgmmaWork told_work(uint32 place) {
    const uint4 x = load_shared_words(place), y = load_shared_words(place + 16);
    const uint4 z = load_shared_words(place + 32);
    return {
        {int(x.x), int(x.y), int(x.z), int(x.w), int(y.x), int(y.y)}, y.z != 0, int(z.x), int(z.y)};
}
