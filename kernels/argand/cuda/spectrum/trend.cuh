// Trends of segments, in fp64: what is subtracted from them before the window.
#pragma once
#include "arguments.cuh"

// The mean and the slope of a segment's parts; the slope is 0 where means alone are subtracted.
struct Trend {
    double mean[2], slope[2];

    // A part of sample n without the trend. Where the trend is far larger than what is left, fp32
    // would leave its own rounding.
    __device__ __forceinline__ double without(double x, int part, double n, double middle) const {
        return x - fma(slope[part], n - middle, mean[part]);
    }
};

// A warp takes a segment, and each lane adds every 32nd sample of it; all warps of a block take one
// that is longer than kWarpSamples. `Parts` is 2 for complex samples.
template <typename Of, int Parts, int Threads>
struct FindTrends {
    static constexpr int kSums = 2 * Parts, kWarps = Threads / 32, kWarpSamples = 16384;

    // Adds samples first, first + stride, ... to the sums over x and over x times the time.
    static __device__ __forceinline__ void add(const TrendArguments& args, int64 segment, int first,
                                               int stride, double (&sums)[kSums]) {
        const Of* const x = static_cast<const Of*>(args.x) +
                            (segment / args.segments * args.row_stride +
                             segment % args.segments * args.hop) * Parts;
        const double middle = (static_cast<double>(args.length) - 1.0) / 2;
#pragma unroll 8
        for (int64 n = first; n < args.length; n += stride) {
            const double time = static_cast<double>(n) - middle;
#pragma unroll
            for (int part = 0; part < Parts; ++part) {
                const double value = static_cast<double>(__ldg(x + n * Parts + part));
                sums[part] += value;
                sums[Parts + part] = fma(value, time, sums[Parts + part]);
            }
        }
#pragma unroll
        for (int i = 0; i < kSums; ++i)
#pragma unroll
            for (int apart = 16; apart > 0; apart /= 2)
                sums[i] += __shfl_xor_sync(~0u, sums[i], apart);
    }

    static __device__ __forceinline__ void store(const TrendArguments& args, int64 segment,
                                                 const double (&sums)[kSums]) {
        const double count = static_cast<double>(args.length);
        const double squares = count * (count * count - 1.0) / 12;  // of times about the middle
        const bool sloped = args.linear && args.length > 1;
        double* const to = args.trends + segment * 4;
#pragma unroll
        for (int part = 0; part < 2; ++part) {
            const int own = part % Parts;
            to[part] = sums[own] / count;
            to[2 + part] = sloped ? sums[Parts + own] / squares : 0.0;
        }
    }

    // The kernel: a warp finds the trend of a short segment, a block that of a long one.
    static __device__ __forceinline__ void run(const TrendArguments& args) {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        if (args.length <= kWarpSamples) {
            for (int64 at = static_cast<int64>(blockIdx.x) * kWarps + warp; at < args.count;
                 at += static_cast<int64>(gridDim.x) * kWarps) {
                double sums[kSums] = {};
                add(args, at, lane, 32, sums);
                if (lane == 0) store(args, at, sums);
            }
            return;
        }
        __shared__ double shared[kWarps][kSums];
        for (int64 at = blockIdx.x; at < args.count; at += gridDim.x) {
            double sums[kSums] = {};
            add(args, at, threadIdx.x, Threads, sums);
            if (lane == 0)
                for (int i = 0; i < kSums; ++i) shared[warp][i] = sums[i];
            __syncthreads();
            if (threadIdx.x == 0) {
                for (int other = 1; other < kWarps; ++other)
                    for (int i = 0; i < kSums; ++i) sums[i] += shared[other][i];
                store(args, at, sums);
            }
            __syncthreads();
        }
    }
};
