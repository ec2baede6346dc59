// The column operand packed while others multiply: by the warps of the loading warpgroup that do
// not load.
//
// A panel is what one column of tiles reads: block_n lines by all k. Its planes are written 256 k,
// a chunk, at a time, by warps of any block, in the order in which tiles want them, and
// counted; who loads a stage waits for the count of its chunk. Panels that the same turn of tiles
// wants first form a round. Packing stays a few chunks ahead of its block's loading, so that planes
// are still in the second-level cache when they are read. It never waits for another block, so that
// loading always goes on.
#pragma once
#include "pack_kernel.cuh"
#include "sm90_scheduler.cuh"

constexpr int kPackChunkK = 256;  // k that are counted together
constexpr int kPackWarps = 3;     // of a block
constexpr uint32 kProducerDone = 0x7fffffff;

template <WgmmaPlan plan>
constexpr PackPlan kFusedPackPlan{
    plan.operand, plan.terms, {plan.roundings[0], plan.roundings[1]}, false, false, true, 2, 64};

// Leaves where loading is, counted in chunks of its tiles, where the block's packing warps see it.
__device__ __forceinline__ void publish_producer_position(uint32 address, uint32 chunks) {
    asm volatile("{\n.reg .u32 before;\natom.shared.exch.b32 before, [%0], %1;\n}\n" ::"r"(address),
                 "r"(chunks)
                 : "memory");
}

// Returns when loading is there or further. One warp.
__device__ __forceinline__ void wait_for_producer(uint32 address, uint32 chunks) {
    if (threadIdx.x % kWarp == 0) {
        while (true) {
            uint32 position;
            asm volatile("atom.shared.or.b32 %0, [%1], 0;"
                         : "=r"(position)
                         : "r"(address)
                         : "memory");
            if (position >= chunks) break;
            __nanosleep(400);
        }
    }
    __syncwarp();
}

template <WgmmaPlan plan>
struct Panels {
    uint32 per_product, total, chunks;

    __device__ __forceinline__ explicit Panels(const WgmmaArguments& args)
        : per_product((opaque(args.n) + plan.block_n - 1) / plan.block_n),
          total(per_product * (args.y_batched ? args.batches : 1)),
          chunks((opaque(args.y_pitch) + kPackChunkK - 1) / kPackChunkK) {}
};

// Two neighbouring k, zeros from `inside` on. They are read once.
__device__ __forceinline__ float4 load_k_pair(const float2* from, int inside) {
    if (inside >= 2) return __ldcs(reinterpret_cast<const float4*>(from));
    float4 x = {0.0f, 0.0f, 0.0f, 0.0f};
    if (inside == 1) {
        const float2 last = __ldcs(from);
        x.x = last.x;
        x.y = last.y;
    }
    return x;
}

// One warp packs `pack_lines` lines of a panel by 256 k, two lanes 16 k of a row: one of them
// writes the even k of each eight, the other the odd ones, so that together they read and write
// whole sectors.
template <WgmmaPlan plan>
__device__ __forceinline__ void pack_unit(const WgmmaArguments& args, uint32 panels_per_product,
                                          uint32 panel, int chunk, int unit_row) {
    using Vector = PlaneVector<kFusedPackPlan<plan>>;
    static_assert(Vector::kElements == 4 && plan.terms == 1, "16 bytes are half of eight k");
    const int64 batch = panel / panels_per_product, plane = int64(args.n) * args.y_pitch;
    const int row0 = panel % panels_per_product * plan.block_n + unit_row * args.pack_rows;
    const int k0 = chunk * kPackChunkK, groups = min(kPackChunkK, args.y_pitch - k0) / 8;
    const int count = min(args.pack_rows, args.n - row0) * groups;  // even, as a pitch is of 16
    const int odd = threadIdx.x % 2;
#pragma unroll 1
    for (int first = 0; first < count; first += kWarp) {
        const int i = first + threadIdx.x % kWarp;
        const int row = row0 + i / groups, k = k0 + i % groups / 2 * 16 + 2 * odd;
        const int left = i < count ? args.k - k : 0;
        const float2* from =
            args.y_source + batch * args.y_stride_batch + row * args.y_stride_n + k;
        float4 x[4];  // two k of every four
#pragma unroll
        for (int j = 0; j < 4; ++j) x[j] = load_k_pair(from + 4 * j, left - 4 * j);
        const int64 at = 2 * batch * plane + int64(row) * args.y_pitch + k + 2 * odd;
#pragma unroll
        for (int half = 0; half < 4; ++half) {  // eight k, the real or the imaginary parts
            float own[Vector::kElements];
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
            write_terms<kFusedPackPlan<plan>, true>(own, args.y_planes,
                                                    at + half / 2 * 8 + half % 2 * plane);
        }
    }
}

// Packs this warp's share, round after round. `loading` is where the block's loading thread leaves
// how far it is.
template <WgmmaPlan plan>
__device__ __forceinline__ void run_fused_pack(const WgmmaArguments& args,
                                               uint32 producer_position) {
    uint32 unit = blockIdx.x * kPackWarps + threadIdx.x / kWarp % 4 - 1;
#pragma unroll 1
    while (true) {
        // All anew for each unit: there are no registers to keep it in.
        const Panels<plan> panels(args);
        const uint32 units_per_chunk = plan.block_n / args.pack_rows;
        if (unit >= panels.total * panels.chunks * units_per_chunk) return;
        const uint32 wave_units = args.panels_per_wave * panels.chunks * units_per_chunk;
        const uint32 tiles_m = (opaque(args.m) + plan.block_m() - 1) / plan.block_m();
        const uint32 height = min(tiles_m, raster_group_m(panels.per_product));
        const uint32 first = unit / wave_units * args.panels_per_wave, inside = unit % wave_units;
        const uint32 count = min(uint32(args.panels_per_wave), panels.total - first);
        const uint32 unit_row = inside % units_per_chunk, panel_chunk = inside / units_per_chunk;
        const uint32 chunk = panel_chunk / count, panel = first + panel_chunk % count;
        // The tile that wants the round's first panel, and how far who loads it is then.
        const uint32 tile =
            first / panels.per_product * args.split_k_slices * tiles_m * panels.per_product +
            first % panels.per_product * height;
        const uint32 needed = tile / gridDim.x * panels.chunks + chunk;
        wait_for_producer(producer_position,
                          max(needed, uint32(args.pack_maximum_lead)) - args.pack_maximum_lead);
        pack_unit<plan>(args, panels.per_product, panel, chunk, unit_row);
        // The copy engine of any multiprocessor may read it.
        asm volatile("fence.proxy.async;" ::: "memory");
        __syncwarp();
        if (threadIdx.x % kWarp == 0) {
            uint32* count_address = args.packed_counts + panel * panels.chunks + chunk;
            asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(count_address) : "memory");
        }
        unit += gridDim.x * kPackWarps;
    }
}

// Returns when a panel's planes of this chunk of k lie there.
template <WgmmaPlan plan>
__device__ __forceinline__ void wait_for_packed(const WgmmaArguments& args, uint32 panel,
                                                int chunk) {
    const Panels<plan> panels(args);
    const uint32 units_per_chunk = plan.block_n / args.pack_rows;
    const uint32* count_address = args.packed_counts + panel * panels.chunks + chunk;
    uint32 packed_units = 0;
    while (packed_units < units_per_chunk) {
        asm volatile("ld.acquire.gpu.u32 %0, [%1];"
                     : "=r"(packed_units)
                     : "l"(count_address)
                     : "memory");
    }
    asm volatile("fence.proxy.async;" ::: "memory");
}

// The last block whose loading is over leaves zeros for the next launch. One warp, of which
// the first lane has loaded.
template <WgmmaPlan plan>
__device__ __forceinline__ void reset_pack_counts(const WgmmaArguments& args) {
    const Panels<plan> panels(args);
    const uint32 count = panels.total * panels.chunks;
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
