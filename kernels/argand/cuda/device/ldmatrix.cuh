// ldmatrix: four matrices of 8 rows of 16 bytes from shared memory to the registers of a warp, as
// operands of mma.sync (sm_75 and newer).
#pragma once
#include "types.cuh"

__device__ __forceinline__ void load_matrices(uint32 (&x)[4], uint32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(address)
                 : "memory");
}
