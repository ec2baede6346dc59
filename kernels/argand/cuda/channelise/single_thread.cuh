// The kernel of filter banks of few channels: a thread filters and transforms a spectrum in its
// registers, in fp32.
//
// A block has consecutive spectra of a row. Their samples lie in shared memory as floats, a line of
// M for each frame, and lines are an odd number of words or vectors apart: lanes that read one
// residue of several frames meet no bank twice. Residues count from the row's first sample
// (docs/kernels/channelise.md): a spectrum that begins at residue r has the residues below r a
// frame later. Spectra leave through shared memory, so that the block writes whole lines.
#pragma once
#include "dft/radix.cuh"
#include "filter.cuh"

template <SingleThreadPlan plan, Component Of>
struct SingleThreadKernel {
    static constexpr int M = plan.channels, T = plan.taps, kHop = plan.hop;
    static constexpr int kBins = plan.bins(), kLine = plan.line(), kPitch = plan.out_pitch();
    using Sample = FilterSample<float, Of, plan.real>;
    using Number = typename Sample::Number;
    static_assert(sizeof(Number) == plan.number_bytes(), "numbers in shared memory");

    static __device__ __forceinline__ void add(float c, float x, float& sum) {
        sum = fmaf(c, x, sum);
    }
    static __device__ __forceinline__ void add(float c, float2 x, float2& sum) {
        sum = {fmaf(c, x.x, sum.x), fmaf(c, x.y, sum.y)};
    }

    // Sums of taps for each residue; `frame` is that of the spectrum's first sample, of `residue`.
    static __device__ __forceinline__ void filter(const Number* frame, const float* h, int residue,
                                                  Number (&sums)[M]) {
#pragma unroll
        for (int m = 0; m < M; ++m) sums[m] = Number{};
        if constexpr (kHop == M) {
#pragma unroll 1
            for (int t = 0; t < T; ++t)
#pragma unroll
                for (int m = 0; m < M; ++m)
                    add(h[t * plan.h_pitch() + m], frame[t * kLine + m], sums[m]);
        } else {
#pragma unroll
            for (int m = 0; m < M; ++m) {
                const bool later = m < residue;
                const Number* const x = frame + m + (later ? kLine : 0);
                const float* const c = h + (m - residue + (later ? M : 0));
#pragma unroll 8
                for (int t = 0; t < T; ++t) add(c[t * plan.h_pitch()], x[t * kLine], sums[m]);
            }
        }
    }

    static __device__ __forceinline__ void transform(float2 (&sums)[M], float2* to) {
        butterfly<M>(sums);
#pragma unroll
        for (int k = 0; k < M; ++k) to[k] = sums[k];
    }

    // An even number of real samples is one transform of the even ones and i times the odd ones
    // (`TransformStages::real_pair`), with Z_k = E_k + i O_k.
    static __device__ __forceinline__ void transform(float (&sums)[M], float2* to) {
        if constexpr (M % 2 == 0) {
            constexpr int kHalf = M / 2;
            float2 z[kHalf];
#pragma unroll
            for (int j = 0; j < kHalf; ++j) z[j] = {sums[2 * j], sums[2 * j + 1]};
            butterfly<kHalf>(z);
#pragma unroll
            for (int k = 0; k <= kHalf / 2; ++k) {
                const float2 a = z[k], b = z[k ? kHalf - k : 0];
                const float2 even = {0.5f * (a.x + b.x), 0.5f * (a.y - b.y)};
                const float2 odd = {0.5f * (a.y + b.y), 0.5f * (b.x - a.x)};
                const float2 turned = times_root<M>(odd, k);
                to[k] = {even.x + turned.x, even.y + turned.y};
                to[kHalf - k] = {even.x - turned.x, turned.y - even.y};
            }
        } else {
            float2 z[M];
#pragma unroll
            for (int m = 0; m < M; ++m) z[m] = {sums[m], 0.0f};
            butterfly<M>(z);
#pragma unroll
            for (int k = 0; k < kBins; ++k) to[k] = z[k];
        }
    }

    // The kernel: a thread filters and transforms one spectrum, from samples in shared memory.
    static __device__ __forceinline__ void run(const SingleThreadArguments& args) {
        extern __shared__ __align__(16) unsigned char shared[];
        float* const h = reinterpret_cast<float*>(shared);
        Number* const tile = reinterpret_cast<Number*>(shared + plan.h_bytes());
        float2* const spectra = reinterpret_cast<float2*>(shared + plan.h_bytes());
        const int64 row = blockIdx.x / args.chunks;
        const int64 first = blockIdx.x % args.chunks * plan.spectra;
        const int64 start = first * kHop, frame = start / M;
        const int64 left = args.samples - frame * M;
        constexpr int kSamples = plan.frames() * M;
        const int count = left < kSamples ? static_cast<int>(left) : kSamples;
        const int64 from = row * args.samples + frame * M;
#pragma unroll 8
        for (int i = threadIdx.x; i < count; i += plan.spectra)
            tile[i / M * kLine + i % M] = Sample::load(args.x, from + i);
        for (int i = threadIdx.x; i < T * M; i += plan.spectra)
            h[i / M * plan.h_pitch() + i % M] = __ldg(args.coefficients + i);
        __syncthreads();
        const int offset = static_cast<int>(start - frame * M) + threadIdx.x * kHop;
        Number sums[M];
        filter(tile + offset / M * kLine, h, offset % M, sums);
        __syncthreads();
        transform(sums, spectra + threadIdx.x * kPitch);
        __syncthreads();
        const int64 rest = args.spectra - first;
        const int valid = rest < plan.spectra ? static_cast<int>(rest) : plan.spectra;
        float2* const out = args.out + (row * args.spectra + first) * kBins;
#pragma unroll 4
        for (int i = threadIdx.x; i < valid * kBins; i += plan.spectra)
            __stcs(out + i, spectra[i / kBins * kPitch + i % kBins]);
    }
};
