// Detection: squares of beams or Stokes parameters of two polarizations, summed over time within
// the accumulators of a warp, then over the warps of a block.
#pragma once
#include "samples.cuh"

// The sums over groups of `Group` samples that a warp's accumulators hold. A lane has 2 kTimes
// neighbours in time of each 8 kTimes.
template <Samples samples, int Group>
struct WarpSums {
    static constexpr int kOwn = 2 * kTimes<samples>;
    static constexpr int kSets = 4 / kTimes<samples>;
    static constexpr int kGroup = Group < 4 * kOwn ? Group : 4 * kOwn;
    static constexpr int kInLane = kGroup < kOwn ? kGroup : kOwn;
    static constexpr int kAcross = kGroup / kInLane;  // lanes that share a sum: 1, 2 or 4

    // Stores the sums of a row, whose first one lies at `to`; `powers` are in order of time.
    __device__ __forceinline__ static void store(const float (&powers)[kOwn], float* to, int set,
                                                 int lane) {
#pragma unroll
        for (int at = 0; at < kOwn; at += kInLane) {
            float sum = powers[at];
#pragma unroll
            for (int i = 1; i < kInLane; ++i) sum += powers[at + i];
            if constexpr (kAcross >= 2) sum += __shfl_xor_sync(~0u, sum, 1);
            if constexpr (kAcross == 4) sum += __shfl_xor_sync(~0u, sum, 2);
            const int time = (4 * set + lane % 4) * kOwn + at;
            if (lane % 4 % kAcross == 0) to[time / kGroup] = sum;
        }
    }
};

// The Stokes parameter of a number, or the power at 0 of one polarization.
template <int Polarizations, int output>
__device__ __forceinline__ float detected(const float2 (&z)[Polarizations]) {
    const float xx = z[0].x * z[0].x + z[0].y * z[0].y;
    if constexpr (Polarizations == 1) {
        return xx;
    } else {
        const float2 x = z[0], y = z[1];
        const float yy = y.x * y.x + y.y * y.y;
        if constexpr (output == 0) return xx + yy;
        if constexpr (output == 1) return xx - yy;
        if constexpr (output == 2) return 2.0f * (x.x * y.x + x.y * y.y);
        return 2.0f * (x.x * y.y - x.y * y.x);
    }
}
