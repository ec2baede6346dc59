// The end of both beam power kernels: sums of groups in shared memory become bins of the result.
#pragma once
#include "plan.cuh"

// Adds the sums of each bin and stores it, by threads 0 to Threads - 1. `sums` are [output][beam]
// [group of samples] of beams from `first_beam` on; `descale` scales the sum of a beam back.
template <int Outputs, int Beams, int RowSums, int GroupSamples, int Threads, typename Descale>
__device__ __forceinline__ void store_bins(const BeamPowerArguments& args, const float* sums,
                                           const TimeTile& tile, int result, int first_beam,
                                           int thread, const Descale& descale) {
    if (args.slices <= 1 && args.integrate == GroupSamples) {  // a sum is a bin: no division
        constexpr int kSums = Outputs * Beams * RowSums;
#pragma unroll 2
        for (int i = thread; i < kSums; i += Threads) {
            const int bin = i % RowSums, row = i / RowSums, beam = first_beam + row % Beams;
            if (bin >= tile.bins || beam >= args.beams) continue;
            const int64 line = (int64(result) * Outputs + row / Beams) * args.beams + beam;
            args.power[line * args.columns + tile.column + bin] = descale(sums[i], beam);
        }
        return;
    }
    const int groups = args.slices > 1 ? RowSums : args.integrate / GroupSamples;
    for (int i = thread; i < Outputs * Beams * tile.bins; i += Threads) {
        const int bin = i % tile.bins, row = i / tile.bins;  // row: output, beam
        const int beam = first_beam + row % Beams;
        if (beam >= args.beams) continue;
        const float* from = sums + row * RowSums + bin * groups;
        float sum = from[0];
        for (int g = 1; g < groups; ++g) sum += from[g];
        const int64 line = (int64(result) * Outputs + row / Beams) * args.beams + beam;
        args.power[line * args.columns + tile.column + bin] = descale(sum, beam);
    }
}
