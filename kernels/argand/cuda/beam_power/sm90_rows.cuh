// Registers of a warpgroup of the wgmma family: samples as row fragments, and the squares of its
// beams, summed over time among the lanes of a warp.
#pragma once
#include "detect.cuh"

// The row fragments of an MMA, one a term: a lane has samples 2 (lane / 4) and the next of the
// warp's 16.
template <Samples samples, Operand operand, int Terms, Rounding first, Rounding second, int Times>
struct RowFragments {
    static constexpr int kPitch = Stage<samples, Times>::kPitch;
    uint32 parts[2][Terms][4];

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
                    const int at = 2 * slot + time;
                    split<operand, Terms, first, second>(re[time], &parts[0][0][at], 4);
                    split<operand, Terms, first, second>(im[time], &parts[1][0][at], 4);
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
        parts[0][0][at] = bytes_of_two<0x5410u>(a, b);
        parts[1][0][at] = bytes_of_two<0x7632u>(a, b);
    }

    __device__ __forceinline__ void take_int8(int at, uint32 both) {
        parts[0][0][at] = from_int8<operand, 0>(both);
        parts[1][0][at] = from_int8<operand, 1>(both);
    }
};

// Adds the first `Count` of x over lanes whose numbers differ in `Levels` bits from `Mask` on. Each
// lane keeps the sums of Count >> Levels of them; returns the number of the first that it keeps.
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

// The beam of value i of a lane, from the first beam of the block on.
__device__ __forceinline__ int beam_of(int i, int lane) {
    return 8 * (i / 2) + 2 * (lane % 4) + i % 2;
}

// A lane's accumulators. Value i stands at 4 (i / 2) + i % 2, and that of the next sample two
// further.
template <int Polarizations, int Beams>
struct WarpgroupBeams {
    static constexpr int kValues = Beams / 4;
    float re[Polarizations][Beams / 2], im[Polarizations][Beams / 2];

    __device__ __forceinline__ static int place(int i) { return 4 * (i / 2) + i % 2; }

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int p = 0; p < Polarizations; ++p) {
#pragma unroll
            for (int i = 0; i < Beams / 2; ++i) re[p][i] = im[p][i] = 0.0f;
        }
    }

    __device__ __forceinline__ void clear_last() {
#pragma unroll
        for (int i = 0; i < Beams / 2; ++i) re[Polarizations - 1][i] = im[Polarizations - 1][i] = 0;
    }

    // Moves the beams of the last polarization to the first one.
    __device__ __forceinline__ void move_last() {
#pragma unroll
        for (int i = 0; i < Beams / 2; ++i) {
            re[0][i] = re[Polarizations - 1][i];
            im[0][i] = im[Polarizations - 1][i];
        }
    }

    // Scales the beams of each polarization back; `descales` are those of the block's first beam.
    __device__ __forceinline__ void descale(const float* const (&descales)[Polarizations],
                                            int lane) {
#pragma unroll
        for (int p = 0; p < Polarizations; ++p) descale_one(p, descales[p], lane);
    }
    __device__ __forceinline__ void descale_one(int p, const float* descales, int lane) {
#pragma unroll
        for (int i = 0; i < kValues; ++i) {
            const float factor = __ldg(descales + beam_of(i, lane));
#pragma unroll
            for (int at = place(i); at <= place(i) + 2; at += 2) {
                re[p][at] *= factor;
                im[p][at] *= factor;
            }
        }
    }

    // The power or Stokes parameter of a number.
    template <int output>
    __device__ __forceinline__ float value(int at) const {
        float2 z[Polarizations];
#pragma unroll
        for (int p = 0; p < Polarizations; ++p) z[p] = {re[p][at], im[p][at]};
        return detected<Polarizations, output>(z);
    }

    // Stores an output's sums over `Group` samples of a warp to shared memory. Lanes that share a
    // sum each keep half of the beams at every exchange.
    template <int output, int Group, int RowSums>
    __device__ __forceinline__ void store_sums(float* sums, int first_time, int lane) const {
        const int own = first_time + lane / 4 * 2;
        float powers[kValues];
#pragma unroll
        for (int i = 0; i < kValues; ++i) {
            const int at = place(i);
            if constexpr (Group == 1) {
                float* to = sums + beam_of(i, lane) * RowSums + own;
                to[0] = value<output>(at);
                to[1] = value<output>(at + 2);
            } else if constexpr (Polarizations == 1) {
                const float first = fmaf(im[0][at], im[0][at], re[0][at] * re[0][at]);
                powers[i] = fmaf(im[0][at + 2], im[0][at + 2],
                                 fmaf(re[0][at + 2], re[0][at + 2], first));
            } else {
                powers[i] = value<output>(at) + value<output>(at + 2);
            }
        }
        if constexpr (Group > 1) {
            constexpr int kLevels = Group == 2 ? 0 : Group == 4 ? 1 : Group == 8 ? 2 : 3;
            const int first = add_lanes<kValues, kLevels, 4>(powers, lane);
#pragma unroll
            for (int i = 0; i < kValues >> kLevels; ++i)
                sums[beam_of(first + i, lane) * RowSums + own / Group] = powers[i];
        }
    }
};
