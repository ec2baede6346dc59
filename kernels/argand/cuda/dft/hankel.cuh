// Transforms of a prime length by one folded product each, in the order of powers of a generator.
//
// With k = g^i and n = g^j modulo a prime L, the folded matrices cos(2 pi k n / L) and sin(...) depend
// on i + j alone: Hankel matrices, whose tiles of 8 x 8 (the core matrices of wgmma) do so too. So the
// table is a sequence of such tiles, not a matrix of them, and fits beside large tiles of transforms;
// g^i takes all residues but for the sign, which e is symmetric and o antisymmetric in.
//
// Rows of wgmma are the real and the imaginary part of a transform, 8 rows apart, so that one lane has
// both. Rows of 16 or 8 transforms are taken in two or four turns, for which the columns are divided:
// column j + shift() is column j of what is read at k = g^(i - shift()).
#pragma once
#include "hankel_mainloop.cuh"

// The largest magnitude of the lane's transform, of which `lookers` warps have each a part. `board` has
// a place for each of the tile's warps and eight transforms.
template <HankelPlan plan>
__device__ __forceinline__ float largest_of_lines(const float2* line, float* board,
                                                  const Group<plan.warps()>& group) {
    constexpr int kLookers = plan.lookers(), kApart = plan.warps() / kLookers;
    const int t = group.lane % 4, g = group.lane / 4;
    float largest = largest_of_line<plan.length, kLookers>(line, t, group.warp / kApart);
    if constexpr (kLookers > 1) {
        if (t == 0) board[8 * group.warp + g] = largest;
        group.sync();
#pragma unroll
        for (int i = 0; i < kLookers; ++i)
            largest = fmaxf(largest, board[8 * (group.warp % kApart + i * kApart) + g]);
    }
    return largest;
}

template <HankelPlan plan>
__device__ __forceinline__ void dft_hankel(const DftArguments& args) {
    constexpr Lines lines = plan.lines();
    constexpr int kLength = plan.length, kHalf = plan.half(), kSlices = plan.slices();
    constexpr int kColumns = plan.columns(), kTerms = plan.products.terms;
    constexpr int kBuffers = plan.relayed() ? plan.buffers : plan.buffers / plan.groups;
    using Tiles = CountedRing<plan.warps(), kBuffers, plan.wide, lines>;
    static_assert(!plan.relayed() || (Tiles::kEngineLoads && plan.buffers > plan.groups),
                  "the copy engine brings tiles of other groups");
    extern __shared__ __align__(128) unsigned char shared[];
    const auto group = Group<plan.warps()>::here();
    unsigned char* const memory = shared + plan.table_bytes() + plan.place_bytes();
    unsigned char* const barriers = memory + plan.buffers * Tiles::kBytes;
    volatile int* const numbers = reinterpret_cast<int*>(barriers + plan.buffers * 8);
    float* const boards = reinterpret_cast<float*>(barriers + plan.buffers * 16);
    const int first = plan.relayed() ? 0 : group.index * kBuffers;
    const Tiles ring{
        {group,
         {const_cast<float2*>(args.x), lines.count * args.x_stride, args.x_stride, args.rows},
         {args.out, lines.count * args.out_stride, args.out_stride, args.rows},
         reinterpret_cast<float2*>(memory + first * Tiles::kBytes),
         shared_address(barriers + first * 8)}};
    if (!plan.relayed() || group.index == 0) ring.start();
    for (int i = threadIdx.x; i < plan.table_bytes() / 16; i += plan.threads())
        reinterpret_cast<uint4*>(shared)[i] = __ldg(args.table + i);
    uint32* const places = reinterpret_cast<uint32*>(shared + plan.table_bytes());
    for (int i = threadIdx.x; i < plan.places() / 2; i += plan.threads())
        places[i] = __ldg(reinterpret_cast<const uint32*>(args.takes) + i);
    copy_engine_fence();  // wgmma reads the table as the copy engine would
    __syncthreads();

    auto work = [&](float2* tile, auto between) {
        const auto group = Group<plan.warps()>::here();
        const int warp = group.warp % 4;
        const int share = group.warp / 4;
        const int g = group.lane / 4, t = group.lane % 4;
        // Four lines that are read at a time are 4 apart: odd lengths are in different banks there.
        const int turn = warp * plan.turns / 4;
        const int own = plan.turns == 1   ? 4 * (g % 4) + warp + g / 4 * 16
                        : plan.turns == 2 ? 4 * (g % 4) + warp % 2 * 2 + g / 4
                                          : g % 4 * 2 + g / 4;
        float2* const line = tile + own * lines.pitch;
        float scale = 1.0f, undo = 1.0f;
        if constexpr (plan.products.scaled) {
            float* const board = boards + group.index * plan.warps() * 8;
            const int exponent = transform_exponent(largest_of_lines<plan>(line, board, group));
            scale = power_of_two(exponent);
            undo = power_of_two(-exponent);
        }
        between();
        unsigned char* const bytes = reinterpret_cast<unsigned char*>(line);
        const uint32* const taken =
            places + (plan.before() - turn * plan.shift()) / 2 + t;
        const uint32 table = shared_address(shared) + share * (kColumns / 8) * 128;
        HankelSums<plan> sums;
        HankelRows<plan.products> even[2], odd[2];
        constexpr int kHeld = plan.held;
        HankelRows<plan.products> held_even[kHeld ? kHeld : 1], held_odd[kHeld ? kHeld : 1];
        float2 total = {0.0f, 0.0f};
        HankelPairs pairs;
#pragma unroll
        for (int slice = 0; slice < kHeld; ++slice) {
            pairs.read<plan>(bytes, taken, slice, t);
            wgmma_wait<1>();
            pairs.fold<kTerms>(held_even[slice], held_odd[slice], total, scale);
            sums.multiply(held_even[slice], held_odd[slice], table, slice);
        }
        each_slice<kHeld, kSlices>([&](auto rows, int slice) {
            pairs.read<plan>(bytes, taken, slice, t);
            wgmma_wait<rows.pending>();  // the products of the slice before the last: of these rows
            pairs.fold<kTerms>(even[rows.index], odd[rows.index], total, scale);
            sums.multiply(even[rows.index], odd[rows.index], table, slice);
        });
        if constexpr (kTerms == 2) {
#pragma unroll
            for (int slice = 0; slice < kHeld; ++slice)
                sums.multiply_large(held_even[slice], held_odd[slice], table, slice);
            each_slice<kHeld, kSlices>([&](auto rows, int slice) {
                if constexpr (plan.aside && rows.index == 0)
                    if (slice == plan.aside) sums.start_anew();
                pairs.read<plan>(bytes, taken, slice, t);
                wgmma_wait<rows.pending>();
                pairs.fold<1>(even[rows.index], odd[rows.index], total, scale);
                sums.multiply_large(even[rows.index], odd[rows.index], table, slice);
            });
        }
        const float2 x = line[0];
        const float2 first = {x.x * scale * args.unit, x.y * scale * args.unit};
        total = of_four_lanes(total);
        sums.finish();
        if constexpr (plan.aside)
            sums.add_aside(1.0f - 16 * (kSlices - plan.aside) * args.growth);
        // All of the lines has been read: results take their place.
        if constexpr (plan.warps() == 4 && plan.turns == 1) {
            __syncwarp();
        } else {
            group.sync();
        }
        if (share == 0 && turn == 0 && t == 0)
            line[0] = {fmaf(total.x, args.unit, first.x) * undo,
                       fmaf(total.y, args.unit, first.y) * undo};
        const int column = share * kColumns;
        const int skipped = turn * plan.shift();
        const uint32* const given = places + (plan.before() + skipped + column) / 2 + t;
        const int left = min(plan.shift(), kHalf - skipped) - column;
        const float sign = args.sign;
        // What the table is larger by falls along a row: each eight columns are put right by their factor.
        const float step = 8 * args.growth * args.factor;
        const auto& p = sums.p;
        const auto& q = sums.q;
        uint32 pairs_given[kColumns / 8];  // all at once: results could lie where they do
#pragma unroll
        for (int n = 0; n < kColumns / 8; ++n) pairs_given[n] = given[4 * n];
#pragma unroll
        for (int n = 0; n < kColumns / 8; ++n) {
            const int left_over = plan.sharing * kColumns / 8 - 1 - column / 8 - n;
            const float factor = fmaf(step, static_cast<float>(-left_over), args.factor);
#pragma unroll
            for (int c = 0; c < 2; ++c) {
                const uint32 at = c ? pairs_given[n] >> 16 : pairs_given[n] & 0xffffu;
                const int i = 4 * n + c;
                const float re = sign * q[i], im = sign * q[i + 2];
                const float2 below = {fmaf(p[i] + re, factor, first.x) * undo,
                                      fmaf(p[i + 2] - im, factor, first.y) * undo};
                const float2 above = {fmaf(p[i] - re, factor, first.x) * undo,
                                      fmaf(p[i + 2] + im, factor, first.y) * undo};
                if (8 * n + 2 * t + c < left) {
                    *reinterpret_cast<float2*>(bytes + at) = below;
                    *reinterpret_cast<float2*>(bytes + (8 * kLength - at)) = above;
                }
            }
        }
    };
    const int64 tiles = (args.rows + lines.count - 1) / lines.count;
    if constexpr (plan.relayed()) {
        ring.template relay<plan.groups>(static_cast<int>(tiles), args.counter, numbers, work);
    } else {
        ring.run(static_cast<int64>(blockIdx.x) * plan.groups + group.index,
                 static_cast<int64>(gridDim.x) * plan.groups, tiles,
                 [&](float2* tile) { work(tile, [] {}); });
    }
}
