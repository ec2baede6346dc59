// Partial tiles of stream-K: a block that computes only some k-tiles of a tile stores its
// accumulators, and the block that owns the last k-tile reduces them into its own before the
// epilogue.
#pragma once
#include "sm90_accumulator_spill.cuh"

// The memory of a thread's accumulators in a partial tile of one term: pairs of them, of the real
// part before those of the imaginary part. A pair is two registers side by side, as wgmma has them,
// so none is moved for an access of 8 bytes, and the lanes of a warp access 256 contiguous bytes.
// Loads of 16 bytes would spill where a tile has 160 columns.
template <WgmmaPlan plan>
struct AccumulatorPairs {
    static constexpr int kOfPart = plan.block_n / 4, kCount = 2 * kOfPart;
    float2* first;

    __device__ __forceinline__ AccumulatorPairs(const WgmmaArguments& args, uint32 block,
                                                int thread)
        : first(partial_slot<plan>(args, block) + thread) {}
    __device__ __forceinline__ float2* at(int q) const {
        return first + q * plan.tile_threads();
    }
    static __device__ __forceinline__ float* in(float (&re)[plan.block_n / 2],
                                                float (&im)[plan.block_n / 2], int q) {
        return q < kOfPart ? &re[2 * q] : &im[2 * (q - kOfPart)];
    }
};

// Stores the partial tile of this block and signals it, warp by warp.
template <WgmmaPlan plan>
__device__ __forceinline__ void store_partials(const WgmmaArguments& args, const WgmmaTile& tile,
                                               int thread, float (&re)[plan.block_n / 2],
                                               float (&im)[plan.block_n / 2]) {
    if constexpr (plan.terms > 1) {
        const AccumulatorMemory<plan> memory = partial_memory<plan>(args, block_index(), thread);
        const bool reduce = accumulators_spill<plan>(tile.num_k_tiles);
#pragma unroll
        for (int q = 0; q < AccumulatorMemory<plan>::kVectors; ++q) {
            store_or_reduce(memory.vector_at(args, q), {re[2 * q], im[2 * q]},
                            {re[2 * q + 1], im[2 * q + 1]}, reduce);
        }
    } else {
        const AccumulatorPairs<plan> pairs(args, block_index(), thread);
#pragma unroll
        for (int q = 0; q < pairs.kCount; ++q) {
            const float* x = pairs.in(re, im, q);
            __stcg(pairs.at(q), make_float2(x[0], x[1]));
        }
    }
    // Each lane signals for itself: with a __syncwarp here ptxas would spill the accumulators'
    // registers.
    uint32* ready =
        args.partials_ready + block_index() * plan.tile_warps() + thread / kWarp;
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(ready) : "memory");
}

// Adds the partial tile of `block` to this block's accumulators.
template <WgmmaPlan plan>
__device__ __forceinline__ void add_partial(const WgmmaArguments& args, uint32 block, int thread,
                                            float (&re)[plan.block_n / 2],
                                            float (&im)[plan.block_n / 2]) {
    if constexpr (plan.terms > 1) {
        add_from_memory<plan>(args, partial_memory<plan>(args, block, thread), re, im);
    } else {
        const AccumulatorPairs<plan> pairs(args, block, thread);
#pragma unroll
        for (int q = 0; q < pairs.kCount; ++q) {
            const float2 x = __ldcg(pairs.at(q));
            float* to = pairs.in(re, im, q);
            to[0] += x.x;
            to[1] += x.y;
        }
    }
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
        uint32* ready = args.partials_ready + block * plan.tile_warps() + thread / kWarp;
        uint32 arrived = 0;
        while (arrived < kWarp) {
            asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(arrived) : "l"(ready) : "memory");
        }
        *ready = 0;  // for the next launch
    }
    __syncwarp();
#pragma unroll 1
    for (int block = work.first_peer; block < work.end_peer; ++block) {
        add_partial<plan>(args, block, thread, re, im);
    }
}
