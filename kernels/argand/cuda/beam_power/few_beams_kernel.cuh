// Beam power of a few beams of complex64 samples by fp32: a sample is read once, from global memory
// to registers, and multiplied with all beams, which takes less time than reading it. So numbers
// are not rounded to a format of tensor cores first: fp32 is off by less, at any address.
//
// Two warps of a part of the antennas have the samples of a tile, two of a lane; where there are
// several parts their beams are added in shared memory.
#pragma once
#include "bins.cuh"

template <int Beams, int Parts, int Unroll>
struct FewBeamsKernel {
    static constexpr int kLaneTimes = 2;
    static constexpr int kPartThreads = 64;
    static constexpr int kThreads = Parts * kPartThreads;
    static constexpr int kTileTimes = kLaneTimes * kPartThreads;
    static constexpr int kPartSums = Beams * kTileTimes;
    // Without the weights: beams of the parts, whose first numbers become powers.
    static constexpr int kSharedBytes = kPartSums * (Parts == 1 ? 4 : Parts * 8);
    static_assert(Beams % 2 == 0, "weights are read in pairs");

    struct Sums {
        float2 z[Beams][kLaneTimes];

        // Adds the product of `weights` of one antenna, in shared memory, and its samples.
        __device__ __forceinline__ void add(const float4* weights, const float2 (&x)[kLaneTimes]) {
#pragma unroll
            for (int pair = 0; pair < Beams / 2; ++pair) {
                const float4 w = weights[pair];
#pragma unroll
                for (int time = 0; time < kLaneTimes; ++time) {
                    add_product(z[2 * pair][time], {w.x, w.y}, x[time]);
                    add_product(z[2 * pair + 1][time], {w.z, w.w}, x[time]);
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

    // Copies the weights of a product as (antenna, beam), with zeros for beams that there are not.
    __device__ __forceinline__ static void copy_weights(const BeamPowerArguments& args, int result,
                                                        float2* weights) {
        const float2* from = reinterpret_cast<const float2*>(args.fragments);
        if (args.weights_batched) from += int64(result) * args.beams * args.antennas;
        for (int i = threadIdx.x; i < Beams * args.antennas; i += kThreads) {
            const int beam = i / args.antennas, antenna = i % args.antennas;
            weights[antenna * Beams + beam] = beam < args.beams ? __ldg(from + i) : float2{0, 0};
        }
    }

    // The beams of a tile from every `Parts`-th antenna from `part` on. Lanes beyond the tile read
    // its last sample.
    __device__ __forceinline__ static Sums multiply(const BeamPowerArguments& args,
                                                    const float2* samples, const float2* weights,
                                                    int part, const TimeTile& tile, int thread) {
        Sums sums = {};
        const int first = min(thread, tile.valid - 1);
        const int apart = min(thread + kPartThreads, tile.valid - 1) - first;
        const float2* from = samples + part * args.stride_antenna + tile.first + first;
        const int64 step = Parts * args.stride_antenna;
        int antenna = part;
#pragma unroll 1
        for (; antenna + (Unroll - 1) * Parts < args.antennas; antenna += Unroll * Parts) {
            float2 x[Unroll][kLaneTimes];
#pragma unroll
            for (int i = 0; i < Unroll; ++i) {
                x[i][0] = __ldcs(from);
                x[i][1] = __ldcs(from + apart);
                from += step;
            }
#pragma unroll
            for (int i = 0; i < Unroll; ++i)
                sums.add(reinterpret_cast<const float4*>(weights + (antenna + i * Parts) * Beams),
                         x[i]);
        }
#pragma unroll 1
        for (; antenna < args.antennas; antenna += Parts) {
            const float2 x[kLaneTimes] = {__ldcs(from), __ldcs(from + apart)};
            from += step;
            sums.add(reinterpret_cast<const float4*>(weights + antenna * Beams), x);
        }
        return sums;
    }

    // Stores the powers [beam][time] of a thread that has all antennas; beyond the tile they are 0.
    __device__ __forceinline__ static void store_powers(const Sums& sums, const TimeTile& tile,
                                                        int thread, float* powers) {
#pragma unroll
        for (int beam = 0; beam < Beams; ++beam) {
#pragma unroll
            for (int time = 0; time < kLaneTimes; ++time) {
                const int at = thread + time * kPartThreads;
                powers[beam * kTileTimes + at] = at < tile.valid ? power(sums.z[beam][time]) : 0.0f;
            }
        }
    }

    __device__ __forceinline__ static float power(float2 z) { return fmaf(z.y, z.y, z.x * z.x); }

    // Adds the beams of all parts, and stores the powers in place of the first ones.
    __device__ __forceinline__ static void add_parts(const Sums& sums, const TimeTile& tile,
                                                     int part, int thread, float2* parts,
                                                     float* powers) {
#pragma unroll
        for (int beam = 0; beam < Beams; ++beam) {
#pragma unroll
            for (int time = 0; time < kLaneTimes; ++time)
                parts[part * kPartSums + beam * kTileTimes + thread + time * kPartThreads] =
                    sums.z[beam][time];
        }
        __syncthreads();
        constexpr int kOwn = (kPartSums + kThreads - 1) / kThreads;
        float own[kOwn];
#pragma unroll
        for (int i = 0; i < kOwn; ++i) {
            const int at = threadIdx.x + i * kThreads;
            own[i] = 0.0f;
            if (at >= kPartSums || at % kTileTimes >= tile.valid) continue;
            float2 z = parts[at];
#pragma unroll
            for (int other = 1; other < Parts; ++other) {
                const float2 more = parts[other * kPartSums + at];
                z.x += more.x;
                z.y += more.y;
            }
            own[i] = power(z);
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < kOwn; ++i) {
            const int at = threadIdx.x + i * kThreads;
            if (at < kPartSums) powers[at] = own[i];
        }
    }

    __device__ __forceinline__ static void run(const BeamPowerArguments& args) {
        extern __shared__ float4 memory[];
        float2* parts = reinterpret_cast<float2*>(memory);  // [part][beam][time]
        float2* weights = parts + kSharedBytes / 8;
        float* powers = reinterpret_cast<float*>(memory);  // [beam][time]
        const BlockPlace place(args, kRowTile);  // one block has all beams
        const int part = threadIdx.x / kPartThreads, thread = threadIdx.x % kPartThreads;
        const float2* samples =
            static_cast<const float2*>(args.samples) + place.result * args.stride_batch;
        copy_weights(args, place.result, weights);
        __syncthreads();
#pragma unroll 1
        for (int number = place.first; number < place.last; ++number) {
            const TimeTile tile(args, number);
            const Sums sums = multiply(args, samples, weights, part, tile, thread);
            __syncthreads();  // the powers of the tile before are read
            if constexpr (Parts == 1) {
                store_powers(sums, tile, thread, powers);
            } else {
                add_parts(sums, tile, part, thread, parts, powers);
            }
            __syncthreads();
            store_bins<1, Beams, kTileTimes, 1, kThreads>(args, powers, tile, place.result, 0,
                                                          threadIdx.x,
                                                          [](float sum, int) { return sum; });
        }
    }
};
