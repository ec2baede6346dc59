// Spectral estimates in several kernels, for lengths and precisions whose transforms `argand.dft`
// computes: windowed segments to memory, and sums of squares from there. Sums are in fp64.
#pragma once
#include "trend.cuh"

__device__ __forceinline__ float windowed(float w, float x) { return w * x; }
__device__ __forceinline__ double windowed(double w, double x) { return w * x; }
__device__ __forceinline__ float2 windowed(float w, float2 x) { return {w * x.x, w * x.y}; }
__device__ __forceinline__ double2 windowed(double w, double2 x) { return {w * x.x, w * x.y}; }

template <typename Real>
__device__ __forceinline__ Real detrended(const Trend& trend, Real x, double n, double middle) {
    return static_cast<Real>(trend.without(x, 0, n, middle));
}
__device__ __forceinline__ float2 detrended(const Trend& trend, float2 x, double n, double middle) {
    return {detrended(trend, x.x, n, middle),
            static_cast<float>(trend.without(x.y, 1, n, middle))};
}
__device__ __forceinline__ double2 detrended(const Trend& trend, double2 x, double n,
                                             double middle) {
    return {trend.without(x.x, 0, n, middle), trend.without(x.y, 1, n, middle)};
}

// Writes windowed segments, whose trend is removed first, for a transform of another kernel. A
// block takes up to kPart samples of a segment at a time, or several segments shorter than it.
template <typename Sample, typename Real>
__device__ __forceinline__ void window_segments(const WindowArguments& args) {
    constexpr int kPart = 4096;
    const Real* const window = static_cast<const Real*>(args.window);
    const int width = args.length < blockDim.x ? static_cast<int>(args.length) : blockDim.x;
    const int together = blockDim.x / width, mine = threadIdx.x / width;
    if (mine == together) return;
    const int64 parts = (args.length + kPart - 1) / kPart;
    const int64 items = (args.count + together - 1) / together * parts;
    const double middle = (static_cast<double>(args.length) - 1.0) / 2;
    for (int64 item = blockIdx.x; item < items; item += gridDim.x) {
        const int64 at = item / parts * together + mine, segment = args.first + at;
        if (at >= args.count) continue;
        const Sample* const x = static_cast<const Sample*>(args.x) +
                                segment / args.segments * args.row_stride +
                                segment % args.segments * args.hop;
        Sample* const out = static_cast<Sample*>(args.out) + at * args.length;
        const int64 first = item % parts * kPart,
                    stop = first + kPart < args.length ? first + kPart : args.length;
#pragma unroll 4
        for (int64 n = first + threadIdx.x % width; n < stop; n += width) {
            Sample value = x[n];
            if (args.trends)
                value = detrended(args.trends[segment], value, static_cast<double>(n), middle);
            out[n] = windowed(window[n], value);
        }
    }
}

__device__ __forceinline__ double term(double sum) { return sum; }
__device__ __forceinline__ double term(float2 x) {
    return static_cast<double>(x.x) * x.x + static_cast<double>(x.y) * x.y;
}
__device__ __forceinline__ double term(double2 x) { return x.x * x.x + x.y * x.y; }

// A thread sums a bin of a part of the terms, or each of kLanes threads every kLanes-th of them,
// whose sums the first one adds.
template <typename Term, typename Real, int Threads>
__device__ __forceinline__ void sum_terms(const SumArguments& args) {
    constexpr int kLanes = 8;
    __shared__ double sums[Threads];
    const int lanes = args.terms < kLanes ? 1 : kLanes, columns = Threads / lanes;
    const int column = threadIdx.x % columns, lane = threadIdx.x / columns;
    const int64 all = args.rows * args.parts * args.computed;
    for (int64 first = static_cast<int64>(blockIdx.x) * columns; first < all;
         first += static_cast<int64>(gridDim.x) * columns) {
        const int64 at = first + column, item = at / args.computed, k = at % args.computed;
        const int64 row = item / args.parts, begin = item % args.parts * args.part_terms;
        const int64 stop =
            begin + args.part_terms < args.terms ? begin + args.part_terms : args.terms;
        const bool inside = at < all;
        double sum = 0.0;
        if (inside) {
            const Term* const from =
                static_cast<const Term*>(args.from) + row * args.terms * args.stride + k;
#pragma unroll 4
            for (int64 t = begin + lane; t < stop; t += lanes) sum += term(from[t * args.stride]);
        }
        if (lanes > 1) {
            sums[threadIdx.x] = sum;
            __syncthreads();
            if (lane == 0) {
#pragma unroll
                for (int other = 1; other < kLanes; ++other) sum += sums[other * columns + column];
            }
            __syncthreads();
        }
        if (lane == 0 && inside) {
            if (args.partial) {
                static_cast<double*>(args.out)[at] = sum;
            } else {
                args.bins.write(static_cast<Real*>(args.out) + row * args.bins.pitch,
                                static_cast<int>(k), sum);
            }
        }
    }
}
