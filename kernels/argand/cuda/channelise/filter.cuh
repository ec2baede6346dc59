// The filter alone, for lengths and precisions whose transforms another kernel computes: sums of
// taps for each spectrum and residue, in the order of residues.
//
// Where spectra of a phase are one frame apart, a thread has a residue and goes along the spectra
// of one phase, `kTogether` at a time: each sample that it loads is added to all of them. Threads
// next to each other have neighbouring residues, and a block's spectra follow each other, so that
// samples of a window are read again from L1.
#pragma once
#include "plan.cuh"
#include "units.cuh"

constexpr int kTogether = 4;  // spectra of a thread

// A number of the sum's type: real of real samples.
template <typename Real, Component Of, bool RealSamples>
struct FilterSample;

template <Component Of>
struct FilterSample<float, Of, false> {
    using Number = float2;
    static __device__ __forceinline__ float2 load(const void* x, int64 at) {
        return conjugated<Of>(
            global_unit<Of>(static_cast<const unsigned char*>(x) + at * Unit<Of>::kBytes));
    }
};

template <Component Of>
struct FilterSample<float, Of, true> {
    using Number = float;
    static __device__ __forceinline__ float load(const void* x, int64 at) {
        constexpr int kBytes = Unit<Of>::kBytes / 2;
        return RealSample<Of>::load(static_cast<const unsigned char*>(x) + at * kBytes);
    }
};

template <Component Of>
struct FilterSample<double, Of, false> {
    using Number = double2;
    static __device__ __forceinline__ double2 load(const void* x, int64 at) {
        return conjugated<Of>(__ldg(static_cast<const double2*>(x) + at));
    }
};

template <Component Of>
struct FilterSample<double, Of, true> {
    using Number = double;
    static __device__ __forceinline__ double load(const void* x, int64 at) {
        return __ldg(static_cast<const double*>(x) + at);
    }
};

// Filters samples where spectra of a phase are a frame apart. A thread has one residue of
// `args.chunk` spectra; coefficients stay in registers from a frame to the next.
template <typename Real, Component Of, bool RealSamples>
__device__ __forceinline__ void filter_samples(const FilterArguments& args) {
    using Sample = FilterSample<Real, Of, RealSamples>;
    using Number = typename Sample::Number;
    constexpr int kUnroll = 4;  // more samples than 64 registers hold would spill
    const int groups = static_cast<int>(blockDim.x) / args.columns;
    const int group = static_cast<int>(threadIdx.x) / args.columns;
    const int column = static_cast<int>(blockIdx.x % args.column_blocks) * args.columns +
                       static_cast<int>(threadIdx.x) % args.columns;
    int64 item = static_cast<int64>(blockIdx.x / args.column_blocks) * groups + group;
    if (group >= groups || column >= args.channels || item >= args.items) return;
    const int64 first = item % args.chunks * args.chunk;  // of the spectra of the phase
    item /= args.chunks;
    const int64 phase = item % args.phases, row = item / args.phases;
    int64 left = (args.count - phase + args.phases - 1) / args.phases - first;
    if (left > args.chunk) left = args.chunk;
    const int64 start = (args.first + phase) * args.hop;
    int l = column - static_cast<int>(start % args.channels);
    if (l < 0) l += args.channels;
    int64 at = row * args.samples + start + first * args.channels + l;
    const Real* const h = static_cast<const Real*>(args.coefficients) + l;
    Number* to = static_cast<Number*>(args.out) +
                 (row * args.count + phase + first * args.phases) * args.channels + column;
#pragma unroll 1
    for (; left > 0; left -= kTogether) {
        const int valid = left < kTogether ? static_cast<int>(left) : kTogether;
        const int frames = args.taps + valid - 1;
        Number sums[kTogether];
        Real window[kTogether];
#pragma unroll
        for (int s = 0; s < kTogether; ++s) {
            sums[s] = Number{};
            window[s] = Real(0);
        }
        int64 from = at;
        int tap = 0;  // of the first spectrum, in coefficients
#pragma unroll kUnroll
        for (int f = 0; f < frames; ++f) {
            const Number x = Sample::load(args.x, from);
#pragma unroll
            for (int s = kTogether - 1; s > 0; --s) window[s] = window[s - 1];
            if (f < args.taps) window[0] = __ldg(h + tap);
#pragma unroll
            for (int s = 0; s < kTogether; ++s) {
                const int t = f - s;
                if (t < 0 || t >= args.taps) continue;  // what is not finite stays in its spectra
                if constexpr (RealSamples) {
                    sums[s] += window[s] * x;
                } else {
                    sums[s].x += window[s] * x.x;
                    sums[s].y += window[s] * x.y;
                }
            }
            from += args.channels;
            tap += args.channels;
        }
#pragma unroll
        for (int s = 0; s < kTogether; ++s)
            if (s < valid) to[static_cast<int64>(s) * args.phases * args.channels] = sums[s];
        at += static_cast<int64>(kTogether) * args.channels;
        to += static_cast<int64>(kTogether) * args.phases * args.channels;
    }
}

// Filters samples where spectra of a phase are several frames apart and share few samples. A thread
// has one residue of one spectrum, and a block all of `args.chunk` spectra one after another, so
// that it writes whole lines.
template <typename Real, Component Of, bool RealSamples>
__device__ __forceinline__ void filter_flat(const FilterArguments& args) {
    using Sample = FilterSample<Real, Of, RealSamples>;
    using Number = typename Sample::Number;
    const int64 row = blockIdx.x / args.chunks, first = blockIdx.x % args.chunks * args.chunk;
    const int64 start = (args.first + first) * args.hop;
    const int channels = args.channels, hop = args.hop;
    const int spectra = static_cast<int>(min(args.chunk, args.count - first));
    Number* const out = static_cast<Number*>(args.out) + (row * args.count + first) * channels;
    // The spectrum, its first residue and the thread's place: divided once, then added to.
    const int threads = static_cast<int>(blockDim.x), thread = static_cast<int>(threadIdx.x);
    const int step = threads / channels, place_step = threads - step * channels;
    const int residue_step = step * hop % channels;
    int s = thread / channels, place = thread - s * channels;
    int residue = static_cast<int>((start + static_cast<int64>(s) * hop) % channels);
    for (int i = thread; s < spectra; i += threads) {
        int l = place - residue;
        if (l < 0) l += channels;
        const Real* h = static_cast<const Real*>(args.coefficients) + l;
        int64 from = row * args.samples + start + static_cast<int64>(s) * hop + l;
        Number sum = Number{};
#pragma unroll 4
        for (int t = 0; t < args.taps; ++t) {
            const Number x = Sample::load(args.x, from);
            const Real c = __ldg(h);
            if constexpr (RealSamples) {
                sum += c * x;
            } else {
                sum.x += c * x.x;
                sum.y += c * x.y;
            }
            from += channels;
            h += channels;
        }
        out[i] = sum;
        s += step;
        place += place_step;
        residue += residue_step;
        if (place >= channels) {
            place -= channels;
            ++s;
            residue += hop;
        }
        while (residue >= channels) residue -= channels;
    }
}
