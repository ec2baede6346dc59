// Integer names, special values and tests of fp32 that NVRTC lacks without CUDA's headers. Every
// kernel includes it.
#pragma once
#include "dependent_launch.cuh"

using uint32 = unsigned int;
using int64 = long long;
using uint64 = unsigned long long;

constexpr int kWarp = 32;

// Hides a value from the optimiser, which then neither derives it again nor computes all addresses
// that depend on it before a loop, but keeps the value in a register.
__device__ __forceinline__ uint32 opaque(uint32 x) {
    asm volatile("" : "+r"(x));
    return x;
}

__device__ __forceinline__ float not_a_number() { return __uint_as_float(0x7fc00000u); }

__device__ __forceinline__ bool is_nan(float x) { return x != x; }

__device__ __forceinline__ bool is_finite(float x) {
    return (__float_as_uint(x) & 0x7f800000u) != 0x7f800000u;
}

// __isinff and friends need a header; an infinity is written by its bits.
__device__ __forceinline__ float infinity() { return __uint_as_float(0x7f800000u); }
