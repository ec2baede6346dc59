// Twiddles W^1 to W^(N-1) of a butterfly's results, few of them loaded: W^(4 i + j) = W^(4 i) W^j
// is a product in place of a load. A stage loads half as many twiddles as it moves numbers through
// shared memory, and tables of long transforms do not stay in L1 beside that.
#pragma once
#include "device/complex.cuh"

// Powers from which a thread computes the others.
constexpr int kLoadedPowers = 4;

// `load(k)` returns W^k, `use(k, w)` takes it; for k from 1 to N - 1. All are loaded where `kFew`
// is false.
template <int N, bool kFew, typename Load, typename Use>
__device__ __forceinline__ void for_each_power(Load load, Use use) {
    constexpr int kLow = kFew && kLoadedPowers < N ? kLoadedPowers : N;
    float2 low[kLow];
#pragma unroll
    for (int k = 1; k < kLow; ++k) {
        low[k] = load(k);
        use(k, low[k]);
    }
#pragma unroll
    for (int high = kLow; high < N; high += kLow) {
        const float2 step = load(high);
        use(high, step);
#pragma unroll
        for (int k = 1; k < kLow && high + k < N; ++k)
            use(high + k, complex_product(step, low[k]));
    }
}
