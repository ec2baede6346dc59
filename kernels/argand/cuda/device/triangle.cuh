// Rows of a triangle whose elements are numbered row by row.
#pragma once
#include "types.cuh"

// The largest i with i (i + 1) / 2 <= index, for indices below 2^31 - 2^15, where no product here
// overflows. The root is off by less than one.
__device__ __forceinline__ uint32 triangle_row(uint32 index) {
    uint32 row = static_cast<uint32>((__fsqrt_rn(8.0f * float(index) + 1.0f) - 1.0f) * 0.5f);
    if (row * (row + 1) / 2 > index) --row;
    if ((row + 1) * (row + 2) / 2 <= index) ++row;
    return row;
}
