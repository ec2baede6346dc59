// Powers of two that scale a row or column into the range of its format, and the descale of
// results. Powers of two are exact, so scaling adds no rounding error. Packing scales; epilogues
// descale.
#pragma once
#include "rounding.cuh"

// The exponent s of the scale of a row or column whose absmax has these fp32 bits: 2^s absmax lies
// in [2^e, 2^(e + 1)) with e of `scaled_exponent_of`. It is 0 for zeros, and within +-126, so that
// 2^s is a normal number.
template <Operand operand>
__device__ __forceinline__ int scale_exponent(uint32 absmax_bits) {
    if (absmax_bits == 0) return 0;
    // frexp's exponent is the biased one minus 126; a subnormal's is so low that s is 126 anyway.
    int exponent = scaled_exponent_of(operand) + 1 - (static_cast<int>(absmax_bits >> 23) - 126);
    return exponent > 126 ? 126 : exponent < -126 ? -126 : exponent;
}

__device__ __forceinline__ float power_of_two(int exponent) {
    return __uint_as_float(static_cast<uint32>(exponent + 127) << 23);
}

// x 2^exponent, rounded once, also where 2^exponent itself is outside fp32's range.
__device__ __forceinline__ float scale_by_power(float x, int exponent) {
    if (exponent >= -126 && exponent <= 127) return x * power_of_two(exponent);
    return ldexpf(x, exponent);
}

// Two powers of two whose product is 2^exponent. An epilogue multiplies a result by the product of
// the row's and the column's first halves, then by that of the second: both products are normal
// numbers, so the intermediate result neither overflows nor underflows.
__device__ __forceinline__ float2 split_power_of_two(int exponent) {
    return {power_of_two(exponent / 2), power_of_two(exponent - exponent / 2)};
}

// The bits of |x|, 0 where x is not finite. As unsigned integers they order as the magnitudes do.
__device__ __forceinline__ uint32 finite_abs_bits(float x) {
    return is_finite(x) ? __float_as_uint(x) & 0x7fffffffu : 0u;
}

// `finite_abs_bits` of the larger of a complex number's two parts.
__device__ __forceinline__ uint32 component_absmax_bits(float2 x) {
    return max(finite_abs_bits(x.x), finite_abs_bits(x.y));
}

// The bits of the larger |part| of a complex number; `kInfinityBits` or more where one is infinite
// or NaN.
__device__ __forceinline__ uint32 component_abs_bits(float2 x) {
    return max(__float_as_uint(x.x) & 0x7fffffffu, __float_as_uint(x.y) & 0x7fffffffu);
}
