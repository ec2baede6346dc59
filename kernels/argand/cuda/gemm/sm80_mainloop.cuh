// Products of one stage, in the registers of a warp.
#pragma once
#include "sm80_operands.cuh"

template <GemmPlan plan>
struct Accumulators {
    float re[plan.warp_m() / 16][plan.warp_n() / 8][4];
    float im[plan.warp_m() / 16][plan.warp_n() / 8][4];

    __device__ __forceinline__ void clear() {
        each([](float& x, float) { x = 0.0f; }, *this);
    }

    // Adds what the other has, and leaves there what rounding lost of it.
    __device__ __forceinline__ void take(Accumulators& other) {
        each(
            [](float& x, float& y) {
                const float old = x;
                x += y;
                y -= x - old;
            },
            other);
    }

    template <typename Function, typename Other>
    __device__ __forceinline__ void each(Function function, Other& other) {
#pragma unroll
        for (int i = 0; i < plan.warp_m() / 16; ++i)
#pragma unroll
            for (int j = 0; j < plan.warp_n() / 8; ++j)
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    function(re[i][j][e], other.re[i][j][e]);
                    function(im[i][j][e], other.im[i][j][e]);
                }
    }
};

// A register of operands negated. For tf32 by a multiplication: rounding and indexing already fill
// the integer units, those for fp32 are idle.
template <Operand operand>
__device__ __forceinline__ uint32 minus(uint32 x) {
    if constexpr (operand == Operand::tf32) {
        return __float_as_uint(__fmul_rn(__uint_as_float(x), -1.0f));
    } else {
        return x ^ 0x80008000u;
    }
}

// Multiplies one 16 x 8 piece: every kept pair of terms, the small ones first.
template <GemmPlan plan>
__device__ __forceinline__ void multiply(float (&re)[4], float (&im)[4], const Line<plan>& upper,
                                         const Line<plan>& lower, const Line<plan>& b) {
#pragma unroll
    for (int p = 0; p < plan.products; ++p) {
        const int s = plan.product_a[p], t = plan.product_b[p];
        const uint32 minus_bi[2] = {minus<plan.operand>(b.im[t][0]),
                                    minus<plan.operand>(b.im[t][1])};
        mma<plan.operand>(re, upper.re[s], lower.re[s], b.re[t]);
        mma<plan.operand>(im, upper.re[s], lower.re[s], b.im[t]);
        mma<plan.operand>(re, upper.im[s], lower.im[s], minus_bi);
        mma<plan.operand>(im, upper.im[s], lower.im[s], b.re[t]);
    }
}

// Multiplies the tiles of one stage, this warp's share of k from k0 on. `a` and `b` point at this
// warp's part.
template <GemmPlan plan>
__device__ __forceinline__ void multiply_stage(Accumulators<plan>& sum, const float2* a_tile,
                                               const float2* b_tile, int a_line, int b_line, int k0,
                                               const float (&a_scale)[plan.warp_m() / 8],
                                               const float (&b_scale)[plan.warp_n() / 8],
                                               float flip_b) {
    constexpr int kRows = plan.warp_m() / 16, kColumns = plan.warp_n() / 8;
    const int k_lane = k0 + threadIdx.x % 4;
    // More steps at once hoist more reads than there are registers for.
    constexpr int kTogether = 16 / kMmaK<plan.operand>;
#pragma unroll kTogether
    for (int k = 0; k < plan.block_k / plan.warps_k; k += kMmaK<plan.operand>) {
        Line<plan> a[2 * kRows];
#pragma unroll
        for (int i = 0; i < 2 * kRows; ++i) {
            a[i] = load_line<plan, plan.a_k_fast, plan.a_pitch()>(a_tile, a_line + 8 * i,
                                                                  k + k_lane, a_scale[i], 1.0f);
        }
#pragma unroll
        for (int j = 0; j < kColumns; ++j) {
            const Line<plan> b = load_line<plan, plan.b_k_fast, plan.b_pitch()>(
                b_tile, b_line + 8 * j, k + k_lane, b_scale[j], flip_b);
#pragma unroll
            for (int i = 0; i < kRows; ++i) {
                multiply<plan>(sum.re[i][j], sum.im[i][j], a[2 * i], a[2 * i + 1], b);
            }
        }
    }
}

// Adds the sums of all shares of k to those of the first, in order. `memory` is the block's.
template <GemmPlan plan>
__device__ __forceinline__ void join_shares(Accumulators<plan>& sum, float* memory, int share) {
    constexpr int kThreads = kWarp * plan.warps_m * plan.warps_n;
    constexpr int kCount = plan.warp_m() / 16 * (plan.warp_n() / 8) * 8;
    static_assert(4 * (plan.warps_k - 1) * kCount * kThreads <=
                      8 * plan.stages * (plan.a_size() + plan.b_size()),
                  "the stages' memory holds what is left");
    float* mine = memory + threadIdx.x % kThreads;
    if (share > 0) {
        float* to = mine + (share - 1) * kCount * kThreads;
        sum.each(
            [&](float& x, float) {
                *to = x;
                to += kThreads;
            },
            sum);
    }
    __syncthreads();
    if (share == 0) {
        const float* from = mine;
        for (int other = 1; other < plan.warps_k; ++other) {
            sum.each(
                [&](float& x, float) {
                    x += *from;
                    from += kThreads;
                },
                sum);
        }
    }
}
