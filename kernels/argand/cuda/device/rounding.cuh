// Rounding and splitting of fp32 values into tensor-core operands: tf32, fp16 or bf16, one term or
// two. The bits are those of argand/rounding.py. Packing and the kernels that read complex64
// operands use it.
#pragma once
#include "types.cuh"

enum class Operand { tf32, fp16, bf16 };
enum class Rounding { toward_zero, nearest_even, half_ulp_truncate };

constexpr int kTf32DroppedBits = 13;
constexpr uint32 kTf32KeptMask = 0xffffffffu << kTf32DroppedBits;

// x plus the increment of a rounding to tf32, with the low bits still in place: tensor cores ignore
// them. A carry moves the exponent, so the largest values become infinite. A NaN is replaced by the
// canonical one, because the addition could carry it into an infinity or a zero. cvt.rna gives the
// same bits, but products took a quarter longer with it on an H200.
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

// x rounded to tf32: an fp32 number with 11 significant bits.
template <Rounding rounding>
__device__ __forceinline__ float round_to_tf32(float x) {
    return __uint_as_float(__float_as_uint(add_tf32_rounding_increment<rounding>(x)) &
                           kTf32KeptMask);
}

// Two numbers in one register, `low` in the low half; to nearest, ties to even.
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

// What the next term of x has to represent; 0 after a term that is not finite.
__device__ __forceinline__ float remainder_after(float term, float x) {
    return is_finite(term) ? x - term : 0.0f;
}

// The terms of one number in tf32. The last term keeps the low bits, which tensor cores ignore:
// masking them would cost as much as the rounding.
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

// The terms of two numbers in fp16; each register holds both numbers, the first in its low half.
template <int Terms>
__device__ __forceinline__ void split_to_fp16(float low, float high, uint32 (&terms)[Terms]) {
    static_assert(Terms == 1 || Terms == 2, "a number is one term or two");
    terms[0] = pack_fp16(low, high);
    if constexpr (Terms == 2) {
        const float2 big = fp16_values(terms[0]);
        terms[1] = pack_fp16(remainder_after(big.x, low), remainder_after(big.y, high));
    }
}

// The same for either 16-bit format. bf16 has one term.
template <Operand operand, int Terms>
__device__ __forceinline__ void split_to_half(float low, float high, uint32 (&terms)[Terms]) {
    static_assert(operand == Operand::fp16 || Terms == 1, "bf16 has one term");
    if constexpr (operand == Operand::bf16) {
        terms[0] = pack_bf16(low, high);
    } else {
        split_to_fp16(low, high, terms);
    }
}
