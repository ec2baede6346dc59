// What the two tensor-core kernels of gates share: the matrix as operand, the scale of a tile, results.
//
// Rows and columns of the matrix are numbered by the targets' bits, lowest first. Which bit a lane, a
// register or a step has is fixed here; argand/gate_layout.py knows the same (`_roles`). Inside: qubit
// 0 is a target, so that a chunk of the state holds two rows of a column; else two columns of a row.
#pragma once
#include "device/mma.cuh"
#include "tile.cuh"

// Bits of a number spread to the places that a list names.
template <int Count>
__device__ __forceinline__ constexpr uint32 spread(uint32 number, const int (&places)[Count]) {
    uint32 found = 0;
    for (int i = 0; i < Count; ++i) found |= (number >> i & 1u) << places[i];
    return found;
}

// The row of the matrix behind a row of a product of 16: lane / 4, lower half, and which 16 of them.
template <bool Inside>
__device__ __forceinline__ uint32 matrix_row(uint32 lane, uint32 half, uint32 row_tile) {
    constexpr int kInside[3] = {1, 2, 3}, kOutside[3] = {0, 1, 2};
    return spread(lane >> 2, Inside ? kInside : kOutside) | half << (Inside ? 0 : 3) | row_tile << 4;
}

// Two numbers as one register of each term, or for tf32 one number; 16-bit ones are scaled before.
template <Operand operand, int Terms, Rounding first, Rounding second>
__device__ __forceinline__ void split_operand(float low, float high, uint32 (&terms)[Terms]) {
    if constexpr (operand == Operand::tf32) {
        split_to_tf32<Terms, first, second>(low, terms);
    } else if constexpr (operand == Operand::bf16) {
        terms[0] = pack_bf16(low, high);
    } else {
        // No care for what is not finite, unlike split_to_fp16: its columns become NaN.
        terms[0] = pack_fp16(low, high);
        if constexpr (Terms == 2) {
            const float2 rounded = fp16_values(terms[0]);
            terms[1] = pack_fp16(low - rounded.x, high - rounded.y);
        }
    }
}

// A lane's part of 16 rows of the matrix as operand. The four registers of a part and term are those of
// the upper and lower rows at the instruction's first k, then at its second; column(slot, number, step)
// is the column of the matrix that stands in the first or second slot, as which of a register's numbers.
template <Operand operand, int Terms, Rounding first, Rounding second, int Width, bool Inside, int Steps,
          typename Column>
__device__ __forceinline__ void load_matrix(const GateArguments& args, uint32 lane, uint32 row_tile,
                                            Column column, uint32 (&matrix)[Steps][2][Terms][4]) {
    constexpr int kPer = operand == Operand::tf32 ? 1 : 2;  // numbers in a register
    const auto* given = static_cast<const float2*>(args.matrix);
    const float scale = operand == Operand::fp16 ? power_of_two(exponent_of_matrix(args)) : 1.0f;
#pragma unroll
    for (int step = 0; step < Steps; ++step) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float2* row = given + (matrix_row<Inside>(lane, i & 1, row_tile) << Width);
            const float2 low = row[column(i >> 1, 0, step)];
            const float2 high = kPer == 2 ? row[column(i >> 1, 1, step)] : low;
            uint32 re[Terms], im[Terms];
            split_operand<operand, Terms, first, second>(low.x * scale, high.x * scale, re);
            split_operand<operand, Terms, first, second>(low.y * scale, high.y * scale, im);
#pragma unroll
            for (int term = 0; term < Terms; ++term) {
                matrix[step][0][term][i] = re[term];
                matrix[step][1][term][i] = im[term];
            }
        }
    }
}

__device__ __forceinline__ float larger(float found, float4 x) {
    return fmaxf(fmaxf(fmaxf(found, fabsf(x.x)), fmaxf(fabsf(x.y), fabsf(x.z))), fabsf(x.w));
}

__device__ __forceinline__ uint32 larger_finite(uint32 found, float4 x) {
    return max(max(found, larger_part({x.x, x.y})), larger_part({x.z, x.w}));
}

// The largest finite magnitude of a warp's numbers, as bits. fmaxf passes over NaN, so that only an
// infinity takes the longer way.
template <int Count>
__device__ __forceinline__ uint32 largest_of_warp(const float4 (&x)[Count]) {
    float found = 0.0f;
#pragma unroll
    for (int i = 0; i < Count; ++i) found = larger(found, x[i]);
    uint32 bits = __float_as_uint(found);
    if (!is_finite(found)) {
        bits = 0;
#pragma unroll
        for (int i = 0; i < Count; ++i) bits = larger_finite(bits, x[i]);
    }
    return __reduce_max_sync(0xffffffffu, bits);
}

// The largest of what each warp of a block has written.
template <int Warps>
__device__ __forceinline__ uint32 largest_of(const uint32 (&of_warps)[Warps]) {
    uint32 found = 0;
#pragma unroll
    for (int i = 0; i < Warps; ++i) found = max(found, of_warps[i]);
    return found;
}

// Hands out the sums of a warp's products, 16 rows by Tiles x 8 columns, as chunks: put(number, chunk).
// A register has of a tile of columns the last bit of the column in its bit 0 and of the row in bit 1.
// Bit 0 of the number is that column's; bit 1 leads to the lower rows, or where they share a chunk with
// the upper ones to the next tile of columns; bit 2 to the next two tiles.
template <bool Inside, int Tiles, typename Put>
__device__ __forceinline__ void each_result(const float (&re)[4 * Tiles], const float (&im)[4 * Tiles],
                                            float2 unscale, Put put) {
#pragma unroll
    for (int number = 0; number < 2 * Tiles; ++number) {
        const int edge = number & 1, half = number >> 1 & 1, pair = number >> 2;
        const int low = 4 * (2 * pair + (Inside ? half : 0)) + edge + (Inside ? 0 : 2 * half);
        const int high = Inside ? low + 2 : low + 4;
        const float scale = unscale.x, rest = unscale.y;
        put(number, float4{re[low] * scale * rest, im[low] * scale * rest, re[high] * scale * rest,
                           im[high] * scale * rest});
    }
}
