// Packs covariances: the lower triangle of the real form, rounded to terms, in the order in which
// lanes of the image kernel read it.
#pragma once
#include "device/triangle.cuh"
#include "plan.cuh"
#include "refused_operands.cuh"

constexpr int kPackThreads = 256;

__device__ __forceinline__ float2 entry_of(const PackArguments& args, int64 matrix, int row,
                                           int column) {
    return args.covariances[(matrix * args.antennas + row) * args.antennas + column];
}

// The element of L in a row and at a k.
__device__ __forceinline__ float lower_element(const PackArguments& args, int64 matrix, int row,
                                               int k) {
    const int a = row / kPanelRows * kPanelAntennas + row % kPanelAntennas,
              b = k / kPanelRows * kPanelAntennas + k % kPanelAntennas;
    if (k > row || a >= args.antennas || b >= args.antennas) return 0.0f;
    const float2 x = entry_of(args, matrix, a, b), y = entry_of(args, matrix, b, a);
    const bool sine_row = row % kPanelRows >= kPanelAntennas,
               sine_k = k % kPanelRows >= kPanelAntennas;
    const float half = k == row ? 0.5f : 1.0f;
    if (sine_row == sine_k) return half * x.x + half * y.x;
    return sine_row ? x.y - y.y : y.y - x.y;
}

// The kernel: splits and scales the lower triangle of each covariance and stores it in the order of
// the fragments of mma.sync.
template <Operand operand, int Terms, Rounding first, Rounding second>
__device__ __forceinline__ void pack_covariance(const PackArguments& args) {
    constexpr int kNumbers = kNumbersPerRegister<operand>;
    const int64 units = unit_of(args.row_tiles, 0);
    const int64 per_matrix = units * kUnitMmas<operand> * kWarp;
    const int64 all = per_matrix * args.matrices;
    for (int64 i = int64(blockIdx.x) * kPackThreads + threadIdx.x; i < all;
         i += int64(gridDim.x) * kPackThreads) {
        const int64 matrix = i / per_matrix;
        const int within = static_cast<int>(i % per_matrix), lane = within % kWarp,
                  mma_index = within / kWarp % kUnitMmas<operand>,
                  unit = within / (kWarp * kUnitMmas<operand>);
        const int tile = static_cast<int>(triangle_row(unit));
        const int k_first = (unit - static_cast<int>(unit_of(tile, 0))) * kTile +
                            mma_index * kMmaK<operand> + lane % 4;
        int exponent = 0;
        uint32 bits = 0;
        if (is_scaled(operand) || within == 0) {
            for (int part = 0; part < args.parts; ++part)
                bits = max(bits, args.largest[matrix * args.parts + part]);
        }
        if constexpr (is_scaled(operand)) {
            const float largest = 2.0f * __uint_as_float(bits);
            exponent = scale_exponent<operand>(finite_abs_bits(largest));
        }
        uint32 words[4][Terms];
#pragma unroll
        for (int word = 0; word < 4; ++word) {
            const int row = tile * kTile + lane / 4 + word / 2 * 8;
            float x[kNumbers];
#pragma unroll
            for (int n = 0; n < kNumbers; ++n) {
                x[n] = lower_element(args, matrix, row, k_first + 4 * (word % 2 * kNumbers + n));
                x[n] *= power_of_two(exponent);
            }
            split<operand, Terms, first, second>(x, words[word]);
        }
        uint4* to = args.fragments + matrix * units * kUnitFragments<operand, Terms> +
                    int64(unit) * kUnitFragments<operand, Terms> + mma_index * Terms * kWarp + lane;
#pragma unroll
        for (int term = 0; term < Terms; ++term)
            to[term * kWarp] = {words[0][term], words[2][term], words[1][term], words[3][term]};
        if (within == 0) {
            args.descales[matrix] =
                bits == kNotHermitian ? not_a_number() : power_of_two(-exponent);
        }
    }
}
