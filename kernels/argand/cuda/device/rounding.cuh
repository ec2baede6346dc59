// Rounding of fp32 values to what a tensor core multiplies, bit for bit as argand/rounding.py.
#pragma once
#include "types.cuh"

enum class Operand { tf32, fp16, bf16 };
enum class Rounding { toward_zero, nearest_even, half_ulp_truncate };

constexpr int kTf32DroppedBits = 13;
constexpr uint32 kTf32KeptMask = 0xffffffffu << kTf32DroppedBits;

// x with half a unit of tf32's last place added as the rounding asks, low bits not yet dropped: a
// tensor core does not look at them. A carry moves the exponent, so the largest values become
// infinite. A NaN is replaced, because the addition could carry it into an infinity or a zero. The
// hardware's cvt.rna gives the same bits but made the product a quarter slower on an H200.
template <Rounding rounding>
__device__ __forceinline__ float add_tf32_rounding_increment(float x) {
    uint32 bits = __float_as_uint(x);
    if constexpr (rounding == Rounding::half_ulp_truncate) {
        bits += 1u << (kTf32DroppedBits - 1);
    } else if constexpr (rounding == Rounding::nearest_even) {
        bits += ((bits >> kTf32DroppedBits) & 1u) + (1u << (kTf32DroppedBits - 1)) - 1u;
    }
    return is_nan(x) ? not_a_number() : __uint_as_float(bits);
}

// An fp32 number with 11 significant bits.
template <Rounding rounding>
__device__ __forceinline__ float round_to_tf32(float x) {
    return __uint_as_float(__float_as_uint(add_tf32_rounding_increment<rounding>(x)) &
                           kTf32KeptMask);
}

// Two numbers in one register, the first in the low half; to nearest, ties to even.
__device__ __forceinline__ uint32 pack_fp16(float low, float high) {
    uint32 packed;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
}

__device__ __forceinline__ uint32 pack_bf16(float low, float high) {
    uint32 packed;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
}

__device__ __forceinline__ float2 fp16_values(uint32 packed) {
    float2 x;
    asm("{\n.reg .b16 low, high;\n"
        "mov.b32 {low, high}, %2;\n"
        "cvt.f32.f16 %0, low;\n"
        "cvt.f32.f16 %1, high;\n}\n"
        : "=f"(x.x), "=f"(x.y)
        : "r"(packed));
    return x;
}

__device__ __forceinline__ float round_to_fp16(float x) {
    unsigned short half;
    float rounded;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(x));
    asm("cvt.f32.f16 %0, %1;" : "=f"(rounded) : "h"(half));
    return rounded;
}

__device__ __forceinline__ float round_to_bf16(float x) {
    // bf16 is the upper half of fp32; the other half of the pair is zero.
    return __uint_as_float(pack_bf16(x, 0.0f) << 16);
}

// What is left for the next term of x: nothing after one that is not finite.
__device__ __forceinline__ float remainder_after(float term, float x) {
    return is_finite(term) ? x - term : 0.0f;
}

// The terms of one number in tf32. The last keeps the low bits that the tensor core ignores:
// dropping them would cost as much as rounding.
template <int Terms, Rounding first, Rounding second>
__device__ __forceinline__ void split_to_tf32(float x, uint32 (&terms)[Terms]) {
    static_assert(Terms == 1 || Terms == 2, "a number is one term or two");
    if constexpr (Terms == 2) {
        const float big = round_to_tf32<first>(x);
        terms[0] = __float_as_uint(big);
        terms[1] = __float_as_uint(add_tf32_rounding_increment<second>(remainder_after(big, x)));
    } else {
        terms[0] = __float_as_uint(add_tf32_rounding_increment<first>(x));
    }
}

// The terms of two numbers in fp16, two numbers a register, the first in the low half.
template <int Terms>
__device__ __forceinline__ void split_to_fp16(float low, float high, uint32 (&terms)[Terms]) {
    static_assert(Terms == 1 || Terms == 2, "a number is one term or two");
    terms[0] = pack_fp16(low, high);
    if constexpr (Terms == 2) {
        const float2 big = fp16_values(terms[0]);
        terms[1] = pack_fp16(remainder_after(big.x, low), remainder_after(big.y, high));
    }
}

// The same for whichever of the two 16-bit formats it is; bf16 has one term.
template <Operand operand, int Terms>
__device__ __forceinline__ void split_to_half(float low, float high, uint32 (&terms)[Terms]) {
    static_assert(operand == Operand::fp16 || Terms == 1, "bf16 has one term");
    if constexpr (operand == Operand::bf16) {
        terms[0] = pack_bf16(low, high);
    } else {
        split_to_fp16(low, high, terms);
    }
}
