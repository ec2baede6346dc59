// Loads that a predicate may skip.
#pragma once
#include "types.cuh"

// Cache operators of a load: all levels, the default, where several loads of a warp read the same
// sector in parts; or the global level, L2, alone.
struct CacheAllLevels {
    static constexpr bool kGlobalLevel = false;
};
struct CacheGlobalLevel {
    static constexpr bool kGlobalLevel = true;
};

// The load by an operator. A macro, because NVRTC takes no string into asm before CUDA 12.5.
#define LOAD_OR_ZERO(cache)                                                                \
    asm volatile(                                                                          \
        "{\n.reg .pred p;\nsetp.ne.b32 p, %3, 0;\nmov.b32 %0, 0;\nmov.b32 %1, 0;\n"        \
        "@p ld.global" cache ".v2.f32 {%0, %1}, [%2];\n}"                                  \
        : "=f"(x.x), "=f"(x.y)                                                             \
        : "l"(at), "r"(int(inside))                                                        \
        : "memory")

// Loads, or returns 0 where there is no element. It is predicated and not branched, so many loads
// are in flight at once.
template <typename Cache>
__device__ __forceinline__ float2 load_or_zero(const float2* at, bool inside) {
    float2 x;
    if constexpr (Cache::kGlobalLevel) {
        LOAD_OR_ZERO(".cg");
    } else {
        LOAD_OR_ZERO("");
    }
    return x;
}

#undef LOAD_OR_ZERO

// Loads one number or two neighbours, or zeros where they are not `inside`. They are read once, so
// they leave L2 first.
__device__ __forceinline__ void load_once_or_zero(const float2* at, bool inside, float2 (&x)[1]) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %3, 0;\nmov.b32 %0, 0;\nmov.b32 %1, 0;\n"
        "@p ld.global.cs.v2.f32 {%0, %1}, [%2];\n}"
        : "=f"(x[0].x), "=f"(x[0].y)
        : "l"(at), "r"(int(inside))
        : "memory");
}

__device__ __forceinline__ void load_once_or_zero(const float2* at, bool inside, float2 (&x)[2]) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %5, 0;\n"
        "mov.b32 %0, 0;\nmov.b32 %1, 0;\nmov.b32 %2, 0;\nmov.b32 %3, 0;\n"
        "@p ld.global.cs.v4.f32 {%0, %1, %2, %3}, [%4];\n}"
        : "=f"(x[0].x), "=f"(x[0].y), "=f"(x[1].x), "=f"(x[1].y)
        : "l"(at), "r"(int(inside))
        : "memory");
}
