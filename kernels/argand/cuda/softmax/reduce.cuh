// Reductions over the threads that share a row: lanes of a warp, a block, a cluster of blocks. All
// threads get the same bits. row.cuh and kernel.cuh reduce maxima and sums with them.
#pragma once
#include "device/cluster.cuh"
#include "exponential.cuh"

// Integers that are ordered as the numbers are, NaN above all: redux.sync reduces a warp's
// integers.
__device__ __forceinline__ int to_ordered_int(float x) {
    const int bits = __float_as_int(x);
    return bits ^ ((bits >> 31) & 0x7fffffff);
}
__device__ __forceinline__ float from_ordered_int(int key) {
    return __int_as_float(key ^ ((key >> 31) & 0x7fffffff));
}

struct MaxOp {
    template <typename T>
    __device__ __forceinline__ T operator()(T x, T y) const {
        return max_nan(x, y);
    }
    template <typename T>
    static __device__ __forceinline__ T identity() {
        return -static_cast<T>(infinity());
    }
};

struct SumOp {
    template <typename T>
    __device__ __forceinline__ T operator()(T x, T y) const {
        return x + y;
    }
    template <typename T>
    static __device__ __forceinline__ T identity() {
        return T(0);
    }
};

template <int lanes, typename Op, typename T>
__device__ __forceinline__ T warp_reduce(T x, Op op) {
#pragma unroll
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
        x = op(x, __shfl_xor_sync(0xffffffffu, x, distance));
    }
    return x;
}

template <int lanes>
__device__ __forceinline__ float warp_reduce(float x, MaxOp op) {
    if constexpr (lanes == kWarp) {
        return from_ordered_int(__reduce_max_sync(0xffffffffu, to_ordered_int(x)));
    } else {
        return warp_reduce<lanes, MaxOp, float>(x, op);
    }
}

// Reduces over the threads of a row in a block. Each quantity has shared memory of its own: the
// barrier of one reduction shows that the memory of the one before has been read.
template <RowPlan plan, typename Op, typename T>
__device__ __forceinline__ T block_reduce(T x, Op op, T (&warp_values)[kWarp]) {
    constexpr int kLanes = plan.row_threads < kWarp ? plan.row_threads : kWarp;
    x = warp_reduce<kLanes>(x, op);
    if constexpr (plan.row_threads > kWarp) {
        const int lane = threadIdx.x % kWarp;
        if (lane == 0) warp_values[threadIdx.x / kWarp] = x;
        __syncthreads();
        x = lane < plan.row_threads / kWarp ? warp_values[lane] : Op::template identity<T>();
        x = warp_reduce<kWarp>(x, op);
    }
    return x;
}

// Writes a value to shared memory of every block of the cluster, at this block's rank.
template <RowPlan plan, typename T>
__device__ __forceinline__ void publish_to_cluster(T x, T (&block_values)[kWarp]) {
    static_assert(plan.row_threads > kWarp, "blocks share a row whose threads are a block");
    if (threadIdx.x < plan.blocks_per_row)
        store_cluster(map_shared_rank(&block_values[cluster_rank()], threadIdx.x), x);
}

template <RowPlan plan>
struct ReduceStorage {
    ComputeType<plan> warp_maxima[kWarp];
    AccumulatorType<plan> warp_sums[kWarp];
    // Double buffered: a block may be one row ahead of a block that still reads.
    ComputeType<plan> block_maxima[2][kWarp];
    AccumulatorType<plan> block_sums[2][kWarp];
};

// The maximum that is subtracted: 0 where all values are -inf.
template <typename T>
__device__ __forceinline__ T finite_maximum(T maximum) {
    return maximum == MaxOp::identity<T>() ? T(0) : maximum;
}

// Factor that turns a sum relative to a local maximum into one relative to that of `all`; 0 where
// all values are -inf.
template <typename Exponentials, typename T>
__device__ __forceinline__ auto rescale_factor(const Exponentials& all, T maximum,
                                               const SoftmaxArguments& args) {
    const auto factor = Exponentials(finite_maximum(maximum), args).rescale_factor_to(all, args);
    return maximum == MaxOp::identity<T>() ? decltype(factor)(0) : factor;
}

// Maximum and sum of a row, from those of each block.
template <RowPlan plan>
struct RowStatistics {
    ComputeType<plan> maximum;
    AccumulatorType<plan> sum;
    AccumulatorType<plan> rescale;  // of this block's exponentials, to the row's maximum

    RowStatistics() = default;

    __device__ __forceinline__ RowStatistics(ComputeType<plan> block_maximum,
                                             AccumulatorType<plan> block_sum,
                                             ReduceStorage<plan>& storage, int buffer,
                                             const SoftmaxArguments& args)
        : maximum(block_maximum), sum(block_sum), rescale(1) {
        if constexpr (plan.blocks_per_row > 1) {
            publish_to_cluster<plan>(block_maximum, storage.block_maxima[buffer]);
            publish_to_cluster<plan>(block_sum, storage.block_sums[buffer]);
            cluster_arrive();
            cluster_wait();
            const int lane = threadIdx.x % kWarp;
            const bool valid = lane < plan.blocks_per_row;
            const ComputeType<plan> peer_maximum =
                valid ? storage.block_maxima[buffer][lane] : MaxOp::identity<ComputeType<plan>>();
            maximum = warp_reduce<kWarp>(peer_maximum, MaxOp{});
            const ExponentialsOf<plan> all(finite_maximum(maximum), args);
            const AccumulatorType<plan> peer_sum =
                valid ? storage.block_sums[buffer][lane] : AccumulatorType<plan>(0);
            sum = warp_reduce<kWarp>(peer_maximum == MaxOp::identity<ComputeType<plan>>()
                                         ? AccumulatorType<plan>(0)
                                         : peer_sum * rescale_factor(all, peer_maximum, args),
                                     SumOp{});
            rescale = rescale_factor(all, block_maximum, args);
        }
    }
};
