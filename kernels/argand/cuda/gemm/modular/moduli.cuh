// Arithmetic modulo the moduli of exact products, without divisions: a number is brought to
// 2^23 + z as fp32 bits by dot products of bytes or halves, one fused multiply-add finds the
// quotient z / p, one integer multiply-add the residue. argand/gemm/modular/constants.py makes the
// constants, and proves their ranges.
#pragma once
#include "device/complex.cuh"
#include "device/scaling.cuh"

// How an operand's integers become residues. Digits are signed bytes to base 256; each constant
// holds one byte for a digit, the least first.
struct EncodeModulus {
    uint32 real[2];     // 256^j mod p
    uint32 turned[2];   // s 256^j mod p, where s^2 = -1
    uint32 negated[2];  // -s 256^j mod p
    uint32 offset;      // bits of 2^23, plus a multiple of p that keeps z positive
    uint32 minus_p;
    float reciprocal, correction;  // the quotient is z reciprocal + correction, as 2^23 + q
};

// How sums of products become residues.
struct ReduceModulus {
    uint32 weights;  // bytes 256^j mod p: of the sum's bytes
    uint32 offset;   // bits of 2^23, plus what makes the sum's bias 0 modulo p and z positive
    uint32 minus_p;
    float reciprocal, correction;  // as in EncodeModulus
};

// How residues of C' become C' itself: `rest` are the words of P / p, the least first; `real` and
// `imag` take the sum and the difference of two residues to the part, times the inverse of P / p.
struct ExactModulus {
    uint32 rest[4];
    int p, real, imag;
};

// A line that holds NaN or infinity has this exponent.
constexpr int kNotFinite = 0x7fffffff;

// d + the dot product of four signed bytes.
__device__ __forceinline__ uint32 dot_bytes(uint32 a, uint32 b, uint32 d) {
    return uint32(__dp4a(int(a), int(b), int(d)));
}

// d + the dot product of the unsigned bytes of a and the signed bytes of b.
__device__ __forceinline__ uint32 dot_unsigned_bytes(uint32 a, uint32 b, uint32 d) {
    uint32 result;
    asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(d));
    return result;
}

// The residue modulo p nearest to 0 of z = bits - bits of 2^23, in the low byte.
template <typename Modulus>
__device__ __forceinline__ uint32 nearest_residue(uint32 bits, const Modulus& modulus) {
    const float quotient =
        __fmaf_rn(__uint_as_float(bits), modulus.reciprocal, modulus.correction);
    return __float_as_uint(quotient) * modulus.minus_p + bits;
}

// The residue of an accumulator, which holds kSumBias plus the sum, in the low byte.
__device__ __forceinline__ uint32 residue_of(uint32 accumulator, const ReduceModulus& modulus) {
    return nearest_residue(dot_unsigned_bytes(accumulator, modulus.weights, modulus.offset),
                           modulus);
}

// The low bytes of four words.
__device__ __forceinline__ uint32 pack_bytes(uint32 a, uint32 b, uint32 c, uint32 d) {
    return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}

// 2^exponent, of a normal number.
__device__ __forceinline__ float power_of_two(float, int exponent) {
    return power_of_two(exponent);
}
__device__ __forceinline__ double power_of_two(double, int exponent) {
    return __hiloint2double((exponent + 1023) << 20, 0);
}

template <typename T>
constexpr int kMaxExponent = sizeof(T) == 4 ? 127 : 1023;

// 2^exponent in two factors, so that both are normal numbers. A product with it loses bits only
// where it is subnormal.
template <typename T>
struct PowerOfTwo {
    T first, second;

    __device__ __forceinline__ PowerOfTwo(T first, T second) : first(first), second(second) {}
    __device__ __forceinline__ explicit PowerOfTwo(int exponent) {
        const int part = max(1 - kMaxExponent<T>, min(exponent, kMaxExponent<T>));
        first = power_of_two(T(), part);
        second = power_of_two(T(), max(1 - kMaxExponent<T>, min(exponent - part, kMaxExponent<T>)));
    }
    __device__ __forceinline__ T operator()(T x) const { return x * first * second; }
};

// Calls `visit` with a function that multiplies by the power: by one factor where that is enough.
template <typename T, typename Visit>
__device__ __forceinline__ void with_scaling(const PowerOfTwo<T>& scale, const Visit& visit) {
    if (scale.second == T(1)) {
        visit([&](T x) { return x * scale.first; });
    } else {
        visit(scale);
    }
}

// The nearest integer, ties to even.
__device__ __forceinline__ int nearest_integer(float x) { return __float2int_rn(x); }
__device__ __forceinline__ int64 nearest_integer(double x) { return __double2ll_rn(x); }

// Columns of residues are a multiple of this.
constexpr int kColumnBlock = 128;

// The column of a block whose residues are byte `byte` of a row: byte 4 l + i belongs to column
// 64 (i / 2) + 2 l + i % 2 of complex64, and to column 32 i + l of complex128.
template <typename T>
__device__ __forceinline__ int column_of_byte(int byte) {
    const int lane = byte / 4, i = byte % 4;
    return sizeof(T) == 4 ? 64 * (i / 2) + 2 * lane + i % 2 : 32 * i + lane;
}

// The row in which column `column` of B is stored, in blocks of kColumnBlock. So a thread of the
// mainloop owns 16 neighbouring bytes of residues, and lanes that decode own neighbouring columns
// of C.
template <typename T>
__device__ __forceinline__ int stored_row(int column) {
    const int in_block = column % kColumnBlock;
    // The inverse of `column_of_byte`.
    const int byte = sizeof(T) == 4 ? 4 * (in_block % 64 / 2) + in_block / 64 * 2 + in_block % 2
                                    : 4 * (in_block % 32) + in_block / 32;
    // Byte 16 c + 2 j + e of 64 is accumulator column 8 j + 2 c + e.
    const int in_half = byte % 64;
    return column - in_block + byte / 64 * 64 + in_half % 16 / 2 * 8 + in_half / 16 * 2 +
           in_half % 2;
}
