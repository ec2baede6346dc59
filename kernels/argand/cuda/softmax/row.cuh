// One row: a thread's part of it, what that part comes to, and how its results are written.
#pragma once
#include "epilogue.cuh"

// One row in memory, its threads' places in it, and what they agree on.
template <SoftmaxPlan plan>
struct Row {
    using In = Element<plan.input>;
    using Out = Element<plan.output>;

    const In* x;
    Out* out;
    int64 columns;  // none where there is no such row: its threads agree with their neighbours
    int phase;      // elements between a line's boundary and the row's begin
    int position;

    __device__ __forceinline__ Row(const SoftmaxArguments& args, int64 row, int position)
        : x(static_cast<const In*>(args.x) + row * args.x_stride),
          out(static_cast<Out*>(args.out) + row * args.out_stride),
          columns(row < args.rows ? args.columns : 0),
          phase(0),
          position(position) {
        if constexpr (plan.edges) {
            phase = static_cast<int>(reinterpret_cast<unsigned long long>(x) / sizeof(In)) &
                    (plan.line() - 1);
        }
    }

    __device__ __forceinline__ int tiles() const {
        return static_cast<int>((columns + phase + plan.tile() - 1) / plan.tile());
    }

    template <typename T>
    __device__ __forceinline__ Window<T> window(T* from, int tile) const {
        const int64 start = static_cast<int64>(tile) * plan.tile();
        const int64 left = columns == 0 ? 0 : columns + phase - start;
        const int skipped = position * plan.vector;
        return {from - phase + start + skipped, (tile == 0 ? phase : 0) - skipped,
                static_cast<int>(left < plan.tile() ? left : plan.tile()) - skipped};
    }
};

template <SoftmaxPlan plan>
__device__ __forceinline__ void hold_all(Part<plan>& part, int exponent) {
    if constexpr (plan.held != Held::exact) {
#pragma unroll
        for (int i = 0; i < plan.values; ++i) part.word[i] = hold<plan>(part.word[i], exponent);
    }
}

template <SoftmaxPlan plan>
__device__ __forceinline__ Real<plan> largest_of(const Part<plan>& part) {
    if constexpr (plan.packed()) {
        uint32 pair = part.word[0];
#pragma unroll
        for (int i = 1; i < plan.values / 2; ++i) pair = larger_pair<plan.input>(pair, part.word[i]);
        return larger(unpacked<plan.input>(pair, false), unpacked<plan.input>(pair, true));
    } else {
        Real<plan> maximum = part.word[0];
#pragma unroll
        for (int i = 1; i < plan.values; ++i) maximum = larger(maximum, part.word[i]);
        return maximum;
    }
}

template <SoftmaxPlan plan>
__device__ __forceinline__ float largest_magnitude(const Part<plan>& part, float found) {
#pragma unroll
    for (int i = 0; i < plan.values; ++i) {
        found = fmaxf(found, __uint_as_float(finite_magnitude(part.at(i))));
    }
    return found;
}

// The sum of e^(s x) over a tile, of which a thread has `end` elements; a result's numerators take
// the values' places. What lies beyond the row is passed over in a branch: it also keeps the
// assembler from computing more exponentials at a time than there are registers for.
template <SoftmaxPlan plan>
__device__ __forceinline__ void add_all(Part<plan>& part, int end, Sum<plan>& sum,
                                        const ExponentialsOf<plan>& exponentials,
                                        const SoftmaxArguments& args) {
    // Two of the largest terms meet in one thread where few share a row; see `corrected`.
    constexpr bool kExact = plan.row_threads < kWarp;
    if constexpr (plan.replaces()) {
        if (exponentials.origin != 0) {  // seldom: once here, and not with each value below
#pragma unroll
            for (int i = 0; i < plan.values; ++i) part.word[i] -= exponentials.origin;
        }
    }
#pragma unroll
    for (int first = 0; first < plan.values; first += plan.vector) {
        if (first * plan.team() >= end) continue;
#pragma unroll
        for (int i = first; i < first + plan.vector; ++i) {
            if constexpr (plan.replaces()) {
                part.word[i] = exponentials.template add<kExact>(part.word[i], args, sum);
            } else {
                exponentials.template add<kExact>(part.at(i) - exponentials.origin, args, sum);
            }
        }
    }
}

// A thread's sum when its largest term, of `maximum`, counts as it is and not as it was rounded.
template <SoftmaxPlan plan>
__device__ __forceinline__ Sum<plan> corrected(Sum<plan> sum, Real<plan> maximum,
                                               const ExponentialsOf<plan>& exponentials,
                                               const SoftmaxArguments& args) {
    if constexpr (plan.row_threads < kWarp) return sum;
    return sum + exponentials.correction(maximum, args);
}

// The exponent that scales a row for fp16; 0 where it is not scaled.
template <SoftmaxPlan plan>
__device__ __forceinline__ int scale_of(float magnitude, Boards<plan>& boards, int parity) {
    if constexpr (plan.held != Held::fp16) return 0;
    return scale_exponent(__float_as_uint(largest_of_row<plan>(magnitude, boards, parity)));
}

// Writes a tile. `found` has the row's maximum and sum.
template <SoftmaxPlan plan>
__device__ __forceinline__ void put(const Row<plan>& row, int tile, const Part<plan>& part,
                                    const RowSum<plan>& found, const SoftmaxArguments& args) {
    const Outcome<plan> outcome(found.maximum, found.sum, args);
    if constexpr (plan.operation == Operation::logsumexp) {
        if (row.position == 0 && row.columns != 0) outcome.put_total(row.out);
    } else {
        const auto change = static_cast<Real<plan>>(found.change);
        write<plan>(row.window(row.out, tile),
                    [&](int i) { return outcome.of(part.at(i), change, args); });
    }
}
