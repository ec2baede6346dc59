// The two-factor kernel: transforms of length N1 N2 by two fused stages of folded products
// (two_factor_stages.cuh). Each group of warps takes transform after transform from the tile ring,
// and a transform stays in shared memory between the stages.
#pragma once
#include "two_factor_stages.cuh"

struct TwoFactorPlan {
    Precision precision;
    int n1;
    int n2;
    int warps;         // of a group
    int m_tiles;       // of 16 columns n2, per warp in the first stage
    int groups;        // of a block, one transform each
    int buffers;       // per group
    bool wide_copies;  // of 16 bytes, or TMA

    constexpr TwoFactorStages stages() const { return {precision, n1, n2, warps, m_tiles}; }
    constexpr int threads() const { return groups * warps * kWarp; }
    constexpr int table_bytes() const {
        return stages().n1_table().bytes() + (n1 == n2 ? 0 : stages().n2_table().bytes());
    }
    constexpr int tile_bytes() const {
        const int input = stages().input_layout().bytes(),
                  output = stages().output_layout().bytes();
        return input > output ? input : output;
    }
    constexpr int shared_bytes() const {
        return table_bytes() + groups * (buffers * (tile_bytes() + 8) + warps * 4);
    }
};

// The kernel: a ring holds tiles of one transform each, which go through both stages in shared
// memory.
template <TwoFactorPlan plan>
__device__ __forceinline__ void dft_two_factor(const DftArguments& args) {
    constexpr TwoFactorStages stages = plan.stages();
    constexpr TileLayout input = stages.input_layout(), output = stages.output_layout();
    using Ring = TileRing<plan.warps, plan.buffers, plan.wide_copies, true, input, output>;
    extern __shared__ __align__(128) unsigned char shared[];
    uint4* const tables = reinterpret_cast<uint4*>(shared);
    for (int i = threadIdx.x; i < plan.table_bytes() / 16; i += plan.threads())
        tables[i] = __ldg(args.table + i);
    const auto group = TileGroup<plan.warps>::current();
    unsigned char* const memory = shared + plan.table_bytes();
    constexpr int kGroupBytes = plan.buffers * Ring::kBytes;
    unsigned char* const barriers = memory + plan.groups * kGroupBytes;
    float* const scratch = reinterpret_cast<float*>(barriers + plan.groups * plan.buffers * 8);
    // A tile is one transform, so all of its lines are valid.
    const Ring ring{
        group,
        {const_cast<float2*>(args.x), args.x_stride, input.width, args.rows * input.lines},
        {args.out, args.out_stride, output.width, args.rows * output.lines},
        reinterpret_cast<float2*>(memory + group.index * kGroupBytes),
        shared_address(barriers) + group.index * plan.buffers * 8};
    ring.init_barriers();
    __syncthreads();
    const StageTables stage_tables{tables,
                                   tables + (plan.n1 == plan.n2 ? 0 : stages.n1_table().vectors()),
                                   args.twiddles, args.mirror_twiddles, args.sign};

    auto compute = [&](float2* tile) {
        float scale = 1.0f, descale = 1.0f;
        if constexpr (plan.precision.scaled) {
            const auto group = TileGroup<plan.warps>::current();
            float* const group_scratch = scratch + group.index * plan.warps;
            const int exponent = transform_exponent<plan.precision.operand>(
                tile_absmax<plan.warps, input>(tile, group_scratch, group));
            scale = power_of_two(exponent);
            descale = power_of_two(-exponent);
        }
        first_stage<stages>(tile, stage_tables, scale);
        second_stage<stages>(
            tile, stage_tables, args.alternate_scale, args.scale,
            [&](int, float2 value, bool) { return float2{value.x * descale, value.y * descale}; });
    };
    ring.run(static_cast<int64>(blockIdx.x) * plan.groups + group.index,
             static_cast<int64>(gridDim.x) * plan.groups, args.rows, compute);
}
