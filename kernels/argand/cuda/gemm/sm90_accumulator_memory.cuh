// Accumulators in global memory: where those of a thread lie, and how they are stored, added and
// loaded. The accumulator spill (sm90_accumulator_spill.cuh) and the stream-K partial tiles of two
// terms (sm90_partials.cuh) are built on it. One thread writes each element, so results repeat bit
// for bit.
#pragma once
#include "device/predicated_load.cuh"
#include "sm90_fragments.cuh"
#include "sm90_scheduler.cuh"

// The memory of a thread's accumulators. Accumulator 4 j + 2 h + e belongs to row h of
// the thread's two and to column 8 j + e from its first. The structure lives through the mainloop,
// so it is small.
//
// A vectorized memory has room for all accumulators of a warp: vector number q holds accumulators 2
// q and 2 q + 1, real and imaginary, 16 bytes a lane, and the lanes of a warp access 512 contiguous
// bytes or rows of 64 at least. A memory that is not vectorized is that of a tile at an edge of Z,
// or of a Z that is not n-major; its elements lie where the results will.
template <WgmmaPlan plan>
struct AccumulatorMemory {
    static constexpr int kVectors = plan.block_n / 4;  // of four numbers
    // Vectors of a thread that are on their way at once: all of them where registers are left
    // beside the accumulators.
    static constexpr int kVectorsAtOnce = plan.block_n > 96 ? 8 : kVectors;
    // Elements along n and along m that one vector access of a warp covers in `spill`.
    static constexpr int kAccessColumns = plan.block_n % 64 == 0   ? 64
                                          : plan.block_n % 32 == 0 ? 32
                                          : plan.block_n % 16 == 0 ? 16
                                                                   : 8;
    static constexpr int kAccessRows = 64 / kAccessColumns,
                         kAccessesPerRow = plan.block_n / kAccessColumns;
    float2* base;
    int columns;  // inside Z from the thread's first column on
    int rows;     // inside Z, of the thread's two
    // `partial`: a slot of `partials`, else the tile's place in `spill`.
    bool vectorized, partial;

    __device__ __forceinline__ bool inside(int j, int h, int e) const {
        return h < rows && 8 * j + e < columns;
    }
    __device__ __forceinline__ float2* at(const WgmmaArguments& args, int j, int h, int e) const {
        constexpr int kSecond = plan.adjacent_rows() ? 1 : 8;
        return base + h * kSecond * args.spill_stride_m + (8 * j + e) * args.spill_stride_n;
    }
    // The address of vector q of a vectorized memory.
    __device__ __forceinline__ float2* vector_at(const WgmmaArguments& args, int q) const {
        if (partial) return base + q * (2 * plan.tile_threads());
        return base + q / kAccessesPerRow * kAccessRows * args.spill_stride_m +
               q % kAccessesPerRow * kAccessColumns;
    }
};

// The slot of the partial tile that `block` stores.
template <WgmmaPlan plan>
__device__ __forceinline__ float2* partial_slot(const WgmmaArguments& args, uint32 block) {
    // Blocks whose range ends with a tile store none.
    const uint32 partial = block - block / opaque(args.aligned_period);
    return args.partials + int64(partial) * (plan.block_n / 2 * plan.tile_threads());
}

// The memory of a thread's accumulators in the slot of `block`, at two terms.
template <WgmmaPlan plan>
__device__ __forceinline__ AccumulatorMemory<plan> partial_memory(const WgmmaArguments& args,
                                                                  uint32 block, int thread) {
    return {partial_slot<plan>(args, block) + 2 * thread, plan.block_n, 2, true, true};
}

// The row of Z that is the first of a warp's.
__device__ __forceinline__ int first_row(const WgmmaTile& tile, int warp_index) {
    return tile.m0 + 16 * warp_index;
}

// The place of a tile in `spill`.
template <WgmmaPlan plan>
__device__ __forceinline__ AccumulatorMemory<plan> spill_memory(const WgmmaArguments& args,
                                                                const WgmmaTile& tile, int thread) {
    using Memory = AccumulatorMemory<plan>;
    const int lane = thread % kWarp, row0 = first_row(tile, thread / kWarp);
    const bool vectorized =
        args.spill_pairs_n && row0 + 15 < args.m && tile.n0 + plan.block_n <= args.n;
    const int row =
        row0 + (vectorized ? 2 * lane / Memory::kAccessColumns : fragment_row<plan>(lane, 0));
    const int second = row0 + fragment_row<plan>(lane, 1);
    const int column = tile.n0 + (vectorized ? 2 * lane % Memory::kAccessColumns : 2 * (lane % 4));
    const int64 product = stored_product(args, tile);
    return {args.spill + product * args.spill_stride_batch + row * args.spill_stride_m +
                column * args.spill_stride_n,
            args.n - column, (row < args.m) + (second < args.m), vectorized, false};
}

// The memory to which the accumulators of a work item spill. Those of a partial tile spill to its
// slot, where they end in any case.
template <WgmmaPlan plan>
__device__ __forceinline__ AccumulatorMemory<plan> accumulator_memory(const WgmmaArguments& args,
                                                                      const WgmmaWork& work) {
    const int thread = thread_index();
    return work.stores_partial ? partial_memory<plan>(args, block_index(), thread)
                               : spill_memory<plan>(args, work.tile, thread);
}

// Stores, or adds to what this thread has stored there before. L2 does the addition (`red`), so the
// thread does not wait. It is predicated and not branched, which is less code to compile.
__device__ __forceinline__ void store_or_reduce(float2* at, float2 x, bool reduce) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %3, 0;\n"
        "@p red.relaxed.gpu.global.add.v2.f32 [%0], {%1, %2};\n"
        "@!p st.global.cg.v2.f32 [%0], {%1, %2};\n}" ::"l"(at),
        "f"(x.x), "f"(x.y), "r"(int(reduce))
        : "memory");
}

__device__ __forceinline__ void store_or_reduce(float2* at, float2 x, float2 y, bool reduce) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %5, 0;\n"
        "@p red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};\n"
        "@!p st.global.cg.v4.f32 [%0], {%1, %2, %3, %4};\n}" ::"l"(at),
        "f"(x.x), "f"(x.y), "f"(y.x), "f"(y.y), "r"(int(reduce))
        : "memory");
}

// Adds what lies in memory to the accumulators, with many loads in flight: those of 32 columns at
// least.
template <WgmmaPlan plan>
__device__ __forceinline__ void add_from_memory(const WgmmaArguments& args,
                                                const AccumulatorMemory<plan>& memory,
                                                float (&re)[plan.block_n / 2],
                                                float (&im)[plan.block_n / 2]) {
    using Memory = AccumulatorMemory<plan>;
    if (memory.vectorized) {
#pragma unroll
        for (int first = 0; first < Memory::kVectors; first += Memory::kVectorsAtOnce) {
#pragma unroll
            for (int q = first; q < min(first + Memory::kVectorsAtOnce, Memory::kVectors); ++q) {
                const float4 x = __ldcg(reinterpret_cast<const float4*>(memory.vector_at(args, q)));
                re[2 * q] += x.x;
                im[2 * q] += x.y;
                re[2 * q + 1] += x.z;
                im[2 * q + 1] += x.w;
            }
        }
        return;
    }
#pragma unroll
    for (int first = 0; first < plan.block_n; first += 32) {
        if (first >= memory.columns) break;
#pragma unroll
        for (int i = first / 2; i < min(first + 32, plan.block_n) / 2; ++i) {
            const int j = i / 4, h = i / 2 % 2, e = i % 2;
            const float2 x = load_or_zero<CacheGlobalLevel>(memory.at(args, j, h, e),
                                                            memory.inside(j, h, e));
            re[i] += x.x;
            im[i] += x.y;
        }
    }
}
