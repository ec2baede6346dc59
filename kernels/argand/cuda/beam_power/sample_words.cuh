// Samples as they lie in memory, both parts in a word, and the numbers in fp32 that they are.
#pragma once
#include "device/rounding.cuh"
#include "plan.cuh"

template <Samples samples, Operand operand>
struct SampleWords {
    using Word = uint32;
    __device__ __forceinline__ static float2 number(Word word) {
        float parts[2];
        OperandFormat<operand>::unpack(word, parts);
        return {parts[0], parts[1]};
    }
};

template <Operand operand>
struct SampleWords<Samples::complex64, operand> {
    using Word = float2;
    __device__ __forceinline__ static float2 number(Word word) { return word; }
};

template <Operand operand>
struct SampleWords<Samples::int8, operand> {
    using Word = unsigned short;
    // 0x4b000000 + u is 2^23 + u in fp32, and u is 128 more than the part.
    __device__ __forceinline__ static float2 number(Word word) {
        const uint32 bytes = word ^ 0x8080u;
        return {__uint_as_float(__byte_perm(bytes, 0x4b000000u, 0x7540)) - 8388736.0f,
                __uint_as_float(__byte_perm(bytes, 0x4b000000u, 0x7541)) - 8388736.0f};
    }
};
