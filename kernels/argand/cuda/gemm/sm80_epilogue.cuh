// The epilogue of the mma.sync family: a warp descales its accumulators, computes alpha x + beta C
// (device/complex.cuh) and stores complex64 from registers, at any strides.
#pragma once
#include "device/complex.cuh"
#include "device/scaling.cuh"
#include "sm80_mainloop.cuh"

// Computes and stores the results of two neighbouring columns of one row, of which the first is
// inside the matrix. `c` and `out` are those of the batch.
__device__ __forceinline__ void store_pair(const GemmArguments& args, const float2* c, float2* out,
                                           int64 row, int64 column, float2 (&x)[2]) {
    const bool second = column + 1 < args.n;
    const float2* c_at = c + row * args.c_stride_m + column * args.c_stride_n;
    float2* out_at = out + row * args.out_stride_m + column * args.out_stride_n;
    x[0] = conjugate_and_combine(args, x[0], c_at);
    if (second) x[1] = conjugate_and_combine(args, x[1], c_at + args.c_stride_n);
    if (second && args.store_pairs_n) {
        *reinterpret_cast<float4*>(out_at) = {x[0].x, x[0].y, x[1].x, x[1].y};
    } else {
        *out_at = x[0];
        if (second) out_at[args.out_stride_n] = x[1];
    }
}

// `row0` and `column0` are the first of the lane; `b_absmax` begins with that column.
template <GemmPlan plan>
__device__ __forceinline__ void store_accumulators(const GemmArguments& args,
                                                   const Accumulators<plan>& accumulators,
                                                   int64 batch, int64 row0, int64 column0,
                                                   const int (&a_exponent)[plan.warp_m() / 8],
                                                   const uint32* b_absmax) {
    const float2* c = args.c + batch * args.c_stride_batch;
    float2* out = args.out + batch * args.out_stride_batch;
#pragma unroll
    for (int j = 0; j < plan.warp_n() / 8; ++j) {
        const int64 column = column0 + 8 * j;
        int b_exponent[2] = {0, 0};
        if constexpr (plan.scaled) {
            for (int e = 0; e < 2; ++e)
                if (column + e < args.n) b_exponent[e] = scale_exponent<plan.operand>(b_absmax[8 * j + e]);
        }
#pragma unroll
        for (int i = 0; i < plan.warp_m() / 8; ++i) {
            const int64 row = row0 + 8 * i;
            if (row >= args.m || column >= args.n) continue;
            float2 x[2];
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const int at = 2 * (i % 2) + e;
                x[e] = {accumulators.re[i / 2][j][at], accumulators.im[i / 2][j][at]};
                if constexpr (plan.scaled) {
                    const int exponent = -(a_exponent[i] + b_exponent[e]);
                    x[e] = {scale_by_power(x[e].x, exponent), scale_by_power(x[e].y, exponent)};
                }
            }
            store_pair(args, c, out, row, column, x);
        }
    }
}
