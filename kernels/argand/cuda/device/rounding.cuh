// The rounding and splitting of fp32 values into the operand formats of tensor cores, in one term
// or two. The bits are those of argand/rounding.py. Packing and the kernels that read complex64
// operands use it.
#pragma once
#include "operand_format.cuh"

// `to_bf16` rounds to bf16, ties to even, whose numbers tf32 holds.
enum class Rounding { toward_zero, nearest_even, half_ulp_truncate, to_bf16 };

constexpr int kTf32DroppedBits = 13;
constexpr uint32 kTf32KeptMask = 0xffffffffu << kTf32DroppedBits;

// `add_tf32_rounding_increment` of a number that is not NaN.
template <Rounding rounding>
__device__ __forceinline__ uint32 add_tf32_increment_to_number(float x) {
    const uint32 bits = __float_as_uint(x);
    constexpr uint32 kHalf = 1u << (kTf32DroppedBits - 1);
    if constexpr (rounding == Rounding::half_ulp_truncate) {
        return bits + kHalf;
    } else if constexpr (rounding == Rounding::nearest_even) {
        return bits + ((bits >> kTf32DroppedBits) & 1u) + kHalf - 1u;
    } else {
        return bits;
    }
}

// x plus the increment of a rounding to tf32, with the low bits still in place: tensor cores ignore
// them. A carry moves the exponent, so the largest values become infinite. A NaN is replaced by the
// canonical one, because the addition could carry it into an infinity or a zero. cvt.rna gives the
// same bits, but products took a quarter longer with it on an H200.
template <Rounding rounding>
__device__ __forceinline__ float add_tf32_rounding_increment(float x) {
    if constexpr (rounding == Rounding::to_bf16) return OperandFormat<Operand::bf16>::round(x);
    return is_nan(x) ? not_a_number()
                     : __uint_as_float(add_tf32_increment_to_number<rounding>(x));
}

// Adds rounding increments to complex numbers of one row or column. All of their NaN become one in
// the first number. Results stay the same, because each number is in all results of that row or
// column.
template <Rounding rounding>
__device__ __forceinline__ void add_tf32_rounding_increments(const float (&re)[2],
                                                             const float (&im)[2],
                                                             uint32 (&re_bits)[2],
                                                             uint32 (&im_bits)[2]) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        if constexpr (rounding == Rounding::to_bf16) {
            const float parts[2] = {re[i], im[i]};
            float rounded[2];
            OperandFormat<Operand::bf16>::unpack(OperandFormat<Operand::bf16>::pack(parts),
                                                 rounded);
            re_bits[i] = __float_as_uint(rounded[0]);
            im_bits[i] = __float_as_uint(rounded[1]);
            continue;
        }
        re_bits[i] = add_tf32_increment_to_number<rounding>(re[i]);
        im_bits[i] = add_tf32_increment_to_number<rounding>(im[i]);
    }
    if constexpr (rounding == Rounding::to_bf16) return;  // NaN stays NaN
    asm("{\n.reg .pred p;\n"
        "setp.nan.f32 p, %1, %2;\n"
        "setp.nan.or.f32 p, %3, %4, p;\n"
        "selp.b32 %0, 0x7fffffff, %0, p;\n}\n"
        : "+r"(re_bits[0])
        : "f"(re[0]), "f"(im[0]), "f"(re[1]), "f"(im[1]));
}

// x rounded to tf32: an fp32 number with 11 significant bits.
template <Rounding rounding>
__device__ __forceinline__ float round_to_tf32(float x) {
    return __uint_as_float(__float_as_uint(add_tf32_rounding_increment<rounding>(x)) &
                           kTf32KeptMask);
}

// x rounded to tf32, ties to even, by two operations of the fp32 units, which do twice as many a
// clock as the integer units. 8191 x = 8192 x - x in 24 bits is a multiple of 2^13 ulp(x), as 8192
// x is, so their difference is x rounded to such a multiple. For an infinity, and from 2^115 on,
// where 8191 x is infinite, the result is not finite, and neither are sums of its products, by
// which callers notice. NaN stays NaN. Below the normal numbers it keeps more bits than tf32.
__device__ __forceinline__ float round_moderate_to_tf32(float x) {
    return __fmaf_rn(8192.0f, x, -__fmul_rn(8191.0f, x));
}

// The remainder, which the next term of x has to represent; 0 after a term that is not finite.
__device__ __forceinline__ float remainder_after(float term, float x) {
    return is_finite(term) ? x - term : 0.0f;
}

// The terms of one number in tf32. The last term keeps the low bits, which tensor cores ignore:
// masking them would cost as much as the rounding. `Finite` as in `split`.
template <int Terms, Rounding first, Rounding second, bool Finite>
__device__ __forceinline__ void split_to_tf32(float x, uint32* terms, int stride) {
    static_assert(Terms == 1 || Terms == 2, "a number is one term or two");
    if constexpr (Terms == 2 && Finite) {
        terms[0] = add_tf32_increment_to_number<first>(x) & kTf32KeptMask;
        const float rest = x - __uint_as_float(terms[0]);  // NaN of what is not finite
        if constexpr (second == Rounding::toward_zero) {
            terms[stride] = __float_as_uint(rest);
        } else {
            terms[stride] = __float_as_uint(add_tf32_rounding_increment<second>(rest));
        }
    } else if constexpr (Terms == 2) {
        const float big = round_to_tf32<first>(x);
        terms[0] = __float_as_uint(big);
        // A remainder is finite, so it is no NaN.
        terms[stride] = add_tf32_increment_to_number<second>(remainder_after(big, x));
    } else {
        terms[0] = __float_as_uint(add_tf32_rounding_increment<first>(x));
    }
}

// Whether two terms of tf32 are split by the fp32 units. One term by integers takes no longer.
constexpr bool splits_by_products(Operand operand, int terms, Rounding first, Rounding second) {
    return operand == Operand::tf32 && terms == 2 && first == Rounding::nearest_even &&
           (second == Rounding::nearest_even || second == Rounding::toward_zero);
}

// Two terms of one number in tf32, not finite where the first of them is not. `in_parallel`: the
// second term does not wait for the first, for the register of one more number; of the same bits.
template <Rounding second, bool in_parallel = false>
__device__ __forceinline__ void split_moderate_to_tf32(float x, uint32* terms) {
    const float more = __fmul_rn(8191.0f, x), big = __fmaf_rn(8192.0f, x, -more);
    // Both are exact: big is 8192 x - more.
    const float rest = in_parallel ? __fmaf_rn(-8191.0f, x, more) : x - big;
    terms[0] = __float_as_uint(big);
    terms[1] = __float_as_uint(second == Rounding::nearest_even ? round_moderate_to_tf32(rest)
                                                                : rest);
}

// Splits a number by four operations, in which no finite one overflows but in the first term:
// x - 8191/8192 x is x rounded as by `round_moderate_to_tf32`, over 8192. The tensor cores cut the
// second term. Both terms of an infinity and of NaN are NaN.
__device__ __forceinline__ void split_number_to_tf32(float x, uint32* terms) {
    const float part = __fsub_rn(x, __fmul_rn(8191.0f / 8192.0f, x));
    terms[0] = __float_as_uint(__fmul_rn(8192.0f, part));
    terms[1] = __float_as_uint(__fmaf_rn(-8192.0f, part, x));
}

// Two terms in tf32 of a weight within [-1, 1], or of any number below 2^115: without the checks of
// others it takes a third of the instructions.
template <Rounding first, Rounding second>
__device__ __forceinline__ void split_weight_to_tf32(float x, uint32 (&terms)[2]) {
    if constexpr (splits_by_products(Operand::tf32, 2, first, second)) {
        split_moderate_to_tf32<second>(x, terms);
        return;
    }
    terms[0] = add_tf32_increment_to_number<first>(x) & kTf32KeptMask;
    terms[1] = add_tf32_increment_to_number<second>(x - __uint_as_float(terms[0]));
}

// The terms of the numbers of one register, in any format, `stride` registers apart. `Finite`
// leaves out the check of two terms for a first one that is not finite, where the result is not
// finite either way: the second one is then NaN. `first` and `second` are the roundings of the
// first and of the second term, as in the templates of all kernels that split.
template <Operand operand, int Terms, Rounding first, Rounding second, bool Finite = false>
__device__ __forceinline__ void split(const float* x, uint32* terms, int stride = 1) {
    static_assert(Terms == 1 || Terms == 2, "a number is one term or two");
    if constexpr (operand == Operand::tf32) {
        split_to_tf32<Terms, first, second, Finite>(x[0], terms, stride);
    } else {
        terms[0] = OperandFormat<operand>::pack(x);
        if constexpr (Terms == 2) {
            float rest[kNumbersPerRegister<operand>];
            OperandFormat<operand>::unpack(terms[0], rest);
#pragma unroll
            for (int i = 0; i < kNumbersPerRegister<operand>; ++i)
                rest[i] = Finite ? x[i] - rest[i] : remainder_after(rest[i], x[i]);
            terms[stride] = OperandFormat<operand>::pack(rest);
        }
    }
}
