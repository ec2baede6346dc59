// Softmax over rows, and its logarithm: a tiled recurrence with a running maximum m and sum z,
//
//     m_new = max(m, m~),   z_new = e^(m - m_new) z + e^(m~ - m_new) z~,
//
// within a thread, then across the threads of a row. A row that fits in registers is read once.
#pragma once
#include "device/rounding.cuh"
#include "device/scaling.cuh"

enum class Held { exact, tf32, fp16, bf16 };

struct SoftmaxPlan {
    Held held;
    int terms;
    Rounding roundings[2];
    bool log;
    int row_threads;  // 32: each warp has a row of its own; else the block has one
    int block_threads;
    int values;     // a thread, at a time
    int vector;     // values a memory access
    bool resident;  // row_threads x values hold a row

    constexpr int rows_a_block() const { return block_threads / row_threads; }
    constexpr int tile() const { return row_threads * values; }
};

template <typename T>
T minus_infinity();
template <>
__device__ __forceinline__ float minus_infinity<float>() {
    return -infinity();
}
template <>
__device__ __forceinline__ double minus_infinity<double>() {
    return -static_cast<double>(infinity());
}

__device__ __forceinline__ float larger(float x, float y) { return fmaxf(x, y); }
__device__ __forceinline__ double larger(double x, double y) { return fmax(x, y); }
__device__ __forceinline__ float smaller(float x, float y) { return fminf(x, y); }
__device__ __forceinline__ double smaller(double x, double y) { return fmin(x, y); }
__device__ __forceinline__ float exponential(float x) { return expf(x); }
__device__ __forceinline__ double exponential(double x) { return exp(x); }
__device__ __forceinline__ float logarithm(float x) { return logf(x); }
__device__ __forceinline__ double logarithm(double x) { return ::log(x); }

// A value as the precision holds it: rounded, or the sum of its terms.
template <SoftmaxPlan plan>
__device__ __forceinline__ float hold(float x, int exponent) {
    if constexpr (plan.held == Held::tf32) {
        const float big = round_to_tf32<plan.roundings[0]>(x);
        if constexpr (plan.terms == 1) return big;
        return round_to_tf32<plan.roundings[1]>(remainder_after(big, x)) + big;
    } else if constexpr (plan.held == Held::fp16) {
        x *= power_of_two(exponent);
        float sum = round_to_fp16(x);
        if constexpr (plan.terms == 2) sum += round_to_fp16(remainder_after(sum, x));
        return sum * power_of_two(-exponent);
    } else if constexpr (plan.held == Held::bf16) {
        return round_to_bf16(x);
    } else {
        return x;
    }
}

template <SoftmaxPlan plan>
__device__ __forceinline__ double hold(double x, int) {
    static_assert(plan.held == Held::exact, "fp64 is not rounded");
    return x;
}

// The maximum and the sum of e^(x - maximum) over what was seen. fmax drops a NaN from the maximum;
// it stays in the sum.
template <typename T>
struct Running {
    T maximum, sum;
};

template <typename T>
__device__ __forceinline__ T rescale(const Running<T>& x, T maximum) {
    // Nothing but -inf seen: the sum is 0 (or NaN), and -inf - -inf would make it NaN.
    return x.maximum == minus_infinity<T>() ? x.sum : exponential(x.maximum - maximum) * x.sum;
}

template <typename T>
__device__ __forceinline__ Running<T> merge(const Running<T>& x, const Running<T>& y) {
    const T maximum = larger(x.maximum, y.maximum);
    return {maximum, rescale(x, maximum) + rescale(y, maximum)};
}

template <typename T>
__device__ __forceinline__ Running<T> merge_from(const Running<T>& x, int distance) {
    return merge(x, {__shfl_xor_sync(0xffffffffu, x.maximum, distance),
                     __shfl_xor_sync(0xffffffffu, x.sum, distance)});
}

__device__ __forceinline__ uint32 merge_from(uint32 x, int distance) {
    const uint32 y = __shfl_xor_sync(0xffffffffu, x, distance);
    return x > y ? x : y;
}

// Merges over the threads of a row; all of them get the result. `neutral` is what merging ignores.
template <SoftmaxPlan plan, typename Value>
__device__ __forceinline__ Value merge_row(Value x, Value neutral, Value* exchange) {
#pragma unroll
    for (int distance = kWarp / 2; distance > 0; distance /= 2) x = merge_from(x, distance);
    if constexpr (plan.row_threads > kWarp) {
        constexpr int kWarps = plan.row_threads / kWarp;
        const int lane = threadIdx.x % kWarp;
        __syncthreads();  // the exchange may still be read from the merge before
        if (lane == 0) exchange[threadIdx.x / kWarp] = x;
        __syncthreads();
        x = lane < kWarps ? exchange[lane] : neutral;
#pragma unroll
        for (int distance = kWarp / 2; distance > 0; distance /= 2) x = merge_from(x, distance);
    }
    return x;
}

template <typename T, int Count>
struct alignas(sizeof(T) * Count) Pack {
    T at[Count];
};

// This thread's values of the tile that begins at `start`; -inf beyond the row.
template <SoftmaxPlan plan, typename T>
__device__ __forceinline__ void read(const T* row, int64 start, int64 columns, T (&x)[plan.values]) {
#pragma unroll
    for (int i = 0; i < plan.values; i += plan.vector) {
        const int64 column =
            start + int64(i) * plan.row_threads + threadIdx.x % plan.row_threads * plan.vector;
        Pack<T, plan.vector> pack;
        if (column < columns) {
            pack = *reinterpret_cast<const Pack<T, plan.vector>*>(row + column);
        } else {
            for (int e = 0; e < plan.vector; ++e) pack.at[e] = minus_infinity<T>();
        }
        for (int e = 0; e < plan.vector; ++e) x[i + e] = pack.at[e];
    }
}

template <SoftmaxPlan plan, typename T>
__device__ __forceinline__ void write(T* row, int64 start, int64 columns,
                                      const T (&x)[plan.values]) {
#pragma unroll
    for (int i = 0; i < plan.values; i += plan.vector) {
        const int64 column =
            start + int64(i) * plan.row_threads + threadIdx.x % plan.row_threads * plan.vector;
        Pack<T, plan.vector> pack;
        for (int e = 0; e < plan.vector; ++e) pack.at[e] = x[i + e];
        if (column < columns) *reinterpret_cast<Pack<T, plan.vector>*>(row + column) = pack;
    }
}

template <SoftmaxPlan plan>
__device__ __forceinline__ uint32 largest(const float (&x)[plan.values], uint32 found) {
#pragma unroll
    for (int i = 0; i < plan.values; ++i) {
        const uint32 magnitude = finite_magnitude(x[i]);
        found = magnitude > found ? magnitude : found;
    }
    return found;
}

template <SoftmaxPlan plan, typename T>
__device__ __forceinline__ void hold_all(T (&x)[plan.values], int exponent) {
#pragma unroll
    for (int i = 0; i < plan.values; ++i) x[i] = hold<plan>(x[i], exponent);
}

template <SoftmaxPlan plan, typename T>
__device__ __forceinline__ T largest_value(const T (&x)[plan.values]) {
    T maximum = minus_infinity<T>();
#pragma unroll
    for (int i = 0; i < plan.values; ++i) maximum = larger(maximum, x[i]);
    return maximum;
}

// Exponentials are taken about 0 where only -inf was seen.
template <typename T>
__device__ __forceinline__ T shift_for(T maximum) {
    return maximum == minus_infinity<T>() ? T(0) : maximum;
}

// A row held in registers: read once, written once.
template <SoftmaxPlan plan, typename T>
__device__ __forceinline__ void resident_row(const T* row, T* out, int64 columns, uint32* exchange,
                                             Running<T>* running_exchange) {
    T x[plan.values];
    read<plan>(row, 0, columns, x);
    int exponent = 0;
    if constexpr (plan.held == Held::fp16) {
        exponent = scale_exponent(merge_row<plan>(largest<plan>(x, 0u), 0u, exchange));
    }
    hold_all<plan>(x, exponent);
    Running<T> seen{largest_value<plan>(x), T(0)};
    const T shift = shift_for(seen.maximum);
#pragma unroll
    for (int i = 0; i < plan.values; ++i) {
        const T e = exponential(x[i] - shift);
        seen.sum += e;
        if constexpr (!plan.log) x[i] = e;
    }
    const Running<T> row_seen =
        merge_row<plan>(seen, Running<T>{minus_infinity<T>(), T(0)}, running_exchange);
    // The shift is at most the row's maximum, but where this thread saw only -inf: then e is 0, and
    // the bound on the power keeps it from being 0 times infinity.
    const T factor = exponential(smaller(shift - row_seen.maximum, T(0))) / row_seen.sum;
    const T total = plan.log ? logarithm(row_seen.sum) : T(0);
#pragma unroll
    for (int i = 0; i < plan.values; ++i) {
        if constexpr (plan.log) {
            x[i] = x[i] - row_seen.maximum - total;
        } else {
            x[i] *= factor;
        }
    }
    write<plan>(out, 0, columns, x);
}

// A longer row: tiles for the running maximum and sum, then read again.
template <SoftmaxPlan plan, typename T>
__device__ __forceinline__ void streamed_row(const T* row, T* out, int64 columns, uint32* exchange,
                                             Running<T>* running_exchange) {
    T x[plan.values];
    int exponent = 0;
    if constexpr (plan.held == Held::fp16) {
        uint32 found = 0;
        for (int64 start = 0; start < columns; start += plan.tile()) {
            read<plan>(row, start, columns, x);
            found = largest<plan>(x, found);
        }
        exponent = scale_exponent(merge_row<plan>(found, 0u, exchange));
    }
    Running<T> seen{minus_infinity<T>(), T(0)};
    for (int64 start = 0; start < columns; start += plan.tile()) {
        read<plan>(row, start, columns, x);
        hold_all<plan>(x, exponent);
        Running<T> tile{largest_value<plan>(x), T(0)};
        const T shift = shift_for(tile.maximum);
#pragma unroll
        for (int i = 0; i < plan.values; ++i) tile.sum += exponential(x[i] - shift);
        seen = merge(seen, tile);
    }
    seen = merge_row<plan>(seen, Running<T>{minus_infinity<T>(), T(0)}, running_exchange);
    const T factor = T(1) / seen.sum;
    const T total = plan.log ? logarithm(seen.sum) : T(0);
    for (int64 start = 0; start < columns; start += plan.tile()) {
        read<plan>(row, start, columns, x);
        hold_all<plan>(x, exponent);
#pragma unroll
        for (int i = 0; i < plan.values; ++i) {
            const T below = x[i] - seen.maximum;
            x[i] = plan.log ? below - total : exponential(below) * factor;
        }
        write<plan>(out, start, columns, x);
    }
}

// `x` and `out` are (rows, columns) with contiguous columns; strides count values.
template <SoftmaxPlan plan, typename T>
__device__ __forceinline__ void softmax_rows(const T* x, T* out, int64 rows, int64 columns,
                                             int64 x_stride, int64 out_stride) {
    __shared__ uint32 exchange[kWarp];
    __shared__ Running<T> running_exchange[kWarp];
    int64 row = int64(blockIdx.x) * plan.rows_a_block() + threadIdx.x / plan.row_threads;
    for (; row < rows; row += int64(gridDim.x) * plan.rows_a_block()) {
        const T* from = x + row * x_stride;
        T* to = out + row * out_stride;
        if constexpr (plan.resident) {
            resident_row<plan>(from, to, columns, exchange, running_exchange);
        } else {
            streamed_row<plan>(from, to, columns, exchange, running_exchange);
        }
    }
}
