// Operands of the tensor-core gate kernels: the gate's matrix as A fragments in registers, the
// absmax of a tile from which its scale follows, and the accumulators as chunks of the state. The
// kernels for sm_80 and sm_90 share this file.
//
// Rows and columns of the matrix are numbered by the targets' bits, lowest first. The bits of a
// lane, a register and a k-tile are fixed here; `roles_of` in argand/gates/layout.py lists the
// same. Where qubit 0 is a target, a chunk of the state holds two rows of a column; else two
// columns of a row.
#pragma once
#include "device/rounding.cuh"
#include "device/term_products.cuh"
#include "tile.cuh"

// Bit i of the number moves to bit positions[i].
template <int Count>
__device__ __forceinline__ constexpr uint32 deposit_bits(uint32 number,
                                                         const int (&positions)[Count]) {
    uint32 result = 0;
    for (int i = 0; i < Count; ++i) result |= (number >> i & 1u) << positions[i];
    return result;
}

// The row of the matrix that stands in row lane / 4 of the upper or lower half of a 16-row MMA
// tile.
template <bool TargetsQubit0>
__device__ __forceinline__ uint32 matrix_row(uint32 lane, uint32 half, uint32 row_tile) {
    constexpr int kWithQubit0[3] = {1, 2, 3}, kWithoutQubit0[3] = {0, 1, 2};
    return deposit_bits(lane >> 2, TargetsQubit0 ? kWithQubit0 : kWithoutQubit0) |
           half << (TargetsQubit0 ? 0 : 3) | row_tile << 4;
}

// Scales the complex numbers of one register and splits them, each part into one register per term.
// Not finite, their columns become NaN either way.
template <Operand operand, int Terms, Rounding first, Rounding second>
__device__ __forceinline__ void split_operand(const float2* x, float scale, uint32 (&re)[Terms],
                                              uint32 (&im)[Terms]) {
    constexpr int kNumbers = kNumbersPerRegister<operand>;
    float real[kNumbers], imaginary[kNumbers];
#pragma unroll
    for (int i = 0; i < kNumbers; ++i) real[i] = x[i].x * scale;
    split<operand, Terms, first, second, true>(real, re);
#pragma unroll
    for (int i = 0; i < kNumbers; ++i) imaginary[i] = x[i].y * scale;
    split<operand, Terms, first, second, true>(imaginary, im);
}

// A lane's A fragments of 16 rows of the matrix. The four registers of a part (real, imaginary) and
// term hold the upper and the lower row in the first k slot, then in the second. column(slot,
// number, k_tile) is the column of the matrix that stands in a slot, as one of the numbers of the
// register.
template <Operand operand, int Terms, Rounding first, Rounding second, int Width,
          bool TargetsQubit0, int NumKTiles, typename Column, typename Arguments>
__device__ __forceinline__ void load_matrix_fragments(const Arguments& args, uint32 lane,
                                                      uint32 row_tile, Column column,
                                                      uint32 (&matrix)[NumKTiles][2][Terms][4]) {
    const auto* global_matrix = static_cast<const float2*>(args.matrix);
    const float scale = is_scaled(operand) ? power_of_two(matrix_exponent_of(args)) : 1.0f;
#pragma unroll
    for (int k_tile = 0; k_tile < NumKTiles; ++k_tile) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float2* row =
                global_matrix + (matrix_row<TargetsQubit0>(lane, i & 1, row_tile) << Width);
            float2 numbers[kNumbersPerRegister<operand>];
#pragma unroll
            for (int number = 0; number < kNumbersPerRegister<operand>; ++number)
                numbers[number] = row[column(i >> 1, number, k_tile)];
            uint32 re[Terms], im[Terms];
            split_operand<operand, Terms, first, second>(numbers, scale, re, im);
#pragma unroll
            for (int term = 0; term < Terms; ++term) {
                matrix[k_tile][0][term][i] = re[term];
                matrix[k_tile][1][term][i] = im[term];
            }
        }
    }
}

// A real product of one term of the matrix and one of the state, for mma.sync. It cannot subtract,
// so the products of real parts and those of imaginary parts have an accumulator each.
struct RealProduct {
    int matrix_part, matrix_term, state_part, state_term;  // part 0 is real, 1 imaginary
    int accumulator;  // 0: re re, 1: im im, 2: re im + im re
    bool is_low_order;
};

// Visits the four real products of two complex numbers (4M), for each product of their terms.
template <int Terms, typename Visit>
__device__ __forceinline__ void for_each_real_product(const Visit& visit) {
    using Products = TermProducts<Terms>;  // of the state and the matrix
#pragma unroll
    for (int product = 0; product < Products::kCount; ++product) {
        const int state_term = Products::left(product), matrix_term = Products::right(product);
        const bool is_low_order = Products::is_low_order(product);
        visit(RealProduct{0, matrix_term, 0, state_term, 0, is_low_order});
        visit(RealProduct{1, matrix_term, 1, state_term, 1, is_low_order});
        visit(RealProduct{0, matrix_term, 1, state_term, 2, is_low_order});
        visit(RealProduct{1, matrix_term, 0, state_term, 2, is_low_order});
    }
}

__device__ __forceinline__ float absmax_with(float absmax, float4 x) {
    return fmaxf(fmaxf(fmaxf(absmax, fabsf(x.x)), fmaxf(fabsf(x.y), fabsf(x.z))), fabsf(x.w));
}

__device__ __forceinline__ uint32 finite_absmax_with(uint32 absmax, float4 x) {
    return max(max(absmax, component_absmax_bits({x.x, x.y})), component_absmax_bits({x.z, x.w}));
}

// Largest finite magnitude of a warp's numbers, as bits of an fp32 number. fmaxf ignores NaN, so
// only an infinity takes the slow branch.
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

// Maximum over the warps of a block, each of which has written its own.
template <int Warps>
__device__ __forceinline__ uint32 block_absmax(const uint32 (&warp_maxima)[Warps]) {
    uint32 absmax = 0;
#pragma unroll
    for (int i = 0; i < Warps; ++i) absmax = max(absmax, warp_maxima[i]);
    return absmax;
}

// Descales a warp's accumulators, 16 rows by Tiles x 8 columns, and passes them on as chunks of the
// state: store(number, chunk). In an 8-column tile, bit 0 of a register's index is the lowest bit
// of the column, and bit 1 selects the lower rows. Bit 0 of `number` is that bit of the column. Bit
// 1 selects the lower rows, or the next 8-column tile where a chunk holds both rows; bit 2 the next
// two tiles.
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
