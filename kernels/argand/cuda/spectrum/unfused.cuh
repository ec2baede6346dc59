// Spectral estimates in several kernels, for lengths and precisions whose transforms `argand.dft`
// computes: windowed segments to memory, and sums of squares from there. Sums are in fp64.
#pragma once
#include "trend.cuh"

// Writes windowed segments, whose trend is removed first, for a transform of another kernel.
template <typename Real, bool RealSamples>
__device__ __forceinline__ void window_segments(const WindowArguments& args) {
    const Real* const window = static_cast<const Real*>(args.window);
    Complex<Real>* const out = static_cast<Complex<Real>*>(args.out);
    const int64 all = args.count * args.length;
    for (int64 at = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; at < all;
         at += static_cast<int64>(gridDim.x) * blockDim.x) {
        const int64 segment = args.first + at / args.length, n = at % args.length;
        const int64 from =
            segment / args.segments * args.row_stride + segment % args.segments * args.hop + n;
        const Real w = window[n];
        Complex<Real> x = {Real(0), Real(0)};
        if constexpr (RealSamples) {
            x.x = static_cast<const Real*>(args.x)[from];
        } else {
            x = static_cast<const Complex<Real>*>(args.x)[from];
        }
        if (args.trends) {
            const Trend trend = args.trends[segment];
            const double time = static_cast<double>(n),
                         middle = (static_cast<double>(args.length) - 1.0) / 2;
            x.x = static_cast<Real>(trend.without(x.x, 0, time, middle));
            if constexpr (!RealSamples)
                x.y = static_cast<Real>(trend.without(x.y, 1, time, middle));
        }
        out[at] = {w * x.x, w * x.y};
    }
}

__device__ __forceinline__ double term(double sum) { return sum; }
__device__ __forceinline__ double term(float2 x) {
    return static_cast<double>(x.x) * x.x + static_cast<double>(x.y) * x.y;
}
__device__ __forceinline__ double term(double2 x) { return x.x * x.x + x.y * x.y; }

// A block of (32, Lanes) threads sums 32 bins of a row at a time: each lane adds every Lanes-th
// term, then the first one adds the lanes' sums.
template <typename Term, typename Real, int Lanes>
__device__ __forceinline__ void sum_terms(const SumArguments& args) {
    __shared__ double sums[Lanes][33];
    const int column = threadIdx.x % 32, lane = threadIdx.x / 32;
    const int64 tiles = (args.computed + 31) / 32, all = args.rows * tiles;
    for (int64 at = blockIdx.x; at < all; at += gridDim.x) {
        const int64 row = at / tiles, k = at % tiles * 32 + column;
        const bool inside = k < args.computed;
        const Term* const from =
            static_cast<const Term*>(args.from) + row * args.terms * args.stride + k;
        double sum = 0.0;
        if (inside) {
#pragma unroll 4
            for (int64 t = lane; t < args.terms; t += Lanes) sum += term(from[t * args.stride]);
        }
        sums[lane][column] = sum;
        __syncthreads();
        if (lane == 0 && inside) {
#pragma unroll
            for (int other = 1; other < Lanes; ++other) sum += sums[other][column];
            if (args.partial) {
                static_cast<double*>(args.out)[row * args.computed + k] = sum;
            } else {
                args.bins.write(static_cast<Real*>(args.out) + row * args.bins.pitch,
                                static_cast<int>(k), sum);
            }
        }
        __syncthreads();
    }
}
