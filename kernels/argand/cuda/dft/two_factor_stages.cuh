// A transform of length N1 N2 in shared memory, by a group of warps. With n = N2 n1 + n2 and
// k = k1 + N1 k2,
//
//     X[k1 + N1 k2] = sum_n2 W_N2^(n2 k2)  W_N^(n2 k1)  sum_n1 W_N1^(n1 k1) x[N2 n1 + n2].
//
// It lies as N1 lines of N2 and comes out as N2 lines of N1, both in natural order: each warp keeps
// its sums of the first stage in registers until every warp has read, and then writes them transposed.
#pragma once
#include "folded_product.cuh"
#include "tile_ring.cuh"

struct Fused {
    Products products;
    int first;   // N1
    int second;  // N2
    int warps;   // of a transform
    int rows;    // sixteens of n2 that a warp has in the first stage

    constexpr int length() const { return first * second; }
    constexpr Fold first_fold() const { return {first, 1, products, 2}; }
    constexpr Fold second_fold() const { return {second, 1, products, 4}; }
    constexpr Lines taken() const { return {first, second, padded(second)}; }
    constexpr Lines given() const { return {second, first, padded(first)}; }
    // Powers of two that a stage divides by: no more than sums can grow.
    constexpr int shift(int size) const {
        int found = 0;
        while (products.scaled && (1 << found) < size) ++found;
        return found;
    }
    constexpr int table_exponent() const { return products.scaled ? 14 : 0; }
};

__device__ constexpr float inverse_power(int exponent) {
    float found = 1.0f;
    for (int i = 0; i < exponent; ++i) found *= 0.5f;
    return found;
}

// What both stages need beside the numbers. `twiddles` has W_N^(n2 k1) in the order in which lanes
// need them, two k1 at a time; `turns` has W_N2^n2, with which W_N^(n2 (N1 - k1)) is made of them.
struct FusedTables {
    const uint4* first;
    const uint4* second;
    const float4* twiddles;
    const float2* turns;
    float sign;
};

template <Fused plan>
__device__ __forceinline__ void first_stage(float2* tile, const FusedTables& tables, float scale) {
    const auto group = Group<plan.warps>::here();
    constexpr Fold fold = plan.first_fold();
    constexpr int kRows = plan.rows, kSecond = plan.second, kFirst = plan.first;
    constexpr int kTaken = plan.taken().pitch, kGiven = plan.given().pitch;
    constexpr bool kWhole = plan.warps * kRows * 16 == kSecond;
    constexpr float kUnit = inverse_power(plan.shift(kFirst));
    constexpr float kFactor = kUnit * inverse_power(plan.table_exponent());
    const int g = group.lane / 4;
    FoldedSums<fold, kRows> sums;
    float2 start[kRows][2];
    {
        // Lanes beyond the last n2 repeat it, so that they read nothing that another warp writes.
        const float2* column[kRows][2];
        float scales[kRows][2];
#pragma unroll
        for (int m = 0; m < kRows; ++m)
#pragma unroll
            for (int row = 0; row < 2; ++row) {
                int n = (group.warp * kRows + m) * 16 + g + 8 * row;
                if (!kWhole && n >= kSecond) n = kSecond - 1;
                column[m][row] = tile + n;
                scales[m][row] = scale;
            }
        folded_product<fold, kRows, true>(
            sums, [&](int m, int row, int k) { return column[m][row][k * kTaken]; }, tables.first,
            scales);
#pragma unroll
        for (int m = 0; m < kRows; ++m)
#pragma unroll
            for (int row = 0; row < 2; ++row) {
                const float2 x = column[m][row][0];
                start[m][row] = {x.x * scale * kUnit, x.y * scale * kUnit};
            }
    }
    group.sync();  // everything has been read: results take its place
#pragma unroll
    for (int m = 0; m < kRows; ++m)
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            const int tile_row = group.warp * kRows + m, n = tile_row * 16 + g + 8 * row;
            if (!kWhole && n >= kSecond) continue;
            float2* const line = tile + n * kGiven;
            const float2 turn = __ldg(tables.turns + n);
            const float4* const twiddles =
                tables.twiddles + (tile_row * fold.tiles() * 2 + row) * kWarp + group.lane;
            folded_results<fold, kRows>(
                sums, m, row, 0, start[m][row], kUnit, kFactor, tables.sign,
                [&](auto place, float2 value, bool valid) {
                    if constexpr (place.origin != Origin::total) {
                        const float4 both = __ldg(twiddles + place.tile * 2 * kWarp);
                        float2 w = place.c ? float2{both.z, both.w} : float2{both.x, both.y};
                        if constexpr (place.origin == Origin::mirrored) {
                            w = {turn.x * w.x + turn.y * w.y, turn.y * w.x - turn.x * w.y};
                        }
                        value = {value.x * w.x - value.y * w.y, value.x * w.y + value.y * w.x};
                    }
                    if (valid) line[place.k] = value;
                });
        }
    group.sync();
}

// In place: lines are n2 before and k2 after. `finish(k, value, valid)` is what is written for X_k;
// `unit`, `factor` and `valid` are of `folded_results`.
template <Fused plan, typename Finish>
__device__ __forceinline__ void second_stage(float2* tile, const FusedTables& tables, float unit,
                                             float factor, Finish finish) {
    const auto group = Group<plan.warps>::here();
    constexpr Fold fold = plan.second_fold();
    constexpr int kFirst = plan.first, kGiven = plan.given().pitch;
    constexpr bool kWhole = kFirst % 16 == 0;
    const int g = group.lane / 4;
#pragma unroll 1
    for (int tile_row = group.warp; tile_row < (kFirst + 15) / 16; tile_row += plan.warps) {
        float2* column[2];
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            int k = tile_row * 16 + g + 8 * row;
            if (!kWhole && k >= kFirst) k = kFirst - 1;
            column[row] = tile + k;
        }
        FoldedSums<fold, 1> sums;
        const float scales[1][2] = {{1.0f, 1.0f}};
        folded_product<fold, 1, true>(
            sums, [&](int, int row, int k) { return column[row][k * kGiven]; }, tables.second, scales);
        float2 start[2];
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            const float2 x = column[row][0];
            start[row] = {x.x * unit, x.y * unit};
        }
        __syncwarp();
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            const int k = tile_row * 16 + g + 8 * row;
            if (!kWhole && k >= kFirst) continue;
            folded_results<fold, 1>(sums, 0, row, 0, start[row], unit, factor, tables.sign,
                                    [&](auto place, float2 value, bool valid) {
                                        value = finish(k + kFirst * place.k, value, valid);
                                        if (valid) column[row][place.k * kGiven] = value;
                                    });
        }
    }
}

// The largest magnitude of a real or imaginary part among the lines.
template <int Warps, Lines lines>
__device__ __forceinline__ float largest_part(const float2* tile, float* board,
                                              const Group<Warps>& group) {
    float largest = 0.0f;
#pragma unroll 4
    for (int i = group.thread; i < lines.count * lines.width; i += group.kThreads) {
        const float2 x = tile[i / lines.width * lines.pitch + i % lines.width];
        largest = fmaxf(largest, fmaxf(fabsf(x.x), fabsf(x.y)));
    }
    return largest_of<Warps>(largest, board, group);
}
