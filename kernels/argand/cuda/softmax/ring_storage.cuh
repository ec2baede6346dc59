// What a block of a ring has in shared memory beside its rows: barriers, and what warps find.
#pragma once
#include "exchange.cuh"

constexpr int kMostStages = 8;

template <SoftmaxPlan plan>
struct RingBoards {
    static constexpr int kWarps = plan.row_threads / kWarp;
    alignas(8) unsigned long long full[kMostStages];
    unsigned long long empty[kMostStages];
    // Of the rows that wait for their sums:
    unsigned long long told[kMostLag];
    unsigned long long heard[kMostLag];
    unsigned long long gone[kMostLag];
    alignas(16) char outcomes[kMostLag][(sizeof(Outcome<plan>) + 15) / 16 * 16];
    Sum<plan> sums[kMostLag][kWarps];
    float maxima[kMostLag][kWarps];
    float changes[kMostLag][kWarps];

    __device__ __forceinline__ Outcome<plan>& outcome(int index) {
        return *reinterpret_cast<Outcome<plan>*>(outcomes[index]);
    }
};

// A turn's place among `count`, and the parity of the barriers there.
struct Place {
    int index;
    uint32 parity;

    __device__ __forceinline__ void next(int count) {
        if (++index == count) {
            index = 0;
            parity ^= 1;
        }
    }
};
