// Transforms of a batch of spectra in shared memory: their stages, where numbers lie, and the
// spectra of real samples.
#pragma once
#include "plan.cuh"
#include "dft/radix.cuh"

// Bins k and M - k of 2 M real samples.
struct PairOfChannels {
    float2 lower, upper;
};

template <ChannelisePlan plan>
struct TransformStages {
    static constexpr int M = plan.points;
    static constexpr int R0 = plan.radices[0], R1 = plan.radices[1], R2 = plan.radices[2];
    static_assert(R0 * R1 * R2 == M, "radices");

    // Index in shared memory at which the last stage leaves number k of a spectrum.
    static __device__ __forceinline__ int place_of(int k) {
        return k % R0 * plan.line_pitch() + k / R0 % R1 * plan.group_pitch() + k / (R0 * R1);
    }

    // The first stage of a column of spectrum b, whose numbers are `z`; the first of them goes to
    // `to`, where the column begins in the tile.
    static __device__ __forceinline__ void first_stage(const float2* twiddles, float2 (&z)[R0],
                                                       int column, float2* to, int b) {
        if constexpr (R0 > 1) butterfly<R0>(z);
        float2* const line = to + b * plan.spectrum_pitch();
        line[0] = z[0];
#pragma unroll
        for (int k = 1; k < R0; ++k)
            line[k * plan.line_pitch()] =
                complex_product(z[k], __ldg(twiddles + (k - 1) * plan.columns() + column));
    }

    // `tables` are those of `ChanneliseArguments`.
    static __device__ __forceinline__ void middle_stage(const float2* tables, float2* tile,
                                                        int thread) {
        constexpr int kCount = plan.batch * R0 * R2;
        const float2* const twiddles = tables + plan.second_table();
#pragma unroll 1
        for (int index = thread; index < kCount; index += plan.threads) {
            const int n2 = index % R2, line = index / R2;
            float2* const at = tile + line * plan.line_pitch() + n2;
            float2 z[R1];
#pragma unroll
            for (int n = 0; n < R1; ++n) z[n] = at[n * plan.group_pitch()];
            butterfly<R1>(z);
            at[0] = z[0];
#pragma unroll
            for (int k = 1; k < R1; ++k)
                at[k * plan.group_pitch()] =
                    complex_product(z[k], __ldg(twiddles + (k - 1) * R2 + n2));
        }
    }

    // The last stage of the numbers from `from` on.
    static __device__ __forceinline__ void last_stage(const float2* from, float2 (&z)[R2]) {
#pragma unroll
        for (int n = 0; n < R2; ++n) z[n] = from[n];
        butterfly<R2>(z);
    }

    // Channels k and M - k (of M points) of real samples from those of even + i odd ones: with
    // Z_k = E_k + i O_k, X_k = E_k + W_2M^k O_k and X_(M-k) = conj(E_k - W_2M^k O_k).
    static __device__ __forceinline__ PairOfChannels real_pair(const float2* from, float2 twiddle,
                                                               int k) {
        const float2 z = from[place_of(k)], y = from[place_of(k ? M - k : 0)];
        const float2 even = {0.5f * (z.x + y.x), 0.5f * (z.y - y.y)};
        const float2 odd = {0.5f * (z.y + y.y), 0.5f * (y.x - z.x)};
        const float2 turned = complex_product(odd, twiddle);
        return {{even.x + turned.x, even.y + turned.y}, {even.x - turned.x, turned.y - even.y}};
    }
};
