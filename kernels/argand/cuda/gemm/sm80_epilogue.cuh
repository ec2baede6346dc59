// The epilogue of the mma.sync family: a warp descales its accumulators, computes alpha x + beta C
// (device/complex.cuh) and stores complex64 from registers, at any strides.
#pragma once
#include "device/complex.cuh"
#include "device/scaling.cuh"
#include "sm80_mainloop.cuh"

// Computes the results of two neighbouring columns of one row, of which the first is inside the
// matrix.
__device__ __forceinline__ void combine_pair(const GemmArguments& args, const float2* c, int64 row,
                                             int64 column, float2 (&x)[2]) {
    const float2* c_at = c + row * args.c_stride_m + column * args.c_stride_n;
    x[0] = conjugate_and_combine(args, x[0], c_at);
    if (column + 1 < args.n) x[1] = conjugate_and_combine(args, x[1], c_at + args.c_stride_n);
}

// Stores them where the first is inside the matrix. `out` is that of the batch.
__device__ __forceinline__ void store_combined(const GemmArguments& args, float2* out, int64 row,
                                               int64 column, const float2 (&x)[2]) {
    const bool second = column + 1 < args.n;
    float2* out_at = out + row * args.out_stride_m + column * args.out_stride_n;
    if (second && args.store_pairs_n) {
        *reinterpret_cast<float4*>(out_at) = {x[0].x, x[0].y, x[1].x, x[1].y};
    } else {
        *out_at = x[0];
        if (second) out_at[args.out_stride_n] = x[1];
    }
}

// Does both. `c` and `out` are those of the batch.
__device__ __forceinline__ void store_pair(const GemmArguments& args, const float2* c, float2* out,
                                           int64 row, int64 column, float2 (&x)[2]) {
    combine_pair(args, c, row, column, x);
    store_combined(args, out, row, column, x);
}

// Whether columns are contiguous and some rows begin in the middle of 16 bytes. In those a lane
// stores the second column of the lane before with its own first one, so that four lanes write 64
// bytes of a row at once; the first and the last column of a warp are stored alone.
__device__ __forceinline__ bool shifts_rows(const GemmArguments& args) {
    return args.out_stride_n == 1 && !args.store_pairs_n;
}

// Stores the results of two neighbouring columns of one row where `shifts_rows`. `before` is the
// second result of the eight columns before, and becomes that of these. `first` and `last` say that
// these are the first and the last eight columns of the warp. All lanes of a warp call it.
__device__ __forceinline__ void store_shifted_pair(const GemmArguments& args, float2* out,
                                                   int64 row, int64 column, const float2 (&x)[2],
                                                   float2& before, bool first, bool last) {
    const int lane = threadIdx.x % kWarp, t = lane % 4;
    // The next lane asks for this one's second column; the first of four lanes asks the last for
    // that of the eight columns before.
    const float2 given = t == 3 ? before : x[1];
    const int source = lane / 4 * 4 + (t + 3) % 4;
    const float2 left = {__shfl_sync(~0u, given.x, source), __shfl_sync(~0u, given.y, source)};
    before = x[1];
    if (row >= args.m) return;
    float2* at = out + row * args.out_stride_m + column;
    const bool inside = column < args.n, second = column + 1 < args.n;
    if (reinterpret_cast<uint64>(at) % 16 == 0) {
        if (second) {
            *reinterpret_cast<float4*>(at) = {x[0].x, x[0].y, x[1].x, x[1].y};
        } else if (inside) {
            *at = x[0];
        }
        return;
    }
    if (first && t == 0) {
        if (inside) *at = x[0];
    } else if (inside) {
        *reinterpret_cast<float4*>(at - 1) = {left.x, left.y, x[0].x, x[0].y};
    } else if (column == args.n) {
        at[-1] = left;
    }
    if (last && t == 3 && second) at[1] = x[1];
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
    constexpr int kEights = plan.warp_n() / 8;
    // The shuffle makes the branch warp-uniform for the compiler.
    const bool shifts = __shfl_sync(~0u, int(shifts_rows(args)), 0);
    float2 before[plan.warp_m() / 8] = {};
#pragma unroll
    for (int j = 0; j < kEights; ++j) {
        const int64 column = column0 + 8 * j;
        int b_exponent[2] = {0, 0};
        if constexpr (plan.scaled) {
            for (int e = 0; e < 2; ++e)
                if (column + e < args.n) b_exponent[e] = scale_exponent<plan.operand>(b_absmax[8 * j + e]);
        }
#pragma unroll
        for (int i = 0; i < plan.warp_m() / 8; ++i) {
            const int64 row = row0 + 8 * i;
            const bool inside = row < args.m && column < args.n;
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
            if (inside) combine_pair(args, c, row, column, x);
            if (shifts) {
                store_shifted_pair(args, out, row, column, x, before[i], j == 0,
                                   j + 1 == kEights);
            } else if (inside) {
                store_combined(args, out, row, column, x);
            }
        }
    }
}
