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
__device__ __forceinline__ constexpr uint32 deposit_bits(uint32 number,
                                                         const int (&positions)[Count]) {
    uint32 result = 0;
    for (int i = 0; i < Count; ++i) result |= (number >> i & 1u) << positions[i];
    return result;
}

// The row of the matrix behind a row of a product of 16: lane / 4, lower half, and which 16 of them.
template <bool TargetsQubit0>
__device__ __forceinline__ uint32 matrix_row(uint32 lane, uint32 half, uint32 row_tile) {
    constexpr int kWithQubit0[3] = {1, 2, 3}, kWithoutQubit0[3] = {0, 1, 2};
    return deposit_bits(lane >> 2, TargetsQubit0 ? kWithQubit0 : kWithoutQubit0) |
           half << (TargetsQubit0 ? 0 : 3) | row_tile << 4;
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
template <Operand operand, int Terms, Rounding first, Rounding second, int Width,
          bool TargetsQubit0, int NumKTiles, typename Column>
__device__ __forceinline__ void load_matrix_fragments(const GateArguments& args, uint32 lane,
                                                      uint32 row_tile, Column column,
                                                      uint32 (&matrix)[NumKTiles][2][Terms][4]) {
    constexpr int kNumbersPerRegister = operand == Operand::tf32 ? 1 : 2;  // numbers in a register
    const auto* global_matrix = static_cast<const float2*>(args.matrix);
    const float scale = operand == Operand::fp16 ? power_of_two(matrix_exponent_of(args)) : 1.0f;
#pragma unroll
    for (int k_tile = 0; k_tile < NumKTiles; ++k_tile) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float2* row =
                global_matrix + (matrix_row<TargetsQubit0>(lane, i & 1, row_tile) << Width);
            const float2 low = row[column(i >> 1, 0, k_tile)];
            const float2 high = kNumbersPerRegister == 2 ? row[column(i >> 1, 1, k_tile)] : low;
            uint32 re[Terms], im[Terms];
            split_operand<operand, Terms, first, second>(low.x * scale, high.x * scale, re);
            split_operand<operand, Terms, first, second>(low.y * scale, high.y * scale, im);
#pragma unroll
            for (int term = 0; term < Terms; ++term) {
                matrix[k_tile][0][term][i] = re[term];
                matrix[k_tile][1][term][i] = im[term];
            }
        }
    }
}

__device__ __forceinline__ float absmax_with(float absmax, float4 x) {
    return fmaxf(fmaxf(fmaxf(absmax, fabsf(x.x)), fmaxf(fabsf(x.y), fabsf(x.z))), fabsf(x.w));
}

__device__ __forceinline__ uint32 finite_absmax_with(uint32 absmax, float4 x) {
    return max(max(absmax, larger_part({x.x, x.y})), larger_part({x.z, x.w}));
}

// The largest finite magnitude of a warp's numbers, as bits. fmaxf passes over NaN, so that only an
// infinity takes the longer way.
template <int Count>
__device__ __forceinline__ uint32 warp_absmax(const float4 (&x)[Count]) {
    float absmax = 0.0f;
#pragma unroll
    for (int i = 0; i < Count; ++i) absmax = absmax_with(absmax, x[i]);
    uint32 bits = __float_as_uint(absmax);
    if (!is_finite(absmax)) {
        bits = 0;
#pragma unroll
        for (int i = 0; i < Count; ++i) bits = finite_absmax_with(bits, x[i]);
    }
    return __reduce_max_sync(0xffffffffu, bits);
}

// The largest of what each warp of a block has written.
template <int Warps>
__device__ __forceinline__ uint32 block_absmax(const uint32 (&warp_maxima)[Warps]) {
    uint32 absmax = 0;
#pragma unroll
    for (int i = 0; i < Warps; ++i) absmax = max(absmax, warp_maxima[i]);
    return absmax;
}

// Hands out the sums of a warp's products, 16 rows by Tiles x 8 columns, as chunks: put(number, chunk).
// A register has of a tile of columns the last bit of the column in its bit 0 and of the row in bit 1.
// Bit 0 of the number is that column's; bit 1 leads to the lower rows, or where they share a chunk with
// the upper ones to the next tile of columns; bit 2 to the next two tiles.
template <bool TargetsQubit0, int Tiles, typename Store>
__device__ __forceinline__ void for_each_result_chunk(const float (&re)[4 * Tiles],
                                                      const float (&im)[4 * Tiles], float2 descale,
                                                      Store store) {
#pragma unroll
    for (int number = 0; number < 2 * Tiles; ++number) {
        const int edge = number & 1, half = number >> 1 & 1, pair = number >> 2;
        const int low =
            4 * (2 * pair + (TargetsQubit0 ? half : 0)) + edge + (TargetsQubit0 ? 0 : 2 * half);
        const int high = TargetsQubit0 ? low + 2 : low + 4;
        const float first = descale.x, second = descale.y;
        store(number, float4{re[low] * first * second, im[low] * first * second,
                             re[high] * first * second, im[high] * first * second});
    }
}
