// Softmax over rows, its logarithm, and the logarithm of the sum: a tiled recurrence with a running
// maximum m and sum z,
//
//     m_new = max(m, m~),   z_new = e^(m - m_new) z + e^(m~ - m_new) z~.
//
// A row that its threads hold is read once, whether they are a few lanes, a block or a cluster of
// blocks. Of a longer row the last tile is held and the others are read again, the latest first.
#pragma once
#include "ring_kernel.cuh"

// A row that its threads hold: `part` is what they were given of it, and `next` is called when they
// have all of it in registers.
template <SoftmaxPlan plan, typename Next>
__device__ __forceinline__ void resident_row(const Row<plan>& row, Part<plan>& part,
                                             Boards<plan>& boards, int parity,
                                             const SoftmaxArguments& args, Next next) {
    if constexpr (plan.held == Held::fp16) {
        hold_all<plan>(part,
                       scale_of<plan>(largest_magnitude<plan>(part, 0.0f), boards, parity));
    } else {
        hold_all<plan>(part, 0);
    }
    const Real<plan> mine = largest_of<plan>(part);
    next();
    const Real<plan> maximum = over_block<plan>(mine, Largest{}, boards.maxima);
    const ExponentialsOf<plan> exponentials(shift_for(maximum), args);
    Sum<plan> sum{};
    add_all<plan>(part, row.window(row.x, 0).end, sum, exponentials, args);
    sum = over_block<plan>(corrected<plan>(sum, mine, exponentials, args), Total{}, boards.sums);
    put<plan>(row, 0, part, RowSum<plan>(maximum, sum, boards, parity, args), args);
}

template <SoftmaxPlan plan>
__device__ __forceinline__ void streamed_row(const Row<plan>& row, Boards<plan>& boards,
                                             const SoftmaxArguments& args) {
    using R = Real<plan>;
    using E = ExponentialsOf<plan>;
    Part<plan> part;
    const int tiles = row.tiles();
    int exponent = 0;
    if constexpr (plan.held == Held::fp16) {
        float magnitude = 0.0f;
        for (int tile = 0; tile < tiles; ++tile) {
            read<plan>(row.window(row.x, tile), part, args);
            magnitude = largest_magnitude<plan>(part, magnitude);
        }
        exponent = scale_of<plan>(magnitude, boards, 0);
    }
    E seen(R(0), args);
    R maximum = Largest::neutral<R>();
    Sum<plan> sum{};
    for (int tile = 0; tile < tiles; ++tile) {
        const auto from = row.window(row.x, tile);
        read<plan>(from, part, args);
        hold_all<plan>(part, exponent);
        const R larger_one = larger(largest_of<plan>(part), maximum);
        if (larger_one != maximum) {
            const E raised(larger_one, args);
            // Before anything but -inf was seen there is no sum.
            sum = maximum == Largest::neutral<R>() ? Sum<plan>(0) : sum * seen.change(raised, args);
            seen = raised;
            maximum = larger_one;
        }
        add_all<plan>(part, from.end, sum, seen, args);
    }
    const R of_block = over_block<plan>(maximum, Largest{}, boards.maxima);
    const E all(shift_for(of_block), args);
    sum = maximum == Largest::neutral<R>() ? Sum<plan>(0) : sum * seen.change(all, args);
    sum = over_block<plan>(corrected<plan>(sum, maximum, all, args), Total{}, boards.sums);
    const RowSum<plan> found(of_block, sum, boards, 0, args);
    put<plan>(row, tiles - 1, part, found, args);
    if constexpr (plan.operation == Operation::logsumexp) return;
    for (int tile = tiles - 2; tile >= 0; --tile) {
        read<plan>(row.window(row.x, tile), part, args);
        hold_all<plan>(part, exponent);
        put<plan>(row, tile, part, found, args);
    }
}

// Row after row: while one is worked on, the next is copied into shared memory.
template <SoftmaxPlan plan>
__device__ __forceinline__ void staged_rows(int64 first, int position, Boards<plan>& boards,
                                            const SoftmaxArguments& args) {
    extern __shared__ __align__(16) char shared[];
    const int64 step = gridDim.x / plan.cluster;
    int parity = 0;
    {
        const Row<plan> row(args, first, position);
        stage<plan>(row.window(row.x, 0), shared, args);
    }
    for (int64 at = first; at < args.rows; at += step, parity ^= 1) {
        const Row<plan> row(args, at, position);
        Part<plan> part;
        arrived<plan>(row.window(row.x, 0), shared, part);
        resident_row<plan>(row, part, boards, parity, args, [&] {
            if (at + step >= args.rows) return;
            const Row<plan> next(args, at + step, position);
            stage<plan>(next.window(next.x, 0), shared, args);
        });
    }
}

template <SoftmaxPlan plan>
__device__ __forceinline__ void softmax_rows(const SoftmaxArguments& args) {
    if constexpr (plan.ring) {
        ring_rows<plan>(args);
        return;
    }
    __shared__ Boards<plan> boards;
    int rank = 0;
    if constexpr (plan.cluster > 1) {
        rank = cluster_rank();
        cluster_arrive();  // nobody writes into a block that has not begun
        cluster_wait();
    }
    const int position = rank * plan.row_threads + threadIdx.x % plan.row_threads;
    const int64 first = static_cast<int64>(blockIdx.x / plan.cluster) * plan.rows_a_block();
    if constexpr (plan.staged) {
        staged_rows<plan>(first, position, boards, args);
    } else {
        const Row<plan> row(args, first + threadIdx.x / plan.row_threads, position);
        if constexpr (plan.resident) {
            Part<plan> part;
            read<plan>(row.window(row.x, 0), part, args);
            resident_row<plan>(row, part, boards, 0, args, [] {});
        } else {
            streamed_row<plan>(row, boards, args);
        }
    }
}
