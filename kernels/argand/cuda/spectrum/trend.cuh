// Trends of segments, in fp64: what is subtracted from them before the window.
#pragma once
#include "arguments.cuh"

// The mean and the slope of a segment's parts; the slope is 0 where means alone are subtracted.
struct Trend {
    double mean[2], slope[2];

    // A part of sample n, of N, without the trend. Of a trend that is far larger than what is left, fp32
    // would leave its own rounding.
    __device__ __forceinline__ double without(double x, int part, double n, double middle) const {
        return x - fma(slope[part], n - middle, mean[part]);
    }
};

// One block at a time for a segment. `Parts` are 2 of complex samples.
template <typename Of, int Parts, int Threads>
__device__ __forceinline__ void find_trends(const TrendArguments& args) {
    constexpr int kSums = 2 * Parts, kWarps = Threads / 32;
    __shared__ double shared[kWarps][kSums];
    const double count = static_cast<double>(args.length), middle = (count - 1.0) / 2;
    for (int64 at = blockIdx.x; at < args.count; at += gridDim.x) {
        const Of* const x =
            static_cast<const Of*>(args.x) +
            (at / args.segments * args.row_stride + at % args.segments * args.step) * Parts;
        double sums[kSums] = {};
        for (int64 n = threadIdx.x; n < args.length; n += Threads) {
#pragma unroll
            for (int part = 0; part < Parts; ++part) {
                const double value = static_cast<double>(__ldg(x + n * Parts + part));
                sums[part] += value;
                sums[Parts + part] = fma(value, static_cast<double>(n) - middle, sums[Parts + part]);
            }
        }
#pragma unroll
        for (int i = 0; i < kSums; ++i) {
#pragma unroll
            for (int apart = 16; apart > 0; apart /= 2)
                sums[i] += __shfl_xor_sync(~0u, sums[i], apart);
            if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32][i] = sums[i];
        }
        __syncthreads();
        if (threadIdx.x < kSums) {
            const int part = threadIdx.x % Parts;
            const bool slope = threadIdx.x >= Parts;
            double sum = 0.0;
            for (int warp = 0; warp < kWarps; ++warp) sum += shared[warp][threadIdx.x];
            const double squares = count * (count * count - 1.0) / 12;
            if (!slope) sum /= count;
            if (slope) sum = args.linear && args.length > 1 ? sum / squares : 0.0;
            args.trends[at * 4 + (slope ? 2 : 0) + part] = sum;
            if (Parts == 1) args.trends[at * 4 + (slope ? 2 : 0) + 1] = sum;
        }
        __syncthreads();
    }
}
