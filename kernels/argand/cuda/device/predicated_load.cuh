// Loads that a predicate may skip. They are predicated and not branched, so many are in flight at
// once.
#pragma once
#include "types.cuh"

// Cache operators of a load: all levels, the default, where several loads of a warp read the same
// sector in parts; the global level, L2, alone; or streaming, for numbers that are read once, which
// leave L2 first.
struct CacheAllLevels {
    static constexpr char kOperator[] = "";
};
struct CacheGlobalLevel {
    static constexpr char kOperator[] = ".cg";
};
struct CacheStreaming {
    static constexpr char kOperator[] = ".cs";
};

// Loads a complex number, or returns 0 where it is not `inside`.
template <typename Cache>
__device__ __forceinline__ float2 load_or_zero(const float2* at, bool inside) {
    float2 x;
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %3, 0;\nmov.b32 %0, 0;\nmov.b32 %1, 0;\n"
        "@p ld.global%4.v2.f32 {%0, %1}, [%2];\n}"
        : "=f"(x.x), "=f"(x.y)
        : "l"(at), "r"(int(inside)), "C"(Cache::kOperator)
        : "memory");
    return x;
}

// Loads two neighbours by 16 bytes, or returns zeros where they are not `inside`.
template <typename Cache>
__device__ __forceinline__ float4 load_two_or_zero(const float2* at, bool inside) {
    float4 x;
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %5, 0;\n"
        "mov.b32 %0, 0;\nmov.b32 %1, 0;\nmov.b32 %2, 0;\nmov.b32 %3, 0;\n"
        "@p ld.global%6.v4.f32 {%0, %1, %2, %3}, [%4];\n}"
        : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
        : "l"(at), "r"(int(inside)), "C"(Cache::kOperator)
        : "memory");
    return x;
}
