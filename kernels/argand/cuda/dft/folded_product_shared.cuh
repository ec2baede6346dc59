// The folded product of warps that share a tile's columns: the warps fold the tile once, in place
// in shared memory, and each multiplies it by its own columns of the table. A variant of
// folded_product.cuh for the dense kernel.
#pragma once
#include "folded_product.cuh"

// Folds the tile in place: the terms of e_k, 16 bits per part, overwrite x_k, and the terms of o_k
// overwrite x_(L-k). Warps share the k-tiles. `line(m, row)` is the address of a transform.
// `even_sum` becomes the sum of the e that this lane folded.
template <FoldedTable folded, int MTiles, typename Line>
__device__ __forceinline__ void fold_in_place(float2 (&even_sum)[MTiles][2], Line line,
                                              const float (&scale)[MTiles][2], int warp) {
    constexpr Precision precision = folded.precision;
    constexpr int kLength = folded.length, kHalf = folded.half_length();
    static_assert(precision.mma_k() == 16, "two terms of 16 bits take as much as a number");
    const int t = threadIdx.x % 4;
#pragma unroll
    for (int m = 0; m < MTiles; ++m) even_sum[m][0] = even_sum[m][1] = {0.0f, 0.0f};
#pragma unroll 1
    for (int k_tile = warp; k_tile < folded.num_k_tiles(); k_tile += folded.warps)
#pragma unroll
        for (int m = 0; m < MTiles; ++m)
#pragma unroll
            for (int row = 0; row < 2; ++row)
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const int k = k_tile * 16 + 1 + t + 4 * j;
                    if (kHalf % 16 && k > kHalf) continue;
                    float2* const at = line(m, row) + k;
                    float2* const mirrored = line(m, row) + kLength - k;
                    const bool has_mirror = kLength % 2 || 2 * k != kLength;
                    float2 even, odd;
                    fold_pair<precision>(*at, has_mirror ? *mirrored : float2{0.0f, 0.0f},
                                         scale[m][row], even, odd);
                    even_sum[m][row].x += even.x;
                    even_sum[m][row].y += even.y;
                    Fragment<precision> fragment;
                    const float evens[2] = {even.x, even.y}, odds[2] = {odd.x, odd.y};
                    fragment.template store<0>(0, 0, evens);
                    fragment.template store<1>(0, 0, odds);
                    constexpr int kLastTerm = precision.terms - 1;
                    *reinterpret_cast<uint2*>(at) = {fragment.words[0][0][0][0],
                                                     fragment.words[kLastTerm][0][0][0]};
                    if (has_mirror)
                        *reinterpret_cast<uint2*>(mirrored) = {fragment.words[0][1][0][0],
                                                               fragment.words[kLastTerm][1][0][0]};
                }
}

// (a low, b low) and (a high, b high) of two words of two halves.
__device__ __forceinline__ void zip_halves(uint32 a, uint32 b, uint32& low, uint32& high) {
    low = __byte_perm(a, b, 0x5410);
    high = __byte_perm(a, b, 0x7632);
}

// The mainloop over what `fold_in_place` stored: the products of one order, over all k-tiles.
template <FoldedTable folded, int MTiles, bool TableInShared, ProductOrder order, typename Line>
__device__ __forceinline__ void folded_mainloop_in_place(
    FoldedAccumulator<folded, MTiles>& accumulator, Line line, const uint4* table) {
    constexpr int kLength = folded.length, kHalf = folded.half_length();
    constexpr int kKTileVectors = folded.n_tiles() * folded.warps * folded.precision.terms * kWarp;
    const int t = threadIdx.x % 4;
#pragma unroll 1
    for (int k_tile = 0; k_tile < folded.num_k_tiles(); ++k_tile)
#pragma unroll
        for (int m = 0; m < MTiles; ++m) {
            Fragment<folded.precision> fragment;
            auto& words = fragment.words;
#pragma unroll
            for (int row = 0; row < 2; ++row)
#pragma unroll
                for (int word = 0; word < 2; ++word) {
                    uint2 even[2] = {}, odd[2] = {};
#pragma unroll
                    for (int c = 0; c < 2; ++c) {
                        const int k = k_tile * 16 + 1 + t + 4 * (2 * word + c);
                        if (kHalf % 16 && k > kHalf) continue;
                        even[c] = *reinterpret_cast<const uint2*>(line(m, row) + k);
                        if (kLength % 2 || 2 * k != kLength)
                            odd[c] = *reinterpret_cast<const uint2*>(line(m, row) + kLength - k);
                    }
                    zip_halves(even[0].x, even[1].x, words[0][0][row][word],
                               words[0][1][row][word]);
                    zip_halves(odd[0].x, odd[1].x, words[0][2][row][word], words[0][3][row][word]);
                    if constexpr (order == ProductOrder::low) {
                        zip_halves(even[0].y, even[1].y, words[1][0][row][word],
                                   words[1][1][row][word]);
                        zip_halves(odd[0].y, odd[1].y, words[1][2][row][word],
                                   words[1][3][row][word]);
                    }
                }
            mma_k_tile<folded, TableInShared, order>(accumulator.pq[m], fragment,
                                                     table + k_tile * kKTileVectors);
        }
}

template <FoldedTable folded, int MTiles, bool TableInShared, typename Line>
__device__ __forceinline__ void folded_product_in_place(
    FoldedAccumulator<folded, MTiles>& accumulator, Line line, const uint4* table) {
#pragma unroll
    for (int m = 0; m < MTiles; ++m) clear_accumulator(accumulator.pq[m]);
    if constexpr (folded.precision.terms == 2)
        folded_mainloop_in_place<folded, MTiles, TableInShared, ProductOrder::low>(accumulator,
                                                                                   line, table);
    folded_mainloop_in_place<folded, MTiles, TableInShared, ProductOrder::high>(accumulator, line,
                                                                                table);
}
