// Division of block numbers. A division of integers takes twenty instructions, one after the other,
// before a block knows what it computes.
#pragma once
#include "types.cuh"

// A quotient of positive numbers, by seven instructions where n is below 2^20: n + 1/2 is exact
// there, and so far from whole multiples of the divisor that an error of 2^-21 of it does not reach
// one.
__device__ __forceinline__ uint32 quotient(uint32 n, uint32 divisor) {
    if (n >= 1u << 20) return n / divisor;
    float reciprocal;  // at most 2^-23 off
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(reciprocal) : "f"(static_cast<float>(divisor)));
    return static_cast<uint32>((static_cast<float>(n) + 0.5f) * reciprocal);
}
