// Transforms of a prime length by one folded product each, in the order of powers of a generator.
//
// With k = g^i and n = g^j modulo a prime L, the folded matrices cos(2 pi k n / L) and sin(...) depend
// on i + j alone: Hankel matrices, whose tiles of 8 x 8 (the core matrices of wgmma) do so too. So the
// table is a sequence of such tiles, not a matrix of them, and fits beside large tiles of transforms;
// g^i takes all residues but for the sign, which e is symmetric and o antisymmetric in.
//
// Rows of wgmma are the real and the imaginary part of a transform, 8 rows apart, so that one lane has
// both. Of few transforms rows are taken twice: columns j + shift() are columns j of what is read at
// k = g^(i - shift()).
//
// wgmma<sign>(sums, rows, columns, keep) of plan.columns() stands before this header (dft_plan.py).
#pragma once
#include "device/warpgroup.cuh"
#include "dft_fold.cuh"
#include "dft_tiles.cuh"

struct HankelPlan {
    Products products;
    int length;
    int turns;    // how often a transform's rows are taken
    int sharing;  // warpgroups that share a tile's columns
    int groups;   // tiles worked on at a time
    int buffers;  // of all groups: each has its own where they can be dealt out, else tile after tile
    bool wide;    // 16 bytes a copy

    constexpr int half() const { return length / 2; }
    constexpr int slices() const { return (half() + 15) / 16; }
    // Columns of a turn: even, so that two places are one word.
    constexpr int shift() const { return (half() + 2 * turns - 1) / (2 * turns) * 2; }
    // Columns of all turns before the last.
    constexpr int before() const { return (turns - 1) * shift(); }
    // Of a warpgroup.
    constexpr int columns() const { return ((shift() + 7) / 8 + sharing - 1) / sharing * 8; }
    constexpr int warps() const { return 4 * sharing; }
    constexpr int threads() const { return groups * warps() * kWarp; }
    constexpr Lines lines() const { return {32 / turns, length, length}; }
    // Tiles of 8 x 8 of a term of the cosines or sines.
    constexpr int cores() const { return 2 * slices() + sharing * columns() / 8 - 1; }
    constexpr int table_bytes() const { return 2 * products.terms * cores() * 128; }
    // Of k = g^(i - before()), 2 bytes each.
    constexpr int places() const {
        const int taken = 16 * slices() + before(), given = sharing * columns() + 2 * before();
        return taken > given ? taken : given;
    }
    constexpr int place_bytes() const { return (2 * places() + 127) / 128 * 128; }
    constexpr bool relayed() const { return buffers % groups; }
    // Warps that look at the same transforms tell each other the largest magnitude of their part.
    constexpr int lookers() const { return products.scaled ? turns * sharing : 1; }
    constexpr int board_bytes() const { return lookers() > 1 ? groups * warps() * 8 * 4 : 0; }
    constexpr int shared_bytes() const {
        return table_bytes() + place_bytes() + buffers * (lines().bytes() + 8) + board_bytes();
    }
};

// The terms of e or o of a slice, as wgmma takes rows: (row, k) of (g, 2 t), (g + 8, 2 t), and 8 on.
template <Products products>
struct HankelRows {
    uint32 words[products.terms][4];

    __device__ __forceinline__ void put(int i, float low, float high) {
        if constexpr (products.operand == Operand::bf16) {
            words[0][i] = pack_bf16(low, high);
        } else {
            words[0][i] = pack_fp16(low, high);
            if constexpr (products.terms == 2) {
                const float2 big = fp16_values(words[0][i]);
                words[1][i] = pack_fp16(low - big.x, high - big.y);
            }
        }
    }

    // Keeps the compiler from moving what makes them past the products of other slices.
    __device__ __forceinline__ void settle() {
#pragma unroll
        for (int i = 0; i < 4 * products.terms; ++i) asm volatile("" : "+r"(words[i / 4][i % 4]));
    }
};

// Reads and folds a slice of the lane's transform. `places` are those of the lane's first two k.
template <HankelPlan plan>
__device__ __forceinline__ void fold_slice(HankelRows<plan.products>& even,
                                           HankelRows<plan.products>& odd, float2& total,
                                           const unsigned char* line, const uint32* places,
                                           int slice, int t, float scale) {
#pragma unroll
    for (int word = 0; word < 2; ++word) {
        const uint32 pair = places[8 * slice + 4 * word];
        float2 e[2], o[2];
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            const uint32 at = c ? pair >> 16 : pair & 0xffffu;
            float2 x = *reinterpret_cast<const float2*>(line + at);
            float2 y = *reinterpret_cast<const float2*>(line + (8 * plan.length - at));
            if (plan.half() % 16 && 16 * slice + 8 * word + 2 * t + c >= plan.half())
                x = y = {0.0f, 0.0f};
            fold_pair<plan.products>(x, y, scale, e[c], o[c]);
            total.x += e[c].x;
            total.y += e[c].y;
        }
        even.put(2 * word, e[0].x, e[1].x);
        even.put(2 * word + 1, e[0].y, e[1].y);
        odd.put(2 * word, o[0].y, o[1].y);
        odd.put(2 * word + 1, o[0].x, o[1].x);
    }
}

// Tiles of 8 x 8 without gaps: from one to the next 128 bytes, along k and along the columns.
__device__ __forceinline__ uint64 describe_cores(uint32 address) {
    return uint64(8) << 32 | 8u << 16 | (address & 0x3ffff) >> 4;
}

template <HankelPlan plan>
__device__ __forceinline__ void multiply_slice(float (&p)[plan.columns() / 2],
                                               float (&q)[plan.columns() / 2],
                                               HankelRows<plan.products>& even,
                                               HankelRows<plan.products>& odd, uint32 table,
                                               int slice) {
    constexpr int kTerms = plan.products.terms, kPlane = plan.cores() * 128;
    const uint32 at = table + 256 * slice;
    auto cosines = [&](int term) { return describe_cores(at + term * kPlane); };
    auto sines = [&](int term) { return describe_cores(at + (kTerms + term) * kPlane); };
    int keep = slice != 0;
    even.settle();
    odd.settle();
    wgmma_fence();
    if constexpr (kTerms == 2) {
        // The small products first: they are not lost in the sum of the large ones.
        wgmma<1>(p, even.words[1], cosines(0), keep);
        wgmma<1>(q, odd.words[1], sines(0), keep);
        wgmma<1>(p, even.words[0], cosines(1), 1);
        wgmma<1>(q, odd.words[0], sines(1), 1);
        keep = 1;
    }
    wgmma<1>(p, even.words[0], cosines(0), keep);
    wgmma<1>(q, odd.words[0], sines(0), keep);
    wgmma_commit();
}

// The largest magnitude of the lane's transform, of which `lookers` warps have each a part. `board` has
// a place for each of the tile's warps and eight transforms; warps of a transform are `apart`.
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
    constexpr int kColumns = plan.columns();
    constexpr int kBuffers = plan.relayed() ? plan.buffers : plan.buffers / plan.groups;
    using Tiles = Ring<plan.warps(), kBuffers, plan.wide, false, lines, lines>;
    static_assert(!plan.relayed() || (Tiles::kEngineLoads && plan.buffers > plan.groups),
                  "the copy engine brings tiles of other groups");
    extern __shared__ __align__(128) unsigned char shared[];
    for (int i = threadIdx.x; i < plan.table_bytes() / 16; i += plan.threads())
        reinterpret_cast<uint4*>(shared)[i] = __ldg(args.table + i);
    uint32* const places = reinterpret_cast<uint32*>(shared + plan.table_bytes());
    for (int i = threadIdx.x; i < plan.places() / 2; i += plan.threads())
        places[i] = __ldg(reinterpret_cast<const uint32*>(args.takes) + i);
    const auto group = Group<plan.warps()>::here();
    unsigned char* const memory = shared + plan.table_bytes() + plan.place_bytes();
    unsigned char* const barriers = memory + plan.buffers * Tiles::kBytes;
    float* const boards = reinterpret_cast<float*>(barriers + plan.buffers * 8);
    const int first = plan.relayed() ? 0 : group.index * kBuffers;
    const Tiles ring{
        group,
        {const_cast<float2*>(args.x), lines.count * args.x_stride, args.x_stride, args.rows},
        {args.out, lines.count * args.out_stride, args.out_stride, args.rows},
        reinterpret_cast<float2*>(memory + first * Tiles::kBytes),
        shared_address(barriers + first * 8)};
    if (!plan.relayed() || group.index == 0) ring.start();
    copy_engine_fence();  // wgmma reads the table as the copy engine would
    __syncthreads();

    auto work = [&](float2* tile, auto between) {
        const auto group = Group<plan.warps()>::here();
        const int share = group.warp / 4, warp = group.warp % 4;
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
        const unsigned char* const bytes = reinterpret_cast<const unsigned char*>(line);
        const uint32* const taken = places + (plan.before() - turn * plan.shift()) / 2 + t;
        const uint32 table = shared_address(shared) + share * (kColumns / 8) * 128;
        float p[kColumns / 2], q[kColumns / 2];
        HankelRows<plan.products> even[2], odd[2];
        float2 total = {0.0f, 0.0f};
#pragma unroll 1
        for (int slice = 0; slice + 1 < kSlices; slice += 2) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                wgmma_wait<1>();  // the products of the slice before the last: of these rows
                fold_slice<plan>(even[i], odd[i], total, bytes, taken, slice + i, t, scale);
                multiply_slice<plan>(p, q, even[i], odd[i], table, slice + i);
            }
        }
        if constexpr (kSlices % 2) {
            wgmma_wait<0>();  // else the compiler has all products wait for each other
            fold_slice<plan>(even[0], odd[0], total, bytes, taken, kSlices - 1, t, scale);
            multiply_slice<plan>(p, q, even[0], odd[0], table, kSlices - 1);
        }
        const float2 x = line[0];
        const float2 first = {x.x * scale * args.unit, x.y * scale * args.unit};
        total = of_four_lanes(total);
        wgmma_wait<0>();
        settle(p);
        settle(q);
        // All of the lines has been read: results take their place.
        if constexpr (plan.sharing * plan.turns == 1) {
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
        unsigned char* const results = reinterpret_cast<unsigned char*>(line);
#pragma unroll
        for (int n = 0; n < kColumns / 8; ++n) {
            const uint32 pair = given[4 * n];
#pragma unroll
            for (int c = 0; c < 2; ++c) {
                const uint32 at = c ? pair >> 16 : pair & 0xffffu;
                const int i = 4 * n + c;
                const float re = sign * q[i], im = sign * q[i + 2];
                const float2 below = {fmaf(p[i] + re, args.factor, first.x) * undo,
                                      fmaf(p[i + 2] - im, args.factor, first.y) * undo};
                const float2 above = {fmaf(p[i] - re, args.factor, first.x) * undo,
                                      fmaf(p[i + 2] + im, args.factor, first.y) * undo};
                if (8 * n + 2 * t + c < left) {
                    *reinterpret_cast<float2*>(results + at) = below;
                    *reinterpret_cast<float2*>(results + (8 * kLength - at)) = above;
                }
            }
        }
    };
    const int64 tiles = (args.rows + lines.count - 1) / lines.count;
    if constexpr (plan.relayed()) {
        ring.template relay<plan.groups>(tiles, work);
    } else {
        ring.run(static_cast<int64>(blockIdx.x) * plan.groups + group.index,
                 static_cast<int64>(gridDim.x) * plan.groups, tiles,
                 [&](float2* tile) { work(tile, [] {}); });
    }
}
