// Integer names, special values and tests of fp32 that NVRTC lacks without CUDA's headers. Every
// kernel includes it.
#pragma once
#include "dependent_launch.cuh"

using uint32 = unsigned int;
using int64 = long long;
using uint64 = unsigned long long;

constexpr int kWarp = 32;

constexpr int log2_of(int power) { return power <= 1 ? 0 : 1 + log2_of(power / 2); }

// Hides a value from the optimiser, which then neither derives it again nor computes all addresses
// that depend on it before a loop, but keeps the value in a register.
__device__ __forceinline__ uint32 opaque(uint32 x) {
    asm volatile("" : "+r"(x));
    return x;
}

// threadIdx.x and blockIdx.x, read again at each call: no registers are left to keep them in.
__device__ __forceinline__ int thread_index() {
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
}
__device__ __forceinline__ uint32 block_index() {
    uint32 block;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
    return block;
}

// threadIdx.x, which the compiler may keep, hidden as by `opaque`: addresses that follow from it
// are computed again where they are used.
__device__ __forceinline__ int opaque_thread() {
    int thread = threadIdx.x;
    asm volatile("" : "+r"(thread));
    return thread;
}

__device__ __forceinline__ float not_a_number() { return __uint_as_float(0x7fc00000u); }

__device__ __forceinline__ bool is_nan(float x) { return x != x; }

// The bits of infinity, which are also those of the exponent. __isinff and friends need a header.
constexpr uint32 kInfinityBits = 0x7f800000u;

__device__ __forceinline__ bool is_finite(float x) {
    return (__float_as_uint(x) & kInfinityBits) != kInfinityBits;
}

__device__ __forceinline__ float infinity() { return __uint_as_float(kInfinityBits); }
