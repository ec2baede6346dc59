// Loads that a predicate may skip.
#pragma once
#include "types.cuh"

// Loads, or returns 0 where there is no element. It is predicated and not branched, so many loads
// are in flight at once.
__device__ __forceinline__ float2 load_or_zero(const float2* at, bool inside) {
    float2 x;
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %3, 0;\nmov.b32 %0, 0;\nmov.b32 %1, 0;\n"
        "@p ld.global.cg.v2.f32 {%0, %1}, [%2];\n}"
        : "=f"(x.x), "=f"(x.y)
        : "l"(at), "r"(int(inside))
        : "memory");
    return x;
}

// The same through L1, where several loads of a warp read the same sector in parts.
__device__ __forceinline__ float2 load_cached_or_zero(const float2* at, bool inside) {
    float2 x;
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %3, 0;\nmov.b32 %0, 0;\nmov.b32 %1, 0;\n"
        "@p ld.global.v2.f32 {%0, %1}, [%2];\n}"
        : "=f"(x.x), "=f"(x.y)
        : "l"(at), "r"(int(inside))
        : "memory");
    return x;
}
