// The kernel of a polyphase filter bank: the filter in registers, its transforms in shared memory,
// in fp32. Neither filtered samples nor a stage of a transform reach memory.
//
// Thread j of a group holds the samples of residues j, j + P, ... (R0 of them) for T frames, and
// slides by q frames from a spectrum to the next of its phase: a batch loads each sample once. A
// batch's first T - q frames are those that the one before it read last, from L1 or L2. It sums the
// taps, transforms its R0 sums by a butterfly, and stores them. So the first stage of a transform
// of R0 R1 R2 points takes no exchange of its own. The stages of R1 and R2 are in place in shared
// memory (`TransformStages`), for all spectra of a batch, and the last one writes the result.
//
// Spectra of one phase start at the same residue: their samples are whole frames apart. Residues
// count from the row's first sample, which turns the phase of each channel
// (docs/kernels/channelise.md).
#pragma once
#include "plan.cuh"
#include "stages.cuh"
#include "units.cuh"

template <ChannelisePlan plan, Component Of>
struct ChanneliseKernel {
    static constexpr int M = plan.points, T = plan.taps, B = plan.batch, Q = plan.frames;
    static constexpr int R0 = plan.radices[0], R1 = plan.radices[1], R2 = plan.radices[2];
    static constexpr int P = plan.columns();
    static constexpr int kParts = plan.real ? 2 : 1;  // coefficients of a unit
    static constexpr int64 kOutPitch = plan.real ? M + 1 : M;  // channels of a spectrum
    using Samples = Unit<Of>;
    using Stages = TransformStages<plan>;

    // Work of a group: spectra of a phase one after another, a batch at a time.
    struct Item {
        const unsigned char* x;  // of the first unit of the batch's first spectrum
        float2* out;             // of that spectrum
        int left;                // spectra of this batch and those after it
        int start;               // residue of the first unit

        // Frames from the batch's first one on that belong to a spectrum.
        __device__ __forceinline__ int frames() const { return (left - 1) * Q + T; }
        __device__ __forceinline__ int valid() const { return left < B ? left : B; }
    };

    static __device__ __forceinline__ Item item_of(const ChanneliseArguments& args, int64 index) {
        if (index >= args.items) return {nullptr, nullptr, 0, 0};
        const int64 phase = index % plan.phases;
        index /= plan.phases;
        const int64 spectra = args.batches * B;
        const int64 first = index % args.chunks * spectra, row = index / args.chunks;
        int64 left = (args.spectra - phase + plan.phases - 1) / plan.phases - first;
        left = left < 0 ? 0 : left < spectra ? left : spectra;
        const int64 begin = phase * args.hop;
        return {static_cast<const unsigned char*>(args.x) +
                    (row * args.row_stride + begin + first * Q * M) * Samples::kBytes,
                args.out + (row * args.spectra + phase + first * plan.phases) * kOutPitch,
                static_cast<int>(left), static_cast<int>(begin % M)};
    }

    // Unit of residue j + i P after the phase's first one.
    static __device__ __forceinline__ int place(int column, int i, int start) {
        int l = column + i * P;
        if constexpr (plan.phases > 1) {
            l -= start;
            if (l < 0) l += M;
        }
        return l;
    }

    // Loads a frame of the batch.
    static __device__ __forceinline__ void load_frame(float2 (&x)[R0], const Item& item, int frame,
                                                      int column) {
        const bool inside = frame < item.frames();
#pragma unroll
        for (int i = 0; i < R0; ++i) {
            const int unit = place(column, i, item.start) + frame * M;
            x[i] = inside ? global_unit<Of>(item.x + unit * Samples::kBytes) : float2{0.0f, 0.0f};
        }
    }

    // The sums of a batch's spectra for the residues of a column, transformed by the first stage.
    static __device__ __forceinline__ void filter_column(const ChanneliseArguments& args,
                                                         const Item& item, float2* tile,
                                                         int column) {
        // Opaque to the optimiser: tables are loaded in each batch, since there are no registers to
        // keep them beside those of a transform.
        const float* coefficients = args.coefficients;
        const float2* twiddles = args.twiddles;
        asm volatile("" : "+l"(coefficients), "+l"(twiddles));
        float h[T][R0][kParts];
#pragma unroll
        for (int t = 0; t < T; ++t)
#pragma unroll
            for (int i = 0; i < R0; ++i)
#pragma unroll
                for (int part = 0; part < kParts; ++part)
                    h[t][i][part] = __ldg(
                        coefficients + (place(column, i, item.start) + t * M) * kParts + part);
        constexpr int kKept = Q < T ? T - Q : 0;  // frames of the spectrum before
        float2 window[T][R0];  // by the frame modulo T
#pragma unroll
        for (int f = 0; f < kKept; ++f) load_frame(window[f], item, f, column);
        float2* const to = tile + column + column / R2 * (plan.group_pitch() - R2);
#pragma unroll
        for (int b = 0; b < B; ++b) {
#pragma unroll
            for (int f = kKept; f < T; ++f)
                load_frame(window[(b * Q + f) % T], item, b * Q + f, column);
            float2 z[R0];
#pragma unroll
            for (int i = 0; i < R0; ++i) {
                z[i] = {0.0f, 0.0f};
#pragma unroll
                for (int t = 0; t < T; ++t) {
                    const float2 x = window[(b * Q + t) % T][i];
                    z[i].x = t ? fmaf(h[t][i][0], x.x, z[i].x) : h[t][i][0] * x.x;
                    z[i].y =
                        t ? fmaf(h[t][i][kParts - 1], x.y, z[i].y) : h[t][i][kParts - 1] * x.y;
                }
                z[i] = conjugated<Of>(z[i]);
            }
            Stages::first_stage(twiddles, z, column, to, b);
        }
    }

    // The last stage of a batch's transforms. It writes to the result, or of real samples to shared
    // memory, where `split_real` reads them.
    static __device__ __forceinline__ void last_stage(const Item& item, float2* tile,
                                                      int thread) {
        constexpr int kCount = B * R0 * R1;
#pragma unroll 1
        for (int index = thread; index < kCount; index += plan.threads) {
            const int k = index % (R0 * R1), b = index / (R0 * R1);
            float2* const at = tile + b * plan.spectrum_pitch() + Stages::place_of(k);
            float2 z[R2];
            Stages::last_stage(at, z);
            if constexpr (plan.real) {
#pragma unroll
                for (int n = 0; n < R2; ++n) at[n] = z[n];
            } else if (b < item.left) {
                float2* const to = item.out + b * (plan.phases * kOutPitch) + k;
#pragma unroll
                for (int n = 0; n < R2; ++n) __stcs(to + n * (R0 * R1), z[n]);
            }
        }
    }

    // Writes the channels of real samples (`real_pair`).
    static __device__ __forceinline__ void split_real(const ChanneliseArguments& args,
                                                      const Item& item, const float2* tile,
                                                      int thread) {
        constexpr int kHalf = M / 2 + 1;
        const float2* const twiddles = args.twiddles + plan.third_table();
        const int valid = item.valid();
#pragma unroll 1
        for (int index = thread; index < valid * kHalf; index += plan.threads) {
            const int k = index % kHalf, b = index / kHalf;
            const PairOfChannels found =
                Stages::real_pair(tile + b * plan.spectrum_pitch(), __ldg(twiddles + k), k);
            float2* const to = item.out + b * (plan.phases * kOutPitch);
            __stcs(to + k, found.lower);
            __stcs(to + (M - k), found.upper);
        }
    }

    // Prefetches the samples of the next batch into L2 while this one is transformed.
    static __device__ __forceinline__ void prefetch_batch(const Item& item, int thread) {
        constexpr int kLine = 128, kFirst = B * Q + T - Q;
        int frames = item.frames() - kFirst;
        if (frames > B * Q) frames = B * Q;
        const int bytes = frames * (M * Samples::kBytes);
        for (int at = thread * kLine; at < bytes; at += plan.threads * kLine)
            asm volatile("prefetch.global.L2 [%0];" ::"l"(item.x + kFirst * M * Samples::kBytes +
                                                          at));
    }

    // The kernel: groups of threads filter and transform batch after batch of spectra.
    static __device__ __forceinline__ void run(const ChanneliseArguments& args) {
        extern __shared__ __align__(128) unsigned char shared[];
        const int group = threadIdx.x / plan.threads, thread = threadIdx.x % plan.threads;
        float2* const tile = reinterpret_cast<float2*>(shared + group * plan.group_bytes());
        Item item = item_of(args, static_cast<int64>(blockIdx.x) * plan.groups + group);
#pragma unroll 1
        for (int batch = static_cast<int>(args.batches); batch > 0; --batch) {
            if (plan.groups == 1 && item.left <= 0) return;
            if (item.left > 0) {
#pragma unroll 1
                for (int column = thread; column < P; column += plan.threads)
                    filter_column(args, item, tile, column);
            }
            __syncthreads();
            if (Q < T && item.left > B) prefetch_batch(item, thread);
            if constexpr (R1 > 1) {
                Stages::middle_stage(args.twiddles, tile, thread);
                __syncthreads();
            }
            last_stage(item, tile, thread);
            __syncthreads();
            if constexpr (plan.real) {
                split_real(args, item, tile, thread);
                __syncthreads();
            }
            item.x += static_cast<int64>(B * Q) * M * Samples::kBytes;
            item.out += B * plan.phases * kOutPitch;
            item.left -= B;
        }
    }
};
