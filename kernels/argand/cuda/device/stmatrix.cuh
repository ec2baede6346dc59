// stmatrix: four matrices of 8 rows of 16 bytes from the registers of a warp to shared memory
// (sm_90). Lane l gives the address of row l % 8 of matrix l / 8, and register i of a lane holds two
// neighbours of matrix i: columns 2 (l % 4) and the next of row l / 4, or `transposed` those rows of
// column l / 4.
#pragma once
#include "types.cuh"

template <bool transposed>
__device__ __forceinline__ void store_matrices(uint32 address, const uint32 (&x)[4]) {
    if constexpr (transposed) {
        asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                         address),
                     "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3])
                     : "memory");
    } else {
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                         address),
                     "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3])
                     : "memory");
    }
}
