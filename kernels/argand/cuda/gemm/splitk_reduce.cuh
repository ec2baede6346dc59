// Adds up the sums over parts of k: out = alpha sum + beta C.
#pragma once
#include "device/complex.cuh"

struct ReduceArguments {
    const float2* sums;  // (parts, batch, m, n)
    const float2* c;
    float2* out;
    int64 parts, batch, m, n;
    int64 c_row, c_column, c_batch;
    int64 out_row, out_column, out_batch;
    float alpha_re, alpha_im, beta_re, beta_im;
};

// One thread an element, always in the order of the parts.
__device__ __forceinline__ void add_parts(const ReduceArguments& args) {
    const int64 count = args.batch * args.m * args.n;
    const int64 at = int64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= count) return;
    float2 sum = {0.0f, 0.0f};
#pragma unroll 4
    for (int64 part = 0; part < args.parts; ++part) {
        const float2 x = args.sums[part * count + at];
        sum = {sum.x + x.x, sum.y + x.y};
    }
    const int64 column = at % args.n, row = at / args.n % args.m, batch = at / (args.n * args.m);
    const float2* c = args.c + batch * args.c_batch + row * args.c_row + column * args.c_column;
    args.out[batch * args.out_batch + row * args.out_row + column * args.out_column] =
        linear_combination(args, sum, c);
}
