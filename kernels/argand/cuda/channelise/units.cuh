// Units of samples as they lie in memory, and as two floats.
#pragma once
#include "device/types.cuh"

enum class Component { fp32, int8, int16, conjugate_fp32, conjugate_int8, conjugate_int16 };

// Whether kernels compute with the conjugates of complex samples, which lie as the samples do.
template <Component Of>
constexpr bool kConjugate = Of >= Component::conjugate_fp32;

// A unit of `kBytes` lies as a `Raw`, which `value` turns into two floats.
template <Component Of>
struct Unit;

template <>
struct Unit<Component::fp32> {
    using Raw = float2;
    static constexpr int kBytes = 8;
    static __device__ __forceinline__ float2 value(Raw raw) { return raw; }
};

// The compiler converts a byte or half of a register in one instruction (I2F.S8 of .B0 and .B1).
// Its rate is a quarter of that of an addition, but kernels are bound by instructions, and
// additions of bits to 2^23 take five a sample.
template <>
struct Unit<Component::int8> {
    using Raw = char2;
    static constexpr int kBytes = 2;
    static __device__ __forceinline__ float2 value(Raw raw) {
        return {static_cast<float>(raw.x), static_cast<float>(raw.y)};
    }
};

template <>
struct Unit<Component::int16> {
    using Raw = short2;
    static constexpr int kBytes = 4;
    static __device__ __forceinline__ float2 value(Raw raw) {
        return {static_cast<float>(raw.x), static_cast<float>(raw.y)};
    }
};

template <>
struct Unit<Component::conjugate_fp32> : Unit<Component::fp32> {};
template <>
struct Unit<Component::conjugate_int8> : Unit<Component::int8> {};
template <>
struct Unit<Component::conjugate_int16> : Unit<Component::int16> {};

// A sum over samples as that over the numbers that kernels compute with. Additions take a negated
// operand for nothing; negated samples would each take a register of their own.
template <Component Of, typename Number>
__device__ __forceinline__ Number conjugated(Number sum) {
    if constexpr (kConjugate<Of>) sum.y = -sum.y;
    return sum;
}

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
