// A tile of transforms folded once for all warps that share its columns.
#pragma once
#include "folded_product.cuh"

// Warps that share a tile's columns fold it together, in its place: e_k of 16 bits a part, its terms
// one after the other, takes the place of x_k, and o_k that of x_(L-k). `line(row tile, row)` is where
// a transform lies. Gives the sums of e that the lane saw.
template <Fold fold, int Rows, typename Line>
__device__ __forceinline__ void fold_in_place(float2 (&total)[Rows][2], Line line,
                                              const float (&scale)[Rows][2], int warp) {
    constexpr Products products = fold.products;
    constexpr int kLength = fold.length, kHalf = fold.half();
    static_assert(products.depth() == 16, "two terms of 16 bits take as much as a number");
    const int t = threadIdx.x % 4;
#pragma unroll
    for (int m = 0; m < Rows; ++m) total[m][0] = total[m][1] = {0.0f, 0.0f};
#pragma unroll 1
    for (int slice = warp; slice < fold.slices(); slice += fold.warps)
#pragma unroll
        for (int m = 0; m < Rows; ++m)
#pragma unroll
            for (int row = 0; row < 2; ++row)
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const int k = slice * 16 + 1 + t + 4 * j;
                    if (kHalf % 16 && k > kHalf) continue;
                    float2* const at = line(m, row) + k;
                    float2* const mirrored = line(m, row) + kLength - k;
                    const bool two = kLength % 2 || 2 * k != kLength;
                    float2 even, odd;
                    fold_pair<products>(*at, two ? *mirrored : float2{0.0f, 0.0f}, scale[m][row], even,
                                        odd);
                    total[m][row].x += even.x;
                    total[m][row].y += even.y;
                    Fragment<products> pieces;
                    pieces.template put<0>(0, 0, even.x, even.y);
                    pieces.template put<1>(0, 0, odd.x, odd.y);
                    constexpr int kLast = products.terms - 1;
                    *reinterpret_cast<uint2*>(at) = {pieces.words[0][0][0][0],
                                                     pieces.words[kLast][0][0][0]};
                    if (two)
                        *reinterpret_cast<uint2*>(mirrored) = {pieces.words[0][1][0][0],
                                                               pieces.words[kLast][1][0][0]};
                }
}

// The halves of two words, low ones in the first, high ones in the second.
__device__ __forceinline__ void pair_halves(uint32 a, uint32 b, uint32& low, uint32& high) {
    low = __byte_perm(a, b, 0x5410);
    high = __byte_perm(a, b, 0x7632);
}

// The products of all slices, of one size, of what `fold_in_place` left.
template <Fold fold, int Rows, bool Resident, Size size, typename Line>
__device__ __forceinline__ void add_in_place(FoldedSums<fold, Rows>& sums, Line line,
                                             const uint4* table) {
    constexpr int kLength = fold.length, kHalf = fold.half();
    constexpr int kSlice = fold.tiles() * fold.warps * fold.products.terms * kWarp;
    const int t = threadIdx.x % 4;
#pragma unroll 1
    for (int slice = 0; slice < fold.slices(); ++slice)
#pragma unroll
        for (int m = 0; m < Rows; ++m) {
            Fragment<fold.products> fragment;
            auto& words = fragment.words;
#pragma unroll
            for (int row = 0; row < 2; ++row)
#pragma unroll
                for (int word = 0; word < 2; ++word) {
                    uint2 even[2] = {}, odd[2] = {};
#pragma unroll
                    for (int c = 0; c < 2; ++c) {
                        const int k = slice * 16 + 1 + t + 4 * (2 * word + c);
                        if (kHalf % 16 && k > kHalf) continue;
                        even[c] = *reinterpret_cast<const uint2*>(line(m, row) + k);
                        if (kLength % 2 || 2 * k != kLength)
                            odd[c] = *reinterpret_cast<const uint2*>(line(m, row) + kLength - k);
                    }
                    pair_halves(even[0].x, even[1].x, words[0][0][row][word], words[0][1][row][word]);
                    pair_halves(odd[0].x, odd[1].x, words[0][2][row][word], words[0][3][row][word]);
                    if constexpr (size == Size::small) {
                        pair_halves(even[0].y, even[1].y, words[1][0][row][word],
                                    words[1][1][row][word]);
                        pair_halves(odd[0].y, odd[1].y, words[1][2][row][word], words[1][3][row][word]);
                    }
                }
            multiply<fold, Resident, size>(sums.parts[m], fragment, table + slice * kSlice);
        }
}

template <Fold fold, int Rows, bool Resident, typename Line>
__device__ __forceinline__ void product_in_place(FoldedSums<fold, Rows>& sums, Line line,
                                                 const uint4* table) {
#pragma unroll
    for (int m = 0; m < Rows; ++m) clear(sums.parts[m]);
    if constexpr (fold.products.terms == 2)
        add_in_place<fold, Rows, Resident, Size::small>(sums, line, table);
    add_in_place<fold, Rows, Resident, Size::large>(sums, line, table);
}
