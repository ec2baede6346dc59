// Outcomes of few shots and how often each was drawn, by one block: a bitonic sort in shared
// memory, then a running sum of the last shots of each outcome.
#pragma once
#include "amplitudes.cuh"

constexpr int kCountThreads = 1024;

struct CountArguments {
    const int* shots;  // (count,), in any order, at least 0
    int64* outcomes;   // (count,), of which the first `*found` are written, ascending
    int64* counts;
    int64* found;
    int count;
    int capacity;  // a power of two, at least `count`: numbers in shared memory
};

__device__ __forceinline__ void sort_ascending(uint32* values, int capacity) {
    for (int size = 2; size <= capacity; size *= 2) {
        for (int step = size / 2; step > 0; step /= 2) {
            __syncthreads();
            for (int pair = threadIdx.x; pair < capacity / 2; pair += kCountThreads) {
                const int first = 2 * pair - (pair & (step - 1)), second = first + step;
                const uint32 a = values[first], b = values[second];
                if ((a > b) == !(first & size)) {
                    values[first] = b;
                    values[second] = a;
                }
            }
        }
    }
    __syncthreads();
}

__device__ __forceinline__ void count_shots(const CountArguments& args) {
    extern __shared__ uint32 values[];
    __shared__ int warp_sums[kCountThreads / kWarp];
    for (int i = threadIdx.x; i < args.capacity; i += kCountThreads)
        values[i] = i < args.count ? static_cast<uint32>(args.shots[i]) : ~0u;
    sort_ascending(values, args.capacity);
    int before = 0;  // outcomes
    for (int first = 0; first < args.count; first += kCountThreads) {
        const int i = first + threadIdx.x;
        const bool last = i < args.count && (i + 1 == args.count || values[i] != values[i + 1]);
        const int end = before + block_running_sum<kCountThreads>(int(last), warp_sums);
        if (last) {
            int low = 0, high = i;  // the first shot of this outcome
            while (low < high) {
                const int middle = (low + high) / 2;
                if (values[middle] < values[i])
                    low = middle + 1;
                else
                    high = middle;
            }
            args.outcomes[end - 1] = values[i];
            args.counts[end - 1] = i + 1 - low;
        }
        before += __syncthreads_count(last);
    }
    if (threadIdx.x == 0) *args.found = before;
}
