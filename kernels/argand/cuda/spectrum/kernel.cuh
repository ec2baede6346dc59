// The kernel of spectral estimates: windowed segments, their transforms in shared memory, squares
// and their sums, in fp32. No spectrum reaches memory.
//
// Segments are read where they lie in the signal: those of a batch are a hop apart, so samples that
// they share come from L1 or L2. Thread j of a group multiplies R0 samples of each segment by the
// window, transforms them by a butterfly and stores them; the other stages are those of filter
// banks (`TransformStages`), since this is a filter bank with a single tap.
//
// With Sum > 0 a batch has whole groups of Sum segments, whose means are written at once. With Sum
// = 0 an item is a chunk of one group: each thread adds the batches' sums of its bins in fp64.
#pragma once
#include "trend.cuh"
#include "channelise/stages.cuh"
#include "channelise/units.cuh"

// `plan` is that of a filter bank of one tap, `Of` the type of a sample's components. `Sum` is the
// number of segments of a group, 0 where a batch is a part of one. `Aligned`: units of two real
// samples begin at multiples of their size. `Detrended`: trends are subtracted.
template <ChannelisePlan plan, Component Of, int Sum, bool Aligned, bool Detrended>
struct SpectrumKernel {
    static constexpr int M = plan.points, B = plan.batch;
    static constexpr int R0 = plan.radices[0], R1 = plan.radices[1], R2 = plan.radices[2];
    static constexpr int P = plan.columns();
    static constexpr int kParts = plan.real ? 2 : 1;      // samples of a unit
    static constexpr int kPairs = plan.real ? M / 2 + 1 : M;  // that threads own: two bins or one
    static constexpr int kBins = plan.real ? M + 1 : M;       // that are computed
    static constexpr int kOwned = (kPairs + plan.threads - 1) / plan.threads;
    static constexpr int kSummed = Sum ? Sum : B;
    // Segments that a thread loads at a time: as many as leave registers for its sums.
    static constexpr int kUnrolled = R0 < 8 && plan.block_threads() <= 512 ? 8 / R0 : 1;
    using Samples = Unit<Of>;
    using Stages = TransformStages<plan>;
    static_assert(plan.taps == 1 && plan.phases == 1, "segments are windowed, not filtered");
    static_assert(B % kSummed == 0, "a batch has whole groups");

    struct Item {
        const unsigned char* x;  // of the batch's first segment
        float* out;              // of its first group
        const Trend* trends;     // of the batch's segments
        int left;                // segments of this batch and those after it
    };

    // The batches of segments that group number `index` of threads takes; none beyond the last.
    static __device__ __forceinline__ Item item_of(const SpectrumArguments& args, int64 index) {
        if (index >= args.items) return {nullptr, nullptr, nullptr, 0};
        const int64 chunk = index % args.chunks, which = index / args.chunks;
        const int64 all = Sum ? args.groups * args.average : args.average;
        const int64 first = chunk * args.batches * B;
        const int64 row = Sum ? which : which / args.groups;
        const int64 group = Sum ? first / Sum : which % args.groups;
        const int64 segment = Sum ? first : group * args.average + first;
        int64 left = all - first;
        left = left < 0 ? 0 : left < args.batches * B ? left : args.batches * B;
        return {static_cast<const unsigned char*>(args.x) +
                    (row * args.row_stride + segment * args.hop) * (Samples::kBytes / kParts),
                args.out + (row * args.groups + group) * args.bins.pitch,
                args.trends + (row * args.groups * args.average + segment),
                static_cast<int>(left)};
    }

    // A unit from an address that a unit may not have: two real samples one after the other.
    static __device__ __forceinline__ float2 load_unit(const unsigned char* from) {
        if constexpr (Aligned || !plan.real) {
            return global_unit<Of>(from);
        } else {
            return {RealSample<Of>::load(from),
                    RealSample<Of>::load(from + Samples::kBytes / 2)};
        }
    }

    // A unit of a segment without its trend.
    static __device__ __forceinline__ float2 without_trend(float2 x, const Trend& trend, int unit) {
        constexpr double kMiddle = (M * kParts - 1) / 2.0;
        const double first = static_cast<double>(unit * kParts);
        return {static_cast<float>(trend.without(x.x, 0, first, kMiddle)),
                static_cast<float>(trend.without(x.y, 1, first + (kParts - 1), kMiddle))};
    }

    // Windows one column of a batch's segments, whose trend it removes first, and runs the first
    // stage of their transforms.
    static __device__ __forceinline__ void window_column(const SpectrumArguments& args,
                                                         const Item& item, float2* tile,
                                                         int column) {
        // Opaque to the optimiser: loaded in each batch, since there are no registers to keep them.
        const float* window = args.window;
        const float2* twiddles = args.twiddles;
        asm volatile("" : "+l"(window), "+l"(twiddles));
        float w[R0][kParts];
#pragma unroll
        for (int i = 0; i < R0; ++i)
#pragma unroll
            for (int part = 0; part < kParts; ++part)
                w[i][part] = __ldg(window + (column + i * P) * kParts + part);
        float2* const to = tile + column + column / R2 * (plan.group_pitch() - R2);
        const unsigned char* from = item.x + column * Samples::kBytes;
        const int64 stride = args.hop * (Samples::kBytes / kParts);
#pragma unroll kUnrolled
        for (int b = 0; b < B; ++b, from += stride) {
            float2 z[R0];
#pragma unroll
            for (int i = 0; i < R0; ++i) {
                float2 x = {0.0f, 0.0f};
                if (b < item.left) {
                    x = load_unit(from + i * P * Samples::kBytes);
                    if constexpr (Detrended) x = without_trend(x, item.trends[b], column + i * P);
                }
                z[i] = conjugated<Of>(float2{w[i][0] * x.x, w[i][kParts - 1] * x.y});
            }
            Stages::first_stage(twiddles, z, column, to, b);
        }
    }

    static __device__ __forceinline__ float square(float2 x) { return x.x * x.x + x.y * x.y; }

    // Leaves squares in the place of complex numbers' real parts, or writes those of single
    // segments; of real samples the numbers themselves.
    static __device__ __forceinline__ void last_stage(const SpectrumArguments& args,
                                                      const Item& item, float2* tile,
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
            } else if constexpr (Sum == 1) {
                const float scale = static_cast<float>(args.bins.scale);
                if (b < item.left) {
                    float* const to = item.out + b * args.bins.pitch + k;
#pragma unroll
                    for (int n = 0; n < R2; ++n) __stcs(to + n * (R0 * R1), square(z[n]) * scale);
                }
            } else {
#pragma unroll
                for (int n = 0; n < R2; ++n) at[n].x = square(z[n]);
            }
        }
    }

    // Sums of kSummed segments from b on, of the bins k and, of real samples, M - k.
    static __device__ __forceinline__ float2 summed(const SpectrumArguments& args,
                                                    const float2* tile, int b, int k) {
        float2 sum = {0.0f, 0.0f};
        if constexpr (plan.real) {
            const float2 twiddle = __ldg(args.twiddles + plan.third_table() + k);
#pragma unroll 2
            for (int s = 0; s < kSummed; ++s) {
                const PairOfChannels found =
                    Stages::real_pair(tile + (b + s) * plan.spectrum_pitch(), twiddle, k);
                sum.x += square(found.lower);
                sum.y += square(found.upper);
            }
        } else {
            const float2* const from = tile + b * plan.spectrum_pitch() + Stages::place_of(k);
#pragma unroll 8
            for (int s = 0; s < kSummed; ++s) sum.x += from[s * plan.spectrum_pitch()].x;
        }
        return sum;
    }

    static __device__ __forceinline__ void write_groups(const SpectrumArguments& args,
                                                        const Item& item, const float2* tile,
                                                        int thread) {
#pragma unroll 1
        for (int k = thread; k < kPairs; k += plan.threads) {
#pragma unroll 1
            for (int b = 0; b < B && b < item.left; b += kSummed) {
                const float2 sum = summed(args, tile, b, k);
                float* const row = item.out + b / kSummed * args.bins.pitch;
                args.bins.write(row, k, sum.x);
                if (plan.real) args.bins.write(row, M - k, sum.y);
            }
        }
    }

    static __device__ __forceinline__ void add_batch(const SpectrumArguments& args,
                                                     const float2* tile, int thread,
                                                     double (&sums)[kOwned][kParts]) {
#pragma unroll
        for (int i = 0; i < kOwned; ++i) {
            const int k = thread + i * plan.threads;
            if (kPairs % plan.threads == 0 || k < kPairs) {
                const float2 sum = summed(args, tile, 0, k);
                sums[i][0] += sum.x;
                if (plan.real) sums[i][kParts - 1] += sum.y;
            }
        }
    }

    // Writes the sums of a thread's bins: to the result, or to `partial` where several groups share
    // an estimate.
    static __device__ __forceinline__ void write_sums(const SpectrumArguments& args,
                                                      const Item& item, int64 index, int thread,
                                                      const double (&sums)[kOwned][kParts]) {
        if (index >= args.items) return;
        double* const partial = args.partial + index * kBins;
#pragma unroll
        for (int i = 0; i < kOwned; ++i) {
            const int k = thread + i * plan.threads;
            if (kPairs % plan.threads == 0 || k < kPairs) {
                if (args.partial) {
                    partial[k] = sums[i][0];
                    if (plan.real) partial[M - k] = sums[i][kParts - 1];
                } else {
                    args.bins.write(item.out, k, sums[i][0]);
                    if (plan.real) args.bins.write(item.out, M - k, sums[i][kParts - 1]);
                }
            }
        }
    }

    // Asks for the samples of the next batch while this one is transformed.
    static __device__ __forceinline__ void prefetch_batch(const SpectrumArguments& args,
                                                          const Item& item, int thread) {
        constexpr int kLine = 128, kSample = Samples::kBytes / kParts;
        const int next = item.left - B < B ? item.left - B : B;
        const int64 bytes = next * args.hop * kSample;
        const unsigned char* const from = item.x + ((B - 1) * args.hop + M * kParts) * kSample;
        for (int64 at = thread * kLine; at < bytes; at += plan.threads * kLine)
            asm volatile("prefetch.global.L2 [%0];" ::"l"(from + at));
    }

    // The kernel: groups of threads window, transform and square batch after batch of segments, and
    // sum the squares.
    static __device__ __forceinline__ void run(const SpectrumArguments& args) {
        extern __shared__ __align__(128) unsigned char shared[];
        const int group = threadIdx.x / plan.threads, thread = threadIdx.x % plan.threads;
        float2* const tile = reinterpret_cast<float2*>(shared + group * plan.group_bytes());
        const int64 index = static_cast<int64>(blockIdx.x) * plan.groups + group;
        Item item = item_of(args, index);
        double sums[kOwned][kParts] = {};
#pragma unroll 1
        for (int batch = static_cast<int>(args.batches); batch > 0; --batch) {
            if (item.left > 0) {
#pragma unroll 1
                for (int column = thread; column < P; column += plan.threads)
                    window_column(args, item, tile, column);
            }
            __syncthreads();
            if (item.left > B) prefetch_batch(args, item, thread);
            if constexpr (R1 > 1) {
                Stages::middle_stage(args.twiddles, tile, thread);
                __syncthreads();
            }
            last_stage(args, item, tile, thread);
            __syncthreads();
            if constexpr (!Sum) {
                if (item.left > 0) add_batch(args, tile, thread, sums);
                __syncthreads();
            } else if constexpr (Sum > 1 || plan.real) {
                write_groups(args, item, tile, thread);
                __syncthreads();
            }
            item.x += B * args.hop * (Samples::kBytes / kParts);
            if (Sum) item.out += B / kSummed * args.bins.pitch;
            if (Detrended) item.trends += B;
            item.left -= B;
        }
        if constexpr (!Sum) write_sums(args, item, index, thread, sums);
    }
};
