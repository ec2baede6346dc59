// The folded product of a warp: MTiles tiles of 16 transforms, times a table of cosines and sines,
// by mma.sync. It is the mainloop and the epilogue of the dense and two-factor kernels.
//
// With e_k = x_k + x_(L-k) and o_k = x_k - x_(L-k) for k = 1..L/2,
//
//     X_n = x_0 + P_n - i Q_n,   X_(L-n) = x_0 + P_n + i Q_n,   P = e cos,   Q = o sin,
//
// four real products of half the length in place of four of the whole length. X_0 = x_0 + sum e.
//
// A lane holds k = 1 + lane % 4 + 4 j of a k-tile (device/operand_format.cuh), and columns n = 1 +
// lane % 4 + 4 c, c = 0, 1, of an n-tile, so that neighbouring lanes read and write neighbouring
// elements.
#pragma once
#include "plan.cuh"

// Absmax of a transform, over the real and imaginary parts of elements t, t + 4, ... of each lane
// of a quad. With several warps, each takes an equal part of the elements and returns the absmax of
// that part.
template <int Length, int Warps = 1>
__device__ __forceinline__ float line_absmax(const float2* x, int t, int warp = 0) {
    constexpr int kChains = 4, kStep = 4 * kChains * Warps;
    float absmax[kChains] = {};
#pragma unroll 2
    for (int start = 4 * kChains * warp; start < Length; start += kStep)
#pragma unroll
        for (int i = 0; i < kChains; ++i) {
            const int k = start + 4 * i + t;
            if (Length % (4 * kChains) == 0 || k < Length) {
                const float2 value = x[k];
                absmax[i] = fmaxf(absmax[i], fmaxf(fabsf(value.x), fabsf(value.y)));
            }
        }
    const float lane_absmax = fmaxf(fmaxf(absmax[0], absmax[1]), fmaxf(absmax[2], absmax[3]));
    const float pair_absmax = fmaxf(lane_absmax, __shfl_xor_sync(0xffffffffu, lane_absmax, 1));
    return fmaxf(pair_absmax, __shfl_xor_sync(0xffffffffu, pair_absmax, 2));
}

template <FoldedTable folded, int MTiles>
struct FoldedAccumulator {
    float pq[MTiles][folded.n_tiles()][4][4];  // P re, P im, Q re, Q im; register
    float2 even_sum[MTiles][2];                // sum of e
};

// A fragment of the terms of e and o of a k-tile, of two rows 8 apart.
template <Precision precision>
struct Fragment {
    uint32 words[precision.terms][4][2][2];  // term; e re, e im, o re, o im; row; register

    // Not finite, a transform is so either way.
    template <int Part>
    __device__ __forceinline__ void store(int row, int word, const float* x) {
        split<precision.operand, precision.terms, precision.roundings[0], precision.roundings[1],
              true>(x, &words[0][Part][row][word], sizeof(words[0]) / sizeof(uint32));
    }
};

// e and o of element k of a transform, scaled.
template <Precision precision>
__device__ __forceinline__ void fold_pair(float2 x, float2 y, float scale, float2& even,
                                          float2& odd) {
    if constexpr (precision.scaled) {
        x = {x.x * scale, x.y * scale};
        even = {fmaf(y.x, scale, x.x), fmaf(y.y, scale, x.y)};
        odd = {fmaf(-y.x, scale, x.x), fmaf(-y.y, scale, x.y)};
    } else {
        even = {x.x + y.x, x.y + y.y};
        odd = {x.x - y.x, x.y - y.y};
    }
}

// Products of two-term operands, by magnitude: with a low-order term, or of both high-order terms.
// Each MMA truncates the accumulator in proportion to its size, so the low-order products of all
// k-tiles are accumulated first, while the accumulator is small. With one term there are only
// high-order products.
enum class ProductOrder { low, high };

// Folds a k-tile of one m-tile and splits it into terms. `read(row, k)` is element k of a row. The
// sum of e is accumulated in the pass over the high-order products.
template <FoldedTable folded, ProductOrder order, typename Read>
__device__ __forceinline__ void make_fragment(Fragment<folded.precision>& fragment,
                                              float2 (&even_sum)[2], Read read,
                                              const float (&scale)[2], int k_tile) {
    constexpr Precision precision = folded.precision;
    constexpr int kLength = folded.length, kHalf = folded.half_length();
    constexpr int kNumbers = kNumbersPerRegister<precision.operand>;
    const int t = threadIdx.x % 4;
#pragma unroll
    for (int row = 0; row < 2; ++row)
#pragma unroll
        for (int word = 0; word < 2; ++word) {
            float2 even[kNumbers], odd[kNumbers];
#pragma unroll
            for (int c = 0; c < kNumbers; ++c) {
                const int k = k_tile * precision.mma_k() + 1 + t + 4 * (word * kNumbers + c);
                float2 x = {0.0f, 0.0f}, y = {0.0f, 0.0f};
                if (kHalf % precision.mma_k() == 0 || k <= kHalf) {
                    x = read(row, k);
                    if (kLength % 2 || 2 * k != kLength) y = read(row, kLength - k);
                }
                fold_pair<precision>(x, y, scale[row], even[c], odd[c]);
                if constexpr (order == ProductOrder::high)
                    even_sum[row] = {even_sum[row].x + even[c].x, even_sum[row].y + even[c].y};
            }
            float parts[4][kNumbers];
#pragma unroll
            for (int c = 0; c < kNumbers; ++c) {
                parts[0][c] = even[c].x;
                parts[1][c] = even[c].y;
                parts[2][c] = odd[c].x;
                parts[3][c] = odd[c].y;
            }
            fragment.template store<0>(row, word, parts[0]);
            fragment.template store<1>(row, word, parts[1]);
            fragment.template store<2>(row, word, parts[2]);
            fragment.template store<3>(row, word, parts[3]);
        }
}

// The MMAs of a k-tile with the warp's columns of the table.
template <FoldedTable folded, bool TableInShared, ProductOrder order>
__device__ __forceinline__ void mma_k_tile(float (&pq)[folded.n_tiles()][4][4],
                                           const Fragment<folded.precision>& fragment,
                                           const uint4* table) {
    constexpr Precision precision = folded.precision;
    constexpr int kTerms = precision.terms;
    const int lane = threadIdx.x % kWarp;
    auto load = [&](int n, int term) {
        const int at = (n * kTerms + term) * kWarp + lane;
        return TableInShared ? table[at] : __ldg(table + at);
    };
    auto add = [&](int n, const uint32(&rows)[4][2][2], uint4 columns) {
        const uint32 table_words[2][2] = {{columns.x, columns.y}, {columns.z, columns.w}};
#pragma unroll
        for (int q = 0; q < 4; ++q)
            mma<precision.operand>(pq[n][q], rows[q][0], rows[q][1], table_words[q / 2]);
    };
#pragma unroll
    for (int n = 0; n < folded.n_tiles(); ++n) {
        const uint4 first = load(n, 0);
        if constexpr (order == ProductOrder::low) {
            const uint4 second = load(n, 1);
            add(n, fragment.words[1], first);
            add(n, fragment.words[0], second);
        } else {
            add(n, fragment.words[0], first);
        }
    }
}

template <int Tiles>
__device__ __forceinline__ void clear_accumulator(float (&pq)[Tiles][4][4]) {
#pragma unroll
    for (int n = 0; n < Tiles; ++n)
#pragma unroll
        for (int i = 0; i < 16; ++i) pq[n][i / 4][i % 4] = 0.0f;
}

// Sum over the four lanes of a quad, which hold a quarter of a row each.
__device__ __forceinline__ float2 quad_sum(float2 even_sum) {
#pragma unroll
    for (int other = 1; other < 4; other *= 2) {
        even_sum.x += __shfl_xor_sync(0xffffffffu, even_sum.x, other);
        even_sum.y += __shfl_xor_sync(0xffffffffu, even_sum.y, other);
    }
    return even_sum;
}

// The mainloop: the products of one order, over all k-tiles.
template <FoldedTable folded, int MTiles, bool TableInShared, ProductOrder order, typename Read>
__device__ __forceinline__ void folded_mainloop(FoldedAccumulator<folded, MTiles>& accumulator,
                                                Read read, const uint4* table,
                                                const float (&scale)[MTiles][2]) {
    constexpr int kKTileVectors = folded.n_tiles() * folded.warps * folded.precision.terms * kWarp;
    // Only one of the two mainloops of two terms is unrolled: the compiler would keep common values
    // of both in registers.
    constexpr bool kSinglePass = order == ProductOrder::low || folded.precision.terms == 1;
#pragma unroll(kSinglePass && folded.unrolls_mainloop(MTiles) ? folded.num_k_tiles() : 1)
    for (int k_tile = 0; k_tile < folded.num_k_tiles(); ++k_tile)
#pragma unroll
        for (int m = 0; m < MTiles; ++m) {
            Fragment<folded.precision> fragment;
            make_fragment<folded, order>(
                fragment, accumulator.even_sum[m], [&](int row, int k) { return read(m, row, k); },
                scale[m], k_tile);
            mma_k_tile<folded, TableInShared, order>(accumulator.pq[m], fragment,
                                                     table + k_tile * kKTileVectors);
        }
}

// The whole folded product. `read(m, row, k)` is element k of a transform; `table` begins at the
// warp's columns; `scale` has the power of two of each row that the lane holds.
template <FoldedTable folded, int MTiles, bool TableInShared, typename Read>
__device__ __forceinline__ void folded_product(FoldedAccumulator<folded, MTiles>& accumulator,
                                               Read read, const uint4* table,
                                               const float (&scale)[MTiles][2]) {
#pragma unroll
    for (int m = 0; m < MTiles; ++m) {
        accumulator.even_sum[m][0] = accumulator.even_sum[m][1] = {0.0f, 0.0f};
        clear_accumulator(accumulator.pq[m]);
    }
    if constexpr (folded.precision.terms == 2)
        folded_mainloop<folded, MTiles, TableInShared, ProductOrder::low>(accumulator, read, table,
                                                                          scale);
    folded_mainloop<folded, MTiles, TableInShared, ProductOrder::high>(accumulator, read, table,
                                                                       scale);
#pragma unroll
    for (int m = 0; m < MTiles; ++m)
#pragma unroll
        for (int row = 0; row < 2; ++row)
            accumulator.even_sum[m][row] = quad_sum(accumulator.even_sum[m][row]);
}

// X_0; X_n, from column n; X_(L-n), the mirror image of column n.
enum class ResultKind { dc, direct, mirrored };

template <ResultKind result_kind>
struct ResultIndex {
    static constexpr ResultKind kind = result_kind;
    int k;
    int tile;  // n-tile of the warp
    int c;     // which of the lane's two columns of the n-tile
};

// The epilogue of one row: `write(index, X_k, valid)` for k = 0 and for all columns of the lane's
// n-tiles. Invalid results are beyond the last k or belong to another lane; their k is clamped to a
// valid one, so that twiddles can be read without a branch. `x0` is x_0 times `sum_scale`;
// `table_scale` is the scale of products with the table; `sign` -1 conjugates the matrix.
template <FoldedTable folded, int MTiles, typename Write>
__device__ __forceinline__ void folded_epilogue(
    const FoldedAccumulator<folded, MTiles>& accumulator, int m, int row, int warp, float2 x0,
    float sum_scale, float table_scale, float sign, Write write) {
    constexpr int kHalf = folded.half_length();
    // With many n-tiles, branches keep the compiler from hoisting all reads at once into registers.
    constexpr bool kBranches = folded.n_tiles() * MTiles > 5;
    const int t = threadIdx.x % 4;
    if (warp == 0 && t == 0) {
        const float2 even_sum = accumulator.even_sum[m][row];
        write(ResultIndex<ResultKind::dc>{0, 0, 0},
              float2{fmaf(even_sum.x, sum_scale, x0.x), fmaf(even_sum.y, sum_scale, x0.y)}, true);
    }
#pragma unroll
    for (int n = 0; n < folded.n_tiles(); ++n)
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            int k = (warp * folded.n_tiles() + n) * 8 + 1 + t + 4 * c;
            const bool valid = kHalf % (8 * folded.warps) == 0 || k <= kHalf;
            if (kBranches && !valid) continue;
            if (!valid) k = kHalf;
            const float (&pq)[4][4] = accumulator.pq[m][n];
            const int i = 2 * row + c;
            const float q_re = sign * pq[2][i], q_im = sign * pq[3][i];
            const float2 direct = {fmaf(pq[0][i] + q_im, table_scale, x0.x),
                                   fmaf(pq[1][i] - q_re, table_scale, x0.y)};
            const float2 mirrored = {fmaf(pq[0][i] - q_im, table_scale, x0.x),
                                     fmaf(pq[1][i] + q_re, table_scale, x0.y)};
            write(ResultIndex<ResultKind::mirrored>{folded.length - k, n, c}, mirrored,
                  valid && (folded.length % 2 || 2 * k != folded.length));
            write(ResultIndex<ResultKind::direct>{k, n, c}, direct, valid);
        }
}
