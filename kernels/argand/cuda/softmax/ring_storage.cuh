// What a block of a ring has in shared memory beside its rows: barriers, and what warps find.
#pragma once
#include "exchange.cuh"

constexpr int kMaxLoadStages = 8;

template <SoftmaxPlan plan>
struct RingStorage {
    static constexpr int kReduceWarps = plan.row_threads / kWarp;
    alignas(8) unsigned long long full[kMaxLoadStages];
    unsigned long long empty[kMaxLoadStages];
    // Of the rows that wait for their sums:
    unsigned long long partials_full[kMaxEpilogueStages];
    unsigned long long statistics_full[kMaxEpilogueStages];
    unsigned long long slot_empty[kMaxEpilogueStages];
    alignas(16) char epilogues[kMaxEpilogueStages][(sizeof(Epilogue<plan>) + 15) / 16 * 16];
    AccumulatorType<plan> warp_sums[kMaxEpilogueStages][kReduceWarps];
    float warp_maxima[kMaxEpilogueStages][kReduceWarps];
    float rescales[kMaxEpilogueStages][kReduceWarps];

    __device__ __forceinline__ Epilogue<plan>& epilogue(int index) {
        return *reinterpret_cast<Epilogue<plan>*>(epilogues[index]);
    }
};

// A turn's place among `count`, and the parity of the barriers there.
struct PipelineState {
    int index;
    uint32 phase;

    __device__ __forceinline__ void advance(int count) {
        if (++index == count) {
            index = 0;
            phase ^= 1;
        }
    }
};
