// The single-CTA kernel: transforms of a power of two N = R^2 Q in fp32, one at a time by a block
// whose threads hold all of it in registers, R numbers each.
//
// With n = R Q n0 + Q n1 + n2 and k = k0 + R k1 + R^2 k2, butterflies of R transform n0 to k0, then
// n1 to k1, and butterflies of Q transform n2 to k2.
//
// Between stages threads exchange numbers through half of the shared memory (exchange.cuh). A bulk
// copy loads the next transform into the rest meanwhile.
#pragma once
#include "device/tma_bulk.cuh"
#include "exchange.cuh"
#include "plan.cuh"
#include "radix.cuh"

struct SingleCtaPlan {
    int radix;       // R
    int last_radix;  // Q

    constexpr int length() const { return radix * radix * last_radix; }
    constexpr int threads() const { return radix * last_radix; }
    // Pitches of lines of R Q and of R numbers, free of bank conflicts.
    constexpr int first_pitch() const { return threads() + 16; }
    constexpr int second_pitch() const { return radix + 2; }
    constexpr int exchange_floats() const {
        const int first = radix * first_pitch(), second = threads() * second_pitch();
        return first > second ? first : second;
    }
    constexpr int shared_bytes() const { return length() * 8 + exchange_floats() * 4 + 16; }
};

// Exchanges numbers between the threads of the block: number i is stored at store_index(i), then
// the new one is loaded from load_index(i).
template <int Count, typename StoreIndex, typename LoadIndex>
__device__ __forceinline__ void exchange_in_block(float2 (&z)[Count], float* exchange_buffer,
                                                  StoreIndex store_index, LoadIndex load_index) {
    exchange_through_shared(
        z, [&](int i, float part) { exchange_buffer[store_index(i)] = part; },
        [&](int i) { return exchange_buffer[load_index(i)]; }, [] { __syncthreads(); });
    __syncthreads();
}

// z_k w^k. The table has the powers 1, 2, 4, ... of w, `stride` elements apart.
template <int Count>
__device__ __forceinline__ void apply_twiddle_powers(float2 (&z)[Count], const float2* table,
                                                     int stride) {
    float2 power[Count];
#pragma unroll
    for (int k = 1; k < Count; ++k) {
        const int i = k < 2 ? 0 : k < 4 ? 1 : k < 8 ? 2 : k < 16 ? 3 : 4, high = 1 << i;
        power[k] =
            k == high ? __ldg(table + i * stride) : complex_product(power[high], power[k - high]);
        z[k] = complex_product(z[k], power[k]);
    }
}

template <SingleCtaPlan plan>
__device__ __forceinline__ void dft_single_cta(const DftArguments& args) {
    constexpr int R = plan.radix, Q = plan.last_radix, kThreads = plan.threads();
    constexpr int kFirstPitch = plan.first_pitch(), kSecondPitch = plan.second_pitch();
    constexpr int kPowers = log2_of(R);
    static_assert(1 << kPowers == R && R % Q == 0 && R <= 32, "powers of two");
    extern __shared__ __align__(128) unsigned char shared[];
    const float2* const input = reinterpret_cast<const float2*>(shared);
    float* const exchange_buffer = reinterpret_cast<float*>(shared + plan.length() * 8);
    const uint32 barrier = shared_address(exchange_buffer + plan.exchange_floats());
    const float2* const twiddles = reinterpret_cast<const float2*>(args.twiddles);
    volatile int* const next_row_slot =
        reinterpret_cast<int*>(exchange_buffer + plan.exchange_floats()) + 2;
    const int rows = static_cast<int>(args.rows), static_rows = 2 * gridDim.x;
    auto load_row = [&](int row) {
        if (threadIdx.x != 0 || row >= rows) return;
        mbarrier_arrive_expect_tx(barrier, plan.length() * 8);
        bulk_load(shared_address(shared), args.x + row * args.x_stride, plan.length() * 8, barrier);
    };
    if (threadIdx.x == 0) {
        mbarrier_init(barrier, 1);
        mbarrier_init_fence();
    }
    __syncthreads();
    int row = blockIdx.x, next = row + gridDim.x, phase = 0;
    load_row(row);
#pragma unroll 1
    while (row < rows) {
        float2 z[R];
        int thread = opaque_thread();
        // Fetches the row after the next: the first two rows of a block are static, the others
        // dynamic.
        int fetched_row = 0;
        if (threadIdx.x == 0) fetched_row = static_rows + atomicAdd(args.tile_counter, 1u);
        mbarrier_wait(barrier, phase);
        phase ^= 1;
#pragma unroll
        for (int i = 0; i < R; ++i) {
            z[i] = input[i * kThreads + thread];
            z[i].y *= args.sign;
        }
        butterfly<R>(z);
        apply_twiddle_powers(z, twiddles + thread, kThreads);
        __syncthreads();  // the input has been read
        load_row(next);
        if (threadIdx.x == 0) {
            *next_row_slot = fetched_row;
            if (fetched_row == static_rows + rows - 1)
                *args.tile_counter = 0;  // this was the last fetch
        }
        thread = opaque_thread();
        const int high = thread / Q, low = thread % Q;
        exchange_in_block(
            z, exchange_buffer, [&](int k) { return k * kFirstPitch + thread; },
            [&](int n) { return high * kFirstPitch + n * Q + low; });
        butterfly<R>(z);
        apply_twiddle_powers(z, twiddles + kPowers * kThreads + low, Q);
        const int line = thread / R, column = thread % R;
        exchange_in_block(
            z, exchange_buffer, [&](int k) { return (k * Q + low) * kSecondPitch + high; },
            [&](int i) { return ((line + i / Q * Q) * Q + i % Q) * kSecondPitch + column; });
        float2* const out = args.out + row * args.out_stride + opaque_thread();
#pragma unroll
        for (int g = 0; g < R / Q; ++g) {
            float2 group[Q];
#pragma unroll
            for (int i = 0; i < Q; ++i) group[i] = z[g * Q + i];
            butterfly<Q>(group);
#pragma unroll
            for (int k = 0; k < Q; ++k)
                out[g * kThreads + k * R * R] = {group[k].x * args.scale,
                                                 group[k].y * args.alternate_scale};
        }
        row = next;
        next = *next_row_slot;
    }
}
