// A row operand of fp32 pairs whose lines are an odd number of elements apart, in shared memory.
//
// Even lines begin at 16 bytes, odd ones in the middle of such a chunk. TMA reads whole chunks, so
// an odd line lies in its tile with the element before it, one element (8 bytes) further along. A
// tile is columns of 128 bytes of each line, swizzled; a column holds the odd lines, then the even
// ones. Elements are read 8 bytes at a time where their line may be odd.
#pragma once
#include "device/shared.cuh"
#include "sm90_plan.cuh"

// The address of element `at` of a line, relative to the tile: `line` counts in a column, `column`
// is the bytes of one.
__device__ __forceinline__ uint32 element_address(int line, int at, int column) {
    const int chunk = at / 2;
    return chunk / 8 * column + line * kSwizzleBytes + ((chunk % 8 ^ line % 8) << 4) + at % 2 * 8;
}

// Addresses of lane t of four for k = 0, whose first row is `first`. K-major: in the line of its
// odd row, of the first element of each pair along k, then of the second one, for k of 0 and of 8;
// the even row has the first pair half a column further. M-major: of a pair of rows at an even k,
// then of the two rows at an odd k.
template <WgmmaPlan plan>
__device__ __forceinline__ void set_addresses_by_parity(int first, int t, uint32 (&at)[3]) {
    constexpr int kColumn = plan.x_lines() * kSwizzleBytes;
    if constexpr (plan.x_k_major) {
        at[0] = element_address(first / 2, 2 * t + 1, kColumn);
        at[1] = element_address(first / 2, 2 * t + 2, kColumn);
        at[2] = element_address(first / 2, 2 * t + 10, kColumn);
    } else {
        at[0] = element_address(plan.block_k / 2 + t, first, kColumn);
        at[1] = element_address(t, first + 1, kColumn);
        at[2] = element_address(t, first + 2, kColumn);
    }
}

// Loads the elements of a fragment, of two rows by their k, as XElements of other layouts. An odd
// row and the even one before change places where `exchanges_rows`.
template <WgmmaPlan plan, int kCount>
__device__ __forceinline__ void load_by_parity(const uint32 (&at)[3], bool exchanges_rows,
                                               uint32 tile, int k, float2 (&x)[2][kCount]) {
    constexpr int kColumn = plan.x_lines() * kSwizzleBytes;
#pragma unroll
    for (int j = 0; j < kCount / 2; ++j) {
        const int from = k + 8 * j;
        if constexpr (plan.x_k_major) {
            // Eight k further the other half of a column's chunks comes first.
            const int second_half = from / 8 % 2;
            const uint32 column = tile + from / 16 * kColumn;
            const uint32 odd = column + (at[0] ^ second_half << 6), even = odd - 8 + kColumn / 2;
            const uint32 odd_second = column + (second_half ? at[2] : at[1]);
            const bool exchanges = plan.odd_batches && exchanges_rows;
            x[0][2 * j] = load_shared_8_unordered(exchanges ? odd : even);
            x[0][2 * j + 1] = load_shared_8_unordered(exchanges ? odd_second : even + 8);
            x[1][2 * j] = load_shared_8_unordered(exchanges ? even : odd);
            x[1][2 * j + 1] = load_shared_8_unordered(exchanges ? even + 8 : odd_second);
        } else {
            // Four lines of one parity further the other half of their chunks comes first.
            const uint32 flipped = from / 8 % 2 << 6, lines = tile + from / 2 * kSwizzleBytes;
            const float4 both = load_shared_16_unordered(lines + (at[0] ^ flipped));
            x[0][2 * j] = {both.x, both.y};
            x[1][2 * j] = {both.z, both.w};
            x[0][2 * j + 1] = load_shared_8_unordered(lines + (at[1] ^ flipped));
            x[1][2 * j + 1] = load_shared_8_unordered(lines + (at[2] ^ flipped));
        }
    }
}
