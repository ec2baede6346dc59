// Sums of pieces of tiles, which one block leaves to another.
#pragma once
#include "sm90_accumulator_spill.cuh"

// Leaves a piece's sums to the block that has the tile's end, warp by warp.
template <WgmmaPlan plan>
__device__ __forceinline__ void leave_piece(const WgmmaArguments& args, const WgmmaTile& tile,
                                            int thread, const float (&re)[plan.block_n / 2],
                                            const float (&im)[plan.block_n / 2]) {
    const SumsPlace<plan> place = piece_place<plan>(args, block_index(), thread);
    const bool adds = totals_move<plan>(tile.num_k_tiles);
#pragma unroll
    for (int q = 0; q < SumsPlace<plan>::kFours; ++q) {
        float2* at = place.four(args, q);
        if constexpr (plan.terms > 1) {
            put(at, {re[2 * q], im[2 * q]}, {re[2 * q + 1], im[2 * q + 1]}, adds);
        } else {  // one by one: there are no registers to bring two side by side
            __stcg(&at[0].x, re[2 * q]);
            __stcg(&at[0].y, im[2 * q]);
            __stcg(&at[1].x, re[2 * q + 1]);
            __stcg(&at[1].y, im[2 * q + 1]);
        }
    }
    // Each lane vouches for itself: a barrier of the warp here makes the assembler spill the sums.
    uint32* ready =
        args.partials_ready + block_index() * 4 * plan.consumer_warpgroups + thread / kWarp;
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(ready) : "memory");
}

// Adds the sums of a tile's other pieces, which blocks `first` to `end` leave, in this order.
template <WgmmaPlan plan>
__device__ __forceinline__ void add_pieces(const WgmmaArguments& args, const WgmmaWork& work,
                                           int thread, float (&re)[plan.block_n / 2],
                                           float (&im)[plan.block_n / 2]) {
#pragma unroll 1
    for (int block = work.first_peer; block < work.end_peer; ++block) {
        uint32* ready = args.partials_ready + block * 4 * plan.consumer_warpgroups + thread / kWarp;
        uint32 there = 0;
        while (there < kWarp) {
            asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(there) : "l"(ready) : "memory");
        }
        add_from<plan>(args, piece_place<plan>(args, block, thread), re, im);
        __syncwarp();
        if (thread % kWarp == 0) *ready = 0;  // for the next launch
    }
}
