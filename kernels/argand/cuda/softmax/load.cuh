// Loads of a row: global memory to a thread's fragment, at once or through shared memory by
// cp.async. Rows may begin and end within an access; what lies outside the row becomes -inf.
// kernel.cuh and row_slice.cuh load through these functions.
#pragma once
#include "device/cp_async.cuh"
#include "fragment.cuh"

// A thread's view of a tile of a row. `base` is the thread's first vector, and of what follows
// elements [begin, end) belong to the row. Offsets from there to its other vectors are compile-time
// constants, so no registers hold their addresses.
template <typename T>
struct RowView {
    T* base;
    int begin, end;
};

template <RowPlan plan>
constexpr int vector_offset(int index) {
    return index * plan.threads_per_row() * plan.vector_width;
}

// Whether the tests of an access leave out that the row may begin in it: those of all accesses but
// a thread's first one do, in rings that instructions bound. Packed values and rows of whole
// accesses gain nothing by fewer tests (docs/experiments/2026-11-30-softmax-of-long-rows.md).
template <RowPlan plan>
constexpr bool begins_before(int index) {
    return !plan.partial_vectors() ||
           (plan.ring && plan.unaligned_rows && !plan.packed && !plan.may_begin_in(index));
}

// Whether all of a vector belongs to the row.
template <RowPlan plan, typename T>
__device__ __forceinline__ bool inside_row(const RowView<T>& row, int index) {
    if (!plan.needs_predicate(index)) return true;
    const int offset = vector_offset<plan>(index);
    if constexpr (!plan.partial_vectors()) return offset < row.end;
    return (begins_before<plan>(index) || offset >= row.begin) &&
           offset + plan.vector_width <= row.end;
}

// Whether any of a vector belongs to the row.
template <RowPlan plan, typename T>
__device__ __forceinline__ bool overlaps_row(const RowView<T>& row, int index) {
    if (!plan.needs_predicate(index)) return true;
    const int offset = vector_offset<plan>(index);
    return offset < row.end &&
           (begins_before<plan>(index) || offset + plan.vector_width > row.begin);
}

// Whether one access may load a vector: all of it lies in the array of x. What belongs to a
// neighbouring row is dropped by `mask_outside_row`.
template <RowPlan plan>
__device__ __forceinline__ bool can_load_vector(const RowView<const Element<plan.input>>& row,
                                                int index, const SoftmaxArguments& args) {
    if (inside_row<plan>(row, index)) return true;
    if constexpr (!plan.partial_vectors()) return false;
    const Element<plan.input>* from = row.base + vector_offset<plan>(index);
    return overlaps_row<plan>(row, index) && from >= args.x &&
           from + plan.vector_width <= args.x_end;
}

// Sets to -inf what does not belong to the row.
template <RowPlan plan>
__device__ __forceinline__ void mask_outside_row(const RowView<const Element<plan.input>>& row,
                                                 Fragment<plan>& fragment) {
    if constexpr (plan.partial_vectors()) {
#pragma unroll
        for (int i = 0; i < plan.vectors_per_thread(); ++i) {
            const int offset = vector_offset<plan>(i);
            if (!overlaps_row<plan>(row, i) || inside_row<plan>(row, i)) continue;
#pragma unroll
            for (int e = 0; e < plan.vector_width; ++e) {
                if (offset + e < row.begin || offset + e >= row.end) {
                    fragment.set_minus_infinity(i * plan.vector_width + e);
                }
            }
        }
    }
}

// The elements of a vector that no access may load whole, and -inf beside them.
template <RowPlan plan>
__device__ __forceinline__ void load_elements(const RowView<const Element<plan.input>>& row,
                                              int index, Fragment<plan>& fragment) {
#pragma unroll
    for (int e = 0; e < plan.vector_width; ++e) {
        const int at = vector_offset<plan>(index) + e;
        if (plan.partial_vectors() && at >= row.begin && at < row.end) {
            fragment.set(index * plan.vector_width + e, row.base[at]);
        } else {
            fragment.set_minus_infinity(index * plan.vector_width + e);
        }
    }
}

// Whether elements [first, last] of a vector belong to the row. Only what can lie at an end of the
// row takes instructions. The functions above test both ends: where elements are values at once,
// ptxas requests accesses out of order with fewer tests, which took up to a tenth longer on an
// H200.
template <RowPlan plan, typename T>
__device__ __forceinline__ bool in_row(const RowView<T>& row, int index, int first, int last) {
    const int offset = vector_offset<plan>(index);
    return (!plan.may_begin_in(index) || offset + first >= row.begin) &&
           (!plan.may_end_in(index) || offset + last < row.end);
}

// Whether one access may load a vector, by the tests of `in_row`.
template <RowPlan plan>
__device__ __forceinline__ bool can_request_vector(const RowView<const Element<plan.input>>& row,
                                                   int index, const SoftmaxArguments& args) {
    if (!in_row<plan>(row, index, plan.vector_width - 1, 0)) return false;
    const Element<plan.input>* from = row.base + vector_offset<plan>(index);
    return !plan.partial_vectors() ||
           ((!plan.may_begin_in(index) || from >= args.x) &&
            (!plan.may_end_in(index) || from + plan.vector_width <= args.x_end));
}

// Loads elements that become values of another size. All are requested before the first becomes
// one; of elements that are larger `kVectorsInFlight` vectors at a time, parted by a branch,
// because ptxas would otherwise have more vectors in flight than there are registers.
template <RowPlan plan>
__device__ __forceinline__ void load_before_values(const RowView<const Element<plan.input>>& row,
                                                   Fragment<plan>& fragment,
                                                   const SoftmaxArguments& args) {
    using Vector = AlignedVector<Element<plan.input>, plan.vector_width>;
    constexpr int kVectorsInFlight = plan.is_16bit(plan.input) ? plan.vectors_per_thread() : 8;
#pragma unroll
    for (int group = 0; group < plan.vectors_per_thread(); group += kVectorsInFlight) {
        const int count = plan.vectors_per_thread() - group < kVectorsInFlight
                              ? plan.vectors_per_thread() - group
                              : kVectorsInFlight;
        if ((group > 0 || plan.may_end_in(0)) && vector_offset<plan>(group) >= row.end) {
#pragma unroll
            for (int v = group * plan.vector_width; v < (group + count) * plan.vector_width; ++v)
                fragment.set_minus_infinity(v);
            continue;
        }
        Vector vectors[kVectorsInFlight] = {};
#pragma unroll
        for (int i = 0; i < count; ++i) {
            if (can_request_vector<plan>(row, group + i, args)) {
                vectors[i] = *reinterpret_cast<const Vector*>(row.base +
                                                              vector_offset<plan>(group + i));
            }
        }
#pragma unroll
        for (int i = 0; i < count; ++i) {
            const auto* from = row.base + vector_offset<plan>(group + i);
            if (plan.partial_vectors() && !can_request_vector<plan>(row, group + i, args)) {
#pragma unroll
                for (int e = 0; e < plan.vector_width; ++e)
                    if (in_row<plan>(row, group + i, e, e)) vectors[i].data[e] = from[e];
            }
#pragma unroll
            for (int e = 0; e < plan.vector_width; ++e)
                fragment.set((group + i) * plan.vector_width + e, vectors[i].data[e]);
        }
    }
#pragma unroll
    for (int i = 0; i < plan.vectors_per_thread(); ++i) {
        const int last = plan.partial_vectors() ? plan.vector_width - 1 : 0;
        if (in_row<plan>(row, i, 0, last)) continue;
#pragma unroll
        for (int e = 0; e < plan.vector_width; ++e) {
            if (!plan.partial_vectors() || !in_row<plan>(row, i, e, e))
                fragment.set_minus_infinity(i * plan.vector_width + e);
        }
    }
}

// Loads a thread's part of a row into its fragment; what lies outside the row becomes -inf.
template <RowPlan plan>
__device__ __forceinline__ void load_row(const RowView<const Element<plan.input>>& row,
                                         Fragment<plan>& fragment, const SoftmaxArguments& args) {
    if constexpr (plan.requests_before_values()) {
        load_before_values<plan>(row, fragment, args);
    } else {
        if constexpr (!plan.resident) {
            // Most tiles of a streamed row lie inside it, and need no test of each access.
            constexpr int kLast = vector_offset<plan>(plan.vectors_per_thread() - 1);
            if (row.begin <= 0 && row.end >= kLast + plan.vector_width) {
#pragma unroll
                for (int i = 0; i < plan.vectors_per_thread(); ++i)
                    fragment.load_vector(i * plan.vector_width, row.base + vector_offset<plan>(i));
                return;
            }
        }
#pragma unroll
        for (int i = 0; i < plan.vectors_per_thread(); ++i) {
            if (can_load_vector<plan>(row, i, args)) {
                fragment.load_vector(i * plan.vector_width, row.base + vector_offset<plan>(i));
            } else {
                load_elements<plan>(row, i, fragment);
            }
        }
        mask_outside_row<plan>(row, fragment);
    }
}

// Where a thread copies a vector in shared memory. Threads read what they copied themselves, so
// that no barrier is needed.
template <RowPlan plan>
__device__ __forceinline__ Element<plan.input>* staging_slot(char* shared, int index) {
    return reinterpret_cast<Element<plan.input>*>(shared) +
           (index * plan.block_threads + static_cast<int>(threadIdx.x)) * plan.vector_width;
}

// Issues the asynchronous copies of a row; `load_staged_row` waits for them.
template <RowPlan plan>
__device__ __forceinline__ void stage_row(const RowView<const Element<plan.input>>& row,
                                          char* shared, const SoftmaxArguments& args) {
    constexpr int kBytes = sizeof(Element<plan.input>) * plan.vector_width;
#pragma unroll
    for (int i = 0; i < plan.vectors_per_thread(); ++i) {
        const int offset = vector_offset<plan>(i);
        Element<plan.input>* to = staging_slot<plan>(shared, i);
        if (can_load_vector<plan>(row, i, args)) {
            cp_async<kBytes>(to, row.base + offset, kBytes);
        } else if constexpr (plan.partial_vectors()) {
#pragma unroll
            for (int e = 0; e < plan.vector_width; ++e) {
                const int at = offset + e;
                if (at >= row.begin && at < row.end) to[e] = row.base[at];
            }
        }
    }
    cp_async_commit();
}

// Waits for the copies of `stage_row` and loads the fragment from them.
template <RowPlan plan>
__device__ __forceinline__ void load_staged_row(const RowView<const Element<plan.input>>& row,
                                                char* shared, Fragment<plan>& fragment) {
    cp_async_wait<0>();
#pragma unroll
    for (int i = 0; i < plan.vectors_per_thread(); ++i) {
        const int first = i * plan.vector_width;
        if (overlaps_row<plan>(row, i)) {
            fragment.load_vector(first, staging_slot<plan>(shared, i));
        } else {
#pragma unroll
            for (int e = 0; e < plan.vector_width; ++e) fragment.set_minus_infinity(first + e);
        }
    }
    mask_outside_row<plan>(row, fragment);
}
