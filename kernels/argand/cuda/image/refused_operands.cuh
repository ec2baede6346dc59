// The power of an image's operands that the host refuses is NaN: marks and tests of such operands,
// for all kernels of an image.
#pragma once
#include "device/types.cuh"

// In place of the bits of a largest component: the matrix is not Hermitian.
constexpr uint32 kNotHermitian = ~0u;

// |direction|^2. Products and sums are rounded as NumPy rounds them, so that both refuse the same.
__device__ __forceinline__ double square_of(double l, double m) {
    return __dadd_rn(__dmul_rn(l, l), __dmul_rn(m, m));
}
__device__ __forceinline__ double square_of(const double* s) {
    return __dadd_rn(square_of(s[0], s[1]), __dmul_rn(s[2], s[2]));
}

// The power towards a direction (l, m, n): NaN where it is longer than allowed, or NaN itself.
__device__ __forceinline__ float power_or_nan(float power, const double* direction,
                                         double longest_square) {
    return square_of(direction) <= longest_square ? power : not_a_number();
}
