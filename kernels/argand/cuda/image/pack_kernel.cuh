// Finds the largest magnitudes of covariances, and packs them: the lower triangle of the real form,
// rounded to terms, in the order in which lanes of the image kernel read it.
#pragma once
#include "device/triangle.cuh"
#include "plan.cuh"

constexpr int kPackThreads = 256;

__device__ __forceinline__ float2 entry_of(const PackArguments& args, int64 matrix, int row,
                                           int column) {
    return args.covariances[(matrix * args.antennas + row) * args.antennas + column];
}

// One block for each matrix.
__device__ __forceinline__ void scan_covariance(const PackArguments& args) {
    __shared__ uint32 largest[3];
    if (threadIdx.x < 3) largest[threadIdx.x] = 0;
    __syncthreads();
    const int64 matrix = blockIdx.x, count = int64(args.antennas) * args.antennas;
    uint32 component = 0, entry = 0, apart = 0;
    for (int64 i = threadIdx.x; i < count; i += kPackThreads) {
        const int row = static_cast<int>(i / args.antennas),
                  column = static_cast<int>(i % args.antennas);
        const float2 x = entry_of(args, matrix, row, column),
                     y = entry_of(args, matrix, column, row);
        component = max(component, component_absmax_bits(x));
        // The bits of NaN are larger than those of any number, so NaN is not compared: a matrix
        // with NaN passes the check of symmetry.
        const float size = hypotf(x.x, x.y), off = hypotf(x.x - y.x, x.y + y.y);
        if (!is_nan(size)) entry = max(entry, __float_as_uint(size));
        if (!is_nan(off)) apart = max(apart, __float_as_uint(off));
    }
    atomicMax(&largest[0], component);
    atomicMax(&largest[1], entry);
    atomicMax(&largest[2], apart);
    __syncthreads();
    if (threadIdx.x == 0) args.scans[matrix] = {largest[0], largest[1], largest[2]};
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
        if constexpr (is_scaled(operand)) {
            const float largest = 2.0f * __uint_as_float(args.scans[matrix].component);
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
        if (within == 0) args.descales[matrix] = power_of_two(-exponent);
    }
}
