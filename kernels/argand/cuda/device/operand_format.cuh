// The operand formats of tensor cores. A format is an enumerator, its two numbers, its conversions
// (`OperandFormat`) and its MMA atom; Python has its range (argand/precision.py).
#pragma once
#include "types.cuh"

// `exact` is not a format of tensor cores: values that are not rounded (softmax).
enum class Operand { tf32, fp16, bf16, exact };

// Bytes of a number.
constexpr int bytes_of(Operand operand) { return operand == Operand::tf32 ? 4 : 2; }

// Scaling brings the absmax of a row into [2^e, 2^(e + 1)). 0: the format has the range of fp32 and
// is not scaled.
constexpr int scaled_exponent_of(Operand operand) { return operand == Operand::fp16 ? 14 : 0; }

constexpr bool is_scaled(Operand operand) { return scaled_exponent_of(operand) > 0; }

// Numbers in a register, the first in its lowest bits.
template <Operand operand>
constexpr int kNumbersPerRegister = 4 / bytes_of(operand);

// A format whose registers hold several numbers: `pack` rounds to nearest, ties to even, `unpack`
// widens, `round` rounds one number, and `kSignBits` are the signs.
template <Operand operand>
struct OperandFormat;

template <>
struct OperandFormat<Operand::fp16> {
    static constexpr uint32 kSignBits = 0x80008000u;

    static __device__ __forceinline__ uint32 pack(const float* x) {
        uint32 packed;
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(x[1]), "f"(x[0]));
        return packed;
    }

    static __device__ __forceinline__ void unpack(uint32 packed, float (&x)[2]) {
        asm("{\n.reg .b16 low, high;\n"
            "mov.b32 {low, high}, %2;\n"
            "cvt.f32.f16 %0, low;\n"
            "cvt.f32.f16 %1, high;\n}\n"
            : "=f"(x[0]), "=f"(x[1])
            : "r"(packed));
    }

    static __device__ __forceinline__ float round(float x) {
        unsigned short half;
        float rounded;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(x));
        asm("cvt.f32.f16 %0, %1;" : "=f"(rounded) : "h"(half));
        return rounded;
    }
};

template <>
struct OperandFormat<Operand::bf16> {
    static constexpr uint32 kSignBits = 0x80008000u;

    static __device__ __forceinline__ uint32 pack(const float* x) {
        uint32 packed;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(x[1]), "f"(x[0]));
        return packed;
    }

    // bf16 is the upper half of fp32.
    static __device__ __forceinline__ void unpack(uint32 packed, float (&x)[2]) {
        x[0] = __uint_as_float(packed << 16);
        x[1] = __uint_as_float(packed & 0xffff0000u);
    }

    static __device__ __forceinline__ float round(float x) {
        const float pair[2] = {x, 0.0f};
        return __uint_as_float(pack(pair) << 16);
    }
};

// mma.sync: 16 rows of A by 8 columns of B, accumulated in fp32. The kernels for every card from
// sm_80 on multiply by it.
//
// Lane l holds rows l / 4 and l / 4 + 8 of A and column l / 4 of B. The instruction fixes which
// slots along k a lane holds, but any k may stand in a slot as long as A and B agree. Both operands
// put k = l % 4 + 4 j, in order of j, into a lane's slots, because these reads of shared memory
// have no bank conflicts in any format.
//
// Source of the layouts: PTX ISA, warp-level matrix fragments for mma.m16n8k8 and mma.m16n8k16.

// The k of one instruction. In every format a lane holds two registers of each of its rows and
// columns.
template <Operand operand>
constexpr int kMmaK = 32 / bytes_of(operand);

template <Operand operand>
__device__ __forceinline__ void mma(float (&d)[4], const uint32 (&a_upper)[2],
                                    const uint32 (&a_lower)[2], const uint32 (&b)[2]);

// asm takes literals alone: the shape and the type in PTX.
#define MMA_ATOM(operand, shape, type)                                                      \
    template <>                                                                             \
    __device__ __forceinline__ void mma<operand>(                                           \
        float (&d)[4], const uint32 (&a_upper)[2], const uint32 (&a_lower)[2],              \
        const uint32 (&b)[2]) {                                                             \
        asm volatile("mma.sync.aligned." shape ".row.col.f32." type "." type ".f32 "        \
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"      \
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                       \
                     : "r"(a_upper[0]), "r"(a_lower[0]), "r"(a_upper[1]), "r"(a_lower[1]),  \
                       "r"(b[0]), "r"(b[1]));                                               \
    }

MMA_ATOM(Operand::tf32, "m16n8k8", "tf32")
MMA_ATOM(Operand::fp16, "m16n8k16", "f16")
MMA_ATOM(Operand::bf16, "m16n8k16", "bf16")
#undef MMA_ATOM
