// The elementwise epilogue of products, which all families and the split-K reduction run on
// complete sums: alpha x + beta C. `args` is the structure of any kernel's arguments, with alpha
// and beta among its members (argand/gemm/linear_combination.py).
#pragma once
#include "device/complex.cuh"

// Whether C is added.
template <typename Arguments>
__device__ __forceinline__ bool adds_c(const Arguments& args) {
    return args.beta_re != 0.0f || args.beta_im != 0.0f;
}

// alpha x + beta C for one element; `c` is read only where C is added. With alpha = 1, x stays as
// it is, because a complex multiplication would turn infinities into NaN.
template <typename Arguments>
__device__ __forceinline__ float2 linear_combination(const Arguments& args, float2 x, float2 c) {
    if (args.alpha_re != 1.0f || args.alpha_im != 0.0f) {
        x = complex_product({args.alpha_re, args.alpha_im}, x);
    }
    if (adds_c(args)) {
        const float2 addend = complex_product({args.beta_re, args.beta_im}, c);
        x = {x.x + addend.x, x.y + addend.y};
    }
    return x;
}
template <typename Arguments>
__device__ __forceinline__ float2 linear_combination(const Arguments& args, float2 x,
                                                     const float2* c) {
    return linear_combination(args, x, adds_c(args) ? *c : float2{});
}

// Whether `linear_combination` changes anything.
template <typename Arguments>
__device__ __forceinline__ bool combines(const Arguments& args) {
    return args.alpha_re != 1.0f || args.alpha_im != 0.0f || adds_c(args);
}
