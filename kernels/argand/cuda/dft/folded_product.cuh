// The folded product of a warp: 16 transforms (times `Rows`) by the columns of a table.
//
// With e_k = x_k + x_(L-k) and o_k = x_k - x_(L-k) for k = 1..L/2,
//
//     X_n = x_0 + P_n - i Q_n,   X_(L-n) = x_0 + P_n + i Q_n,   P = e cos,   Q = o sin,
//
// four real products of half the length in place of four of all of it. X_0 = x_0 + sum e.
//
// A lane holds k = 1 + lane % 4 + 4 j of a slice, as device/mma.cuh has it, and of a tile's columns n
// those at 1 + lane % 4 + 4 c, c = 0, 1: so it reads and writes neighbours of the other lanes.
#pragma once
#include "plan.cuh"

// The largest magnitude of a part among elements t, t + 4, ... of a transform, of four lanes; of `Shares` warps each
// looks at every so manyth of these.
template <int Length, int Shares = 1>
__device__ __forceinline__ float largest_of_line(const float2* x, int t,
                                                 int share = 0) {
    constexpr int kChains = 4, kStep = 4 * kChains * Shares;
    float largest[kChains] = {};
#pragma unroll 2
    for (int start = 4 * kChains * share; start < Length; start += kStep)
#pragma unroll
        for (int i = 0; i < kChains; ++i) {
            const int k = start + 4 * i + t;
            if (Length % (4 * kChains) == 0 || k < Length) {
                const float2 value = x[k];
                largest[i] = fmaxf(largest[i], fmaxf(fabsf(value.x), fabsf(value.y)));
            }
        }
    const float found = fmaxf(fmaxf(largest[0], largest[1]), fmaxf(largest[2], largest[3]));
    const float other = fmaxf(found, __shfl_xor_sync(0xffffffffu, found, 1));
    return fmaxf(other, __shfl_xor_sync(0xffffffffu, other, 2));
}

template <Fold fold, int Rows>
struct FoldedSums {
    float parts[Rows][fold.tiles()][4][4];  // P re, P im, Q re, Q im; as the instruction holds them
    float2 total[Rows][2];                  // the sum of e
};

// The terms of a slice's e and o, of two rows 8 apart.
template <Products products>
struct Fragment {
    uint32 words[products.terms][4][2][2];  // term; e re, e im, o re, o im; row; register

    template <int Part>
    __device__ __forceinline__ void put(int row, int word, float low, float high) {
        // What is not finite makes all of its transform so: no need to look, as split_to_fp16 does.
        if constexpr (products.operand == Operand::bf16) {
            words[0][Part][row][word] = pack_bf16(low, high);
        } else {
            words[0][Part][row][word] = pack_fp16(low, high);
            if constexpr (products.terms == 2) {
                const float2 big = fp16_values(words[0][Part][row][word]);
                words[1][Part][row][word] = pack_fp16(low - big.x, high - big.y);
            }
        }
    }

    template <int Part>
    __device__ __forceinline__ void put(int row, int word, float value) {
        uint32 terms[products.terms];
        split_to_tf32<products.terms, products.roundings[0], products.roundings[1]>(value, terms);
#pragma unroll
        for (int i = 0; i < products.terms; ++i) words[i][Part][row][word] = terms[i];
    }
};

// e and o of element k of a transform, scaled.
template <Products products>
__device__ __forceinline__ void fold_pair(float2 x, float2 y, float scale, float2& even,
                                          float2& odd) {
    if constexpr (products.scaled) {
        x = {x.x * scale, x.y * scale};
        even = {fmaf(y.x, scale, x.x), fmaf(y.y, scale, x.y)};
        odd = {fmaf(-y.x, scale, x.x), fmaf(-y.y, scale, x.y)};
    } else {
        even = {x.x + y.x, x.y + y.y};
        odd = {x.x - y.x, x.y - y.y};
    }
}

// Which products of two terms are taken. Tensor cores cut what they add towards zero, by a part of the
// last place of the sum: so the small ones of all slices are summed before the first large one, while
// sums have small places. Of one term there are only large ones.
enum class Size { small, large };

// Folds and splits a slice of one row tile as it is needed. `read(row, k)` is element k of a row. The sum
// of e is taken beside the large products.
template <Fold fold, Size size, typename Read>
__device__ __forceinline__ void make_fragment(Fragment<fold.products>& fragment, float2 (&total)[2],
                                              Read read, const float (&scale)[2], int slice) {
    constexpr Products products = fold.products;
    constexpr int kLength = fold.length, kHalf = fold.half();
    constexpr int kPairs = products.depth() / 8;  // numbers a register
    const int t = threadIdx.x % 4;
#pragma unroll
    for (int row = 0; row < 2; ++row)
#pragma unroll
        for (int word = 0; word < 2; ++word) {
            float2 even[kPairs], odd[kPairs];
#pragma unroll
            for (int c = 0; c < kPairs; ++c) {
                const int k = slice * products.depth() + 1 + t + 4 * (word * kPairs + c);
                float2 x = {0.0f, 0.0f}, y = {0.0f, 0.0f};
                if (kHalf % products.depth() == 0 || k <= kHalf) {
                    x = read(row, k);
                    if (kLength % 2 || 2 * k != kLength) y = read(row, kLength - k);
                }
                fold_pair<products>(x, y, scale[row], even[c], odd[c]);
                if constexpr (size == Size::large)
                    total[row] = {total[row].x + even[c].x, total[row].y + even[c].y};
            }
            if constexpr (kPairs == 2) {
                fragment.template put<0>(row, word, even[0].x, even[1].x);
                fragment.template put<1>(row, word, even[0].y, even[1].y);
                fragment.template put<2>(row, word, odd[0].x, odd[1].x);
                fragment.template put<3>(row, word, odd[0].y, odd[1].y);
            } else {
                fragment.template put<0>(row, word, even[0].x);
                fragment.template put<1>(row, word, even[0].y);
                fragment.template put<2>(row, word, odd[0].x);
                fragment.template put<3>(row, word, odd[0].y);
            }
        }
}

// The products of a slice with the warp's own columns of the table.
template <Fold fold, bool Resident, Size size>
__device__ __forceinline__ void multiply(float (&parts)[fold.tiles()][4][4],
                                         const Fragment<fold.products>& fragment,
                                         const uint4* table) {
    constexpr Products products = fold.products;
    constexpr int kTerms = products.terms;
    const int lane = threadIdx.x % kWarp;
    auto load = [&](int n, int term) {
        const int at = (n * kTerms + term) * kWarp + lane;
        return Resident ? table[at] : __ldg(table + at);
    };
    auto add = [&](int n, const uint32 (&rows)[4][2][2], uint4 columns) {
        const uint32 both[2][2] = {{columns.x, columns.y}, {columns.z, columns.w}};
#pragma unroll
        for (int q = 0; q < 4; ++q)
            mma<products.operand>(parts[n][q], rows[q][0], rows[q][1], both[q / 2]);
    };
#pragma unroll
    for (int n = 0; n < fold.tiles(); ++n) {
        const uint4 first = load(n, 0);
        if constexpr (size == Size::small) {
            const uint4 second = load(n, 1);
            add(n, fragment.words[1], first);
            add(n, fragment.words[0], second);
        } else {
            add(n, fragment.words[0], first);
        }
    }
}

template <int Tiles>
__device__ __forceinline__ void clear(float (&parts)[Tiles][4][4]) {
#pragma unroll
    for (int n = 0; n < Tiles; ++n)
#pragma unroll
        for (int i = 0; i < 16; ++i) parts[n][i / 4][i % 4] = 0.0f;
}

// Four lanes have a quarter of a row's e each.
__device__ __forceinline__ float2 of_four_lanes(float2 total) {
#pragma unroll
    for (int other = 1; other < 4; other *= 2) {
        total.x += __shfl_xor_sync(0xffffffffu, total.x, other);
        total.y += __shfl_xor_sync(0xffffffffu, total.y, other);
    }
    return total;
}

// The products of all slices, of one size.
template <Fold fold, int Rows, bool Resident, Size size, typename Read>
__device__ __forceinline__ void add_products(FoldedSums<fold, Rows>& sums, Read read,
                                             const uint4* table, const float (&scale)[Rows][2]) {
    constexpr int kSlice = fold.tiles() * fold.warps * fold.products.terms * kWarp;
    // Were both loops of two terms unrolled, the compiler would keep what they have in common.
    constexpr bool kOnly = size == Size::small || fold.products.terms == 1;
#pragma unroll(kOnly && fold.unrolled(Rows) ? fold.slices() : 1)
    for (int slice = 0; slice < fold.slices(); ++slice)
#pragma unroll
        for (int m = 0; m < Rows; ++m) {
            Fragment<fold.products> fragment;
            make_fragment<fold, size>(
                fragment, sums.total[m], [&](int row, int k) { return read(m, row, k); }, scale[m],
                slice);
            multiply<fold, Resident, size>(sums.parts[m], fragment, table + slice * kSlice);
        }
}

// `read(row tile, row, k)` is element k of a transform; `table` begins at the warp's own columns;
// `scale` are powers of two, one for each row that the lane holds.
template <Fold fold, int Rows, bool Resident, typename Read>
__device__ __forceinline__ void folded_product(FoldedSums<fold, Rows>& sums, Read read,
                                               const uint4* table, const float (&scale)[Rows][2]) {
#pragma unroll
    for (int m = 0; m < Rows; ++m) {
        sums.total[m][0] = sums.total[m][1] = {0.0f, 0.0f};
        clear(sums.parts[m]);
    }
    if constexpr (fold.products.terms == 2)
        add_products<fold, Rows, Resident, Size::small>(sums, read, table, scale);
    add_products<fold, Rows, Resident, Size::large>(sums, read, table, scale);
#pragma unroll
    for (int m = 0; m < Rows; ++m)
#pragma unroll
        for (int row = 0; row < 2; ++row) sums.total[m][row] = of_four_lanes(sums.total[m][row]);
}

// Where a result comes from: X_0, or sums of a tile (X_n), or their mirror image (X_(L-n)).
enum class Origin { total, sums, mirrored };

template <Origin from>
struct Place {
    static constexpr Origin origin = from;
    int k;
    int tile;  // of the warp's
    int c;     // which of a lane's two columns of it
};

// The results of one row: `write(place, X_k, valid)` for k = 0 and all columns of the lane's tiles.
// Where it is not valid there is no such k, or another lane has it: then k is one that there is, so
// that what goes with it can be read without a branch. `first` is x_0 times `unit`, which totals are
// multiplied by, `factor` what sums with a table are, `sign` -1 conjugates the matrix.
template <Fold fold, int Rows, typename Write>
__device__ __forceinline__ void folded_results(const FoldedSums<fold, Rows>& sums, int m, int row,
                                               int warp, float2 first, float unit, float factor,
                                               float sign, Write write) {
    constexpr int kHalf = fold.half();
    // Without branches all reads go ahead, for which sums of many tiles leave no registers.
    constexpr bool kBranches = fold.tiles() * Rows > 5;
    const int t = threadIdx.x % 4;
    if (warp == 0 && t == 0) {
        const float2 total = sums.total[m][row];
        write(Place<Origin::total>{0, 0, 0},
              float2{fmaf(total.x, unit, first.x), fmaf(total.y, unit, first.y)}, true);
    }
#pragma unroll
    for (int n = 0; n < fold.tiles(); ++n)
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            int k = (warp * fold.tiles() + n) * 8 + 1 + t + 4 * c;
            const bool valid = kHalf % (8 * fold.warps) == 0 || k <= kHalf;
            if (kBranches && !valid) continue;
            if (!valid) k = kHalf;
            const float(&parts)[4][4] = sums.parts[m][n];
            const int i = 2 * row + c;
            const float q_re = sign * parts[2][i], q_im = sign * parts[3][i];
            const float2 below = {fmaf(parts[0][i] + q_im, factor, first.x),
                                  fmaf(parts[1][i] - q_re, factor, first.y)};
            const float2 above = {fmaf(parts[0][i] - q_im, factor, first.x),
                                  fmaf(parts[1][i] + q_re, factor, first.y)};
            write(Place<Origin::mirrored>{fold.length - k, n, c}, above,
                  valid && (fold.length % 2 || 2 * k != fold.length));
            write(Place<Origin::sums>{k, n, c}, below, valid);
        }
}
