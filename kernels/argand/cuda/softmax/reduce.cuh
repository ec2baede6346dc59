// Threads that share a row agree on its maximum and its sum: in a warp, a block, a cluster of blocks.
#pragma once
#include "device/cluster.cuh"
#include "exponential.cuh"

// Integers that order like the numbers; a NaN is above all.
__device__ __forceinline__ int ordered(float x) {
    const int bits = __float_as_int(x);
    return bits ^ ((bits >> 31) & 0x7fffffff);
}
__device__ __forceinline__ float unordered(int key) {
    return __int_as_float(key ^ ((key >> 31) & 0x7fffffff));
}

__device__ __forceinline__ void store_in_block(float* pointer, int rank, float x) {
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(in_block(pointer, rank)), "f"(x)
                 : "memory");
}
__device__ __forceinline__ void store_in_block(double* pointer, int rank, double x) {
    asm volatile("st.shared::cluster.f64 [%0], %1;" ::"r"(in_block(pointer, rank)), "d"(x)
                 : "memory");
}

struct Largest {
    template <typename T>
    __device__ __forceinline__ T operator()(T x, T y) const {
        return larger(x, y);
    }
    template <typename T>
    static __device__ __forceinline__ T neutral() {
        return -static_cast<T>(infinity());
    }
};

struct Total {
    template <typename T>
    __device__ __forceinline__ T operator()(T x, T y) const {
        return x + y;
    }
    template <typename T>
    static __device__ __forceinline__ T neutral() {
        return T(0);
    }
};

template <int lanes, typename Join, typename T>
__device__ __forceinline__ T over_lanes(T x, Join join) {
#pragma unroll
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
        x = join(x, __shfl_xor_sync(0xffffffffu, x, distance));
    }
    return x;
}

template <int lanes>
__device__ __forceinline__ float over_lanes(float x, Largest join) {
    if constexpr (lanes == kWarp) {
        return unordered(__reduce_max_sync(0xffffffffu, ordered(x)));
    } else {
        return over_lanes<lanes, Largest, float>(x, join);
    }
}

// Joins a value over the threads of a row in a block; all of them get the same bits. Each kind of
// agreement has places of its own: the barrier of one tells that the other's have been read.
template <SoftmaxPlan plan, typename Join, typename T>
__device__ __forceinline__ T over_block(T x, Join join, T (&warps)[kWarp]) {
    constexpr int kLanes = plan.row_threads < kWarp ? plan.row_threads : kWarp;
    x = over_lanes<kLanes>(x, join);
    if constexpr (plan.row_threads > kWarp) {
        const int lane = threadIdx.x % kWarp;
        if (lane == 0) warps[threadIdx.x / kWarp] = x;
        __syncthreads();
        x = lane < plan.row_threads / kWarp ? warps[lane] : Join::template neutral<T>();
        x = over_lanes<kWarp>(x, join);
    }
    return x;
}

// Leaves a value with every block of the cluster, each at this block's place.
template <SoftmaxPlan plan, typename T>
__device__ __forceinline__ void tell_cluster(T x, T (&blocks)[kWarp]) {
    static_assert(plan.row_threads > kWarp, "blocks share a row whose threads are a block");
    if (threadIdx.x < plan.cluster) store_in_block(&blocks[cluster_rank()], threadIdx.x, x);
}

template <SoftmaxPlan plan>
struct Boards {
    float magnitudes[kWarp];
    Real<plan> maxima[kWarp];
    Sum<plan> sums[kWarp];
    // Of blocks, for this row and the next: a block may be a row ahead of one that still reads.
    float block_magnitudes[2][kWarp];
    Real<plan> block_maxima[2][kWarp];
    Sum<plan> block_sums[2][kWarp];
};

// The largest magnitude of a row.
template <SoftmaxPlan plan>
__device__ __forceinline__ float largest_of_row(float x, Boards<plan>& boards, int parity) {
    x = over_block<plan>(x, Largest{}, boards.magnitudes);
    if constexpr (plan.cluster > 1) {
        tell_cluster<plan>(x, boards.block_magnitudes[parity]);
        cluster_arrive();
        cluster_wait();
        const int lane = threadIdx.x % kWarp;
        x = over_lanes<kWarp>(lane < plan.cluster ? boards.block_magnitudes[parity][lane] : 0.0f,
                              Largest{});
    }
    return x;
}

// Exponentials are taken about 0 where only -inf was seen.
template <typename T>
__device__ __forceinline__ T shift_for(T maximum) {
    return maximum == Largest::neutral<T>() ? T(0) : maximum;
}

// What a sum about `mine` is multiplied by to be one about `all`; nothing where only -inf was seen.
template <typename Exponentials, typename T>
__device__ __forceinline__ auto change_to(const Exponentials& all, T maximum,
                                          const SoftmaxArguments& args) {
    const auto factor = Exponentials(shift_for(maximum), args).change(all, args);
    return maximum == Largest::neutral<T>() ? decltype(factor)(0) : factor;
}

// The maximum and the sum of a row, from those of a block.
template <SoftmaxPlan plan>
struct RowSum {
    Real<plan> maximum;
    Sum<plan> sum;
    Sum<plan> change;  // of a block's exponentials, to be about the row's maximum

    RowSum() = default;

    __device__ __forceinline__ RowSum(Real<plan> block_maximum, Sum<plan> block_sum,
                                      Boards<plan>& boards, int parity,
                                      const SoftmaxArguments& args)
        : maximum(block_maximum), sum(block_sum), change(1) {
        if constexpr (plan.cluster > 1) {
            tell_cluster<plan>(block_maximum, boards.block_maxima[parity]);
            tell_cluster<plan>(block_sum, boards.block_sums[parity]);
            cluster_arrive();
            cluster_wait();
            const int lane = threadIdx.x % kWarp;
            const bool told = lane < plan.cluster;
            const Real<plan> theirs =
                told ? boards.block_maxima[parity][lane] : Largest::neutral<Real<plan>>();
            maximum = over_lanes<kWarp>(theirs, Largest{});
            const ExponentialsOf<plan> all(shift_for(maximum), args);
            const Sum<plan> part = told ? boards.block_sums[parity][lane] : Sum<plan>(0);
            sum = over_lanes<kWarp>(
                theirs == Largest::neutral<Real<plan>>() ? Sum<plan>(0)
                                                         : part * change_to(all, theirs, args),
                Total{});
            change = change_to(all, block_maximum, args);
        }
    }
};
