// Beam power of a few beams by fp32: a sample is read once, from global memory to registers, and
// multiplied with all beams, which takes less time than reading it. So numbers are not rounded to a
// format of tensor cores first: fp32 is off by less, at any address.
//
// Threads of a group have the samples of a tile, kLaneTimes each, of one polarization and of one
// part of the antennas; where there are several groups their beams meet in shared memory.
#pragma once
#include "bins.cuh"
#include "detect.cuh"
#include "sample_words.cuh"

// `Polarizations` is 2 for Stokes parameters, else 1; `Beams` are all beams of the call. A group of
// `Warps` warps has every `Parts`-th antenna of one polarization, a thread `LaneTimes` samples of
// each; it loads the samples of `Unroll` antennas at once.
template <Samples samples, Operand operand, int Polarizations, int Beams, int Parts, int Warps,
          int LaneTimes, int Unroll>
struct FewBeamsKernel {
    using Words = SampleWords<samples, operand>;
    using Word = typename Words::Word;
    static constexpr int kGroups = Polarizations * Parts;
    static constexpr int kGroupThreads = Warps * kWarp;
    static constexpr int kThreads = kGroups * kGroupThreads;
    static constexpr int kTileTimes = LaneTimes * kGroupThreads;
    static constexpr int kSums = Beams * kTileTimes;
    static constexpr int kOutputs = Polarizations == 2 ? 4 : 1;
    // Bytes of the beams of all groups, in whose place powers are stored; the weights come on top.
    static constexpr int kSharedBytes = kSums * (kGroups == 1 ? 4 : kGroups * 8);
    static_assert(Beams % 2 == 0, "weights are read in pairs");

    // The samples of a thread, from `from` on: sample i lies `times[i]` words further.
    struct Lane {
        const Word* from;
        int64 step;
        int times[LaneTimes];

        // Lanes beyond the tile read its last sample.
        __device__ __forceinline__ Lane(const BeamPowerArguments& args, const Word* samples_of,
                                        int part, const TimeTile& tile, int thread)
            : step(Parts * args.stride_antenna) {
            const int first = min(thread, tile.valid - 1);
            from = samples_of + part * args.stride_antenna + tile.first + first;
#pragma unroll
            for (int i = 0; i < LaneTimes; ++i)
                times[i] = min(thread + i * kGroupThreads, tile.valid - 1) - first;
        }

        __device__ __forceinline__ void read(Word (&x)[LaneTimes]) {
#pragma unroll
            for (int i = 0; i < LaneTimes; ++i) x[i] = __ldcs(from + times[i]);
            from += step;
        }
    };

    struct Sums {
        float2 z[Beams][LaneTimes];

        // Adds the product of `weights` of one antenna, in shared memory, and its samples.
        __device__ __forceinline__ void add(const float2* weights, const Word (&words)[LaneTimes]) {
            float2 x[LaneTimes];
#pragma unroll
            for (int i = 0; i < LaneTimes; ++i) x[i] = Words::number(words[i]);
#pragma unroll
            for (int pair = 0; pair < Beams / 2; ++pair) {
                const float4 w = reinterpret_cast<const float4*>(weights)[pair];
#pragma unroll
                for (int i = 0; i < LaneTimes; ++i) {
                    add_product(z[2 * pair][i], {w.x, w.y}, x[i]);
                    add_product(z[2 * pair + 1][i], {w.z, w.w}, x[i]);
                }
            }
        }

        __device__ __forceinline__ static void add_product(float2& z, float2 w, float2 x) {
            z.x = fmaf(w.x, x.x, z.x);
            z.y = fmaf(w.x, x.y, z.y);
            z.x = fmaf(-w.y, x.y, z.x);
            z.y = fmaf(w.y, x.x, z.y);
        }
    };

    // Copies the weights of a result as (polarization, antenna, beam), with zeros for beams that
    // there are not.
    __device__ __forceinline__ static void copy_weights(const BeamPowerArguments& args, int result,
                                                        float2* weights) {
        const int count = args.beams * args.antennas;
#pragma unroll
        for (int p = 0; p < Polarizations; ++p) {
            const float2* from = reinterpret_cast<const float2*>(args.fragments);
            if (args.weights_batched) from += (int64(result) * Polarizations + p) * count;
            for (int i = threadIdx.x; i < Beams * args.antennas; i += kThreads) {
                const int beam = i / args.antennas, antenna = i % args.antennas;
                weights[antenna * Beams + beam] = i < count ? __ldg(from + i) : float2{0, 0};
            }
            weights += Beams * args.antennas;
        }
    }

    // The beams of a tile from every `Parts`-th antenna from `part` on. Samples of the next
    // `Unroll` antennas are on their way while those that came are multiplied.
    __device__ __forceinline__ static Sums multiply(int antennas, Lane lane, const float2* weights,
                                                    int part) {
        constexpr int kAhead = Unroll * Parts;
        Sums sums = {};
        Word x[Unroll][LaneTimes];
#pragma unroll
        for (int i = 0; i < Unroll; ++i)
            if (part + i * Parts < antennas) lane.read(x[i]);
        int antenna = part;
#pragma unroll 1
        for (; antenna + 2 * kAhead - Parts < antennas; antenna += kAhead) {
#pragma unroll
            for (int i = 0; i < Unroll; ++i) {
                sums.add(weights + (antenna + i * Parts) * Beams, x[i]);
                lane.read(x[i]);
            }
        }
#pragma unroll 1
        for (; antenna < antennas; antenna += kAhead) {
#pragma unroll
            for (int i = 0; i < Unroll; ++i) {
                const int at = antenna + i * Parts;
                if (at >= antennas) continue;
                sums.add(weights + at * Beams, x[i]);
                if (at + kAhead < antennas) lane.read(x[i]);
            }
        }
        return sums;
    }

    // Stores the powers [beam][time] of a thread that has all antennas; beyond the tile they are 0.
    __device__ __forceinline__ static void store_powers(const Sums& sums, const TimeTile& tile,
                                                        int thread, float* powers) {
#pragma unroll
        for (int beam = 0; beam < Beams; ++beam) {
#pragma unroll
            for (int i = 0; i < LaneTimes; ++i) {
                const int at = thread + i * kGroupThreads;
                const float2 z[1] = {sums.z[beam][i]};
                powers[beam * kTileTimes + at] = at < tile.valid ? detected<1, 0>(z) : 0.0f;
            }
        }
    }

    // Adds the beams of all parts, and stores the outputs [output][beam][time] in their place.
    __device__ __forceinline__ static void add_groups(const Sums& sums, const TimeTile& tile,
                                                      int group, int thread, float2* groups,
                                                      float* powers) {
#pragma unroll
        for (int beam = 0; beam < Beams; ++beam) {
#pragma unroll
            for (int i = 0; i < LaneTimes; ++i)
                groups[group * kSums + beam * kTileTimes + thread + i * kGroupThreads] =
                    sums.z[beam][i];
        }
        __syncthreads();
        constexpr int kOwn = (kSums + kThreads - 1) / kThreads;
        float own[kOwn][kOutputs] = {};
#pragma unroll
        for (int i = 0; i < kOwn; ++i) {
            const int at = threadIdx.x + i * kThreads;
            if (at >= kSums || at % kTileTimes >= tile.valid) continue;
            float2 z[Polarizations] = {};
#pragma unroll
            for (int other = 0; other < kGroups; ++other) {
                const float2 more = groups[other * kSums + at];
                z[other % Polarizations].x += more.x;
                z[other % Polarizations].y += more.y;
            }
            own[i][0] = detected<Polarizations, 0>(z);
            if constexpr (Polarizations == 2) {
                own[i][1] = detected<2, 1>(z);
                own[i][2] = detected<2, 2>(z);
                own[i][3] = detected<2, 3>(z);
            }
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < kOwn; ++i) {
            const int at = threadIdx.x + i * kThreads;
            if (at >= kSums) continue;
#pragma unroll
            for (int output = 0; output < kOutputs; ++output)
                powers[output * kSums + at] = own[i][output];
        }
    }

    // Adds the powers of each bin and stores it. Neighbouring lanes share a bin as long as a warp;
    // the divisions of that take longer than shorter ones.
    __device__ __forceinline__ static void store_sums(const BeamPowerArguments& args,
                                                      const float* powers, const TimeTile& tile,
                                                      int result) {
        if (args.integrate < kWarp) {
            store_bins<kOutputs, Beams, kTileTimes, 1, kThreads>(
                args, powers, tile, result, 0, threadIdx.x, [](float sum, int) { return sum; });
            return;
        }
        const int of_bin = args.slices > 1 ? tile.valid : args.integrate;
        const int bins = kOutputs * Beams * tile.bins;
        int lanes = 1;
        while (lanes < kWarp && 4 * lanes < of_bin && lanes * bins < kThreads) lanes *= 2;
        for (int i = threadIdx.x; i - threadIdx.x % kWarp < bins * lanes; i += kThreads) {
            const int lane = i % lanes, bin = i / lanes % tile.bins, row = i / lanes / tile.bins;
            const int beam = row % Beams;
            float sum = 0.0f;
            if (row < kOutputs * Beams && beam < args.beams) {
                const float* from = powers + row * kTileTimes + bin * of_bin;
                for (int at = lane; at < of_bin; at += lanes) sum += from[at];
            }
            for (int apart = lanes / 2; apart > 0; apart /= 2)
                sum += __shfl_xor_sync(~0u, sum, apart);
            if (lane > 0 || row >= kOutputs * Beams || beam >= args.beams) continue;
            const int64 line = (int64(result) * kOutputs + row / Beams) * args.beams + beam;
            args.power[line * args.columns + tile.column + bin] = sum;
        }
    }

    // The kernel: a block computes all beams of one result, tile of times after tile, from weights
    // in shared memory.
    __device__ __forceinline__ static void run(const BeamPowerArguments& args) {
        extern __shared__ float4 memory[];
        float2* groups = reinterpret_cast<float2*>(memory);  // [group][beam][time]
        float2* weights = groups + kSharedBytes / 8;
        float* powers = reinterpret_cast<float*>(memory);  // [output][beam][time]
        const BlockPlace place(args, kRowTile);            // one block has all beams
        const int group = threadIdx.x / kGroupThreads, thread = threadIdx.x % kGroupThreads;
        const int polarization = group % Polarizations, part = group / Polarizations;
        const Word* samples_of =
            static_cast<const Word*>(args.samples) +
            (int64(place.result) * Polarizations + polarization) * args.stride_batch;
        copy_weights(args, place.result, weights);
        weights += polarization * Beams * args.antennas;
        __syncthreads();
#pragma unroll 1
        for (int number = place.first; number < place.last; ++number) {
            const TimeTile tile(args, number);
            const Sums sums = multiply(args.antennas, Lane(args, samples_of, part, tile, thread),
                                       weights, part);
            __syncthreads();  // the powers of the tile before are read
            if constexpr (kGroups == 1) {
                store_powers(sums, tile, thread, powers);
            } else {
                add_groups(sums, tile, group, thread, groups, powers);
            }
            __syncthreads();
            store_sums(args, powers, tile, place.result);
        }
    }
};
