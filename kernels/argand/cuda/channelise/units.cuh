// Units of samples as they lie in memory, and as two floats.
#pragma once
#include "device/types.cuh"

enum class Component { fp32, int8, int16 };

// A unit of `kBytes` lies as a `Raw`, of which `value` makes two floats.
template <Component Of>
struct Unit;

template <>
struct Unit<Component::fp32> {
    using Raw = float2;
    static constexpr int kBytes = 8;
    static __device__ __forceinline__ float2 value(Raw raw) { return raw; }
};

// Integers become floats by their bits: with the sign turned over, b + 128 in the low bits of 2^23
// is that number, exactly. A conversion takes a quarter of an addition's rate.
template <>
struct Unit<Component::int8> {
    using Raw = unsigned short;
    static constexpr int kBytes = 2;
    static __device__ __forceinline__ float2 value(Raw raw) {
        const uint32 bits = raw ^ 0x8080u;
        constexpr float kOffset = 8388608.0f + 128.0f;
        return {__uint_as_float(__byte_perm(bits, 0x4b000000u, 0x7440)) - kOffset,
                __uint_as_float(__byte_perm(bits, 0x4b000000u, 0x7441)) - kOffset};
    }
};

template <>
struct Unit<Component::int16> {
    using Raw = uint32;
    static constexpr int kBytes = 4;
    static __device__ __forceinline__ float2 value(Raw raw) {
        const uint32 bits = raw ^ 0x80008000u;
        constexpr float kOffset = 8388608.0f + 32768.0f;
        return {__uint_as_float(__byte_perm(bits, 0x4b000000u, 0x7410)) - kOffset,
                __uint_as_float(__byte_perm(bits, 0x4b000000u, 0x7432)) - kOffset};
    }
};

// A unit in global memory.
template <Component Of>
__device__ __forceinline__ float2 global_unit(const unsigned char* from) {
    return Unit<Of>::value(__ldg(reinterpret_cast<const typename Unit<Of>::Raw*>(from)));
}

// A real sample from an address that a unit may not have.
template <Component Of>
struct RealSample;

template <>
struct RealSample<Component::fp32> {
    static __device__ __forceinline__ float load(const unsigned char* from) {
        return __ldg(reinterpret_cast<const float*>(from));
    }
};

template <>
struct RealSample<Component::int8> {
    static __device__ __forceinline__ float load(const unsigned char* from) {
        return static_cast<float>(__ldg(reinterpret_cast<const signed char*>(from)));
    }
};

template <>
struct RealSample<Component::int16> {
    static __device__ __forceinline__ float load(const unsigned char* from) {
        return static_cast<float>(__ldg(reinterpret_cast<const short*>(from)));
    }
};
