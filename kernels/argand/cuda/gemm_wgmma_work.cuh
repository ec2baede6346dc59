// What each block of the wgmma family works on, and in which order.
//
// Blocks stay and take whole tiles in turns. Where the last turn would leave many of them idle, its
// tiles are cut along k into equal shares, one a block, tile after tile: a share holds the end of one
// tile, the beginning of the next, or something in between. Who has a tile's end adds the sums of its
// other pieces, in order, and stores the result; the others leave theirs in memory. A block takes what
// it leaves to others before what it waits for, so that the waiting is short and always ends. Whole
// tiles come first: as long as blocks keep step, their reads of shared operands meet on the way.
#pragma once
#include "gemm_wgmma_plan.cuh"

// A tile of one product: all of k, one part of it, or a piece.
struct WgmmaTile {
    int batch, part, row, column, first_step, steps;
};

struct WgmmaWork {
    WgmmaTile tile;
    bool left;       // the sums are left to another block
    int first, end;  // the blocks whose sums are to be added
};

// The same number, which the compiler takes for another: what is derived from it again is not kept in
// registers, of which the products leave none, while they run.
__device__ __forceinline__ uint32 forgotten(uint32 x) {
    asm volatile("" : "+r"(x));
    return x;
}

template <WgmmaPlan plan>
__device__ __forceinline__ WgmmaTile find_wgmma_tile(const WgmmaArguments& args, uint32 index) {
    const uint32 rows = (forgotten(args.rows) + plan.block_m() - 1) / plan.block_m();
    const uint32 columns = (forgotten(args.columns) + plan.block_n - 1) / plan.block_n;
    const uint32 product = index / (rows * columns), tile = index % (rows * columns);
    const uint32 most = tile_group(columns);
    const uint32 group = tile / (most * columns), inside = tile % (most * columns);
    const uint32 height = min(rows - group * most, most);
    const int part = product % args.parts, steps = (args.k + plan.depth - 1) / plan.depth;
    const int first = part * args.part_steps;
    return {int(product / args.parts), part,
            int(group * most + inside % height) * plan.block_m(),
            int(inside / height) * plan.block_n, first,
            max(0, min(args.part_steps, steps - first))};
}

// This block's work number `turn`; false where there is no more.
template <WgmmaPlan plan>
__device__ __forceinline__ bool find_work(const WgmmaArguments& args, uint32 turn, WgmmaWork& work) {
    const uint32 block = forgotten(blockIdx.x), whole = args.whole_tiles;
    uint32 index = block + turn * gridDim.x;
    work.left = false;
    work.first = work.end = 0;
    int piece = 0, piece_end = 0;  // stages of the tile
    if (index >= whole) {
        // Its share's stages, counted from the first split tile's first on.
        const int steps = (forgotten(args.k) + plan.depth - 1) / plan.depth;
        const int begin = block * args.share;
        const int end = min(begin + args.share, int(args.split_tiles) * steps);
        if (begin >= end) return false;
        const int first_tile = begin / steps, last_tile = (end - 1) / steps;
        const bool ends_tile = end >= (first_tile + 1) * steps;
        const bool leaves = !ends_tile || last_tile > first_tile;
        // All blocks have equally many whole tiles where others are split.
        const uint32 later = turn - whole / gridDim.x;
        work.left = leaves && later == 0;
        if (!work.left && (!ends_tile || later > leaves)) return false;
        const int tile = work.left ? last_tile : first_tile;
        index = whole + tile;
        piece = max(begin - tile * steps, 0);
        piece_end = min(end - tile * steps, steps);
        if (!work.left) {
            work.first = tile * steps / args.share;
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

template <WgmmaPlan plan>
constexpr int kMultiplying = kWarpgroup * plan.warpgroups;  // threads

// Where a thread's sums of a piece lie; neighbouring threads' are neighbours.
template <WgmmaPlan plan>
__device__ __forceinline__ float* piece_place(const WgmmaArguments& args, uint32 block, int thread) {
    const uint32 piece = block - block / args.period;  // shares that end with a tile leave none
    return args.pieces + int64(piece) * (plan.block_n * kMultiplying<plan>) + thread;
}

// Leaves a piece's sums to the block that has the tile's end, warp by warp.
template <WgmmaPlan plan>
__device__ __forceinline__ void leave_piece(const WgmmaArguments& args, int thread,
                                            const float (&re)[plan.block_n / 2],
                                            const float (&im)[plan.block_n / 2]) {
    float* to = piece_place<plan>(args, blockIdx.x, thread);
#pragma unroll
    for (int i = 0; i < plan.block_n / 2; ++i) {
        __stcg(to + 2 * i * kMultiplying<plan>, re[i]);
        __stcg(to + (2 * i + 1) * kMultiplying<plan>, im[i]);
    }
    // Each lane vouches for itself: a barrier of the warp here makes the assembler spill the sums.
    uint32* ready = args.ready + blockIdx.x * 4 * plan.warpgroups + thread / kWarp;
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(ready) : "memory");
}

// Adds the sums of a tile's other pieces, which blocks `first` to `end` leave, in this order.
template <WgmmaPlan plan>
__device__ __forceinline__ void add_pieces(const WgmmaArguments& args, const WgmmaWork& work,
                                           int thread, float (&re)[plan.block_n / 2],
                                           float (&im)[plan.block_n / 2]) {
#pragma unroll 1
    for (int block = work.first; block < work.end; ++block) {
        uint32* ready = args.ready + block * 4 * plan.warpgroups + thread / kWarp;
        uint32 there = 0;
        while (there < kWarp) {
            asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(there) : "l"(ready) : "memory");
        }
        const float* from = piece_place<plan>(args, block, thread);
#pragma unroll
        for (int i = 0; i < plan.block_n / 2; ++i) {
            re[i] += __ldcg(from + 2 * i * kMultiplying<plan>);
            im[i] += __ldcg(from + (2 * i + 1) * kMultiplying<plan>);
        }
        __syncwarp();
        if (thread % kWarp == 0) *ready = 0;  // for the next launch
    }
}
