// Weights from positions and directions: phases in fixed point, their cosines and sines, rounded to
// terms and stored in shared memory as B fragments of mma.sync.
#pragma once
#include "device/cp_async.cuh"
#include "device/shared.cuh"
#include "plan.cuh"

// 1.5 2^52: a sum in fp64 that begins here has units of 1, and its low word is the sum modulo 2^32.
constexpr double kFixedPoint = 6755399441055744.0;

// The fraction of the phase in half turns, within [-1, 1). Positions have units of 2^-30 turns, so
// two bits above the fraction are shifted out.
__device__ __forceinline__ float half_turns(const double* place, const double (&direction)[3]) {
    const double sum = fma(place[2], direction[2],
                           fma(place[1], direction[1], fma(place[0], direction[0], kFixedPoint)));
    return static_cast<float>(static_cast<int>(static_cast<uint32>(__double2loint(sum)) << 2)) * 0x1p-31f;
}

// A panel of weights for the directions of a block: [k of an MMA][term][8 directions][lane] of two
// registers each. Two terms of tf32 are split where they are read: the panel holds fp32.
template <Operand operand, int Terms, Rounding first, Rounding second, int Directions>
struct WeightPanel {
    static constexpr bool kSplitOnLoad = operand == Operand::tf32 && Terms == 2;
    static constexpr int kStoredTerms = kSplitOnLoad ? 1 : Terms;
    static constexpr int kGroups = Directions / 8;
    static constexpr int kThreads = kGroups * kWarp;
    static constexpr int kNumbers = kNumbersPerRegister<operand>;
    static constexpr int kMmas = kPanelRows / kMmaK<operand>;
    static constexpr int kBytes = kMmas * kStoredTerms * kGroups * kWarp * 8;

    __device__ __forceinline__ static uint32 fragment(uint32 panel, int mma_index, int term,
                                                      int group, int lane) {
        return panel + (((mma_index * kStoredTerms + term) * kGroups + group) * kWarp + lane) * 8;
    }

    // Each warp makes the weights of eight directions, each thread those of one. `places` are the
    // panel's antennas in shared memory.
    __device__ __forceinline__ static void store(uint32 panel, const double (*places)[3],
                                                 const double (&direction)[3]) {
        const int lane = threadIdx.x % kWarp, group = threadIdx.x / kWarp;
#pragma unroll 2
        for (int mma_index = 0; mma_index < kMmas / 2; ++mma_index) {
            float parts[2][2 * kNumbers];
#pragma unroll
            for (int n = 0; n < 2 * kNumbers; ++n) {
                const int antenna = mma_index * kMmaK<operand> + lane % 4 + 4 * n;
                const float phase = half_turns(places[antenna], direction);
                if constexpr (Terms == 1) {
                    const float angle = phase * 3.14159265358979f;
                    parts[0][n] = __cosf(angle);
                    parts[1][n] = __sinf(angle);
                } else {
                    sincospif(phase, &parts[1][n], &parts[0][n]);
                }
            }
#pragma unroll
            for (int part = 0; part < 2; ++part) {
                uint32 words[2][kStoredTerms];
#pragma unroll
                for (int word = 0; word < 2; ++word) {
                    if constexpr (kSplitOnLoad) {
                        words[word][0] = __float_as_uint(parts[part][word]);
                    } else {
                        split<operand, Terms, first, second>(parts[part] + word * kNumbers,
                                                             words[word]);
                    }
                }
#pragma unroll
                for (int term = 0; term < kStoredTerms; ++term) {
                    const uint32 at =
                        fragment(panel, mma_index + part * (kMmas / 2), term, group, lane);
                    asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(at), "r"(words[0][term]),
                                 "r"(words[1][term])
                                 : "memory");
                }
            }
        }
    }

    // The terms of a B fragment.
    __device__ __forceinline__ static void load(uint32 panel, int mma_index, int group, int lane,
                                                uint32 (&b)[Terms][2]) {
        if constexpr (kSplitOnLoad) {
            const float2 x = load_shared_8(fragment(panel, mma_index, 0, group, lane));
            uint32 words[2][Terms];
            split_finite_to_tf32<first, second>(x.x, words[0]);
            split_finite_to_tf32<first, second>(x.y, words[1]);
#pragma unroll
            for (int term = 0; term < Terms; ++term) {
                b[term][0] = words[0][term];
                b[term][1] = words[1][term];
            }
        } else {
#pragma unroll
            for (int term = 0; term < Terms; ++term) {
                const float2 x = load_shared_8(fragment(panel, mma_index, term, group, lane));
                b[term][0] = __float_as_uint(x.x);
                b[term][1] = __float_as_uint(x.y);
            }
        }
    }

    // The weight in a row of the panel toward a direction, of tf32; two terms are split as they are
    // read.
    __device__ __forceinline__ static float value(uint32 panel, int row, int direction) {
        const int mma_index = row / kMmaK<operand>, slot = row % kMmaK<operand> / 4;
        const uint32 at =
            fragment(panel, mma_index, 0, direction / 8, direction % 8 * 4 + row % 4) + slot * 4;
        uint32 word;
        asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(at) : "memory");
        return __uint_as_float(kSplitOnLoad ? word : word & kTf32KeptMask);
    }

    // The weights in row `row` of the first eight of a tile and in the one eight further on, as sums
    // of their 16-bit terms. The rows of a word are four apart: both words hold these in one half.
    __device__ __forceinline__ static float2 values(uint32 panel, int tile, int group,
                                                    int direction, int row) {
        float2 sum = {0.0f, 0.0f};
#pragma unroll
        for (int term = kStoredTerms - 1; term >= 0; --term) {
            const float2 both =
                load_shared_8(fragment(panel, tile, term, group, direction * 4 + row % 4));
            sum.x += half_value(__float_as_uint(both.x) >> row / 4 * 16);
            sum.y += half_value(__float_as_uint(both.y) >> row / 4 * 16);
        }
        return sum;
    }

    // The number in the lower half of a word.
    __device__ __forceinline__ static float half_value(uint32 word) {
        float x[2];
        OperandFormat<operand>::unpack(word, x);
        return x[0];
    }
};
