// Partial tiles of stream-K: a block that computes only some k-tiles of a tile stores its
// accumulators, and the block that owns the last k-tile reduces them into its own before the
// epilogue.
#pragma once
#include "sm90_accumulator_spill.cuh"

// Stores the partial tile of this block and signals it, warp by warp.
template <WgmmaPlan plan>
__device__ __forceinline__ void store_partials(const WgmmaArguments& args, const WgmmaTile& tile,
                                               int thread, const float (&re)[plan.block_n / 2],
                                               const float (&im)[plan.block_n / 2]) {
    const AccumulatorMemory<plan> memory = partial_memory<plan>(args, block_index(), thread);
    const bool reduce = accumulators_spill<plan>(tile.num_k_tiles);
#pragma unroll
    for (int q = 0; q < AccumulatorMemory<plan>::kVectors; ++q) {
        float2* to = memory.vector_at(args, q);
        if constexpr (plan.terms > 1) {
            store_or_reduce(to, {re[2 * q], im[2 * q]}, {re[2 * q + 1], im[2 * q + 1]}, reduce);
        } else if constexpr (!AccumulatorMemory<plan>::kFewRegisters) {
            __stcg(reinterpret_cast<float4*>(to),
                   make_float4(re[2 * q], im[2 * q], re[2 * q + 1], im[2 * q + 1]));
        } else {  // one by one, because no registers are left to bring two side by side
            __stcg(&to[0].x, re[2 * q]);
            __stcg(&to[0].y, im[2 * q]);
            __stcg(&to[1].x, re[2 * q + 1]);
            __stcg(&to[1].y, im[2 * q + 1]);
        }
    }
    // Each lane signals for itself: with a __syncwarp here ptxas would spill the accumulators'
    // registers.
    uint32* ready =
        args.partials_ready + block_index() * 4 * plan.consumer_warpgroups + thread / kWarp;
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(ready) : "memory");
}

// Reduces the partial tiles that blocks `first_peer` to `end_peer` store into this block's
// accumulators, in this order, so that results repeat bit for bit.
template <WgmmaPlan plan>
__device__ __forceinline__ void reduce_partials(const WgmmaArguments& args, const WgmmaWork& work,
                                                int thread, float (&re)[plan.block_n / 2],
                                                float (&im)[plan.block_n / 2]) {
    if (work.first_peer == work.end_peer) return;
    // Each lane waits for another block: one after another, every wait is a round trip to L2.
    for (int block = work.first_peer + thread % kWarp; block < work.end_peer; block += kWarp) {
        uint32* ready = args.partials_ready + block * 4 * plan.consumer_warpgroups + thread / kWarp;
        uint32 arrived = 0;
        while (arrived < kWarp) {
            asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(arrived) : "l"(ready) : "memory");
        }
        *ready = 0;  // for the next launch
    }
    __syncwarp();
#pragma unroll 1
    for (int block = work.first_peer; block < work.end_peer; ++block) {
        add_from_memory<plan>(args, partial_memory<plan>(args, block, thread), re, im);
    }
}
