// Static shared memory of the ring kernel: mbarriers, partial maxima and sums of the reduce warps,
// and the epilogue of each pending row. The slices themselves lie in dynamic shared memory
// (row_slice.cuh).
#pragma once
#include "exchange.cuh"

constexpr int kMaxLoadStages = 8;

template <RowPlan plan>
struct RingStorage {
    static constexpr int kReduceWarps = plan.row_threads / kWarp;
    alignas(8) unsigned long long full[kMaxLoadStages];
    unsigned long long empty[kMaxLoadStages];
    // Barriers of the rows that wait for their epilogue:
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

// Index into a ring of stages, and the phase parity of the mbarriers there.
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
