// Shared-memory loads of X fragments. Unlike those of device/shared.cuh all but the last do not
// clobber memory, so the compiler may move other accesses across them; mbarrier waits keep their
// order.
#pragma once
#include "sm90_plan.cuh"

__device__ __forceinline__ float4 load_x_16(uint32 address) {
    float4 x;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                 : "r"(address));
    return x;
}

__device__ __forceinline__ float2 load_x_element(uint32 address) {
    float2 x;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x.x), "=f"(x.y) : "r"(address));
    return x;
}

__device__ __forceinline__ uint2 load_x_8(uint32 address) {
    uint2 x;
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(x.x), "=r"(x.y) : "r"(address));
    return x;
}

__device__ __forceinline__ void ldmatrix_x4(uint32 (&x)[4], uint32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(address)
                 : "memory");
}
