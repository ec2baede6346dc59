// The cluster kernel: transforms of a power of two N = N1 N2, N1 = A B and N2 = D E, in fp32, one
// at a time by a cluster of C blocks. With n = N2 n1 + n2 and k = k1 + N1 k2,
//
//     X[k1 + N1 k2] = sum_n2 W_N2^(n2 k2)  W_N^(n2 k1)  sum_n1 W_N1^(n1 k1) x[N2 n1 + n2].
//
// A block transforms N2 / C columns n2 by butterflies of A and of B numbers in registers, writes
// each other block's numbers to its shared memory (DSMEM), and transforms N1 / C lines k1 by
// butterflies of D and of E. It reads and writes global memory once, in runs of a few hundred
// bytes. Threads exchange numbers through half of the shared memory (exchange.cuh); cp.async loads
// the next transform into the rest meanwhile.
#pragma once
#include "device/cluster.cuh"
#include "device/cp_async.cuh"
#include "exchange.cuh"
#include "plan.cuh"
#include "radix.cuh"

struct ClusterPlan {
    int radices[4];  // A, B, D, E
    int cluster_size;
    int warps;  // of a block
    int blocks_per_sm;

    constexpr int n1() const { return radices[0] * radices[1]; }
    constexpr int n2() const { return radices[2] * radices[3]; }
    constexpr int length() const { return n1() * n2(); }
    constexpr int columns() const { return n2() / cluster_size; }
    constexpr int lines() const { return n1() / cluster_size; }
    constexpr int threads() const { return warps * kWarp; }
    constexpr int block_elements() const { return length() / cluster_size; }
    constexpr int thread_elements() const { return block_elements() / threads(); }
    // Free of bank conflicts: warps read 16 neighbours of two lines at a time, and write 16 apart.
    constexpr int line_pitch() const { return n2() + 16; }
    constexpr int output_pitch() const { return lines() + 2; }
    constexpr int exchange_floats() const {
        const int input = lines() * line_pitch(), output = n2() * output_pitch();
        return input > output ? input : output;
    }
    constexpr int shared_bytes() const { return block_elements() * 8 + exchange_floats() * 4 + 16; }
    // Offsets of the tables, in elements.
    constexpr int base_twiddles() const { return (radices[0] - 1) * radices[1]; }
    constexpr int step_twiddles() const { return base_twiddles() + radices[0] * n2(); }
    constexpr int line_twiddles() const { return step_twiddles() + (radices[1] - 1) * n2(); }
};

// The butterflies of a thread in one stage, numbered g.
template <ClusterPlan plan, int Stage>
struct ClusterButterflies {
    static constexpr int kRadix = plan.radices[Stage];
    static constexpr int kCount = plan.thread_elements() / kRadix;
    static_assert(kCount * kRadix == plan.thread_elements(), "whole butterflies");

    // `body(g, z)` for each.
    template <typename Body>
    static __device__ __forceinline__ void for_each(float2 (&values)[plan.thread_elements()],
                                                    Body body) {
#pragma unroll
        for (int g = 0; g < kCount; ++g) {
            float2 z[kRadix];
#pragma unroll
            for (int i = 0; i < kRadix; ++i) z[i] = values[g * kRadix + i];
            body(g, z);
#pragma unroll
            for (int i = 0; i < kRadix; ++i) values[g * kRadix + i] = z[i];
        }
    }
};

// Issues the copies of a block's columns of a transform, 16 bytes per thread: a bulk copy of a run
// of a few hundred bytes would take as long as that of a long one.
template <ClusterPlan plan>
__device__ __forceinline__ void load_columns(const float2* x, float2* target) {
    constexpr int kRun = plan.columns() / 2, kCount = plan.block_elements() / 2,
                  kThreads = plan.threads();
    static_assert(kCount % kThreads == 0 && kThreads % kRun == 0,
                  "a thread copies the same part of each run");
    const int thread = opaque_thread();
    const uint32 to = shared_address(target + 2 * thread);
    const float2* const from = x + thread / kRun * plan.n2() + thread % kRun * 2;
#pragma unroll
    for (int i = 0; i < kCount / kThreads; ++i)
        cp_async_16(to + i * kThreads * 16, from + i * (kThreads / kRun) * plan.n2());
    cp_async_commit();
}

// The stages of a transform, and the exchanges between them. In stages A and B a thread has
// butterflies of column n, from `first` on, kColumnStride apart; in stage D those of line `line` of
// each kLineStride that have e in common; in stage E those of line `line`, from `first` on.
template <ClusterPlan plan>
struct ClusterStages {
    static constexpr int A = plan.radices[0], B = plan.radices[1], D = plan.radices[2],
                         E = plan.radices[3];
    static constexpr int kThreads = plan.threads(), kColumns = plan.columns(),
                         kLines = plan.lines(), kN2 = plan.n2();
    static constexpr int kColumnStride = kThreads / kColumns, kLineStride = kThreads / E,
                         kOutputStride = kThreads / kLines;
    static constexpr int kLinePitch = plan.line_pitch(), kOutputPitch = plan.output_pitch();
    static constexpr int kOutputsPerBlock = kLines / A;
    static_assert(kThreads % kColumns == 0 && kThreads % kLines == 0 && kThreads % E == 0,
                  "a thread's butterflies are of one column or line");
    static_assert(kOutputsPerBlock * A == kLines,
                  "a butterfly of B has as many results for each block");
    using Values = float2[plan.thread_elements()];

    // Stage A: numbers B a + b of column n, by butterflies over a.
    static __device__ __forceinline__ void transform_a(Values& values, const DftArguments& args,
                                                       const float2* input, const float2* twiddles,
                                                       int n, int first) {
        ClusterButterflies<plan, 0>::for_each(values, [&](int g, float2(&z)[A]) {
            const int b = first + g * kColumnStride;
#pragma unroll
            for (int a = 0; a < A; ++a) {
                z[a] = input[(B * a + b) * kColumns + n];
                z[a].y *= args.sign;
            }
            butterfly<A>(z);
#pragma unroll
            for (int k = 1; k < A; ++k)
                z[k] = complex_product(z[k], __ldg(twiddles + (k - 1) * B + b));
        });
    }

    static __device__ __forceinline__ void exchange_a(Values& values, float* buffer, int n,
                                                      int first) {
        exchange_through_shared(
            values,
            [&](int i, float part) {
                buffer[(i % A * B + first + i / A * kColumnStride) * kColumns + n] = part;
            },
            [&](int i) {
                return buffer[((first + i / B * kColumnStride) * B + i % B) * kColumns + n];
            },
            [] { __syncthreads(); });
    }

    // Stage B: number k_A of these, by butterflies over b, gives line k_A + A k_B. `rank` is this
    // block's.
    static __device__ __forceinline__ void transform_b(Values& values, const float2* twiddles,
                                                       int rank, int n, int first) {
        ClusterButterflies<plan, 1>::for_each(values, [&](int g, float2(&z)[B]) {
            butterfly<B>(z);
            const float2* const column_twiddles = twiddles + rank * kColumns + n;
            const float2 base =
                __ldg(column_twiddles + plan.base_twiddles() + (first + g * kColumnStride) * kN2);
            z[0] = complex_product(z[0], base);
#pragma unroll
            for (int k = 1; k < B; ++k) {
                const float2 step = __ldg(column_twiddles + plan.step_twiddles() + (k - 1) * kN2);
                z[k] = complex_product(z[k], complex_product(base, step));
            }
        });
    }

    // Sends the numbers of each block's lines to its shared memory.
    static __device__ __forceinline__ void exchange_b(Values& values, float* buffer, int rank,
                                                      int n, int first, int e, int line) {
        uint32 remote[plan.cluster_size];
#pragma unroll
        for (int i = 0; i < plan.cluster_size; ++i)
            remote[i] = map_shared_rank(buffer + first * kLinePitch + rank * kColumns + n, i);
        exchange_through_shared(
            values,
            [&](int i, float part) {
                const int k = i % B,
                          at = (i / B * kColumnStride + k % kOutputsPerBlock * A) * kLinePitch;
                store_cluster(remote[k / kOutputsPerBlock] + 4 * at, part);
            },
            [&](int i) {
                return buffer[(line + i / D * kLineStride) * kLinePitch + E * (i % D) + e];
            },
            [] {
                cluster_arrive();
                cluster_wait();
            });
    }

    // Stage D: numbers E d + e of a line, by butterflies over d.
    static __device__ __forceinline__ void transform_d(Values& values, const float2* twiddles,
                                                       int e) {
        ClusterButterflies<plan, 2>::for_each(values, [&](int, float2(&z)[D]) {
            butterfly<D>(z);
#pragma unroll
            for (int k = 1; k < D; ++k)
                z[k] =
                    complex_product(z[k], __ldg(twiddles + plan.line_twiddles() + (k - 1) * E + e));
        });
    }

    static __device__ __forceinline__ void exchange_d(Values& values, float* buffer, int e,
                                                      int line, int output_line, int first) {
        exchange_through_shared(
            values,
            [&](int i, float part) {
                buffer[(i % D * E + e) * kOutputPitch + line + i / D * kLineStride] = part;
            },
            [&](int i) {
                return buffer[((first + i / E * kOutputStride) * E + i % E) * kOutputPitch +
                              output_line];
            },
            [] { __syncthreads(); });
    }

    // Stage E: number k_D of these, by butterflies over e, gives results k_D + D k_E of the line,
    // which begins at `out`.
    static __device__ __forceinline__ void transform_e(Values& values, const DftArguments& args,
                                                       float2* out, int first) {
        ClusterButterflies<plan, 3>::for_each(values, [&](int g, float2(&z)[E]) {
            butterfly<E>(z);
#pragma unroll
            for (int k = 0; k < E; ++k)
                out[(first + g * kOutputStride + D * k) * plan.n1()] = {
                    z[k].x * args.scale, z[k].y * args.alternate_scale};
        });
    }
};

// The kernel, persistent: a cluster transforms a row, each block some of its columns and then some
// of its lines, while the next row is copied.
template <ClusterPlan plan>
__device__ __forceinline__ void dft_cluster(const DftArguments& args) {
    using Stages = ClusterStages<plan>;
    constexpr int kColumns = Stages::kColumns, kLines = Stages::kLines;
    extern __shared__ __align__(128) unsigned char shared[];
    float2* const input = reinterpret_cast<float2*>(shared);
    float* const buffer = reinterpret_cast<float*>(shared + plan.block_elements() * 8);
    volatile int* const next_row_slot = reinterpret_cast<int*>(buffer + plan.exchange_floats());
    const int rank = cluster_rank(), rows = static_cast<int>(args.rows);
    const int clusters = gridDim.x / plan.cluster_size, static_rows = 2 * clusters;
    auto source = [&](int row) { return args.x + row * args.x_stride + rank * kColumns; };
    int row = blockIdx.x / plan.cluster_size, next = row + clusters;
    if (row < rows) load_columns<plan>(source(row), input);
    cluster_arrive();  // no block writes to shared memory of one that has not started
    cluster_wait();
#pragma unroll 1
    while (row < rows) {
        typename Stages::Values values;
        // Fetches the row after the next: the first two rows of a cluster are static, the others
        // dynamic.
        const bool fetches = rank == 0 && threadIdx.x == 0;
        int fetched_row = 0;
        if (fetches) fetched_row = static_rows + atomicAdd(args.tile_counter, 1u);
        const float2* twiddles = reinterpret_cast<const float2*>(args.twiddles);
        asm volatile("" : "+l"(twiddles));
        int thread = opaque_thread();
        const int n = thread % kColumns, first_butterfly = thread / kColumns;
        cp_async_wait<0>();
        __syncthreads();
        Stages::transform_a(values, args, input, twiddles, n, first_butterfly);
        __syncthreads();  // the input and the exchange buffer have been read
        if (next < rows) load_columns<plan>(source(next), input);
        Stages::exchange_a(values, buffer, n, first_butterfly);
        cluster_arrive();
        Stages::transform_b(values, twiddles, rank, n, first_butterfly);
        cluster_wait();
        if (fetches) {
#pragma unroll
            for (int i = 0; i < plan.cluster_size; ++i)
                store_cluster(map_shared_rank(const_cast<int*>(next_row_slot), i),
                              __int_as_float(fetched_row));
            if (fetched_row == static_rows + rows - 1)
                *args.tile_counter = 0;  // this was the last fetch
        }
        thread = opaque_thread();
        const int e = thread % Stages::E, line = thread / Stages::E;
        Stages::exchange_b(values, buffer, rank, n, first_butterfly, e, line);
        const int row_after_next = *next_row_slot;
        Stages::transform_d(values, twiddles, e);
        __syncthreads();
        thread = opaque_thread();
        const int output_line = thread % kLines, first_output = thread / kLines;
        Stages::exchange_d(values, buffer, e, line, output_line, first_output);
        float2* const out = args.out + row * args.out_stride + rank * kLines + output_line;
        Stages::transform_e(values, args, out, first_output);
        row = next;
        next = row_after_next;
    }
}
