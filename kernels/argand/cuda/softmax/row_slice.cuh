// A block's slice of a row in the ring kernel: which columns it covers, which bytes bulk copies
// bring to shared memory, and the loads and stores between shared memory and fragments.
#pragma once
#include "row.cuh"

template <RowPlan plan>
struct RowSlice {
    using In = Element<plan.input>;
    // Epilogue stages hold fragments: elements where these are as large as their values, else fp32.
    using Word = typename Fragment<plan>::Word;
    static constexpr int kValuesPerWord = Fragment<plan>::kValuesPerWord;
    static constexpr bool kPendsElements = sizeof(Word) == kValuesPerWord * sizeof(In);
    using Pending = typename Conditional<kPendsElements, In, Word>::Type;
    static constexpr int kWords = plan.vector_width / kValuesPerWord;
    using Words = AlignedVector<Word, kWords>;

    const SoftmaxArguments& args;
    char* shared;
    const int group, rank, stage_bytes;
    // The slice's first column, and the columns of the row from there on.
    const int first_column, columns_left;

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
    // Elements from the last aligned address to the row's first element.
    __device__ __forceinline__ static int misalignment_of(const In* row) {
        if constexpr (!plan.partial_vectors()) return 0;
        return static_cast<int>(reinterpret_cast<unsigned long long>(row) / sizeof(In)) &
               (plan.tile_alignment() - 1);
    }
    // The block's slice of a row, from its element `skipped` on.
    template <typename T>
    __device__ __forceinline__ RowView<T> view(T* row, int misalignment, int skipped) const {
        const int length = static_cast<int>(args.slice_columns);
        return {row + (first_column - misalignment + skipped),
                (rank == 0 ? misalignment : 0) - skipped,
                min(length, columns_left + misalignment) - skipped};
    }
    // A slice in shared memory: load stages first, then epilogue stages.
    __device__ __forceinline__ In* buffer(int index) const {
        return reinterpret_cast<In*>(shared + index * stage_bytes);
    }
    // Epilogue stage `index` after `load_stages` load stages.
    __device__ __forceinline__ Pending* pending_buffer(int load_stages, int index) const {
        if constexpr (kPendsElements) return buffer(load_stages + index);
        const int bytes = static_cast<int>(args.slice_columns * sizeof(Pending) + 127) / 128 * 128;
        return reinterpret_cast<Pending*>(shared + load_stages * stage_bytes + index * bytes);
    }
    // The elements of a slice that bulk copies bring: multiples of 16 bytes. These may include
    // elements of neighbouring rows or slices, but none outside the array of x; there the copy is
    // shorter and threads load the rest themselves.
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

    // Sets to -inf what is not loaded: the compiler would keep undefined registers alive.
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

    // Seldom does anything: most slices hold neither end of the row, or it lies between accesses.
    // All warps of a row wait for the one that has an end, so few instructions depend on it.
    __device__ __forceinline__ void mask_slice(const In* row, Fragment<plan>& fragment) const {
        const auto whole_slice = view(row, misalignment_of(row), 0);
        const int begin = whole_slice.begin, end = whole_slice.end;
        if (begin % plan.copy_alignment() == 0 && end % plan.copy_alignment() == 0) return;
        const int thread_offset = static_cast<int>(threadIdx.x) * plan.vector_width;
        const auto from = view(row, misalignment_of(row), thread_offset);
        const CopyRange copied(whole_slice, args);
        if (!copied.complete) load_uncopied(from, copied, fragment);
        if constexpr (plan.packed) {  // whose values take more operations to mask
            if (!copied.complete || is_within(begin - thread_offset) ||
                is_within(end % vector_offset<plan>(1) - thread_offset))
                mask_outside_row<plan>(from, fragment);
            return;
        }
        if (thread_offset < begin) {  // in a thread's first access (`may_begin_in`)
#pragma unroll
            for (int e = 0; e < plan.vector_width; ++e) {
                if (thread_offset + e < begin) fragment.set_minus_infinity(e);
            }
        }
        const int last = end / vector_offset<plan>(1);  // the access in which the row ends
        const int rest = end - last * vector_offset<plan>(1) - thread_offset;
        if (!is_within(rest)) return;
#pragma unroll
        for (int i = 0; i < plan.vectors_per_thread(); ++i) {
            if (i != last) continue;
#pragma unroll
            for (int e = 1; e < plan.vector_width; ++e) {
                if (e >= rest) fragment.set_minus_infinity(i * plan.vector_width + e);
            }
        }
    }

    // Whether an end of the row, so many values after the first of an access, is within the access.
    __device__ __forceinline__ static bool is_within(int values) {
        return values > 0 && values < plan.vector_width;
    }

    // Loads those of a thread's elements that no copy of 16 bytes may bring.
    __device__ __forceinline__ static void load_uncopied(const RowView<const In>& from,
                                                         const CopyRange& copied,
                                                         Fragment<plan>& fragment) {
#pragma unroll
        for (int i = 0; i < plan.vectors_per_thread(); ++i) {
            const int offset = vector_offset<plan>(i);
            const int at = offset + static_cast<int>(threadIdx.x) * plan.vector_width;
            if (at >= copied.begin && at < copied.end) continue;
#pragma unroll
            for (int e = 0; e < plan.vector_width; ++e) {
                if (offset + e >= from.begin && offset + e < from.end)
                    fragment.set(i * plan.vector_width + e, from.base[offset + e]);
            }
        }
    }

    // Stores a fragment to an epilogue stage, as values or as exponentials.
    __device__ __forceinline__ void store_pending(const RowView<const In>& from,
                                                  const Fragment<plan>& fragment,
                                                  Pending* pending) const {
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

    // Loads what `store_pending` stored of access `index`.
    template <typename T>
    __device__ __forceinline__ static void load_pending(const RowView<T>& row, int index,
                                                        const Pending* pending,
                                                        Fragment<plan>& fragment) {
        if constexpr (kPendsElements) {
            load_vector(row, index, pending, fragment);
        } else {
            Words words = {};  // the compiler would keep undefined registers alive
            if (overlaps_row<plan>(row, index))
                words = *reinterpret_cast<const Words*>(pending + vector_offset<plan>(index));
#pragma unroll
            for (int w = 0; w < kWords; ++w) fragment.words[index * kWords + w] = words.data[w];
        }
    }
};
