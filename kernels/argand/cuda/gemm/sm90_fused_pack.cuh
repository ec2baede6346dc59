// The column operand packed while others multiply: by the warps of the loading warpgroup that do
// not load.
//
// A strip is what one column of tiles reads: block_n lines by all k. Its planes are written 256 k,
// a chunk, at a time, by warps of any block, in the order in which tiles want them, and counted;
// who loads a stage waits for the count of its chunk. Strips that the same turn of tiles wants
// first form a round. Packing stays a few chunks ahead of its block's loading, so that planes are
// still in the second-level cache when they are read. It never waits for another block, so that
// loading always goes on.
#pragma once
#include "pack_kernel.cuh"
#include "sm90_scheduler.cuh"

constexpr int kAsideDepth = 256;  // k that are counted together
constexpr int kAsideWarps = 3;    // of a block
constexpr uint32 kNoMoreChunks = 0x7fffffff;

template <WgmmaPlan plan>
constexpr PackPlan kAsidePlan{
    plan.operand, plan.terms, {plan.roundings[0], plan.roundings[1]}, false, false, true, 2, 64};

// Leaves where loading is, counted in chunks of its tiles, where the block's packing warps see it.
__device__ __forceinline__ void tell_loading(uint32 place, uint32 chunks) {
    asm volatile("{\n.reg .u32 before;\natom.shared.exch.b32 before, [%0], %1;\n}\n" ::"r"(place),
                 "r"(chunks)
                 : "memory");
}

// Returns when loading is there or further. One warp.
__device__ __forceinline__ void wait_for_loading(uint32 place, uint32 chunks) {
    if (threadIdx.x % kWarp == 0) {
        while (true) {
            uint32 now;
            asm volatile("atom.shared.or.b32 %0, [%1], 0;" : "=r"(now) : "r"(place) : "memory");
            if (now >= chunks) break;
            __nanosleep(400);
        }
    }
    __syncwarp();
}

template <WgmmaPlan plan>
struct Strips {
    uint32 a_product, total, chunks;

    __device__ __forceinline__ explicit Strips(const WgmmaArguments& args)
        : a_product((opaque(args.n) + plan.block_n - 1) / plan.block_n),
          total(a_product * (args.y_batched ? args.batches : 1)),
          chunks((opaque(args.y_pitch) + kAsideDepth - 1) / kAsideDepth) {}
};

// Two neighbouring k, zeros from `inside` on. They are read once.
__device__ __forceinline__ float4 read_two_k(const float2* from, int inside) {
    if (inside >= 2) return __ldcs(reinterpret_cast<const float4*>(from));
    float4 x = {0.0f, 0.0f, 0.0f, 0.0f};
    if (inside == 1) {
        const float2 last = __ldcs(from);
        x.x = last.x;
        x.y = last.y;
    }
    return x;
}

// One warp packs `pack_lines` lines of a strip by 256 k, two lanes 16 k of a line: one of them
// writes the even k of each eight, the other the odd ones, so that together they read and write
// whole sectors.
template <WgmmaPlan plan>
__device__ __forceinline__ void pack_unit(const WgmmaArguments& args, uint32 strips, uint32 strip,
                                          int chunk, int part) {
    using Piece = Chunk<kAsidePlan<plan>>;
    static_assert(Piece::kCount == 4 && plan.terms == 1, "16 bytes are half of eight k");
    const int64 batch = strip / strips, plane = int64(args.n) * args.y_pitch;
    const int line0 = strip % strips * plan.block_n + part * args.pack_rows;
    const int k0 = chunk * kAsideDepth, groups = min(kAsideDepth, args.y_pitch - k0) / 8;
    const int count = min(args.pack_rows, args.n - line0) * groups;  // even, as a pitch is of 16
    const int odd = threadIdx.x % 2;
#pragma unroll 1
    for (int first = 0; first < count; first += kWarp) {
        const int i = first + threadIdx.x % kWarp;
        const int line = line0 + i / groups, k = k0 + i % groups / 2 * 16 + 2 * odd;
        const int left = i < count ? args.k - k : 0;
        const float2* from =
            args.y_source + batch * args.y_stride_batch + line * args.y_stride_n + k;
        float4 x[4];  // two k of every four
#pragma unroll
        for (int j = 0; j < 4; ++j) x[j] = read_two_k(from + 4 * j, left - 4 * j);
        const int64 at = 2 * batch * plane + int64(line) * args.y_pitch + k + 2 * odd;
#pragma unroll
        for (int half = 0; half < 4; ++half) {  // eight k, the real or the imaginary parts
            float own[Piece::kCount];
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const float4 pair = x[half / 2 * 2 + j];
                float one = half % 2 ? pair.y : pair.x, two = half % 2 ? pair.w : pair.z;
                if (half % 2 && args.conjugate_y) {
                    one = -one;
                    two = -two;
                }
                const float others = __shfl_xor_sync(0xffffffffu, odd ? one : two, 1);
                own[2 * j] = odd ? others : one;
                own[2 * j + 1] = odd ? two : others;
            }
            if (i >= count) continue;
            write_terms<kAsidePlan<plan>, true>(own, args.y_planes,
                                                at + half / 2 * 8 + half % 2 * plane);
        }
    }
}

// Packs this warp's share, round after round. `loading` is where the block's loading thread leaves
// how far it is.
template <WgmmaPlan plan>
__device__ __forceinline__ void pack_aside(const WgmmaArguments& args, uint32 loading) {
    uint32 unit = blockIdx.x * kAsideWarps + threadIdx.x / kWarp % 4 - 1;
#pragma unroll 1
    while (true) {
        // All anew for each unit: there are no registers to keep it in.
        const Strips<plan> strips(args);
        const uint32 parts = plan.block_n / args.pack_rows;
        if (unit >= strips.total * strips.chunks * parts) return;
        const uint32 round_units = args.panels_per_wave * strips.chunks * parts;
        const uint32 row_tiles = (opaque(args.m) + plan.block_m() - 1) / plan.block_m();
        const uint32 height = min(row_tiles, raster_group_m(strips.a_product));
        const uint32 first = unit / round_units * args.panels_per_wave, inside = unit % round_units;
        const uint32 count = min(uint32(args.panels_per_wave), strips.total - first);
        const uint32 part = inside % parts, which = inside / parts;
        const uint32 chunk = which / count, strip = first + which % count;
        // The tile that wants the round's first strip, and how far who loads it is then.
        const uint32 tile =
            first / strips.a_product * args.split_k_slices * row_tiles * strips.a_product +
            first % strips.a_product * height;
        const uint32 wanted = tile / gridDim.x * strips.chunks + chunk;
        wait_for_loading(loading,
                         max(wanted, uint32(args.pack_maximum_lead)) - args.pack_maximum_lead);
        pack_unit<plan>(args, strips.a_product, strip, chunk, part);
        // The copy engine of any multiprocessor may read it.
        asm volatile("fence.proxy.async;" ::: "memory");
        __syncwarp();
        if (threadIdx.x % kWarp == 0) {
            uint32* counted = args.packed_counts + strip * strips.chunks + chunk;
            asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counted) : "memory");
        }
        unit += gridDim.x * kAsideWarps;
    }
}

// Returns when a strip's planes of this chunk of k lie there.
template <WgmmaPlan plan>
__device__ __forceinline__ void wait_for_planes(const WgmmaArguments& args, uint32 strip,
                                                int chunk) {
    const Strips<plan> strips(args);
    const uint32 parts = plan.block_n / args.pack_rows;
    const uint32* counted = args.packed_counts + strip * strips.chunks + chunk;
    uint32 there = 0;
    while (there < parts) {
        asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(there) : "l"(counted) : "memory");
    }
    asm volatile("fence.proxy.async;" ::: "memory");
}

// The last block whose loading is over leaves zeros for the next launch. One warp, of which the
// first lane has loaded.
template <WgmmaPlan plan>
__device__ __forceinline__ void leave_counters(const WgmmaArguments& args) {
    const Strips<plan> strips(args);
    const uint32 count = strips.total * strips.chunks;
    uint32* finished = args.packed_counts + count;
    uint32 before = 0;
    __syncwarp();
    if (threadIdx.x % kWarp == 0) {
        __threadfence();
        before = atomicAdd(finished, 1u);
        __threadfence();
    }
    before = __shfl_sync(0xffffffffu, before, 0);
    if (before + 1 < gridDim.x) return;
    for (uint32 i = threadIdx.x % kWarp; i <= count; i += kWarp) args.packed_counts[i] = 0;
}
