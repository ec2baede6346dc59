// Shared-memory addresses, and loads and stores of 8 and 16 bytes by them. They are volatile and
// clobber memory, so the compiler keeps their order around barriers. Those of `_unordered` do not
// clobber memory: the compiler may move other accesses across them, which fragments gain by, and
// the asm of barriers and mbarrier waits keeps their order.
#pragma once
#include "types.cuh"

// The 32-bit address of `pointer`, which points to shared memory.
__device__ __forceinline__ uint32 shared_address(const void* pointer) {
    return static_cast<uint32>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ float4 load_shared_16(uint32 address) {
    float4 x;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                 : "r"(address)
                 : "memory");
    return x;
}

__device__ __forceinline__ uint4 load_shared_words(uint32 address) {
    const float4 x = load_shared_16(address);
    return {__float_as_uint(x.x), __float_as_uint(x.y), __float_as_uint(x.z), __float_as_uint(x.w)};
}

__device__ __forceinline__ float2 load_shared_8(uint32 address) {
    float2 x;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
                 : "=f"(x.x), "=f"(x.y)
                 : "r"(address)
                 : "memory");
    return x;
}

__device__ __forceinline__ float4 load_shared_16_unordered(uint32 address) {
    float4 x;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                 : "r"(address));
    return x;
}

__device__ __forceinline__ float2 load_shared_8_unordered(uint32 address) {
    float2 x;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x.x), "=f"(x.y) : "r"(address));
    return x;
}

__device__ __forceinline__ void store_shared_8(uint32 address, float2 x) {
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(x.x), "f"(x.y) : "memory");
}

__device__ __forceinline__ void store_shared_16(uint32 address, float4 x) {
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(address), "f"(x.x), "f"(x.y),
                 "f"(x.z), "f"(x.w)
                 : "memory");
}

__device__ __forceinline__ void store_shared_16(uint32 address, uint32 x, uint32 y, uint32 z,
                                                uint32 w) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(x), "r"(y), "r"(z),
                 "r"(w)
                 : "memory");
}

__device__ __forceinline__ double2 load_shared_pair(uint32 address) {
    double2 x;
    asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];"
                 : "=d"(x.x), "=d"(x.y)
                 : "r"(address)
                 : "memory");
    return x;
}

__device__ __forceinline__ void store_shared_pair(uint32 address, double2 x) {
    asm volatile("st.shared.v2.f64 [%0], {%1, %2};" ::"r"(address), "d"(x.x), "d"(x.y) : "memory");
}
