// The softmax kernels: softmax, log_softmax and logsumexp over rows, by an online recurrence. A
// running maximum m and sum z take in a tile with maximum m~ and sum z~ as
//
//     m_new = max(m, m~),   z_new = e^(m - m_new) z + e^(m~ - m_new) z~.
//
// `softmax_rows` is the entry and dispatches by plan. Resident rows are held in registers of a few
// lanes, a block or a cluster, and read once. Staged ones are resident rows of a persistent kernel,
// the next row prefetched by cp.async. Streamed rows keep only the last tile in registers, and the
// others are read a second time, the latest first. The ring is in ring_kernel.cuh, short rows by
// slabs in slab_kernel.cuh.
#pragma once
#include "ring_kernel.cuh"
#include "slab_kernel.cuh"

// A row that its threads hold in registers. Calls `next` when the fragment has been loaded, so that
// the next row can be prefetched.
template <RowPlan plan, typename Next>
__device__ __forceinline__ void softmax_resident_row(const Row<plan>& row, Fragment<plan>& fragment,
                                                     ReduceStorage<plan>& storage, int buffer,
                                                     const SoftmaxArguments& args, Next next) {
    const ComputeType<plan> thread_max = round_and_max<plan>(fragment);
    next();
    const ComputeType<plan> maximum = block_reduce<plan>(thread_max, MaxOp{}, storage.warp_maxima);
    const ExponentialsOf<plan> exponentials(finite_maximum(maximum), args);
    AccumulatorType<plan> sum{};
    accumulate_exponentials<plan>(fragment, row.view(row.x, 0).end, sum, exponentials, args);
    sum = block_reduce<plan>(with_rounding_correction<plan>(sum, thread_max, exponentials, args),
                             SumOp{}, storage.warp_sums);
    write_tile<plan>(row, 0, fragment, RowStatistics<plan>(maximum, sum, storage, buffer, args),
                     args);
}

// A row that is read twice: once for its maximum and its sum, tile after tile, and backwards once
// more for the results of all tiles but the last, which is still in registers.
template <RowPlan plan>
__device__ __forceinline__ void softmax_streamed_row(const Row<plan>& row,
                                                     ReduceStorage<plan>& storage,
                                                     const SoftmaxArguments& args) {
    using R = ComputeType<plan>;
    using E = ExponentialsOf<plan>;
    Fragment<plan> fragment;
    const int tiles = row.tiles();
    E current(R(0), args);
    R maximum = MaxOp::identity<R>();
    AccumulatorType<plan> sum{};
    for (int tile = 0; tile < tiles; ++tile) {
        const auto from = row.view(row.x, tile);
        load_row<plan>(from, fragment, args);
        const R new_maximum = max_nan(round_and_max<plan>(fragment), maximum);
        if (new_maximum != maximum) {
            const E raised(new_maximum, args);
            // As long as all values were -inf, the sum is empty.
            sum = maximum == MaxOp::identity<R>() ? AccumulatorType<plan>(0)
                                                  : sum * current.rescale_factor_to(raised, args);
            current = raised;
            maximum = new_maximum;
        }
        AccumulatorType<plan> tile_sum{};  // apart, so that no sum is a chain of a row's values
        accumulate_exponentials<plan>(fragment, from.end, tile_sum, current, args);
        sum += tile_sum;
    }
    const R block_max = block_reduce<plan>(maximum, MaxOp{}, storage.warp_maxima);
    const E all(finite_maximum(block_max), args);
    sum = maximum == MaxOp::identity<R>() ? AccumulatorType<plan>(0)
                                          : sum * current.rescale_factor_to(all, args);
    sum = block_reduce<plan>(with_rounding_correction<plan>(sum, maximum, all, args), SumOp{},
                             storage.warp_sums);
    const RowStatistics<plan> statistics(block_max, sum, storage, 0, args);
    write_tile<plan>(row, tiles - 1, fragment, statistics, args);
    if constexpr (plan.operation == Operation::logsumexp) return;
    for (int tile = tiles - 2; tile >= 0; --tile) {
        load_row<plan>(row.view(row.x, tile), fragment, args);
        round_fragment<plan>(fragment);
        write_tile<plan>(row, tile, fragment, statistics, args);
    }
}

// A persistent loop over rows: the next row is copied into shared memory while one is computed.
template <RowPlan plan>
__device__ __forceinline__ void softmax_staged_rows(int64 first, int thread_rank,
                                                    ReduceStorage<plan>& storage,
                                                    const SoftmaxArguments& args) {
    extern __shared__ __align__(16) char shared[];
    const int64 row_step = gridDim.x / plan.blocks_per_row;
    int buffer = 0;
    {
        const Row<plan> row(args, first, thread_rank);
        stage_row<plan>(row.view(row.x, 0), shared, args);
    }
    for (int64 index = first; index < args.rows; index += row_step, buffer ^= 1) {
        const Row<plan> row(args, index, thread_rank);
        Fragment<plan> fragment;
        load_staged_row<plan>(row.view(row.x, 0), shared, fragment);
        softmax_resident_row<plan>(row, fragment, storage, buffer, args, [&] {
            if (index + row_step >= args.rows) return;
            const Row<plan> next(args, index + row_step, thread_rank);
            stage_row<plan>(next.view(next.x, 0), shared, args);
        });
    }
}

// The kernel: the plan decides how rows are held.
template <RowPlan plan>
__device__ __forceinline__ void softmax_rows(const SoftmaxArguments& args) {
    if constexpr (plan.ring) {
        softmax_ring_rows<plan>(args);
        return;
    }
    if constexpr (plan.slab()) {
        softmax_slab_rows<plan>(args);
        return;
    }
    __shared__ ReduceStorage<plan> storage;
    int rank = 0;
    if constexpr (plan.blocks_per_row > 1) {
        rank = cluster_rank();
        cluster_arrive();  // no block writes to shared memory of one that has not started
        cluster_wait();
    }
    const int thread_rank = rank * plan.row_threads + threadIdx.x % plan.row_threads;
    const int64 first =
        static_cast<int64>(blockIdx.x / plan.blocks_per_row) * plan.rows_per_block();
    if constexpr (plan.staged) {
        softmax_staged_rows<plan>(first, thread_rank, storage, args);
    } else {
        const Row<plan> row(args, first + threadIdx.x / plan.row_threads, thread_rank);
        if constexpr (plan.resident) {
            Fragment<plan> fragment;
            load_row<plan>(row.view(row.x, 0), fragment, args);
            softmax_resident_row<plan>(row, fragment, storage, 0, args, [] {});
        } else {
            softmax_streamed_row<plan>(row, storage, args);
        }
    }
}
