// Transforms of a power of two N = N1 N2, N1 = A B and N2 = D E, in fp32 by a cluster of C blocks, one at
// a time. With n = N2 n1 + n2 and k = k1 + N1 k2,
//
//     X[k1 + N1 k2] = sum_n2 W_N2^(n2 k2)  W_N^(n2 k1)  sum_n1 W_N1^(n1 k1) x[N2 n1 + n2].
//
// A block transforms N2 / C columns n2 by butterflies of A and of B numbers in registers, sends what each
// other block needs into its shared memory, and transforms N1 / C lines k1 by butterflies of D and of E.
// So it reads and writes runs of a few hundred bytes, and each number once. Numbers stay in registers;
// what threads exchange goes through memory for one part, first real, then imaginary, while the next
// transform is on its way to the rest of it.
#pragma once
#include "device/cluster.cuh"
#include "device/copy.cuh"
#include "plan.cuh"
#include "radix.cuh"

struct ClusterPlan {
    int radices[4];  // A, B, D, E
    int cluster;
    int warps;
    int blocks;  // of a multiprocessor

    constexpr int first() const { return radices[0] * radices[1]; }
    constexpr int second() const { return radices[2] * radices[3]; }
    constexpr int length() const { return first() * second(); }
    constexpr int columns() const { return second() / cluster; }
    constexpr int lines() const { return first() / cluster; }
    constexpr int threads() const { return warps * kWarp; }
    constexpr int own() const { return length() / cluster; }
    constexpr int held() const { return own() / threads(); }
    // Lines are read by 16 neighbours of two lines at a time, and written by 16 apart.
    constexpr int line_pitch() const { return second() + 16; }
    constexpr int back_pitch() const { return lines() + 2; }
    constexpr int exchanged() const {
        const int there = lines() * line_pitch(), back = second() * back_pitch();
        return there > back ? there : back;
    }
    constexpr int shared_bytes() const { return own() * 8 + exchanged() * 4 + 16; }
    // Where tables begin, in numbers.
    constexpr int bases() const { return (radices[0] - 1) * radices[1]; }
    constexpr int steps() const { return bases() + radices[0] * second(); }
    constexpr int lasts() const { return steps() + (radices[1] - 1) * second(); }
};

// The items of a stage: butterflies of R numbers, each of a thread's numbered g.
template <ClusterPlan plan, int Stage>
struct Items {
    static constexpr int kRadix = plan.radices[Stage];
    static constexpr int kCount = plan.held() / kRadix;
    static_assert(kCount * kRadix == plan.held(), "whole butterflies");

    // `work(g, z)` of each.
    template <typename Work>
    static __device__ __forceinline__ void each(float2 (&held)[plan.held()], Work work) {
#pragma unroll
        for (int g = 0; g < kCount; ++g) {
            float2 z[kRadix];
#pragma unroll
            for (int i = 0; i < kRadix; ++i) z[i] = held[g * kRadix + i];
            work(g, z);
#pragma unroll
            for (int i = 0; i < kRadix; ++i) held[g * kRadix + i] = z[i];
        }
    }
};

// What threads exchange: `put(i, part)` and `get(i)` of the numbers a thread holds; `sync` between.
template <int Held, typename Put, typename Get, typename Sync>
__device__ __forceinline__ void exchange(float2 (&held)[Held], Put put, Get get, Sync sync) {
#pragma unroll
    for (int i = 0; i < Held; ++i) put(i, held[i].x);
    sync();
#pragma unroll
    for (int i = 0; i < Held; ++i) held[i].x = get(i);
    sync();
#pragma unroll
    for (int i = 0; i < Held; ++i) put(i, held[i].y);
    sync();
#pragma unroll
    for (int i = 0; i < Held; ++i) held[i].y = get(i);
}

// The thread's number, from which the compiler does not keep addresses in registers all the way.
__device__ __forceinline__ int thread_here() {
    int thread = threadIdx.x;
    asm volatile("" : "+r"(thread));
    return thread;
}

// Begins to copy a block's columns of a transform, 16 bytes at a time: the copy engine takes as long
// for a run of a few hundred bytes as for a long one.
template <ClusterPlan plan>
__device__ __forceinline__ void request(const float2* x, float2* target) {
    constexpr int kRun = plan.columns() / 2, kCount = plan.own() / 2, kThreads = plan.threads();
    static_assert(kCount % kThreads == 0 && kThreads % kRun == 0, "each thread has a place in a run");
    const int thread = thread_here();
    const uint32 to = shared_address(target + 2 * thread);
    const float2* const from = x + thread / kRun * plan.second() + thread % kRun * 2;
#pragma unroll
    for (int i = 0; i < kCount / kThreads; ++i)
        copy_chunk(to + i * kThreads * 16, from + i * (kThreads / kRun) * plan.second());
    commit_copies();
}

template <ClusterPlan plan>
__device__ __forceinline__ void dft_cluster(const DftArguments& args) {
    constexpr int A = plan.radices[0], B = plan.radices[1], D = plan.radices[2], E = plan.radices[3];
    constexpr int kColumns = plan.columns(), kLines = plan.lines(), kThreads = plan.threads();
    constexpr int kSecond = plan.second(), kLinePitch = plan.line_pitch();
    constexpr int kBackPitch = plan.back_pitch(), kOfRank = kLines / A;
    static_assert(kThreads % kColumns == 0 && kThreads % kLines == 0 && kThreads % E == 0,
                  "a thread's butterflies are of one column or line");
    static_assert(kOfRank * A == kLines, "results of a butterfly of B go to known blocks");
    extern __shared__ __align__(128) unsigned char shared[];
    float2* const taken = reinterpret_cast<float2*>(shared);
    float* const board = reinterpret_cast<float*>(shared + plan.own() * 8);
    volatile int* const ahead = reinterpret_cast<int*>(board + plan.exchanged());
    const int rank = cluster_rank(), rows = static_cast<int>(args.rows);
    const int clusters = gridDim.x / plan.cluster, dealt = 2 * clusters;
    auto source = [&](int row) { return args.x + row * args.x_stride + rank * kColumns; };
    int row = blockIdx.x / plan.cluster, next = row + clusters;
    if (row < rows) request<plan>(source(row), taken);
    cluster_arrive();  // nobody writes into a block that has not begun
    cluster_wait();
    auto together = [] {
        cluster_arrive();
        cluster_wait();
    };
#pragma unroll 1
    while (row < rows) {
        float2 held[plan.held()];
        // The second next transform: two are dealt out, then clusters take their numbers from a counter.
        const bool draws = rank == 0 && threadIdx.x == 0;
        int drawn = 0;
        if (draws) drawn = dealt + atomicAdd(args.counter, 1u);
        // Columns: numbers B a + b of column n, by butterflies over a.
        const float2* twiddles = reinterpret_cast<const float2*>(args.twiddles);
        asm volatile("" : "+l"(twiddles));
        int thread = thread_here();
        const int n = thread % kColumns, high = thread / kColumns;
        constexpr int kApart = kThreads / kColumns;
        wait_copies<0>();
        __syncthreads();
        Items<plan, 0>::each(held, [&](int g, float2(&z)[A]) {
            const int b = high + g * kApart;
#pragma unroll
            for (int a = 0; a < A; ++a) {
                z[a] = taken[(B * a + b) * kColumns + n];
                z[a].y *= args.sign;
            }
            transform<A>(z);
#pragma unroll
            for (int k = 1; k < A; ++k) z[k] = complex_product(z[k], __ldg(twiddles + (k - 1) * B + b));
        });
        __syncthreads();  // nobody reads the board any more, nor what was taken
        if (next < rows) request<plan>(source(next), taken);
        exchange(
            held,
            [&](int i, float part) {
                board[(i % A * B + high + i / A * kApart) * kColumns + n] = part;
            },
            [&](int i) { return board[((high + i / B * kApart) * B + i % B) * kColumns + n]; },
            [] { __syncthreads(); });
        cluster_arrive();
        // Number k_A of these, by butterflies over b: line k_A + A k_B.
        Items<plan, 1>::each(held, [&](int g, float2(&z)[B]) {
            transform<B>(z);
            const float2* const own = twiddles + rank * kColumns + n;
            const float2 base = __ldg(own + plan.bases() + (high + g * kApart) * kSecond);
            z[0] = complex_product(z[0], base);
#pragma unroll
            for (int k = 1; k < B; ++k) {
                const float2 turn = __ldg(own + plan.steps() + (k - 1) * kSecond);
                z[k] = complex_product(z[k], complex_product(base, turn));
            }
        });
        cluster_wait();
        if (draws) {
#pragma unroll
            for (int i = 0; i < plan.cluster; ++i)
                store_in_block(in_block(const_cast<int*>(ahead), i), __int_as_float(drawn));
            if (drawn == dealt + rows - 1) *args.counter = 0;  // the last one that is drawn
        }
        thread = thread_here();
        const int e = thread % E, line = thread / E;
        constexpr int kLinesApart = kThreads / E;
        uint32 there[plan.cluster];
#pragma unroll
        for (int i = 0; i < plan.cluster; ++i)
            there[i] = in_block(board + high * kLinePitch + rank * kColumns + n, i);
        exchange(
            held,
            [&](int i, float part) {
                const int k = i % B, at = (i / B * kApart + k % kOfRank * A) * kLinePitch;
                store_in_block(there[k / kOfRank] + 4 * at, part);
            },
            [&](int i) {
                return board[(line + i / D * kLinesApart) * kLinePitch + E * (i % D) + e];
            },
            together);
        const int following = *ahead;
        // Lines: numbers E d + e of a line, by butterflies over d.
        Items<plan, 2>::each(held, [&](int, float2(&z)[D]) {
            transform<D>(z);
#pragma unroll
            for (int k = 1; k < D; ++k)
                z[k] = complex_product(z[k], __ldg(twiddles + plan.lasts() + (k - 1) * E + e));
        });
        __syncthreads();
        thread = thread_here();
        const int own = thread % kLines, first = thread / kLines;
        constexpr int kFirstApart = kThreads / kLines;
        exchange(
            held,
            [&](int i, float part) {
                board[(i % D * E + e) * kBackPitch + line + i / D * kLinesApart] = part;
            },
            [&](int i) {
                return board[((first + i / E * kFirstApart) * E + i % E) * kBackPitch + own];
            },
            [] { __syncthreads(); });
        // Number k_D of these, by butterflies over e: results k_D + D k_E of the line.
        float2* const out = args.out + row * args.out_stride + rank * kLines + own;
        Items<plan, 3>::each(held, [&](int g, float2(&z)[E]) {
            transform<E>(z);
#pragma unroll
            for (int k = 0; k < E; ++k)
                out[(first + g * kFirstApart + D * k) * plan.first()] = {z[k].x * args.factor,
                                                                        z[k].y * args.unit};
        });
        row = next;
        next = following;
    }
}
