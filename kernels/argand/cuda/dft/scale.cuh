// Multiplies the results of a library's transforms by the factor of their norm, in place.
#pragma once
#include "device/types.cuh"

constexpr int kScaledByThread = 4;

template <class Complex>
struct ScaleArguments {
    Complex* x;
    int64 count;
    double factor;  // rounded to the results' type
};

// A block has neighbouring elements. All loads of a thread come before its stores.
template <class Real, class Complex>
__device__ __forceinline__ void scale(const ScaleArguments<Complex>& args) {
    const int64 first = int64(blockIdx.x) * kScaledByThread * blockDim.x + threadIdx.x;
    const Real factor = Real(args.factor);
    Complex x[kScaledByThread];
#pragma unroll
    for (int i = 0; i < kScaledByThread; ++i) {
        const int64 at = first + i * blockDim.x;
        if (at < args.count) x[i] = args.x[at];
    }
#pragma unroll
    for (int i = 0; i < kScaledByThread; ++i) {
        const int64 at = first + i * blockDim.x;
        if (at < args.count) args.x[at] = {x[i].x * factor, x[i].y * factor};
    }
}
