// The values that a thread holds of a row: read, rounded, kept.
#pragma once
#include "plan.cuh"

template <typename T, int Count>
struct alignas(sizeof(T) * Count > 16 ? 16 : sizeof(T) * Count) Pack {
    T at[Count];
};

// A value as the precision holds it: rounded, or the sum of its terms.
template <SoftmaxPlan plan>
__device__ __forceinline__ float hold(float x, int exponent) {
    if constexpr (plan.held == Held::tf32) {
        const float big = round_to_tf32<plan.roundings[0]>(x);
        if constexpr (plan.terms == 1) return big;
        return round_to_tf32<plan.roundings[1]>(remainder_after(big, x)) + big;
    } else if constexpr (plan.held == Held::fp16) {
        x *= power_of_two(exponent);
        float sum = round_to_fp16(x);
        if constexpr (plan.terms == 2) sum += round_to_fp16(remainder_after(sum, x));
        return sum * power_of_two(-exponent);
    } else if constexpr (plan.held == Held::bf16) {
        return round_to_bf16(x);
    } else {
        return x;
    }
}

template <SoftmaxPlan plan>
__device__ __forceinline__ double hold(double x, int) {
    static_assert(plan.held == Held::exact, "fp64 is not rounded");
    return x;
}

// An element of an array in memory as a number.
template <Kind kind, typename Real>
__device__ __forceinline__ Real number(Element<kind> x) {
    if constexpr (kind == Kind::fp16) {
        return fp16_values(x).x;
    } else if constexpr (kind == Kind::bf16) {
        return __uint_as_float(static_cast<uint32>(x) << 16);
    } else if constexpr (kind == Kind::complex64 || kind == Kind::complex128) {
        const Real re = x.re, im = x.im;
        return fma(re, re, im * im);
    } else {
        return static_cast<Real>(x);
    }
}

// What elements beyond a row are read as. A complex number's power cannot say it, so that values
// and not elements are filled there.
template <SoftmaxPlan plan>
__device__ __forceinline__ Real<plan> minus_infinity() {
    return -static_cast<Real<plan>>(infinity());
}

// One of the two values of a word. Volatile, because a compiler that sees them unpacked more than
// once keeps them all in registers of their own.
template <Kind kind>
__device__ __forceinline__ float unpacked(uint32 word, bool high) {
    float x;
    if constexpr (kind == Kind::bf16) {
        if (high) {
            asm volatile("and.b32 %0, %1, 0xffff0000;" : "=f"(x) : "r"(word));
        } else {
            asm volatile("shl.b32 %0, %1, 16;" : "=f"(x) : "r"(word));
        }
    } else if (high) {
        asm volatile("{\n.reg .b16 l, h;\nmov.b32 {l, h}, %1;\ncvt.f32.f16 %0, h;\n}\n"
                     : "=f"(x) : "r"(word));
    } else {
        asm volatile("{\n.reg .b16 l, h;\nmov.b32 {l, h}, %1;\ncvt.f32.f16 %0, l;\n}\n"
                     : "=f"(x) : "r"(word));
    }
    return x;
}

// The larger of each half; a NaN is the larger.
template <Kind kind>
__device__ __forceinline__ uint32 larger_pair(uint32 x, uint32 y) {
    uint32 z;
    if constexpr (kind == Kind::bf16) {
        asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(z) : "r"(x), "r"(y));
    } else {
        asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(z) : "r"(x), "r"(y));
    }
    return z;
}

template <bool packed, typename Real>
struct WordOf {
    using type = Real;
};
template <typename Real>
struct WordOf<true, Real> {
    using type = uint32;
};

// The values of a thread: `values` numbers, two a word where they came in 16 bits.
template <SoftmaxPlan plan>
struct Part {
    static constexpr uint32 kNothing = plan.input == Kind::bf16 ? 0xff80u : 0xfc00u;  // -inf
    typename WordOf<plan.packed(), Real<plan>>::type word[plan.values / (plan.packed() ? 2 : 1)];

    __device__ __forceinline__ Real<plan> at(int i) const {
        if constexpr (plan.packed()) {
            return unpacked<plan.input>(word[i / 2], i % 2 == 1);
        } else {
            return word[i];
        }
    }

    __device__ __forceinline__ void put(int i, Element<plan.input> x) {
        if constexpr (plan.packed()) {
            put_half(i, x);
        } else {
            word[i] = number<plan.input, Real<plan>>(x);
        }
    }

    // A whole vector, in one access.
    __device__ __forceinline__ void take(int i, const Element<plan.input>* from) {
        if constexpr (plan.packed() && plan.vector > 1) {
            const auto pack = *reinterpret_cast<const Pack<uint32, plan.vector / 2>*>(from);
#pragma unroll
            for (int e = 0; e < plan.vector / 2; ++e) word[i / 2 + e] = pack.at[e];
        } else {
            const auto pack = *reinterpret_cast<const Pack<Element<plan.input>, plan.vector>*>(from);
#pragma unroll
            for (int e = 0; e < plan.vector; ++e) put(i + e, pack.at[e]);
        }
    }

    __device__ __forceinline__ void put_nothing(int i) {
        if constexpr (plan.packed()) {
            put_half(i, kNothing);
        } else {
            word[i] = minus_infinity<plan>();
        }
    }

    __device__ __forceinline__ void put_half(int i, uint32 half) {
        const uint32 other = word[i / 2] & (i % 2 ? 0x0000ffffu : 0xffff0000u);
        word[i / 2] = other | (i % 2 ? half << 16 : half);
    }
};
