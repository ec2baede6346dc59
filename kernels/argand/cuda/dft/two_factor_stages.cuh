// The two stages of a transform of length N1 N2 in shared memory, by a group of warps: folded
// products over n1, twiddles, folded products over n2. With n = N2 n1 + n2 and k = k1 + N1 k2,
//
//     X[k1 + N1 k2] = sum_n2 W_N2^(n2 k2)  W_N^(n2 k1)  sum_n1 W_N1^(n1 k1) x[N2 n1 + n2].
//
// The input is N1 lines of N2, the output N2 lines of N1, both in natural order: each warp keeps
// its accumulators of the first stage in registers until all warps have read, then writes them
// transposed.
#pragma once
#include "folded_product.cuh"
#include "tile_ring.cuh"

struct TwoFactorStages {
    Precision precision;
    int n1;
    int n2;
    int warps;    // of a transform
    int m_tiles;  // of 16 columns n2, per warp in the first stage

    constexpr int length() const { return n1 * n2; }
    constexpr FoldedTable n1_table() const { return {n1, 1, precision, 2}; }
    constexpr FoldedTable n2_table() const { return {n2, 1, precision, 4}; }
    constexpr TileLayout input_layout() const { return {n1, n2, padded(n2)}; }
    constexpr TileLayout output_layout() const { return {n2, n1, padded(n1)}; }
    // A stage divides by 2^downscale_exponent, the most that its sums can grow, so that fp16 does
    // not overflow.
    constexpr int downscale_exponent(int size) const {
        int exponent = 0;
        while (precision.scaled && (1 << exponent) < size) ++exponent;
        return exponent;
    }
    constexpr int table_exponent() const {
        return precision.scaled ? scaled_exponent_of(precision.operand) : 0;
    }
};

__device__ constexpr float negative_power_of_two(int exponent) {
    float power = 1.0f;
    for (int i = 0; i < exponent; ++i) power *= 0.5f;
    return power;
}

// Tables of both stages. `twiddles` has W_N^(n2 k1) in fragment order, two k1 at a time. From these
// and from `mirror_twiddles`, W_N2^n2, follow those of mirrored columns, W_N^(n2 (N1 - k1)).
struct StageTables {
    const uint4* n1_table;
    const uint4* n2_table;
    const float4* twiddles;
    const float2* mirror_twiddles;
    float sign;
};

// The first stage: transforms the N2 columns of length N1 of a tile and multiplies by the twiddles.
// Results overwrite the tile, as lines of k1.
template <TwoFactorStages plan>
__device__ __forceinline__ void first_stage(float2* tile, const StageTables& tables, float scale) {
    const auto group = TileGroup<plan.warps>::current();
    constexpr FoldedTable folded = plan.n1_table();
    constexpr int kMTiles = plan.m_tiles, kN2 = plan.n2, kN1 = plan.n1;
    constexpr int kInputPitch = plan.input_layout().pitch,
                  kOutputPitch = plan.output_layout().pitch;
    constexpr bool kExactTiles = plan.warps * kMTiles * 16 == kN2;
    constexpr float kSumScale = negative_power_of_two(plan.downscale_exponent(kN1));
    constexpr float kTableScale = kSumScale * negative_power_of_two(plan.table_exponent());
    const int g = group.lane / 4;
    FoldedAccumulator<folded, kMTiles> accumulator;
    float2 x0[kMTiles][2];
    {
        // Lanes beyond the last n2 read it again, so that they read nothing that another warp
        // writes.
        const float2* column[kMTiles][2];
        float scales[kMTiles][2];
#pragma unroll
        for (int m = 0; m < kMTiles; ++m)
#pragma unroll
            for (int row = 0; row < 2; ++row) {
                int n = (group.warp * kMTiles + m) * 16 + g + 8 * row;
                if (!kExactTiles && n >= kN2) n = kN2 - 1;
                column[m][row] = tile + n;
                scales[m][row] = scale;
            }
        folded_product<folded, kMTiles, true>(
            accumulator, [&](int m, int row, int k) { return column[m][row][k * kInputPitch]; },
            tables.n1_table, scales);
#pragma unroll
        for (int m = 0; m < kMTiles; ++m)
#pragma unroll
            for (int row = 0; row < 2; ++row) {
                const float2 x = column[m][row][0];
                x0[m][row] = {x.x * scale * kSumScale, x.y * scale * kSumScale};
            }
    }
    group.sync();  // the tile has been read: results overwrite it
#pragma unroll
    for (int m = 0; m < kMTiles; ++m)
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            const int m_tile = group.warp * kMTiles + m, n = m_tile * 16 + g + 8 * row;
            if (!kExactTiles && n >= kN2) continue;
            float2* const line = tile + n * kOutputPitch;
            const float2 mirror_twiddle = __ldg(tables.mirror_twiddles + n);
            const float4* const twiddles =
                tables.twiddles + (m_tile * folded.n_tiles() * 2 + row) * kWarp + group.lane;
            folded_epilogue<folded, kMTiles>(
                accumulator, m, row, 0, x0[m][row], kSumScale, kTableScale, tables.sign,
                [&](auto index, float2 value, bool valid) {
                    if constexpr (index.kind != ResultKind::dc) {
                        const float4 pair = __ldg(twiddles + index.tile * 2 * kWarp);
                        float2 w = index.c ? float2{pair.z, pair.w} : float2{pair.x, pair.y};
                        if constexpr (index.kind == ResultKind::mirrored) {
                            w = {mirror_twiddle.x * w.x + mirror_twiddle.y * w.y,
                                 mirror_twiddle.y * w.x - mirror_twiddle.x * w.y};
                        }
                        value = complex_product(value, w);
                    }
                    if (valid) line[index.k] = value;
                });
        }
    group.sync();
}

// In place: lines are n2 before and k2 after. `finish(k, value, valid)` returns what is written for
// X_k. `sum_scale`, `table_scale` and `valid` are those of `folded_epilogue`.
template <TwoFactorStages plan, typename Finish>
__device__ __forceinline__ void second_stage(float2* tile, const StageTables& tables,
                                             float sum_scale, float table_scale, Finish finish) {
    const auto group = TileGroup<plan.warps>::current();
    constexpr FoldedTable folded = plan.n2_table();
    constexpr int kN1 = plan.n1, kOutputPitch = plan.output_layout().pitch;
    constexpr bool kExactTiles = kN1 % 16 == 0;
    const int g = group.lane / 4;
#pragma unroll 1
    for (int m_tile = group.warp; m_tile < (kN1 + 15) / 16; m_tile += plan.warps) {
        float2* column[2];
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            int k = m_tile * 16 + g + 8 * row;
            if (!kExactTiles && k >= kN1) k = kN1 - 1;
            column[row] = tile + k;
        }
        FoldedAccumulator<folded, 1> accumulator;
        const float scales[1][2] = {{1.0f, 1.0f}};
        folded_product<folded, 1, true>(
            accumulator, [&](int, int row, int k) { return column[row][k * kOutputPitch]; },
            tables.n2_table, scales);
        float2 x0[2];
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            const float2 x = column[row][0];
            x0[row] = {x.x * sum_scale, x.y * sum_scale};
        }
        __syncwarp();
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            const int k = m_tile * 16 + g + 8 * row;
            if (!kExactTiles && k >= kN1) continue;
            folded_epilogue<folded, 1>(accumulator, 0, row, 0, x0[row], sum_scale, table_scale,
                                       tables.sign, [&](auto index, float2 value, bool valid) {
                                           value = finish(k + kN1 * index.k, value, valid);
                                           if (valid) column[row][index.k * kOutputPitch] = value;
                                       });
        }
    }
}

// Absmax of a tile, over real and imaginary parts.
template <int Warps, TileLayout layout>
__device__ __forceinline__ float tile_absmax(const float2* tile, float* scratch,
                                             const TileGroup<Warps>& group) {
    float absmax = 0.0f;
#pragma unroll 4
    for (int i = group.thread; i < layout.lines * layout.width; i += group.kThreads) {
        const float2 x = tile[i / layout.width * layout.pitch + i % layout.width];
        absmax = fmaxf(absmax, fmaxf(fabsf(x.x), fabsf(x.y)));
    }
    return group_max<Warps>(absmax, scratch, group);
}
