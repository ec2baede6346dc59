// mma.sync for each operand format: 16 rows of A by 8 columns of B, accumulated in fp32. The
// kernels for every card from sm_80 on multiply by it.
//
// Lane l holds rows l / 4 and l / 4 + 8 of A and column l / 4 of B. The instruction fixes which
// slots along k a lane holds, but any k may stand in a slot as long as A and B agree. Both operands
// put k = l % 4 + 4 j, in order of j, into a lane's slots, because these reads of shared memory
// have no bank conflicts in any format.
//
// Source of the layouts: PTX ISA, warp-level matrix fragments for mma.m16n8k8 and mma.m16n8k16.
#pragma once
#include "rounding.cuh"

// The k of one instruction. In every format a lane holds two registers of each of its rows and
// columns.
template <Operand operand>
constexpr int kMmaK = 32 / bytes_of(operand);

template <Operand operand>
__device__ __forceinline__ void mma(float (&d)[4], const uint32 (&a_upper)[2],
                                    const uint32 (&a_lower)[2], const uint32 (&b)[2]);

template <>
__device__ __forceinline__ void mma<Operand::tf32>(float (&d)[4], const uint32 (&a_upper)[2],
                                                   const uint32 (&a_lower)[2],
                                                   const uint32 (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a_upper[0]), "r"(a_lower[0]), "r"(a_upper[1]), "r"(a_lower[1]), "r"(b[0]), "r"(b[1]));
}

template <>
__device__ __forceinline__ void mma<Operand::fp16>(float (&d)[4], const uint32 (&a_upper)[2],
                                                   const uint32 (&a_lower)[2],
                                                   const uint32 (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a_upper[0]), "r"(a_lower[0]), "r"(a_upper[1]), "r"(a_lower[1]), "r"(b[0]), "r"(b[1]));
}

template <>
__device__ __forceinline__ void mma<Operand::bf16>(float (&d)[4], const uint32 (&a_upper)[2],
                                                   const uint32 (&a_lower)[2],
                                                   const uint32 (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a_upper[0]), "r"(a_lower[0]), "r"(a_upper[1]), "r"(a_lower[1]), "r"(b[0]), "r"(b[1]));
}
