// Rows in memory to the values that a thread holds: at once, or by way of shared memory.
#pragma once
#include "device/copy.cuh"
#include "fragment.cuh"

// A thread's places in a piece of a row, from its first vector on: elements [begin, end) from there
// belong to the row. The places are constants apart, so that no registers hold their addresses.
template <typename T>
struct Window {
    T* base;
    int begin, end;
};

template <SoftmaxPlan plan>
constexpr int place(int access) {
    return access * plan.team() * plan.vector;
}

// Whether the whole vector of an access is the row's.
template <SoftmaxPlan plan, typename T>
__device__ __forceinline__ bool whole(const Window<T>& row, int access) {
    if (!plan.at_edge(access)) return true;
    const int offset = place<plan>(access);
    if constexpr (!plan.cut()) return offset < row.end;
    return offset >= row.begin && offset + plan.vector <= row.end;
}

// Whether some of it is.
template <SoftmaxPlan plan, typename T>
__device__ __forceinline__ bool touched(const Window<T>& row, int access) {
    if (!plan.at_edge(access)) return true;
    const int offset = place<plan>(access);
    return offset < row.end && (!plan.cut() || offset + plan.vector > row.begin);
}

// Whether it may be read at once: it is the row's, or at least x's. What else is in it belongs to a
// neighbour, and `trim` drops it.
template <SoftmaxPlan plan>
__device__ __forceinline__ bool readable(const Window<const Element<plan.input>>& row, int access,
                                         const SoftmaxArguments& args) {
    if (whole<plan>(row, access)) return true;
    if constexpr (!plan.cut()) return false;
    const Element<plan.input>* from = row.base + place<plan>(access);
    return touched<plan>(row, access) && from >= args.x && from + plan.vector <= args.x_end;
}

// What is not the row's becomes nothing.
template <SoftmaxPlan plan>
__device__ __forceinline__ void trim(const Window<const Element<plan.input>>& row,
                                     Part<plan>& part) {
    if constexpr (plan.cut()) {
#pragma unroll
        for (int i = 0; i < plan.accesses(); ++i) {
            const int offset = place<plan>(i);
            if (!touched<plan>(row, i) || whole<plan>(row, i)) continue;
#pragma unroll
            for (int e = 0; e < plan.vector; ++e) {
                if (offset + e < row.begin || offset + e >= row.end) {
                    part.put_nothing(i * plan.vector + e);
                }
            }
        }
    }
}

template <SoftmaxPlan plan>
__device__ __forceinline__ void read(const Window<const Element<plan.input>>& row, Part<plan>& part,
                                     const SoftmaxArguments& args) {
#pragma unroll
    for (int i = 0; i < plan.accesses(); ++i) {
        const int offset = place<plan>(i), first = i * plan.vector;
        if (readable<plan>(row, i, args)) {
            part.take(first, row.base + offset);
        } else {
#pragma unroll
            for (int e = 0; e < plan.vector; ++e) {
                const int at = offset + e;
                if (plan.cut() && at >= row.begin && at < row.end) {
                    part.put(first + e, row.base[at]);
                } else {
                    part.put_nothing(first + e);
                }
            }
        }
    }
    trim<plan>(row, part);
}

// The places in shared memory into which a block's threads copy the values that they will read
// themselves: nobody waits for another's copies.
template <SoftmaxPlan plan>
__device__ __forceinline__ Element<plan.input>* landing(char* shared, int access) {
    return reinterpret_cast<Element<plan.input>*>(shared) +
           (access * plan.block_threads + static_cast<int>(threadIdx.x)) * plan.vector;
}

// Starts copying a row; `arrived` takes it.
template <SoftmaxPlan plan>
__device__ __forceinline__ void stage(const Window<const Element<plan.input>>& row, char* shared,
                                      const SoftmaxArguments& args) {
    constexpr int kBytes = sizeof(Element<plan.input>) * plan.vector;
#pragma unroll
    for (int i = 0; i < plan.accesses(); ++i) {
        const int offset = place<plan>(i);
        Element<plan.input>* to = landing<plan>(shared, i);
        if (readable<plan>(row, i, args)) {
            copy_async<kBytes>(to, row.base + offset, kBytes);
        } else if constexpr (plan.cut()) {
#pragma unroll
            for (int e = 0; e < plan.vector; ++e) {
                const int at = offset + e;
                if (at >= row.begin && at < row.end) to[e] = row.base[at];
            }
        }
    }
    commit_copies();
}

template <SoftmaxPlan plan>
__device__ __forceinline__ void arrived(const Window<const Element<plan.input>>& row, char* shared,
                                        Part<plan>& part) {
    wait_copies<0>();
#pragma unroll
    for (int i = 0; i < plan.accesses(); ++i) {
        const int first = i * plan.vector;
        if (touched<plan>(row, i)) {
            part.take(first, landing<plan>(shared, i));
        } else {
#pragma unroll
            for (int e = 0; e < plan.vector; ++e) part.put_nothing(first + e);
        }
    }
    trim<plan>(row, part);
}
