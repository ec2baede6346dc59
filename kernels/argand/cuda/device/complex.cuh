// Complex types and arithmetic.
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
