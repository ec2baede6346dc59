// Sums of squares of a matrix, of its factor U and of a solution, by which the host sees whether
// the factors have grown.
#pragma once
#include "device/types.cuh"

constexpr int kGrowthThreads = 256;

struct GrowthArguments {
    const void* a;     // real and imaginary parts of A, in any order
    const double* lu;  // (n, n), complex128, column-major
    const double* x;   // real and imaginary parts of x
    const int* info;   // getrf's: a column without a pivot, from 1 on, or 0
    double* sums;      // (blocks, 4): the squares of A, U and x, and info
    int64 n, reals_of_a, reals_of_x;
};

template <typename Real>
__device__ __forceinline__ double squares(const Real* reals, int64 first, int64 count, int64 step) {
    double sum = 0;
#pragma unroll 4
    for (int64 i = first; i < count; i += step) {
        const double value = reals[i];
        sum += value * value;
    }
    return sum;
}

template <typename Real>
__device__ __forceinline__ void sum_squares(const GrowthArguments& args) {
    constexpr int kWarps = kGrowthThreads / 32;
    __shared__ double shared[3][kWarps];
    const int64 first = int64(blockIdx.x) * kGrowthThreads + threadIdx.x;
    const int64 step = int64(gridDim.x) * kGrowthThreads;
    double sums[3] = {squares(static_cast<const Real*>(args.a), first, args.reals_of_a, step), 0,
                      squares(args.x, first, args.reals_of_x, step)};
    for (int64 column = blockIdx.x; column < args.n; column += gridDim.x)
        sums[1] += squares(args.lu + 2 * args.n * column, threadIdx.x, 2 * (column + 1),
                           kGrowthThreads);
#pragma unroll
    for (int part = 0; part < 3; ++part) {
#pragma unroll
        for (int mask = 16; mask > 0; mask /= 2)
            sums[part] += __shfl_xor_sync(0xffffffffu, sums[part], mask);
        if (threadIdx.x % 32 == 0) shared[part][threadIdx.x / 32] = sums[part];
    }
    __syncthreads();
    if (threadIdx.x < 3) {
        double all = 0;
#pragma unroll
        for (double one : shared[threadIdx.x]) all += one;
        args.sums[4 * blockIdx.x + threadIdx.x] = all;
    } else if (threadIdx.x == 3) {
        args.sums[4 * blockIdx.x + 3] = *args.info;
    }
}
