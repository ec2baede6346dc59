// The split-K reduction: adds the slices that a product with split-K has stored and runs its
// epilogue, out = alpha sum + beta C. It is a launch of its own after the product.
#pragma once
#include "device/complex.cuh"

struct ReduceArguments {
    const float2* partials;  // (split_k_slices, batch, m, n)
    const float2* c;
    float2* out;
    int64 split_k_slices, batch, m, n;
    int64 c_stride_m, c_stride_n, c_stride_batch;
    int64 out_stride_m, out_stride_n, out_stride_batch;
    float alpha_re, alpha_im, beta_re, beta_im;
};

// One thread an element. Slices are added in order, so that results repeat bit for bit.
__device__ __forceinline__ void reduce_split_k(const ReduceArguments& args) {
    const int64 count = args.batch * args.m * args.n;
    const int64 at = int64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (at >= count) return;
    float2 sum = {0.0f, 0.0f};
#pragma unroll 4
    for (int64 slice = 0; slice < args.split_k_slices; ++slice) {
        const float2 x = args.partials[slice * count + at];
        sum = {sum.x + x.x, sum.y + x.y};
    }
    const int64 column = at % args.n, row = at / args.n % args.m, batch = at / (args.n * args.m);
    const float2* c =
        args.c + batch * args.c_stride_batch + row * args.c_stride_m + column * args.c_stride_n;
    args.out[batch * args.out_stride_batch + row * args.out_stride_m + column * args.out_stride_n] =
        linear_combination(args, sum, c);
}
