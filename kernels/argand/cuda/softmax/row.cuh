// One row of the resident and the streamed kernels: the tiles of a row, and what a thread does with
// its fragment of a tile: round, reduce, exponentiate, write results. kernel.cuh puts these
// operations in order.
#pragma once
#include "epilogue.cuh"

// A row in global memory, and the rank of the thread among those that share it.
template <RowPlan plan>
struct Row {
    using In = Element<plan.input>;
    using Out = Element<plan.output>;

    const In* x;
    Out* out;
    // 0 beyond the last row: threads there load from the last row and take part in warp reductions.
    int64 columns;
    int misalignment;  // elements from the last aligned address to the row's first element
    int thread_rank;

    __device__ __forceinline__ Row(const SoftmaxArguments& args, int64 row, int thread_rank)
        : x(static_cast<const In*>(args.x) +
            (plan.rows_per_block() > 1 && row >= args.rows ? args.rows - 1 : row) * args.x_stride),
          out(static_cast<Out*>(args.out) + row * args.out_stride),
          columns(row < args.rows ? args.columns : 0),
          misalignment(0),
          thread_rank(thread_rank) {
        if constexpr (plan.unaligned_rows) {
            misalignment = static_cast<int>(reinterpret_cast<unsigned long long>(x) / sizeof(In)) &
                           (plan.tile_alignment() - 1);
        }
    }

    __device__ __forceinline__ int tiles() const {
        return static_cast<int>((columns + misalignment + plan.tile_columns() - 1) /
                                plan.tile_columns());
    }

    template <typename T>
    __device__ __forceinline__ RowView<T> view(T* from, int tile) const {
        const int64 start = static_cast<int64>(tile) * plan.tile_columns();
        const int64 left = columns == 0 ? 0 : columns + misalignment - start;
        const int skipped = thread_rank * plan.vector_width;
        return {
            from - misalignment + start + skipped, (tile == 0 ? misalignment : 0) - skipped,
            static_cast<int>(left < plan.tile_columns() ? left : plan.tile_columns()) - skipped};
    }
};

// Rounds a fragment whose maximum has been taken: NaN may become any number (`round_number`).
template <RowPlan plan>
__device__ __forceinline__ void round_fragment(Fragment<plan>& fragment) {
    if constexpr (plan.input_rounding != Operand::exact) {
#pragma unroll
        for (int i = 0; i < plan.values_per_thread; ++i)
            fragment.words[i] = round_number<plan>(fragment.words[i]);
    }
}

// The largest value of a fragment, NaN where one of them is.
template <RowPlan plan>
__device__ __forceinline__ ComputeType<plan> fragment_max(const Fragment<plan>& fragment) {
    if constexpr (plan.packed) {
        uint32 pair = fragment.words[0];
#pragma unroll
        for (int i = 1; i < plan.values_per_thread / 2; ++i)
            pair = max_nan_pair<plan.input>(pair, fragment.words[i]);
        return max_nan(unpack_half<plan.input>(pair, false), unpack_half<plan.input>(pair, true));
    } else {
        ComputeType<plan> maximum = fragment.words[0];
#pragma unroll
        for (int i = 1; i < plan.values_per_thread; ++i)
            maximum = max_nan(maximum, fragment.words[i]);
        return maximum;
    }
}

// Rounds a fragment and returns the maximum of its rounded values, NaN where one of them is NaN.
// Rounding keeps order, so the maximum is rounded alone.
template <RowPlan plan>
__device__ __forceinline__ ComputeType<plan> round_and_max(Fragment<plan>& fragment) {
    const ComputeType<plan> maximum = fragment_max<plan>(fragment);
    if constexpr (plan.input_rounding == Operand::exact) return maximum;
    round_fragment<plan>(fragment);
    return round_input<plan>(maximum);
}

// Adds e^(s x) of a fragment to a sum; `end` elements of the fragment belong to the row. Where the
// plan keeps exponentials, they overwrite the values. A branch skips what lies beyond the row; it
// also keeps ptxas from computing more exponentials at a time than there are registers.
template <RowPlan plan>
__device__ __forceinline__ void accumulate_exponentials(Fragment<plan>& fragment, int end,
                                                        AccumulatorType<plan>& sum,
                                                        const ExponentialsOf<plan>& exponentials,
                                                        const SoftmaxArguments& args) {
    // With few threads per row one thread may have several of the largest terms, which
    // `with_rounding_correction` cannot correct.
    constexpr bool kExactSum = plan.row_threads < kWarp;
    constexpr int kStep = plan.vector_width > 4 ? plan.vector_width : 4;
    if constexpr (plan.keeps_exponentials()) {
        if (exponentials.origin != 0) {  // seldom, so subtracted here and not in the loop below
#pragma unroll
            for (int i = 0; i < plan.values_per_thread; ++i)
                fragment.words[i] -= exponentials.origin;
        }
    }
#pragma unroll
    for (int first = 0; first < plan.values_per_thread; first += kStep) {
        if (first * plan.threads_per_row() >= end) continue;
#pragma unroll
        for (int i = first; i < first + kStep && i < plan.values_per_thread; ++i) {
            if constexpr (plan.keeps_exponentials()) {
                fragment.words[i] =
                    exponentials.template accumulate<kExactSum>(fragment.words[i], args, sum);
            } else {
                exponentials.template accumulate<kExactSum>(fragment.value(i) - exponentials.origin,
                                                            args, sum);
            }
        }
    }
}

// A thread's sum with its largest term exact in place of rounded.
template <RowPlan plan>
__device__ __forceinline__ AccumulatorType<plan> with_rounding_correction(
    AccumulatorType<plan> sum, ComputeType<plan> maximum, const ExponentialsOf<plan>& exponentials,
    const SoftmaxArguments& args) {
    if constexpr (plan.row_threads < kWarp) return sum;
    return sum + exponentials.rounding_correction(maximum, args);
}

// Writes the results of a tile.
template <RowPlan plan>
__device__ __forceinline__ void write_tile(const Row<plan>& row, int tile,
                                           const Fragment<plan>& fragment,
                                           const RowStatistics<plan>& statistics,
                                           const SoftmaxArguments& args) {
    const Epilogue<plan> epilogue(statistics.maximum, statistics.sum, args);
    if constexpr (plan.operation == Operation::logsumexp) {
        if (row.thread_rank == 0 && row.columns != 0) epilogue.write_logsumexp(row.out);
    } else {
        if (plan.rows_per_block() > 1 && row.columns == 0) return;
        const auto rescale = static_cast<ComputeType<plan>>(statistics.rescale);
        write_row<plan>(row.view(row.out, tile),
                        [&](int i) { return epilogue.apply(fragment.value(i), rescale, args); });
    }
}
