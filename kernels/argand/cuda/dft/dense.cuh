// Transforms of one length by one folded product each: tiles of 16 transforms (times `rows`).
#pragma once
#include "tile_scheduler.cuh"
#include "folded_product_shared.cuh"

struct DensePlan {
    Products products;
    int length;
    int warps;    // that share a tile's columns
    int rows;     // sixteens of transforms of a tile
    int groups;   // tiles worked on at a time
    int buffers;  // of each group
    bool resident;  // the table is in shared memory, else in the second-level cache
    bool wide;  // 16 bytes a copy
    int unrolled_tiles;

    constexpr Fold fold() const { return {length, warps, products, unrolled_tiles}; }
    constexpr Lines lines() const {
        return {16 * rows, length, length % 8 == 0 ? length + 4 : length};
    }
    constexpr int threads() const { return groups * warps * kWarp; }
    constexpr int table_bytes() const { return resident ? fold().bytes() : 0; }
    // What warps that fold together tell each other: a largest magnitude and a sum for each transform.
    constexpr int board_bytes() const { return fold().together() ? warps * 16 * rows * 12 : 0; }
    constexpr int shared_bytes() const {
        return table_bytes() + groups * (buffers * (lines().bytes() + 8) + board_bytes());
    }
};

// Which of 16 lines a lane holds first, and how far the other one is: four lines that are read at a
// time have to be 4 apart modulo 8 in elements (`padded`).
template <int Pitch>
__device__ __forceinline__ int first_line(int g) {
    return Pitch % 2 ? 4 * (g % 4) + g / 4 : Pitch % 4 ? 2 * (g % 4) + g / 4 : g;
}
template <int Pitch>
constexpr int kOtherLine = Pitch % 2 ? 2 : 8;

template <DensePlan plan>
__device__ __forceinline__ void dft_dense(const DftArguments& args) {
    constexpr Fold fold = plan.fold();
    constexpr Lines lines = plan.lines();
    constexpr int kRows = plan.rows, kLength = plan.length;
    using Tiles = CountedRing<plan.warps, plan.buffers, plan.wide, lines>;
    extern __shared__ __align__(128) unsigned char shared[];
    uint4* const resident = reinterpret_cast<uint4*>(shared);
    if constexpr (plan.resident) {
        for (int i = threadIdx.x; i < fold.vectors(); i += plan.threads())
            resident[i] = __ldg(args.table + i);
    }
    const auto group = Group<plan.warps>::here();
    unsigned char* const memory = shared + plan.table_bytes();
    constexpr int kOwn = plan.buffers * Tiles::kBytes;
    const Tiles ring{
        {group,
         {const_cast<float2*>(args.x), lines.count * args.x_stride, args.x_stride, args.rows},
         {args.out, lines.count * args.out_stride, args.out_stride, args.rows},
         reinterpret_cast<float2*>(memory + group.index * kOwn),
         shared_address(memory + plan.groups * kOwn) + group.index * plan.buffers * 8}};
    ring.start();
    __syncthreads();
    constexpr int kOther = kOtherLine<lines.pitch>;

    constexpr bool kTogether = fold.together();
    constexpr int kHeld = 16 * kRows;  // transforms of a tile
    unsigned char* const boards = memory + plan.groups * (kOwn + plan.buffers * 8);

    auto work = [&](float2* tile) {
        const auto group = Group<plan.warps>::here();
        const int t = group.lane % 4, first = first_line<lines.pitch>(group.lane / 4);
        const uint4* const table =
            (plan.resident ? resident : args.table) +
            group.warp * fold.tiles() * plan.products.terms * kWarp;
        const int board = group.index * plan.warps * kHeld + group.lane / 4;
        float2* const totals = reinterpret_cast<float2*>(boards) + board;
        float* const magnitudes =
            reinterpret_cast<float*>(boards + plan.groups * plan.warps * kHeld * 8) + board;
        float2* const base = tile + first * lines.pitch;
        auto line = [&](int m, int row) { return base + (16 * m + row * kOther) * lines.pitch; };
        float scale[kRows][2], back[kRows][2];
        if constexpr (plan.products.scaled && kTogether) {
#pragma unroll
            for (int m = 0; m < kRows; ++m)
#pragma unroll
                for (int row = 0; row < 2; ++row) {
                    const float largest =
                        largest_of_line<kLength, plan.warps>(line(m, row), t, group.warp);
                    if (t == 0) magnitudes[group.warp * kHeld + 8 * (2 * m + row)] = largest;
                }
            group.sync();
        }
#pragma unroll
        for (int m = 0; m < kRows; ++m)
#pragma unroll
            for (int row = 0; row < 2; ++row) {
                scale[m][row] = back[m][row] = 1.0f;
                if constexpr (plan.products.scaled) {
                    float largest = 0.0f;
                    if constexpr (kTogether) {
#pragma unroll
                        for (int warp = 0; warp < plan.warps; ++warp)
                            largest =
                                fmaxf(largest, magnitudes[warp * kHeld + 8 * (2 * m + row)]);
                    } else {
                        largest = largest_of_line<kLength, 1>(line(m, row), t, 0);
                    }
                    const int exponent = transform_exponent(largest);
                    scale[m][row] = power_of_two(exponent);
                    back[m][row] = power_of_two(-exponent);
                }
            }
        FoldedSums<fold, kRows> sums;
        if constexpr (kTogether) {
            fold_in_place<fold, kRows>(sums.total, line, scale, group.warp);
#pragma unroll
            for (int m = 0; m < kRows; ++m)
#pragma unroll
                for (int row = 0; row < 2; ++row) {
                    const float2 total = of_four_lanes(sums.total[m][row]);
                    if (t == 0) totals[group.warp * kHeld + 8 * (2 * m + row)] = total;
                }
            group.sync();
            product_in_place<fold, kRows, plan.resident>(sums, line, table);
            if (group.warp == 0) {
#pragma unroll
                for (int m = 0; m < kRows; ++m)
#pragma unroll
                    for (int row = 0; row < 2; ++row) {
                        float2 total = {0.0f, 0.0f};
#pragma unroll
                        for (int warp = 0; warp < plan.warps; ++warp) {
                            const float2 part = totals[warp * kHeld + 8 * (2 * m + row)];
                            total = {total.x + part.x, total.y + part.y};
                        }
                        sums.total[m][row] = total;
                    }
            }
        } else {
            folded_product<fold, kRows, plan.resident>(
                sums, [&](int m, int row, int k) { return line(m, row)[k]; }, table, scale);
        }
        float2 start[kRows][2];
#pragma unroll
        for (int m = 0; m < kRows; ++m)
#pragma unroll
            for (int row = 0; row < 2; ++row) {
                const float2 x = line(m, row)[0];
                const float s = scale[m][row];
                start[m][row] = {x.x * s * args.unit, x.y * s * args.unit};
            }
        group.sync();  // all of the tile has been read: results take its place
#pragma unroll
        for (int m = 0; m < kRows; ++m)
#pragma unroll
            for (int row = 0; row < 2; ++row) {
                float2* const results = line(m, row);
                const float undo = back[m][row];
                folded_results<fold, kRows>(sums, m, row, group.warp, start[m][row], args.unit,
                                            args.factor, args.sign,
                                            [&](auto place, float2 value, bool valid) {
                                                value = {value.x * undo, value.y * undo};
                                                if (valid) results[place.k] = value;
                                            });
            }
    };
    const int64 tiles = (args.rows + lines.count - 1) / lines.count;
    const int64 groups = static_cast<int64>(gridDim.x) * plan.groups;
    const int64 first_tile = static_cast<int64>(blockIdx.x) * plan.groups + group.index;
    if constexpr (Tiles::kShares) {
        // Numbers of tiles are below 2^31: more would not fit a device.
        ring.share(static_cast<int>(first_tile), static_cast<int>(groups), static_cast<int>(tiles),
                   args.counter, work);
    } else {
        ring.run(first_tile, groups, tiles, work);
    }
}
