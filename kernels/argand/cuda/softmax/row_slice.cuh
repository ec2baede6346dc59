// Slices of rows: which part of a row a block has, and its way through shared memory.
#pragma once
#include "row.cuh"

template <SoftmaxPlan plan>
struct RowSlice {
    using In = Element<plan.input>;

    const SoftmaxArguments& args;
    char* shared;
    const int group, rank, stage_bytes;
    const int first_column,
        columns_left;  // of a row: where this block's slice begins, and how much there is from there

    __device__ __forceinline__ RowSlice(const SoftmaxArguments& args, char* shared)
        : args(args),
          shared(shared),
          group(blockIdx.x / plan.blocks_per_row),
          rank(blockIdx.x % plan.blocks_per_row),
          stage_bytes((static_cast<int>(args.slice_columns) * static_cast<int>(sizeof(In)) + 127) /
                      128 * 128),
          first_column(rank * static_cast<int>(args.slice_columns)),
          columns_left(static_cast<int>(args.columns) - first_column) {}

    __device__ __forceinline__ const In* first_row() const {
        return static_cast<const In*>(args.x) + group * args.x_stride;
    }
    // Elements between a line's boundary and a row's begin.
    __device__ __forceinline__ static int misalignment_of(const In* row) {
        if constexpr (!plan.partial_vectors()) return 0;
        return static_cast<int>(reinterpret_cast<unsigned long long>(row) / sizeof(In)) &
               (plan.tile_alignment() - 1);
    }
    // The block's slice of a row from one of its elements on.
    template <typename T>
    __device__ __forceinline__ RowView<T> view(T* row, int misalignment, int skipped) const {
        const int length = static_cast<int>(args.slice_columns);
        return {row + (first_column - misalignment + skipped),
                (rank == 0 ? misalignment : 0) - skipped,
                min(length, columns_left + misalignment) - skipped};
    }
    // One of the slices in shared memory: the stages, then those that wait for their sums.
    __device__ __forceinline__ In* buffer(int index) const {
        return reinterpret_cast<In*>(shared + index * stage_bytes);
    }
    // What the copy engine brings of a slice: whole pieces of 16 bytes. What a neighbour has of them
    // comes along, if it is x's at all; else the threads read what is theirs.
    struct CopyRange {
        int begin, end;
        bool complete;

        __device__ __forceinline__ CopyRange(const RowView<const In>& from,
                                             const SoftmaxArguments& args)
            : begin(0), end(from.end), complete(true) {
            if constexpr (plan.partial_vectors()) {
                begin = max(from.begin, 0) / plan.copy_alignment() * plan.copy_alignment();
                end = (end + plan.copy_alignment() - 1) / plan.copy_alignment() *
                      plan.copy_alignment();
                if (begin < from.begin && from.base + begin < args.x) {
                    begin += plan.copy_alignment();
                    complete = false;
                }
                if (end > from.end && from.base + end > args.x_end) {
                    end -= plan.copy_alignment();
                    complete = false;
                }
            }
        }
    };

    // What is not there becomes nothing: a compiler that sees it undefined keeps what was there before.
    template <typename T>
    __device__ __forceinline__ static void load_vector(const RowView<T>& row, int index,
                                                       const In* slice, Fragment<plan>& fragment) {
        if (overlaps_row<plan>(row, index)) {
            fragment.load_vector(index * plan.vector_width, slice + vector_offset<plan>(index));
        } else {
#pragma unroll
            for (int e = 0; e < plan.vector_width; ++e)
                fragment.set_minus_infinity(index * plan.vector_width + e);
        }
    }

    // Seldom anything: rows mostly begin and end in other slices or between accesses.
    __device__ __forceinline__ void mask_slice(const In* row, Fragment<plan>& fragment) const {
        const auto whole_slice = view(row, misalignment_of(row), 0);
        if (whole_slice.begin % plan.copy_alignment() == 0 &&
            whole_slice.end % plan.copy_alignment() == 0)
            return;
        const int thread_offset = static_cast<int>(threadIdx.x) * plan.vector_width;
        const auto from = view(row, misalignment_of(row), thread_offset);
        const CopyRange copied(whole_slice, args);
        if (!copied.complete) {
#pragma unroll
            for (int i = 0; i < plan.vectors_per_thread(); ++i) {
                const int offset = vector_offset<plan>(i), at = offset + thread_offset;
                if (at >= copied.begin && at < copied.end) continue;
#pragma unroll
                for (int e = 0; e < plan.vector_width; ++e) {
                    if (offset + e >= from.begin && offset + e < from.end) {
                        fragment.set(i * plan.vector_width + e, from.base[offset + e]);
                    }
                }
            }
        }
        mask_outside_row<plan>(from, fragment);
    }

    __device__ __forceinline__ void store_pending(const RowView<const In>& from,
                                                  const Fragment<plan>& fragment,
                                                  In* pending) const {
        constexpr int kWords = plan.vector_width / (plan.packed() ? 2 : 1);
        using Words = AlignedVector<typename RegisterWord<plan.packed(), float>::type, kWords>;
        static_assert(sizeof(Words) == plan.vector_width * sizeof(In),
                      "what waits takes x's places");
        if constexpr (plan.operation == Operation::logsumexp) return;
#pragma unroll
        for (int i = 0; i < plan.vectors_per_thread(); ++i) {
            if (!overlaps_row<plan>(from, i)) continue;
            Words words;
#pragma unroll
            for (int w = 0; w < kWords; ++w) words.data[w] = fragment.words[i * kWords + w];
            *reinterpret_cast<Words*>(pending + vector_offset<plan>(i)) = words;
        }
    }
};
