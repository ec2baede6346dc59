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
    int groups;  // threads of an element, 1 to 8
};

constexpr int kReduceThreads = 256;


// `groups` threads an element, which add every so many slices each, in order; then the first adds
// their sums in order, so that results repeat bit for bit. 32 threads at least read neighbours.
__device__ __forceinline__ void reduce_split_k(const ReduceArguments& args) {
    const int elements = kReduceThreads / args.groups;
    const int lane = threadIdx.x % elements, group = threadIdx.x / elements;
    const int64 count = args.batch * args.m * args.n;
    const int64 at = int64(blockIdx.x) * elements + lane;
    float2 sum = {0.0f, 0.0f};
    if (at < count) {
#pragma unroll 4
        for (int64 slice = group; slice < args.split_k_slices; slice += args.groups) {
            const float2 x = args.partials[slice * count + at];
            sum = {sum.x + x.x, sum.y + x.y};
        }
    }
    if (args.groups > 1) {
        __shared__ float2 sums[kReduceThreads];
        sums[threadIdx.x] = sum;
        __syncthreads();
        for (int other = 1; group == 0 && other < args.groups; ++other) {
            const float2 x = sums[other * elements + lane];
            sum = {sum.x + x.x, sum.y + x.y};
        }
    }
    if (at >= count || group > 0) return;
    const int64 column = at % args.n, row = at / args.n % args.m, batch = at / (args.n * args.m);
    const float2* c =
        args.c + batch * args.c_stride_batch + row * args.c_stride_m + column * args.c_stride_n;
    args.out[batch * args.out_stride_batch + row * args.out_stride_m + column * args.out_stride_n] =
        linear_combination(args, sum, c);
}
