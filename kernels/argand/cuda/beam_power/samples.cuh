// Stages of samples in shared memory, and their B fragments. A stage has kDepth antennas, a row
// each; rows are 32 bytes further apart than their samples take, so that lanes of neighbouring
// antennas meet no bank conflict.
//
// A warp has 32 samples of a row, as four groups of eight columns. A lane reads kTimes neighbours
// of an antenna at once: they are its column of that many groups. So the accumulators of a lane are
// of 2 kTimes neighbours in time.
#pragma once
#include "device/cp_async.cuh"
#include "device/shared.cuh"
#include "plan.cuh"

template <Samples samples>
constexpr int kTimes = samples == Samples::complex64 ? 2 : 4;

// Antennas of a stage.
template <Samples samples>
constexpr int kDepth = samples == Samples::complex64 ? 16 : 32;

template <Samples samples, int Times>
struct Stage {
    static constexpr int kItem = sample_bytes(samples);
    static constexpr int kPitch = Times * kItem + 32;
    static constexpr int kBytes = kDepth<samples> * kPitch;
};

// Begins to copy the first `valid_bytes` of `Bytes` bytes to shared memory, and zeros for the rest;
// of 16 bytes beside L1, which keeps the weights. With none the source is not read.
template <int Bytes>
__device__ __forceinline__ void copy_samples(uint32 to, const unsigned char* from,
                                             int valid_bytes) {
    if constexpr (Bytes == 2) {
        unsigned short x = 0;
        if (valid_bytes > 0) x = *reinterpret_cast<const unsigned short*>(from);
        asm volatile("st.shared.u16 [%0], %1;" ::"r"(to), "h"(x) : "memory");
    } else if constexpr (Bytes == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                     "r"(valid_bytes)
                     : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from),
                     "n"(Bytes), "r"(valid_bytes)
                     : "memory");
    }
}

// Four bytes of x (0 to 3) and y (4 to 7): hexadecimal digit i of `selector` names byte i of the
// result.
template <uint32 selector>
__device__ __forceinline__ uint32 bytes_of_two(uint32 x, uint32 y) {
    return __byte_perm(x, y, selector);
}

// A register of two numbers of int8, in bytes 0 and 2 or 1 and 3 of x, each plus 128.
template <Operand operand, int part>
__device__ __forceinline__ uint32 from_int8(uint32 x) {
    if constexpr (operand == Operand::fp16) {
        // 0x6400 + u is 1024 + u in fp16, and 0x6480 is 1024 + 128.
        const uint32 sum = bytes_of_two<part ? 0x4341u : 0x4240u>(x, 0x64646464u);
        uint32 found;
        asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(found) : "r"(sum), "r"(0x64806480u));
        return found;
    } else {
        // 0x4b000000 + u is 2^23 + u in fp32.
        float numbers[2];
        numbers[0] = __uint_as_float(bytes_of_two<part ? 0x7541u : 0x7540u>(x, 0x4b000000u));
        numbers[1] = __uint_as_float(bytes_of_two<part ? 0x7543u : 0x7542u>(x, 0x4b000000u));
        numbers[0] -= 8388736.0f;
        numbers[1] -= 8388736.0f;
        return OperandFormat<operand>::pack(numbers);
    }
}

// The fragments of one mma_k: real and imaginary parts of four groups of columns.
template <Samples samples, Operand operand, int Terms, Rounding first, Rounding second, int Times>
struct SampleFragments {
    static constexpr int kRows = kMmaK<operand> / 4;  // antennas of a lane
    uint32 parts[2][4][Terms][2];

    // `address` is the lane's first antenna and time in the stage.
    __device__ __forceinline__ void load(uint32 address, int mma_index) {
        constexpr int kPitch = Stage<samples, Times>::kPitch;
        address += mma_index * kMmaK<operand> * kPitch;
        if constexpr (samples == Samples::complex64) {
#pragma unroll
            for (int two = 0; two < 2; ++two) {
                float4 x[kRows];
#pragma unroll
                for (int row = 0; row < kRows; ++row)
                    x[row] = load_shared_16(address + 4 * row * kPitch + two * 128);
                take_complex<0>(x, two);
                take_complex<1>(x, two);
            }
        } else if constexpr (samples == Samples::half) {
            uint4 x[kRows];
#pragma unroll
            for (int row = 0; row < kRows; ++row)
                x[row] = load_shared_words(address + 4 * row * kPitch);
#pragma unroll
            for (int slot = 0; slot < 2; ++slot) {
                const uint4 a = x[2 * slot], b = x[2 * slot + 1];
                take_half(0, slot, a.x, b.x);
                take_half(1, slot, a.y, b.y);
                take_half(2, slot, a.z, b.z);
                take_half(3, slot, a.w, b.w);
            }
        } else {
            uint2 x[kRows];
#pragma unroll
            for (int row = 0; row < kRows; ++row) {
                const float2 read = load_shared_8(address + 4 * row * kPitch);
                x[row] = {__float_as_uint(read.x) ^ 0x80808080u,
                          __float_as_uint(read.y) ^ 0x80808080u};
            }
#pragma unroll
            for (int slot = 0; slot < 2; ++slot) {
                const uint2 a = x[2 * slot], b = x[2 * slot + 1];
                take_int8(0, slot, bytes_of_two<0x5410u>(a.x, b.x));
                take_int8(1, slot, bytes_of_two<0x7632u>(a.x, b.x));
                take_int8(2, slot, bytes_of_two<0x5410u>(a.y, b.y));
                take_int8(3, slot, bytes_of_two<0x7632u>(a.y, b.y));
            }
        }
    }

    // This takes one of a group of two neighbours in time.
    template <int which>
    __device__ __forceinline__ void take_complex(const float4 (&x)[kRows], int two) {
        constexpr int kNumbers = kNumbersPerRegister<operand>;
#pragma unroll
        for (int slot = 0; slot < 2; ++slot) {
            float re[kNumbers], im[kNumbers];
#pragma unroll
            for (int n = 0; n < kNumbers; ++n) {
                const float4 read = x[slot * kNumbers + n];
                re[n] = which ? read.z : read.x;
                im[n] = which ? read.w : read.y;
            }
            uint32 terms[Terms];
            split<operand, Terms, first, second>(re, terms);
#pragma unroll
            for (int term = 0; term < Terms; ++term)
                parts[0][2 * two + which][term][slot] = terms[term];
            split<operand, Terms, first, second>(im, terms);
#pragma unroll
            for (int term = 0; term < Terms; ++term)
                parts[1][2 * two + which][term][slot] = terms[term];
        }
    }

    __device__ __forceinline__ void take_half(int group, int slot, uint32 a, uint32 b) {
        parts[0][group][0][slot] = bytes_of_two<0x5410u>(a, b);
        parts[1][group][0][slot] = bytes_of_two<0x7632u>(a, b);
    }

    __device__ __forceinline__ void take_int8(int group, int slot, uint32 both) {
        parts[0][group][0][slot] = from_int8<operand, 0>(both);
        parts[1][group][0][slot] = from_int8<operand, 1>(both);
    }
};
