// Softmax over rows, its logarithm, and the logarithm of the sum: a tiled recurrence with a running
// maximum m and sum z,
//
//     m_new = max(m, m~),   z_new = e^(m - m_new) z + e^(m~ - m_new) z~.
//
// A row that its threads hold is read once, whether they are a few lanes, a block or a cluster of
// blocks. Of a longer row the last tile is held and the others are read again, the latest first.
#pragma once
#include "softmax_team.cuh"
#include "softmax_values.cuh"

// One row in memory, its threads' places in it, and what they agree on.
template <SoftmaxPlan plan>
struct Row {
    using In = Element<plan.input>;
    using Out = Element<plan.output>;

    const In* x;
    Out* out;
    int64 columns;  // none where there is no such row: its threads agree with their neighbours
    int phase;      // elements between a vector's boundary and the row's begin
    int position;

    __device__ __forceinline__ Row(const SoftmaxArguments& args, int64 row, int position)
        : x(static_cast<const In*>(args.x) + row * args.x_stride),
          out(static_cast<Out*>(args.out) + row * args.out_stride),
          columns(row < args.rows ? args.columns : 0),
          phase(0),
          position(position) {
        if constexpr (plan.edges) {
            phase = static_cast<int>(reinterpret_cast<unsigned long long>(x) / sizeof(In)) &
                    (plan.vector - 1);
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
    constexpr bool kExact = plan.row_threads <= kWarp;
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
    if constexpr (plan.row_threads <= kWarp) return sum;
    return sum + exponentials.correction(maximum, args);
}

// The exponent that scales a row for fp16; 0 where it is not scaled.
template <SoftmaxPlan plan>
__device__ __forceinline__ int scale_of(float magnitude, Boards<plan>& boards, int parity) {
    if constexpr (plan.held != Held::fp16) return 0;
    return scale_exponent(__float_as_uint(largest_of_row<plan>(magnitude, boards, parity)));
}

// Writes a tile. `found` has the row's maximum and sum; values that were replaced by exponentials
// have those about the block's maximum, `found.change` away.
template <SoftmaxPlan plan>
__device__ __forceinline__ void put(const Row<plan>& row, int tile, const Part<plan>& part,
                                    const RowSum<plan>& found, const SoftmaxArguments& args) {
    using R = Real<plan>;
    const ExponentialsOf<plan> exponentials(shift_for(found.maximum), args);
    if constexpr (plan.operation == Operation::softmax) {
        const Share<kAccuracy<plan>> share(found.sum, found.maximum);
        const R change = static_cast<R>(found.change);
        write<plan>(row.window(row.out, tile), [&](int i) -> R {
            if constexpr (plan.replaces()) {
                // Apart from the share, which would lose bits with it where the change is large.
                return plan.cluster > 1 ? R(share(part.at(i)) * change) : R(share(part.at(i)));
            }
            Sum<plan> ignored{};
            return share(exponentials.template add<false>(part.at(i) - exponentials.origin, args,
                                                          ignored));
        });
    } else if constexpr (plan.operation == Operation::log_softmax) {
        const R total = is_finite(found.maximum) ? exponentials.log_of(found.sum, args)
                                                 : static_cast<R>(not_a_number());
        const R scale = plan.wide ? static_cast<R>(args.scale) : static_cast<R>(args.scale_f);
        write<plan>(row.window(row.out, tile), [&](int i) -> R {
            return fma(part.at(i) - found.maximum, scale, -total);
        });
    } else if (row.position == 0 && row.columns != 0) {
        // An infinite or NaN maximum is the logarithm itself.
        const R scale = plan.wide ? static_cast<R>(args.scale) : static_cast<R>(args.scale_f);
        const R total =
            is_finite(found.maximum)
                ? static_cast<R>(fma(found.maximum, scale, exponentials.log_of(found.sum, args)))
                : found.maximum;
        if constexpr (plan.half(plan.output)) {
            *row.out = half_of<plan.output>(total);
        } else {
            *row.out = static_cast<Element<plan.output>>(total);
        }
    }
}

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
            const Row<plan> next(args, at + step, position);
            stage<plan>(next.window(next.x, 0), shared, args);
        });
    }
}

template <SoftmaxPlan plan>
__device__ __forceinline__ void softmax_rows(const SoftmaxArguments& args) {
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
