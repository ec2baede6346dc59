// What a warpgroup of the wgmma family has in registers: samples as row fragments, and the squares of
// its beams, summed over time among the lanes of a warp.
#pragma once
#include "samples.cuh"

// The row fragments of an MMA: a lane has samples 2 (lane / 4) and the next of the warp's 16.
template <Samples samples, Operand operand, Rounding rounding, int Times>
struct RowFragments {
    static constexpr int kPitch = Stage<samples, Times>::kPitch;
    uint32 parts[2][4];

    // `address` is the lane's first antenna and time in the stage.
    __device__ __forceinline__ void load(uint32 address) {
        if constexpr (samples == Samples::complex64) {
            constexpr int kNumbers = kNumbersPerRegister<operand>;
#pragma unroll
            for (int slot = 0; slot < 2; ++slot) {
                float re[2][kNumbers], im[2][kNumbers];
#pragma unroll
                for (int n = 0; n < kNumbers; ++n) {
                    const float4 x = load_shared_16(address + 4 * (slot * kNumbers + n) * kPitch);
                    re[0][n] = x.x, im[0][n] = x.y, re[1][n] = x.z, im[1][n] = x.w;
                }
#pragma unroll
                for (int time = 0; time < 2; ++time) {
                    split<operand, 1, rounding, rounding>(re[time], &parts[0][2 * slot + time]);
                    split<operand, 1, rounding, rounding>(im[time], &parts[1][2 * slot + time]);
                }
            }
        } else if constexpr (samples == Samples::half) {
#pragma unroll
            for (int slot = 0; slot < 2; ++slot) {
                const float2 a = load_shared_8(address + 8 * slot * kPitch),
                             b = load_shared_8(address + (8 * slot + 4) * kPitch);
                take_half(2 * slot, __float_as_uint(a.x), __float_as_uint(b.x));
                take_half(2 * slot + 1, __float_as_uint(a.y), __float_as_uint(b.y));
            }
        } else {
#pragma unroll
            for (int slot = 0; slot < 2; ++slot) {
                const uint32 a = load_word(address + 8 * slot * kPitch) ^ 0x80808080u,
                             b = load_word(address + (8 * slot + 4) * kPitch) ^ 0x80808080u;
                take_int8(2 * slot, bytes_of_two<0x5410u>(a, b));
                take_int8(2 * slot + 1, bytes_of_two<0x7632u>(a, b));
            }
        }
    }

    __device__ __forceinline__ static uint32 load_word(uint32 address) {
        uint32 x;
        asm volatile("ld.shared.b32 %0, [%1];" : "=r"(x) : "r"(address) : "memory");
        return x;
    }

    __device__ __forceinline__ void take_half(int at, uint32 a, uint32 b) {
        parts[0][at] = bytes_of_two<0x5410u>(a, b);
        parts[1][at] = bytes_of_two<0x7632u>(a, b);
    }

    __device__ __forceinline__ void take_int8(int at, uint32 both) {
        parts[0][at] = from_int8<operand, 0>(both);
        parts[1][at] = from_int8<operand, 1>(both);
    }
};

// Adds the first `Count` of x over lanes whose numbers differ in `Levels` bits from `Mask` on. Each
// lane keeps the sums of Count >> Levels of them, and the result is which is its first.
template <int Count, int Levels, int Mask, int Size>
__device__ __forceinline__ int add_lanes(float (&x)[Size], int lane) {
    if constexpr (Levels == 0) {
        return 0;
    } else {
        constexpr int kKept = Count / 2;
        const bool upper = lane & Mask;
#pragma unroll
        for (int i = 0; i < kKept; ++i) {
            const float low = x[i], high = x[i + kKept];
            const float given = upper ? low : high, own = upper ? high : low;
            x[i] = own + __shfl_xor_sync(~0u, given, Mask);
        }
        return (upper ? kKept : 0) + add_lanes<kKept, Levels - 1, 2 * Mask>(x, lane);
    }
}

// Sums of the squares of a lane's beams over `Group` samples of its warp, in shared memory. Lanes that
// share a sum each keep half of the beams at every exchange.
template <int Beams, int Group, int RowSums>
__device__ __forceinline__ void store_sums(const float (&re)[Beams / 2],
                                           const float (&im)[Beams / 2], float* sums,
                                           int first_time, int lane) {
    constexpr int kValues = Beams / 4;  // beams of a lane: 8 j + 2 (lane % 4) and the next
    const int own = first_time + lane / 4 * 2;
    float powers[kValues];
#pragma unroll
    for (int i = 0; i < kValues; ++i) {
        const int at = 4 * (i / 2) + i % 2;
        const float first = re[at] * re[at] + im[at] * im[at];
        const float second = re[at + 2] * re[at + 2] + im[at + 2] * im[at + 2];
        if constexpr (Group == 1) {
            float* to = sums + (8 * (i / 2) + 2 * (lane % 4) + i % 2) * RowSums + own;
            to[0] = first;
            to[1] = second;
        } else {
            powers[i] = first + second;
        }
    }
    if constexpr (Group > 1) {
        constexpr int kLevels = Group == 2 ? 0 : Group == 4 ? 1 : Group == 8 ? 2 : 3;
        const int first = add_lanes<kValues, kLevels, 4>(powers, lane);
#pragma unroll
        for (int i = 0; i < kValues >> kLevels; ++i) {
            const int at = first + i;
            sums[(8 * (at / 2) + 2 * (lane % 4) + at % 2) * RowSums + own / Group] = powers[i];
        }
    }
}
