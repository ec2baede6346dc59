// Transforms of length N1 N2, one at a time for each group of warps.
#pragma once
#include "two_factor_stages.cuh"

struct ProductPlan {
    Products products;
    int first;
    int second;
    int warps;
    int rows;
    int groups;
    int buffers;
    bool wide;  // 16 bytes a copy

    constexpr Fused fused() const { return {products, first, second, warps, rows}; }
    constexpr int threads() const { return groups * warps * kWarp; }
    constexpr int table_bytes() const {
        return fused().first_fold().bytes() + (first == second ? 0 : fused().second_fold().bytes());
    }
    constexpr int tile_bytes() const {
        const int taken = fused().taken().bytes(), given = fused().given().bytes();
        return taken > given ? taken : given;
    }
    constexpr int shared_bytes() const {
        return table_bytes() + groups * (buffers * (tile_bytes() + 8) + warps * 4);
    }
};

template <ProductPlan plan>
__device__ __forceinline__ void dft_product(const DftArguments& args) {
    constexpr Fused fused = plan.fused();
    constexpr Lines taken = fused.taken(), given = fused.given();
    using Tiles = Ring<plan.warps, plan.buffers, plan.wide, true, taken, given>;
    extern __shared__ __align__(128) unsigned char shared[];
    uint4* const tables = reinterpret_cast<uint4*>(shared);
    for (int i = threadIdx.x; i < plan.table_bytes() / 16; i += plan.threads())
        tables[i] = __ldg(args.table + i);
    const auto group = Group<plan.warps>::here();
    unsigned char* const memory = shared + plan.table_bytes();
    constexpr int kOwn = plan.buffers * Tiles::kBytes;
    unsigned char* const barriers = memory + plan.groups * kOwn;
    float* const boards = reinterpret_cast<float*>(barriers + plan.groups * plan.buffers * 8);
    // A transform is a tile, and all of its lines are there.
    const Tiles ring{group,
                     {const_cast<float2*>(args.x), args.x_stride, taken.width, args.rows * taken.count},
                     {args.out, args.out_stride, given.width, args.rows * given.count},
                     reinterpret_cast<float2*>(memory + group.index * kOwn),
                     shared_address(barriers) + group.index * plan.buffers * 8};
    ring.start();
    __syncthreads();
    const FusedTables fused_tables{
        tables, tables + (plan.first == plan.second ? 0 : fused.first_fold().vectors()), args.twiddles,
        args.turns, args.sign};

    auto work = [&](float2* tile) {
        float scale = 1.0f, undo = 1.0f;
        if constexpr (plan.products.scaled) {
            const auto group = Group<plan.warps>::here();
            float* const board = boards + group.index * plan.warps;
            const int exponent =
                transform_exponent(largest_part<plan.warps, taken>(tile, board, group));
            scale = power_of_two(exponent);
            undo = power_of_two(-exponent);
        }
        first_stage<fused>(tile, fused_tables, scale);
        second_stage<fused>(tile, fused_tables, args.unit, args.factor,
                            [&](int, float2 value, bool) {
                                return float2{value.x * undo, value.y * undo};
                            });
    };
    ring.run(static_cast<int64>(blockIdx.x) * plan.groups + group.index,
             static_cast<int64>(gridDim.x) * plan.groups, args.rows, work);
}
