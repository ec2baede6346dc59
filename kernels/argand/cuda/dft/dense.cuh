// The dense kernel: transforms of one length, each by one folded product with the whole DFT matrix.
// A group of warps takes tile after tile of 16 m_tiles transforms from the tile ring
// (tile_scheduler.cuh), and results overwrite the tile before it is stored.
#pragma once
#include "tile_scheduler.cuh"
#include "folded_product_shared.cuh"

struct DensePlan {
    Precision precision;
    int length;
    int warps;             // of a group, which share a tile's columns
    int m_tiles;           // of 16 transforms, per tile
    int groups;            // of a block, one tile each
    int buffers;           // per group
    bool table_in_shared;  // else the table is read from L2
    bool wide_copies;      // of 16 bytes, or TMA
    int max_unrolled_tiles;

    constexpr FoldedTable folded_table() const {
        return {length, warps, precision, max_unrolled_tiles};
    }
    constexpr TileLayout layout() const {
        return {16 * m_tiles, length, length % 8 == 0 ? length + 4 : length};
    }
    constexpr int threads() const { return groups * warps * kWarp; }
    constexpr int table_bytes() const { return table_in_shared ? folded_table().bytes() : 0; }
    // Absmax and sum of e of each transform, exchanged by warps that fold in shared memory.
    constexpr int scratch_bytes() const {
        return folded_table().folds_in_shared() ? warps * 16 * m_tiles * 12 : 0;
    }
    constexpr int shared_bytes() const {
        return table_bytes() + groups * (buffers * (layout().bytes() + 8) + scratch_bytes());
    }
};

// The first of a lane's two lines of 16, and the distance of the second. Four lines that are read
// at a time have to lie 4 elements apart modulo 8 (`padded`).
template <int Pitch>
__device__ __forceinline__ int first_line(int g) {
    return Pitch % 2 ? 4 * (g % 4) + g / 4 : Pitch % 4 ? 2 * (g % 4) + g / 4 : g;
}
template <int Pitch>
constexpr int kSecondLineOf = Pitch % 2 ? 2 : 8;

// The transforms of a tile whose fragments a lane holds: two of each 16.
template <DensePlan plan>
struct DenseLines {
    static constexpr int kPitch = plan.layout().pitch;
    float2* first;

    __device__ __forceinline__ float2* operator()(int m, int row) const {
        return first + (16 * m + row * kSecondLineOf<kPitch>) * kPitch;
    }
};

// What the warps of a group exchange where they fold in shared memory: of each warp and transform
// the sum of e and the absmax of the warp's part. `even_sums` and `absmax` begin at the values of
// the group for the lane's first transform.
template <DensePlan plan>
struct DenseScratch {
    static constexpr int kTransforms = 16 * plan.m_tiles;  // of a tile
    float2* even_sums;
    float* absmax;

    // The sums of all groups come before the absmax of all groups.
    static __device__ __forceinline__ DenseScratch of(unsigned char* scratch,
                                                      const TileGroup<plan.warps>& group) {
        const int index = group.index * plan.warps * kTransforms + group.lane / 4;
        float* const every_absmax =
            reinterpret_cast<float*>(scratch + plan.groups * plan.warps * kTransforms * 8);
        return {reinterpret_cast<float2*>(scratch) + index, every_absmax + index};
    }

    static __device__ __forceinline__ int at(int warp, int m, int row) {
        return warp * kTransforms + 8 * (2 * m + row);
    }

    __device__ __forceinline__ float largest(int m, int row) const {
        float found = 0.0f;
#pragma unroll
        for (int warp = 0; warp < plan.warps; ++warp)
            found = fmaxf(found, absmax[at(warp, m, row)]);
        return found;
    }

    __device__ __forceinline__ float2 even_sum(int m, int row) const {
        float2 sum = {0.0f, 0.0f};
#pragma unroll
        for (int warp = 0; warp < plan.warps; ++warp) {
            const float2 part = even_sums[at(warp, m, row)];
            sum = {sum.x + part.x, sum.y + part.y};
        }
        return sum;
    }
};

// Finds the power of two that each of the lane's transforms is multiplied by, and its inverse.
template <DensePlan plan>
__device__ __forceinline__ void find_scales(const DenseLines<plan>& line,
                                            const DenseScratch<plan>& scratch,
                                            const TileGroup<plan.warps>& group,
                                            float (&scale)[plan.m_tiles][2],
                                            float (&descale)[plan.m_tiles][2]) {
    constexpr bool kFoldsInShared = plan.folded_table().folds_in_shared();
    const int t = group.lane % 4;
    if constexpr (plan.precision.scaled && kFoldsInShared) {
#pragma unroll
        for (int m = 0; m < plan.m_tiles; ++m)
#pragma unroll
            for (int row = 0; row < 2; ++row) {
                const float absmax =
                    line_absmax<plan.length, plan.warps>(line(m, row), t, group.warp);
                if (t == 0) scratch.absmax[scratch.at(group.warp, m, row)] = absmax;
            }
        group.sync();
    }
#pragma unroll
    for (int m = 0; m < plan.m_tiles; ++m)
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            scale[m][row] = descale[m][row] = 1.0f;
            if constexpr (plan.precision.scaled) {
                float absmax;
                if constexpr (kFoldsInShared) {
                    absmax = scratch.largest(m, row);
                } else {
                    absmax = line_absmax<plan.length, 1>(line(m, row), t, 0);
                }
                const int exponent = transform_exponent<plan.precision.operand>(absmax);
                scale[m][row] = power_of_two(exponent);
                descale[m][row] = power_of_two(-exponent);
            }
        }
}

// The folded product of a group whose warps fold the tile once, together, in shared memory. Only
// the first warp, which stores X_0, has the sums of e.
template <DensePlan plan>
__device__ __forceinline__ void multiply_in_shared(
    FoldedAccumulator<plan.folded_table(), plan.m_tiles>& accumulator,
    const DenseLines<plan>& line, const DenseScratch<plan>& scratch,
    const TileGroup<plan.warps>& group, const uint4* table,
    const float (&scale)[plan.m_tiles][2]) {
    constexpr FoldedTable folded = plan.folded_table();
    fold_in_place<folded, plan.m_tiles>(accumulator.even_sum, line, scale, group.warp);
#pragma unroll
    for (int m = 0; m < plan.m_tiles; ++m)
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            const float2 even_sum = quad_sum(accumulator.even_sum[m][row]);
            if (group.lane % 4 == 0)
                scratch.even_sums[scratch.at(group.warp, m, row)] = even_sum;
        }
    group.sync();
    folded_product_in_place<folded, plan.m_tiles, plan.table_in_shared>(accumulator, line, table);
    if (group.warp != 0) return;
#pragma unroll
    for (int m = 0; m < plan.m_tiles; ++m)
#pragma unroll
        for (int row = 0; row < 2; ++row)
            accumulator.even_sum[m][row] = scratch.even_sum(m, row);
}

// Transforms a tile of the group in place. `table` is the whole table, in shared memory or in L2.
template <DensePlan plan>
__device__ __forceinline__ void transform_tile(const DftArguments& args, const uint4* table,
                                               unsigned char* scratch_memory, float2* tile) {
    constexpr FoldedTable folded = plan.folded_table();
    constexpr int kMTiles = plan.m_tiles, kPitch = plan.layout().pitch;
    const auto group = TileGroup<plan.warps>::current();
    const uint4* const columns =
        table + group.warp * folded.n_tiles() * plan.precision.terms * kWarp;
    const auto scratch = DenseScratch<plan>::of(scratch_memory, group);
    const DenseLines<plan> line{tile + first_line<kPitch>(group.lane / 4) * kPitch};
    float scale[kMTiles][2], descale[kMTiles][2];
    find_scales<plan>(line, scratch, group, scale, descale);
    FoldedAccumulator<folded, kMTiles> accumulator;
    if constexpr (folded.folds_in_shared()) {
        multiply_in_shared<plan>(accumulator, line, scratch, group, columns, scale);
    } else {
        folded_product<folded, kMTiles, plan.table_in_shared>(
            accumulator, [&](int m, int row, int k) { return line(m, row)[k]; }, columns, scale);
    }
    float2 x0[kMTiles][2];
#pragma unroll
    for (int m = 0; m < kMTiles; ++m)
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            const float2 x = line(m, row)[0];
            const float s = scale[m][row];
            x0[m][row] = {x.x * s * args.alternate_scale, x.y * s * args.alternate_scale};
        }
    group.sync();  // the tile has been read: results overwrite it
#pragma unroll
    for (int m = 0; m < kMTiles; ++m)
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            float2* const results = line(m, row);
            const float row_descale = descale[m][row];
            folded_epilogue<folded, kMTiles>(
                accumulator, m, row, group.warp, x0[m][row], args.alternate_scale, args.scale,
                args.sign, [&](auto index, float2 value, bool valid) {
                    value = {value.x * row_descale, value.y * row_descale};
                    if (valid) results[index.k] = value;
                });
        }
}

// The kernel. Shared memory: the table, if it lies there; the tile buffers of each group; an
// mbarrier of 8 bytes for each buffer; the scratch of all groups.
template <DensePlan plan>
__device__ __forceinline__ void dft_dense(const DftArguments& args) {
    constexpr TileLayout layout = plan.layout();
    using Ring = ScheduledTileRing<plan.warps, plan.buffers, plan.wide_copies, layout>;
    extern __shared__ __align__(128) unsigned char shared[];
    uint4* const shared_table = reinterpret_cast<uint4*>(shared);
    if constexpr (plan.table_in_shared) {
        for (int i = threadIdx.x; i < plan.folded_table().vectors(); i += plan.threads())
            shared_table[i] = __ldg(args.table + i);
    }
    const auto group = TileGroup<plan.warps>::current();
    unsigned char* const memory = shared + plan.table_bytes();
    constexpr int kGroupBytes = plan.buffers * Ring::kBytes;
    const Ring ring{
        {group,
         {const_cast<float2*>(args.x), layout.lines * args.x_stride, args.x_stride, args.rows},
         {args.out, layout.lines * args.out_stride, args.out_stride, args.rows},
         reinterpret_cast<float2*>(memory + group.index * kGroupBytes),
         shared_address(memory + plan.groups * kGroupBytes) + group.index * plan.buffers * 8}};
    ring.init_barriers();
    __syncthreads();
    unsigned char* const scratch = memory + plan.groups * (kGroupBytes + plan.buffers * 8);
    auto compute = [&](float2* tile) {
        transform_tile<plan>(args, plan.table_in_shared ? shared_table : args.table, scratch,
                             tile);
    };
    const int64 tiles = (args.rows + layout.lines - 1) / layout.lines;
    const int64 groups = static_cast<int64>(gridDim.x) * plan.groups;
    const int64 first_tile = static_cast<int64>(blockIdx.x) * plan.groups + group.index;
    if constexpr (Ring::kDynamic) {
        // More than 2^31 tiles would not fit in a device's memory.
        ring.run_dynamic(static_cast<int>(first_tile), static_cast<int>(groups),
                         static_cast<int>(tiles), args.tile_counter, compute);
    } else {
        ring.run(first_tile, groups, tiles, compute);
    }
}
