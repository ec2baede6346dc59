// A thread's fragment of a row in registers, and the conversion of elements in memory to it: to the
// compute type, rounded as the precision asks. load.cuh fills fragments, row.cuh reduces them.
#pragma once
#include "plan.cuh"

template <typename T, int Count>
struct alignas(sizeof(T) * Count > 16 ? 16 : sizeof(T) * Count) AlignedVector {
    T data[Count];
};

// x rounded to the sum of two terms of tf32: x except its last bit. Which way a tie of the first
// term goes does not change the sum. From 2^115 on, where the products of the first are infinite, x
// stays, as infinities and NaN do.
template <RowPlan plan>
__device__ __forceinline__ float round_to_two_terms_of_tf32(float x) {
    const float big = round_moderate_to_tf32(x), rest = x - big;
    float small;
    if constexpr (plan.roundings[1] == Rounding::nearest_even) {
        small = round_moderate_to_tf32(rest);
    } else {
        small = __uint_as_float(add_tf32_increment_to_number<plan.roundings[1]>(rest) &
                                kTf32KeptMask);
    }
    return fabsf(x) < 0x1p115f ? big + small : x;
}

// A value rounded to the precision's format, or the sum of its terms in that format.
template <RowPlan plan>
__device__ __forceinline__ float round_input(float x) {
    constexpr Operand kOperand = plan.input_rounding;
    static_assert(!is_scaled(kOperand), "softmax rounds scaled formats as tf32");
    if constexpr (kOperand == Operand::exact) {
        return x;
    } else if constexpr (kOperand == Operand::tf32) {
        if constexpr (plan.terms == 2 && plan.roundings[0] != Rounding::toward_zero)
            return round_to_two_terms_of_tf32<plan>(x);
        const float big = round_to_tf32<plan.roundings[0]>(x);
        if constexpr (plan.terms == 1) return big;
        return round_to_tf32<plan.roundings[1]>(remainder_after(big, x)) + big;
    } else {
        using Format = OperandFormat<kOperand>;
        float sum = Format::round(x);
        if constexpr (plan.terms == 2) sum += Format::round(remainder_after(sum, x));
        return sum;
    }
}

template <RowPlan plan>
__device__ __forceinline__ double round_input(double x) {
    static_assert(plan.input_rounding == Operand::exact, "fp64 is not rounded");
    return x;
}

// `round_input` of a number; of NaN any number, which takes fewer instructions. A row with NaN in
// it is NaN by its maximum.
template <RowPlan plan>
__device__ __forceinline__ float round_number(float x) {
    if constexpr (plan.input_rounding == Operand::tf32 && plan.terms == 1) {
        return __uint_as_float(add_tf32_increment_to_number<plan.roundings[0]>(x) & kTf32KeptMask);
    } else {
        return round_input<plan>(x);
    }
}

// An element of an array in memory in the compute type; of a complex element |x|^2.
template <DataType dtype, typename T>
__device__ __forceinline__ T to_compute_type(Element<dtype> x) {
    if constexpr (dtype == DataType::fp16) {
        float pair[2];
        OperandFormat<Operand::fp16>::unpack(x, pair);
        return pair[0];
    } else if constexpr (dtype == DataType::bf16) {
        float y;  // by a move: a shift makes ptxas keep the 16 bits as well, in a register more
        asm("mov.b32 %0, {%1, %2};" : "=f"(y) : "h"(static_cast<unsigned short>(0)), "h"(x));
        return y;
    } else if constexpr (dtype == DataType::complex64 || dtype == DataType::complex128) {
        const T re = x.re, im = x.im;
        return fma(re, re, im * im);
    } else {
        return static_cast<T>(x);
    }
}

// The value of what lies outside a row. It is set in the compute type, because no complex element
// has it as its squared magnitude.
template <RowPlan plan>
__device__ __forceinline__ ComputeType<plan> minus_infinity() {
    return -static_cast<ComputeType<plan>>(infinity());
}

// One of the two values of a word. Volatile, because the compiler would otherwise unpack all values
// once and keep them in registers of their own.
template <DataType dtype>
__device__ __forceinline__ float unpack_half(uint32 word, bool high) {
    float x;
    if constexpr (dtype == DataType::bf16) {
        if (high) {
            asm volatile("and.b32 %0, %1, 0xffff0000;" : "=f"(x) : "r"(word));
        } else {
            asm volatile("shl.b32 %0, %1, 16;" : "=f"(x) : "r"(word));
        }
    } else if (high) {
        asm volatile("{\n.reg .b16 l, h;\nmov.b32 {l, h}, %1;\ncvt.f32.f16 %0, h;\n}\n"
                     : "=f"(x)
                     : "r"(word));
    } else {
        asm volatile("{\n.reg .b16 l, h;\nmov.b32 {l, h}, %1;\ncvt.f32.f16 %0, l;\n}\n"
                     : "=f"(x)
                     : "r"(word));
    }
    return x;
}

// Maximum of each half; NaN where an argument is NaN.
template <DataType dtype>
__device__ __forceinline__ uint32 max_nan_pair(uint32 x, uint32 y) {
    uint32 z;
    if constexpr (dtype == DataType::bf16) {
        asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(z) : "r"(x), "r"(y));
    } else {
        asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(z) : "r"(x), "r"(y));
    }
    return z;
}

// values_per_thread values of a thread, two per word where they are packed.
template <RowPlan plan>
struct Fragment {
    static constexpr uint32 kMinusInfinity = plan.input == DataType::bf16 ? 0xff80u : 0xfc00u;
    static constexpr int kValuesPerWord = plan.packed ? 2 : 1;
    using Word = typename Conditional<plan.packed, uint32, ComputeType<plan>>::Type;
    Word words[plan.values_per_thread / kValuesPerWord];

    __device__ __forceinline__ ComputeType<plan> value(int i) const {
        if constexpr (plan.packed) {
            return unpack_half<plan.input>(words[i / 2], i % 2 == 1);
        } else {
            return words[i];
        }
    }

    __device__ __forceinline__ void set(int i, Element<plan.input> x) {
        if constexpr (plan.packed) {
            set_half(i, x);
        } else {
            words[i] = to_compute_type<plan.input, ComputeType<plan>>(x);
        }
    }

    // Loads a whole vector by one access.
    __device__ __forceinline__ void load_vector(int i, const Element<plan.input>* from) {
        if constexpr (plan.packed && plan.vector_width > 1) {
            const auto vector =
                *reinterpret_cast<const AlignedVector<uint32, plan.vector_width / 2>*>(from);
#pragma unroll
            for (int e = 0; e < plan.vector_width / 2; ++e) words[i / 2 + e] = vector.data[e];
        } else {
            const auto vector =
                *reinterpret_cast<const AlignedVector<Element<plan.input>, plan.vector_width>*>(
                    from);
#pragma unroll
            for (int e = 0; e < plan.vector_width; ++e) set(i + e, vector.data[e]);
        }
    }

    __device__ __forceinline__ void set_minus_infinity(int i) {
        if constexpr (plan.packed) {
            set_half(i, kMinusInfinity);
        } else {
            words[i] = minus_infinity<plan>();
        }
    }

    __device__ __forceinline__ void set_half(int i, uint32 half) {
        const uint32 other = words[i / 2] & (i % 2 ? 0x0000ffffu : 0xffff0000u);
        words[i / 2] = other | (i % 2 ? half << 16 : half);
    }
};
