// Weights from positions and directions: phases in fixed point, their cosines and sines, rounded to
// terms and stored in shared memory as B fragments of mma.sync.
#pragma once
#include "device/cp_async.cuh"
#include "device/shared.cuh"
#include "plan.cuh"

// 1.5 2^52: a sum in fp64 that begins here has units of 1, and its low word is the sum modulo 2^32.
constexpr double kFixedPoint = 6755399441055744.0;

// The phase modulo a turn in units of 2^-30 turns, below two bits that say nothing.
__device__ __forceinline__ uint32 fixed_phase(const double* place, const double (&direction)[3]) {
    const double sum = fma(place[2], direction[2],
                           fma(place[1], direction[1], fma(place[0], direction[0], kFixedPoint)));
    return static_cast<uint32>(__double2loint(sum));
}

// Polynomials of sin(pi x) / x and cos(pi x) in x^2, of least error between -1/4 and 1/4.
constexpr float kSine[] = {3.14159261f, -5.16770351f, 2.5496289f, -0.58781307f};
constexpr float kCosine[] = {1.0f, -4.93480217f, 4.0587079f, -1.33505847f, 0.23142956f};

template <int Count>
__device__ __forceinline__ float polynomial(const float (&coefficients)[Count], float x) {
    float sum = coefficients[Count - 1];
#pragma unroll
    for (int i = Count - 2; i >= 0; --i) sum = fmaf(sum, x, coefficients[i]);
    return sum;
}

// The cosine and the sine of a phase, off by at most 2^-23 (tests/kernels/image/test_cosines.py),
// by the distance from the nearest quarter turn in half turns.
__device__ __forceinline__ void cos_sin(uint32 phase, float& cosine, float& sine) {
    const float x = static_cast<float>(static_cast<int>(phase << 4)) * 0x1p-33f;
    const float odd = x * polynomial(kSine, x * x), even = polynomial(kCosine, x * x);
    const uint32 quarters = (phase << 2) + (1u << 29);  // the upper two bits
    const bool exchanged = static_cast<int>(quarters << 1) < 0;
    const uint32 sign = 1u << 31;
    cosine = __uint_as_float(__float_as_uint(exchanged ? odd : even) ^
                             ((quarters + (1u << 30)) & sign));
    sine = __uint_as_float(__float_as_uint(exchanged ? even : odd) ^ (quarters & sign));
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
    static constexpr int kMmaBytes = kStoredTerms * kGroups * kWarp * 8;
    static constexpr int kBytes = kMmas * kMmaBytes;

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
                const uint32 phase = fixed_phase(places[antenna], direction);
                if constexpr (Terms == 1) {
                    const float half_turns =
                        static_cast<float>(static_cast<int>(phase << 2)) * 0x1p-31f;
                    const float angle = half_turns * 3.14159265358979f;
                    parts[0][n] = __cosf(angle);
                    parts[1][n] = __sinf(angle);
                } else {
                    cos_sin(phase, parts[0][n], parts[1][n]);
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
                        split<operand, Terms, first, second, true>(parts[part] + word * kNumbers,
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

    // The terms of a B fragment, of an MMA and a group of directions after those whose fragment of
    // the lane is at `from`.
    __device__ __forceinline__ static void load(uint32 from, int mma_index, int group,
                                                uint32 (&b)[Terms][2]) {
        if constexpr (kSplitOnLoad) {
            const float2 x = load_shared_8(fragment(from, mma_index, 0, group, 0));
            uint32 words[2][Terms];
            split_weight_to_tf32<first, second>(x.x, words[0]);
            split_weight_to_tf32<first, second>(x.y, words[1]);
#pragma unroll
            for (int term = 0; term < Terms; ++term) {
                b[term][0] = words[0][term];
                b[term][1] = words[1][term];
            }
        } else {
#pragma unroll
            for (int term = 0; term < Terms; ++term) {
                const float2 x = load_shared_8(fragment(from, mma_index, term, group, 0));
                b[term][0] = __float_as_uint(x.x);
                b[term][1] = __float_as_uint(x.y);
            }
        }
    }

    // The weights in row lane / 4 of a tile and eight rows further on, toward direction 2 (lane %
    // 4) + i of a group, as sums of their terms; two terms of tf32 are split as they are read.
    // `from` is `of_lane` of the tile. The rows of a 16-bit word are four apart: `half` says in
    // which halves of two words those of the lane are, as `__byte_perm` takes it.
    __device__ __forceinline__ static float2 values(uint32 from, int group, int i, uint32 half) {
        float sum[2];
        if constexpr (operand == Operand::tf32) {
#pragma unroll
            for (int row = 0; row < 2; ++row) {
                uint32 word;
                asm volatile("ld.shared.b32 %0, [%1];"
                             : "=r"(word)
                             : "r"(fragment(from, row, 0, group, 4 * i))
                             : "memory");
                sum[row] = __uint_as_float(kSplitOnLoad ? word : word & kTf32KeptMask);
            }
        } else {
#pragma unroll
            for (int term = kStoredTerms - 1; term >= 0; --term) {
                const float2 both = load_shared_8(fragment(from, 0, term, group, 4 * i));
                const uint32 own =
                    __byte_perm(__float_as_uint(both.x), __float_as_uint(both.y), half);
                float x[2];
                OperandFormat<operand>::unpack(own, x);
                sum[0] = term == kStoredTerms - 1 ? x[0] : sum[0] + x[0];
                sum[1] = term == kStoredTerms - 1 ? x[1] : sum[1] + x[1];
            }
        }
        return {sum[0], sum[1]};
    }

    // Where a lane reads the weights of a tile from a group of directions on.
    __device__ __forceinline__ static uint32 of_lane(uint32 panel, int tile, int group, int lane) {
        const uint32 found =
            fragment(panel, tile * kUnitMmas<operand>, 0, group, lane % 4 * 8 + lane / 4 % 4);
        return operand == Operand::tf32 ? found + lane / 16 * 4 : found;
    }
    __device__ __forceinline__ static uint32 half_of(int lane) {
        return lane < 16 ? 0x5410u : 0x7632u;
    }
};
