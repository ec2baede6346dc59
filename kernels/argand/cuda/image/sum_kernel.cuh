// Adds the power of splits of the channels.
#pragma once
#include "device/types.cuh"

constexpr int kSumRows = 8;  // threads that share a direction, each with every eighth split
constexpr int kSumThreads = kSumRows * kWarp;

struct SumArguments {
    const float* parts;  // (splits, count)
    float* power;        // (count,)
    int64 count;
    int splits;
};

// A block adds 32 directions. The order of additions depends on the number of splits alone.
__device__ __forceinline__ void sum_splits(const SumArguments& args) {
    __shared__ float sums[kSumRows][kWarp];
    const int row = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    const int64 own = int64(blockIdx.x) * kWarp + lane;
    float sum = 0.0f;
    if (own < args.count) {
#pragma unroll 4
        for (int split = row; split < args.splits; split += kSumRows)
            sum += args.parts[split * args.count + own];
    }
    sums[row][lane] = sum;
    __syncthreads();
    if (row != 0 || own >= args.count) return;
#pragma unroll
    for (int other = 1; other < kSumRows; ++other) sum += sums[other][lane];
    args.power[own] = sum;
}
