// Transforms of N = R^2 Q numbers in fp32, one at a time by a block whose threads hold it: R numbers a
// thread from one end to the other. With n = R Q n0 + Q n1 + n2 and k = k0 + R k1 + R^2 k2, butterflies
// of R take n0 to k0, those of R take n1 to k1, those of Q take n2 to k2.
//
// What threads exchange passes half as much memory as there are numbers, first the real, then the
// imaginary parts: so there is room for the next transform, which the copy engine brings meanwhile.
#pragma once
#include "device/bulk_copy.cuh"
#include "plan.cuh"
#include "radix.cuh"

struct WholePlan {
    int radix;  // R
    int last;   // Q

    constexpr int length() const { return radix * radix * last; }
    constexpr int threads() const { return radix * last; }
    // Pitches with which a warp's reads and writes hit every bank once: of lines of R Q, and of R.
    constexpr int first_pitch() const { return threads() + 16; }
    constexpr int second_pitch() const { return radix + 2; }
    constexpr int exchanged() const {
        const int there = radix * first_pitch(), back = threads() * second_pitch();
        return there > back ? there : back;
    }
    constexpr int shared_bytes() const { return length() * 8 + exchanged() * 4 + 16; }
};

// Those of a thread: `put(i)` is where number i goes, `get(i)` where the next one i comes from.
template <int Count, typename Put, typename Get>
__device__ __forceinline__ void exchange(float2 (&z)[Count], float* board, Put put, Get get) {
#pragma unroll
    for (int i = 0; i < Count; ++i) board[put(i)] = z[i].x;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < Count; ++i) z[i].x = board[get(i)];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < Count; ++i) board[put(i)] = z[i].y;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < Count; ++i) z[i].y = board[get(i)];
    __syncthreads();
}

constexpr int binary_log(int n) { return n > 1 ? 1 + binary_log(n / 2) : 0; }

// z_k w^k. Powers 1, 2, 4, ... of w are in a table, one every `stride` numbers.
template <int Count>
__device__ __forceinline__ void twist_by_powers(float2 (&z)[Count], const float2* table, int stride) {
    float2 power[Count];
#pragma unroll
    for (int k = 1; k < Count; ++k) {
        const int i = k < 2 ? 0 : k < 4 ? 1 : k < 8 ? 2 : k < 16 ? 3 : 4, high = 1 << i;
        power[k] = k == high ? __ldg(table + i * stride) : complex_product(power[high], power[k - high]);
        z[k] = complex_product(z[k], power[k]);
    }
}

template <WholePlan plan>
__device__ __forceinline__ void dft_whole(const DftArguments& args) {
    constexpr int R = plan.radix, Q = plan.last, kThreads = plan.threads();
    constexpr int kPitch = plan.first_pitch(), kOther = plan.second_pitch();
    constexpr int kPowers = binary_log(R);
    static_assert(1 << kPowers == R && R % Q == 0 && R <= 32, "powers of two");
    extern __shared__ __align__(128) unsigned char shared[];
    const float2* const taken = reinterpret_cast<const float2*>(shared);
    float* const board = reinterpret_cast<float*>(shared + plan.length() * 8);
    const uint32 barrier = shared_address(board + plan.exchanged());
    const float2* const twiddles = reinterpret_cast<const float2*>(args.twiddles);
    volatile int* const ahead = reinterpret_cast<int*>(board + plan.exchanged()) + 2;
    const int rows = static_cast<int>(args.rows), dealt = 2 * gridDim.x;
    // What is derived of it is derived where it is used: there are no registers to keep it.
    auto thread_here = [] {
        int thread = threadIdx.x;
        asm volatile("" : "+r"(thread));
        return thread;
    };
    auto request = [&](int row) {
        if (threadIdx.x != 0 || row >= rows) return;
        barrier_expect(barrier, plan.length() * 8);
        copy_bulk(shared_address(shared), args.x + row * args.x_stride, plan.length() * 8, barrier);
    };
    if (threadIdx.x == 0) {
        barrier_init(barrier, 1);
        barrier_init_fence();
    }
    __syncthreads();
    int row = blockIdx.x, next = row + gridDim.x, parity = 0;
    request(row);
#pragma unroll 1
    while (row < rows) {
        float2 z[R];
        int thread = thread_here();
        // The second next transform: two are dealt out, then blocks take their numbers from a counter.
        int drawn = 0;
        if (threadIdx.x == 0) drawn = dealt + atomicAdd(args.counter, 1u);
        barrier_wait(barrier, parity);
        parity ^= 1;
#pragma unroll
        for (int i = 0; i < R; ++i) {
            z[i] = taken[i * kThreads + thread];
            z[i].y *= args.sign;
        }
        transform<R>(z);
        twist_by_powers(z, twiddles + thread, kThreads);
        __syncthreads();  // all has been taken
        request(next);
        if (threadIdx.x == 0) {
            *ahead = drawn;
            if (drawn == dealt + rows - 1) *args.counter = 0;  // the last one that is drawn
        }
        thread = thread_here();
        const int high = thread / Q, low = thread % Q;
        exchange(
            z, board, [&](int k) { return k * kPitch + thread; },
            [&](int n) { return high * kPitch + n * Q + low; });
        transform<R>(z);
        twist_by_powers(z, twiddles + kPowers * kThreads + low, Q);
        const int line = thread / R, column = thread % R;
        exchange(
            z, board, [&](int k) { return (k * Q + low) * kOther + high; },
            [&](int i) { return ((line + i / Q * Q) * Q + i % Q) * kOther + column; });
        float2* const out = args.out + row * args.out_stride + thread_here();
#pragma unroll
        for (int g = 0; g < R / Q; ++g) {
            float2 last[Q];
#pragma unroll
            for (int i = 0; i < Q; ++i) last[i] = z[g * Q + i];
            transform<Q>(last);
#pragma unroll
            for (int k = 0; k < Q; ++k)
                out[g * kThreads + k * R * R] = {last[k].x * args.factor, last[k].y * args.unit};
        }
        row = next;
        next = *ahead;
    }
}
