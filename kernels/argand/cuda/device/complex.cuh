// Complex types and arithmetic, and the epilogue of a product for one element: alpha x + beta C.
#pragma once
#include "types.cuh"

template <typename T>
struct ComplexOf;
template <>
struct ComplexOf<float> {
    using Type = float2;
};
template <>
struct ComplexOf<double> {
    using Type = double2;
};
template <typename T>
using Complex = typename ComplexOf<T>::Type;

__device__ __forceinline__ float2 complex_product(float2 x, float2 y) {
    return {x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x};
}
__device__ __forceinline__ double2 complex_product(double2 x, double2 y) {
    return {x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x};
}

// Adds u x to an accumulator.
template <typename Number>
__device__ __forceinline__ void multiply_add(Number& accumulator, Number u, Number x) {
    accumulator.x += u.x * x.x;
    accumulator.y += u.x * x.y;
    accumulator.x -= u.y * x.y;
    accumulator.y += u.y * x.x;
}

// Whether C is added. `args` is any structure with alpha and beta.
template <typename Arguments>
__device__ __forceinline__ bool adds_c(const Arguments& args) {
    return args.beta_re != 0.0f || args.beta_im != 0.0f;
}

// alpha x + beta C for one element, of which `c` is read only where C is added. With alpha = 1, x
// stays as it is, because a complex multiplication would turn infinities into NaN.
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
