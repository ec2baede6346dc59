// Fused packing: the idle warps of the producer warpgroup pack Y while the consumers multiply, so
// that the product needs no packing kernel before it. The producer thread waits for the planes of a
// k-tile before it loads them.
//
// A panel is what one column of tiles reads of Y: block_n rows by all k. Warps of any block write
// its planes in k-blocks of 256, in the order in which tiles need them, and count the units of each
// k-block. Packing stays at most `pack_maximum_lead` k-blocks ahead of the producer of its own
// block, so that planes are still in L2 when they are read. It waits for no other block, so every
// k-block that a producer waits for is packed in the end.
#pragma once
#include "pack_kernel.cuh"
#include "sm90_scheduler.cuh"

constexpr int kPackBlockK = 256;              // k of a k-block
constexpr int kPackWarps = 3;                 // of a block
constexpr uint32 kProducerDone = 0x7fffffff;  // a position after all k-blocks
// Between two reads of the producer's position, which would otherwise occupy shared memory that
// the consumers read.
constexpr uint32 kPollNanoseconds = 400;

// Fused packing neither scales nor reads 16-bit sources.
template <WgmmaPlan plan>
constexpr PackPlan kFusedPackPlan{.operand = plan.operand,
                                  .terms = plan.terms,
                                  .roundings = {plan.roundings[0], plan.roundings[1]},
                                  .scaled = false,
                                  .half_source = false,
                                  .k_major = true,
                                  .vector = 2,
                                  .rows = 64};

// Publishes the position of the producer, in k-blocks of its work items, to the packing warps of
// its block.
__device__ __forceinline__ void publish_producer_position(uint32 address, uint32 k_blocks) {
    asm volatile("{\n.reg .u32 before;\natom.shared.exch.b32 before, [%0], %1;\n}\n" ::"r"(address),
                 "r"(k_blocks)
                 : "memory");
}

// Waits until the producer is at `k_blocks` or further. One warp.
__device__ __forceinline__ void wait_for_producer(uint32 address, uint32 k_blocks) {
    if (threadIdx.x % kWarp == 0) {
        while (true) {
            uint32 position;
            asm volatile("atom.shared.or.b32 %0, [%1], 0;"
                         : "=r"(position)
                         : "r"(address)
                         : "memory");
            if (position >= k_blocks) break;
            __nanosleep(kPollNanoseconds);
        }
    }
    __syncwarp();
}

// The number of panels of Y, and of k-blocks in each.
template <WgmmaPlan plan>
struct Panels {
    uint32 per_product, total, k_blocks;

    __device__ __forceinline__ explicit Panels(const WgmmaArguments& args)
        : per_product((opaque(args.n) + plan.block_n - 1) / plan.block_n),
          total(per_product * (args.y_batched ? args.batches : 1)),
          k_blocks((opaque(args.y_pitch) + kPackBlockK - 1) / kPackBlockK) {}
};

// The k-block of its tiles at which a producer of a triangle first waits for `k_block` of the
// `count` panels from `first` on, or one before: tiles of the same wave may read the panels that
// follow, so all of these are packed before a producer waits for the first k of those.
template <WgmmaPlan plan>
__device__ __forceinline__ uint32 needed_of_triangle(const WgmmaArguments& args,
                                                     const Panels<plan>& panels, uint32 first,
                                                     uint32 count, uint32 k_block) {
    const uint32 rows = panels.per_product, tiles = rows * (rows + 1) / 2;
    auto wave_of = [&](uint32 panel) {
        const uint32 product = panel / rows * args.split_k_slices;
        if (has_own_wave(tiles, gridDim.x)) return product;
        return (product * tiles + first_tile_of_row(panel % rows, raster_group_m(rows))) /
               gridDim.x;
    };
    return min(wave_of(first) * panels.k_blocks + k_block,
               wave_of(first + count) * panels.k_blocks);
}

// The first `valid` of two neighbouring k, and zeros. Loads are predicated and not branched, so all
// of a lane are in flight at once. Y is read once, so it leaves L2 first.
__device__ __forceinline__ float4 load_k_pair(const float2* from, int valid) {
    float4 x;
    asm volatile(
        "{\n.reg .pred two, one;\nsetp.ge.s32 two, %5, 2;\nsetp.eq.s32 one, %5, 1;\n"
        "mov.b32 %0, 0;\nmov.b32 %1, 0;\nmov.b32 %2, 0;\nmov.b32 %3, 0;\n"
        "@two ld.global.cs.v4.f32 {%0, %1, %2, %3}, [%4];\n"
        "@one ld.global.cs.v2.f32 {%0, %1}, [%4];\n}"
        : "=&f"(x.x), "=&f"(x.y), "=&f"(x.z), "=&f"(x.w)
        : "l"(from), "r"(valid));
    return x;
}

// One warp packs a unit: `pack_rows` rows of a panel by one k-block. Two lanes share 16 k of a row:
// one writes the even k of each eight, the other the odd ones, so that together they load and store
// whole sectors.
template <WgmmaPlan plan>
__device__ __forceinline__ void pack_unit(const WgmmaArguments& args, uint32 panels_per_product,
                                          uint32 panel, int k_block, int unit_row) {
    using Vector = PlaneVector<kFusedPackPlan<plan>>;
    static_assert(Vector::kElements == 4 && plan.terms == 1, "16 bytes of a plane must be four k");
    const int64 batch = panel / panels_per_product, plane = int64(args.n) * args.y_pitch;
    const int row0 = panel % panels_per_product * plan.block_n + unit_row * args.pack_rows;
    const int k0 = k_block * kPackBlockK, groups = min(kPackBlockK, args.y_pitch - k0) / 8;
    // An even number, because the pitch is a multiple of 16.
    const int count = min(args.pack_rows, args.n - row0) * groups;
    // i / groups is i * reciprocal >> 16 for an i below 65536 / groups; this one is below 288.
    const uint32 reciprocal = 65536 / groups + 1;
    const int odd = threadIdx.x % 2;
#pragma unroll 1
    for (int first = 0; first < count; first += kWarp) {
        const int i = first + threadIdx.x % kWarp, line = i * reciprocal >> 16;
        const int row = row0 + line, k = k0 + (i - line * groups) / 2 * 16 + 2 * odd;
        const int left = i < count ? args.k - k : 0;
        const float2* from =
            args.y_source + batch * args.y_stride_batch + row * args.y_stride_n + k;
        float4 x[4];  // two k of every four
#pragma unroll
        for (int j = 0; j < 4; ++j) x[j] = load_k_pair(from + 4 * j, left - 4 * j);
        const int64 at = 2 * batch * plane + int64(row) * args.y_pitch + k + 2 * odd;
#pragma unroll
        for (int eight = 0; eight < 4; ++eight) {  // eight k of the real or the imaginary plane
            float own[Vector::kElements];
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const float4 pair = x[eight / 2 * 2 + j];
                float one = eight % 2 ? pair.y : pair.x, two = eight % 2 ? pair.w : pair.z;
                if (eight % 2 && args.pack_conjugate) {
                    one = -one;
                    two = -two;
                }
                const float others = __shfl_xor_sync(0xffffffffu, odd ? one : two, 1);
                own[2 * j] = odd ? others : one;
                own[2 * j + 1] = odd ? two : others;
            }
            if (i >= count) continue;
            write_terms<kFusedPackPlan<plan>, true>(own, args.y_planes,
                                                    at + eight / 2 * 8 + eight % 2 * plane);
        }
    }
}

// Packs the units of this warp, wave of panels after wave. `producer_position` is the word where
// the producer publishes its position.
template <WgmmaPlan plan>
__device__ __forceinline__ void run_fused_pack(const WgmmaArguments& args,
                                               uint32 producer_position) {
    uint32 unit = blockIdx.x * kPackWarps + threadIdx.x / kWarp % 4 - 1;
#pragma unroll 1
    while (true) {
        // Derived again for each unit: no registers are left to keep it in.
        const Panels<plan> panels(args);
        const uint32 units_per_k_block = plan.block_n / args.pack_rows;
        if (unit >= panels.total * panels.k_blocks * units_per_k_block) return;
        const uint32 wave_units = args.panels_per_wave * panels.k_blocks * units_per_k_block;
        const uint32 tiles_m = (opaque(args.m) + plan.block_m() - 1) / plan.block_m();
        const uint32 height = min(tiles_m, raster_group_m(panels.per_product));
        const uint32 first = unit / wave_units * args.panels_per_wave;
        const uint32 wave_unit = unit % wave_units;
        const uint32 count = min(uint32(args.panels_per_wave), panels.total - first);
        const uint32 unit_row = wave_unit % units_per_k_block,
                     panel_k_block = wave_unit / units_per_k_block;
        const uint32 k_block = panel_k_block / count, panel = first + panel_k_block % count;
        // The first tile that reads the first panel of this wave, and where its producer is then.
        const uint32 tile =
            first / panels.per_product * args.split_k_slices * tiles_m * panels.per_product +
            first % panels.per_product * height;
        uint32 needed = tile / gridDim.x * panels.k_blocks + k_block;
        if constexpr (plan.triangle)
            needed = needed_of_triangle<plan>(args, panels, first, count, k_block);
        wait_for_producer(producer_position,
                          max(needed, uint32(args.pack_maximum_lead)) - args.pack_maximum_lead);
        pack_unit<plan>(args, panels.per_product, panel, k_block, unit_row);
        // Makes the planes visible to TMA of any multiprocessor.
        asm volatile("fence.proxy.async;" ::: "memory");
        __syncwarp();
        if (threadIdx.x % kWarp == 0) {
            uint32* count_address = args.packed_counts + panel * panels.k_blocks + k_block;
            asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(count_address) : "memory");
        }
        unit += gridDim.x * kPackWarps;
    }
}

// Waits until a k-block of a panel is packed.
template <WgmmaPlan plan>
__device__ __forceinline__ void wait_for_packed(const WgmmaArguments& args, uint32 panel,
                                                int k_block) {
    const Panels<plan> panels(args);
    const uint32 units_per_k_block = plan.block_n / args.pack_rows;
    const uint32* count_address = args.packed_counts + panel * panels.k_blocks + k_block;
    uint32 packed_units = 0;
    while (packed_units < units_per_k_block) {
        asm volatile("ld.acquire.gpu.u32 %0, [%1];"
                     : "=r"(packed_units)
                     : "l"(count_address)
                     : "memory");
    }
    asm volatile("fence.proxy.async;" ::: "memory");
}

// The last block to finish resets the counters for the next launch. Called by the producer warp
// after its first lane has issued all loads.
template <WgmmaPlan plan>
__device__ __forceinline__ void reset_pack_counts(const WgmmaArguments& args) {
    const Panels<plan> panels(args);
    const uint32 count = panels.total * panels.k_blocks;
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
