// Amplitudes as kernels of readout load them: chunks of 16 bytes, two of complex64 or one of
// complex128, and probabilities as integers (readout/weights.py).
#pragma once
#include "device/complex.cuh"

constexpr unsigned kFullWarp = 0xffffffffu;

template <typename Real>
constexpr int kChunkAmplitudes = 16 / int(sizeof(Complex<Real>));

template <typename Real>
struct Chunk {
    Complex<Real> amplitude[kChunkAmplitudes<Real>];
};

// A state that begins within 16 bytes is read by amplitudes.
template <typename Real, bool aligned>
__device__ __forceinline__ Chunk<Real> load_chunk(const void* state, int64 chunk) {
    Chunk<Real> found;
    if constexpr (sizeof(Real) == 8) {
        found.amplitude[0] = __ldg(static_cast<const double2*>(state) + chunk);
    } else if constexpr (aligned) {
        const float4 x = __ldg(static_cast<const float4*>(state) + chunk);
        found.amplitude[0] = {x.x, x.y};
        found.amplitude[1] = {x.z, x.w};
    } else {
        found.amplitude[0] = __ldg(static_cast<const float2*>(state) + 2 * chunk);
        found.amplitude[1] = __ldg(static_cast<const float2*>(state) + 2 * chunk + 1);
    }
    return found;
}

// |a|^2 as NumPy rounds it: each product, then their sum. Products of fp32 are exact.
template <typename T>
__device__ __forceinline__ double probability_of(T a) {
    const double x = a.x, y = a.y;
    return __dadd_rn(__dmul_rn(x, x), __dmul_rn(y, y));
}

__device__ __forceinline__ uint64 weight_of(double probability, double scale) {
    return __double2ull_rn(__dmul_rn(probability, scale));
}

template <typename T>
__device__ __forceinline__ T warp_sum(T x) {
#pragma unroll
    for (int mask = kWarp / 2; mask > 0; mask /= 2) x += __shfl_xor_sync(kFullWarp, x, mask);
    return x;
}

// The sums of x over the lanes up to each one.
template <typename T>
__device__ __forceinline__ T warp_running_sum(T x) {
    const int lane = threadIdx.x % kWarp;
#pragma unroll
    for (int step = 1; step < kWarp; step *= 2) {
        const T before = __shfl_up_sync(kFullWarp, x, step);
        if (lane >= step) x += before;
    }
    return x;
}

// The sums of x over the threads of the block up to each one; `shared` holds one value a warp.
template <int Threads, typename T>
__device__ __forceinline__ T block_running_sum(T x, T* shared) {
    const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    x = warp_running_sum(x);
    if (lane == kWarp - 1) shared[warp] = x;
    __syncthreads();
    T before = 0;
#pragma unroll 4
    for (int other = 0; other < Threads / kWarp; ++other)
        if (other < warp) before += shared[other];
    __syncthreads();
    return x + before;
}

// The number whose bits are those of `number`, moved run by run: the bits of `mask`, shifted left.
__device__ __forceinline__ int64 deposited(int64 number, const int64* mask, const int* shift,
                                           int segments) {
    int64 found = 0;
    for (int i = 0; i < segments; ++i) found |= (number & mask[i]) << shift[i];
    return found;
}
