// The Hankel kernel: transforms of a prime length by one folded product each, with rows and columns
// in the order of powers of a generator, by wgmma (sm_90a). Tiles come from the tile ring and
// results overwrite them, as in the dense kernel.
//
// With k = g^i and n = g^j modulo a prime L, the folded matrices cos(2 pi k n / L) and sin(...)
// depend on i + j alone: they are Hankel matrices, also in units of core matrices of 8 x 8. The
// table is therefore a sequence of core matrices, not a matrix of them, and fits in shared memory
// beside large tiles of transforms. g^i takes all residues up to the sign, in which e is even and o
// is odd.
//
// The real and the imaginary part of a transform are rows of wgmma that lie 8 apart, so that one
// lane has both. A tile of 32 transforms fills the 64 rows; tiles of 16 transforms are
// repeated in two copies of the rows, each of which computes half of the columns: with s columns
// per copy, column j + s is column j of the rows that are read at k = g^(i - s).
#pragma once
#include "hankel_mainloop.cuh"

// Absmax of the lane's transform; each of absmax_warps() warps takes a part of it. `group_scratch`
// has eight values, one per transform, for each warp of the group.
template <HankelPlan plan>
__device__ __forceinline__ float transform_absmax(const float2* line, float* group_scratch,
                                                  const TileGroup<plan.warps()>& group) {
    constexpr int kAbsmaxWarps = plan.absmax_warps(), kWarpStride = plan.warps() / kAbsmaxWarps;
    const int t = group.lane % 4, g = group.lane / 4;
    float absmax = line_absmax<plan.length, kAbsmaxWarps>(line, t, group.warp / kWarpStride);
    if constexpr (kAbsmaxWarps > 1) {
        if (t == 0) group_scratch[8 * group.warp + g] = absmax;
        group.sync();
#pragma unroll
        for (int i = 0; i < kAbsmaxWarps; ++i)
            absmax =
                fmaxf(absmax, group_scratch[8 * (group.warp % kWarpStride + i * kWarpStride) + g]);
    }
    return absmax;
}

// The part that a lane has in its group's tile.
template <HankelPlan plan>
struct HankelLane {
    int warpgroup;  // of the group; each has its own columns
    int row_copy;   // of the 64 rows; each has its own columns
    int t;          // lane of its quad, which share a transform
    float2* line;   // the transform

    static __device__ __forceinline__ HankelLane of(const TileGroup<plan.warps()>& group,
                                                    float2* tile) {
        const int warp = group.warp % 4, warpgroup = group.warp / 4;
        const int g = group.lane / 4, t = group.lane % 4;
        const int row_copy = warp * plan.row_copies / 4;
        // Four lines that are read at a time lie 4 lines apart, where odd lengths have different
        // banks.
        const int line_index = 4 * (g % 4) + (plan.row_copies == 1 ? warp + g / 4 * 16
                                                                   : warp % 2 * 2 + g / 4);
        return {warpgroup, row_copy, t, tile + line_index * plan.layout().pitch};
    }
};

// The epilogue of a lane: its columns n of P and Q become X_n and X_(L-n), which overwrite the
// transform at the byte offsets of g^n and of its mirror image.
template <HankelPlan plan>
__device__ __forceinline__ void store_columns(const DftArguments& args, const uint32* offsets,
                                              const HankelAccumulator<plan>& accumulator,
                                              const HankelLane<plan>& lane, float2 x0,
                                              float descale) {
    constexpr int kColumns = plan.columns();
    unsigned char* const bytes = reinterpret_cast<unsigned char*>(lane.line);
    const int column = lane.warpgroup * kColumns;
    const int first_column = lane.row_copy * plan.columns_per_copy();
    const uint32* const scatter_offsets =
        offsets + (plan.columns_before_last_copy() + first_column + column) / 2 + lane.t;
    const int columns_left =
        min(plan.columns_per_copy(), plan.half_length() - first_column) - column;
    const float sign = args.sign;
    // The bias compensation of the table falls along a row: the scale of each eight columns
    // corrects it.
    const float scale_step = 8 * args.bias_step * args.scale;
    const auto& p = accumulator.p;
    const auto& q = accumulator.q;
    uint32 offset_pairs[kColumns / 8];  // before any store, which could alias them
#pragma unroll
    for (int n = 0; n < kColumns / 8; ++n) offset_pairs[n] = scatter_offsets[4 * n];
#pragma unroll
    for (int n = 0; n < kColumns / 8; ++n) {
        const int eights_after = plan.warpgroups * kColumns / 8 - 1 - column / 8 - n;
        const float scale_of_eight =
            fmaf(scale_step, static_cast<float>(-eights_after), args.scale);
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            const uint32 at = c ? offset_pairs[n] >> 16 : offset_pairs[n] & 0xffffu;
            const int i = 4 * n + c;
            const float re = sign * q[i], im = sign * q[i + 2];
            const float2 direct = {fmaf(p[i] + re, scale_of_eight, x0.x) * descale,
                                   fmaf(p[i + 2] - im, scale_of_eight, x0.y) * descale};
            const float2 mirrored = {fmaf(p[i] - re, scale_of_eight, x0.x) * descale,
                                     fmaf(p[i + 2] + im, scale_of_eight, x0.y) * descale};
            if (8 * n + 2 * lane.t + c < columns_left) {
                *reinterpret_cast<float2*>(bytes + at) = direct;
                *reinterpret_cast<float2*>(bytes + (8 * plan.length - at)) = mirrored;
            }
        }
    }
}

// Transforms a tile of the group in place. `shared` begins with the table and the offsets;
// `scratch` has eight values for each warp of the block. `refill` loads the tile after next, once
// every warp has found its scale.
template <HankelPlan plan, typename Refill>
__device__ __forceinline__ void transform_tile(const DftArguments& args, unsigned char* shared,
                                               float* scratch, float2* tile, Refill refill) {
    const auto group = TileGroup<plan.warps()>::current();
    const auto lane = HankelLane<plan>::of(group, tile);
    float2* const line = lane.line;
    float scale = 1.0f, descale = 1.0f;
    if constexpr (plan.precision.scaled) {
        float* const group_scratch = scratch + group.index * plan.warps() * 8;
        const int exponent = transform_exponent<plan.precision.operand>(
            transform_absmax<plan>(line, group_scratch, group));
        scale = power_of_two(exponent);
        descale = power_of_two(-exponent);
    }
    refill();
    const uint32* const offsets = reinterpret_cast<uint32*>(shared + plan.table_bytes());
    const int columns_after =
        plan.columns_before_last_copy() - lane.row_copy * plan.columns_per_copy();
    HankelMainloop<plan> mainloop;
    mainloop.line = reinterpret_cast<unsigned char*>(line);
    mainloop.gather_offsets = offsets + columns_after / 2 + lane.t;
    mainloop.table = shared_address(shared) + lane.warpgroup * (plan.columns() / 8) * 128;
    mainloop.t = lane.t;
    mainloop.scale = scale;
    mainloop.run();
    const float2 x = line[0];
    const float2 x0 = {x.x * scale * args.alternate_scale, x.y * scale * args.alternate_scale};
    mainloop.finish(args.bias_step);
    // The lines have been read: results overwrite them.
    if constexpr (plan.warps() == 4 && plan.row_copies == 1) {
        __syncwarp();
    } else {
        group.sync();
    }
    const float2 even_sum = mainloop.even_sum;
    if (lane.warpgroup == 0 && lane.row_copy == 0 && lane.t == 0)
        line[0] = {fmaf(even_sum.x, args.alternate_scale, x0.x) * descale,
                   fmaf(even_sum.y, args.alternate_scale, x0.y) * descale};
    store_columns<plan>(args, offsets, mainloop.accumulator, lane, x0, descale);
}

// The kernel. Shared memory: the table; the byte offsets; the tile buffers; for each buffer an
// mbarrier of 8 bytes, then the index of its tile; the absmax scratch.
template <HankelPlan plan>
__device__ __forceinline__ void dft_hankel(const DftArguments& args) {
    constexpr TileLayout layout = plan.layout();
    constexpr int kBuffers = plan.relays_buffers() ? plan.buffers : plan.buffers / plan.groups;
    using Ring = ScheduledTileRing<plan.warps(), kBuffers, plan.wide_copies, layout>;
    static_assert(!plan.relays_buffers() || (Ring::kTmaLoads && plan.buffers > plan.groups),
                  "bulk copies load the tiles of other groups");
    extern __shared__ __align__(128) unsigned char shared[];
    const auto group = TileGroup<plan.warps()>::current();
    unsigned char* const memory = shared + plan.table_bytes() + plan.offset_bytes();
    unsigned char* const barriers = memory + plan.buffers * Ring::kBytes;
    volatile int* const tile_of_buffer = reinterpret_cast<int*>(barriers + plan.buffers * 8);
    float* const scratch = reinterpret_cast<float*>(barriers + plan.buffers * 16);
    const int first = plan.relays_buffers() ? 0 : group.index * kBuffers;
    const Ring ring{
        {group,
         {const_cast<float2*>(args.x), layout.lines * args.x_stride, args.x_stride, args.rows},
         {args.out, layout.lines * args.out_stride, args.out_stride, args.rows},
         reinterpret_cast<float2*>(memory + first * Ring::kBytes),
         shared_address(barriers + first * 8)}};
    if (!plan.relays_buffers() || group.index == 0) ring.init_barriers();
    for (int i = threadIdx.x; i < plan.table_bytes() / 16; i += plan.threads())
        reinterpret_cast<uint4*>(shared)[i] = __ldg(args.table + i);
    uint32* const offsets = reinterpret_cast<uint32*>(shared + plan.table_bytes());
    for (int i = threadIdx.x; i < plan.num_offsets() / 2; i += plan.threads())
        offsets[i] = __ldg(reinterpret_cast<const uint32*>(args.gather_offsets) + i);
    fence_proxy_async_shared();  // wgmma reads the table through the async proxy
    __syncthreads();

    const int64 tiles = (args.rows + layout.lines - 1) / layout.lines;
    auto compute = [&](float2* tile, auto refill) {
        transform_tile<plan>(args, shared, scratch, tile, refill);
    };
    if constexpr (plan.relays_buffers()) {
        ring.template run_relayed<plan.groups>(static_cast<int>(tiles), args.tile_counter,
                                               tile_of_buffer, compute);
    } else {
        ring.run(static_cast<int64>(blockIdx.x) * plan.groups + group.index,
                 static_cast<int64>(gridDim.x) * plan.groups, tiles,
                 [&](float2* tile) { compute(tile, [] {}); });
    }
}
