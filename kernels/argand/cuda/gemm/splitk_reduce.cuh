// The split-K reduction: adds the slices that a product with split-K has stored and runs its
// epilogue, out = alpha sum + beta C. It is a launch of its own, which in a graph begins as the
// product's blocks end.
#pragma once
#include "device/predicated_load.cuh"
#include "device/quotient.cuh"
#include "linear_combination.cuh"

struct ReduceArguments {
    const float2* partials;  // (split_k_slices, batch, m, pitch)
    const float2* c;
    float2* out;
    uint32 split_k_slices, batch, m, n, pitch;
    int64 c_stride_m, c_stride_n, c_stride_batch;
    int64 out_stride_m, out_stride_n, out_stride_batch;
    float alpha_re, alpha_im, beta_re, beta_im;
    uint32 groups;  // threads of an element, 1 to 8
};

constexpr int kReduceThreads = 256;
constexpr int kReduceLoads = 4;  // slices that a thread loads before it adds them

// `groups` threads share an element: each adds every `groups`-th slice, in order, and the first
// then adds their sums in order, so that results repeat bit for bit. At least 32 neighbouring
// threads read neighbouring elements.
__device__ __forceinline__ void reduce_split_k(const ReduceArguments& args) {
    // Groups are a power of two.
    const uint32 elements_log2 = __ffs(kReduceThreads) - __ffs(args.groups);
    const uint32 elements = 1u << elements_log2;
    const uint32 lane = threadIdx.x & (elements - 1), group = threadIdx.x >> elements_log2;
    const uint32 m = args.m, n = args.n, count = args.batch * m * n;
    const uint32 at = blockIdx.x * elements + lane;
    const uint32 line = quotient(at, n), batch = line < m ? 0 : quotient(line, m);
    const uint32 column = at - line * n, row = line - batch * m;
    const float2* c =
        args.c + batch * args.c_stride_batch + row * args.c_stride_m + column * args.c_stride_n;
    float2* out = args.out + batch * args.out_stride_batch + row * args.out_stride_m +
                  column * args.out_stride_n;
    float2 sum = {0.0f, 0.0f};
    const int64 slice_numbers = int64(args.batch) * args.m * args.pitch;
    const float2* from = args.partials + group * slice_numbers +
                         (int64(batch) * args.m + row) * args.pitch + column;
    const int64 step = args.groups * slice_numbers;
    for (uint32 slice = group; slice < args.split_k_slices;) {
        float2 x[kReduceLoads];
#pragma unroll
        for (int i = 0; i < kReduceLoads; ++i) {
            x[i] = load_or_zero<CacheGlobalLevel>(from,
                                                  at < count && slice < args.split_k_slices);
            from += step;
            slice += args.groups;
        }
#pragma unroll
        for (int i = 0; i < kReduceLoads; ++i) sum = {sum.x + x[i].x, sum.y + x[i].y};
    }
    if (args.groups > 1) {
        __shared__ float2 sums[kReduceThreads];
        sums[threadIdx.x] = sum;
        __syncthreads();
        for (uint32 other = 1; group == 0 && other < args.groups; ++other) {
            const float2 x = sums[other * elements + lane];
            sum = {sum.x + x.x, sum.y + x.y};
        }
    }
    if (at < count && group == 0) *out = linear_combination(args, sum, c);
}
