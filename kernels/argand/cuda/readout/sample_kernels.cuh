// Counts of a state. Running sums of integer weights have three levels: blocks of 256 cells, the
// cells of a block, the amplitudes of a cell, which a warp loads at once. The state is read once to
// sum cells; each shot then finds its block and cell by bisection and reads that cell.
#pragma once
#include "amplitudes.cuh"
#include "device/philox.cuh"

constexpr int kSampleThreads = 256;
constexpr int kBlockCells = 256;
constexpr int kScanThreads = 1024;

struct SampleArguments {
    const void* state;
    uint64* cell_ends;    // (blocks, kBlockCells), running sums within a block
    uint64* block_ends;   // (blocks,): sums of blocks, then their running sums
    double* block_norms;  // (blocks,): sums of |a|^2; the first becomes the sum of all
    void* found;          // (shots,) basis states, int32 or int64
    int64 amplitudes;
    int64 blocks;
    int64 shots;
    int64 seed;
    double scale;  // of |a|^2 to weights, a power of two
    int64 found_is_int32;
};

// v[i] summed over the lanes, for eight i at once: lanes 4 i to 4 i + 3 get the i-th.
__device__ __forceinline__ uint64 eight_warp_sums(uint64 (&v)[8]) {
    const int lane = threadIdx.x % kWarp;
#pragma unroll
    for (int half = 4; half > 0; half /= 2) {
        const bool upper = lane & (4 * half);
#pragma unroll
        for (int i = 0; i < half; ++i) {
            const uint64 sent = upper ? v[i] : v[i + half];
            v[i] = (upper ? v[i + half] : v[i]) + __shfl_xor_sync(kFullWarp, sent, 4 * half);
        }
    }
    v[0] += __shfl_xor_sync(kFullWarp, v[0], 2);
    return v[0] + __shfl_xor_sync(kFullWarp, v[0], 1);
}

template <typename Real, bool aligned>
__device__ __forceinline__ void sum_cells(const SampleArguments& args) {
    constexpr int kWarps = kSampleThreads / kWarp, kTogether = 8;
    __shared__ uint64 sums[kBlockCells];
    __shared__ uint64 warp_sums[kWarps];
    __shared__ double warp_norms[kWarps];
    const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    const int64 first_cell = int64(blockIdx.x) * kBlockCells;
    const int64 chunks = args.amplitudes / kChunkAmplitudes<Real>;
    double norm = 0;
    for (int cell = warp * kTogether; cell < kBlockCells; cell += kWarps * kTogether) {
        Chunk<Real> x[kTogether];
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
            const int64 chunk = (first_cell + cell + i) * kWarp + lane;
            x[i] = {};
            if (chunk < chunks) x[i] = load_chunk<Real, aligned>(args.state, chunk);
        }
        uint64 weights[kTogether];
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
            weights[i] = 0;
#pragma unroll
            for (auto a : x[i].amplitude) {
                const double p = probability_of(a);
                norm += p;
                weights[i] += weight_of(p, args.scale);
            }
        }
        const uint64 sum = eight_warp_sums(weights);
        if (lane % 4 == 0) sums[cell + lane / 4] = sum;
    }
    norm = warp_sum(norm);
    if (lane == 0) warp_norms[warp] = norm;
    __syncthreads();
    const uint64 end = block_running_sum<kSampleThreads>(sums[threadIdx.x], warp_sums);
    args.cell_ends[first_cell + threadIdx.x] = end;
    if (threadIdx.x == kSampleThreads - 1) args.block_ends[blockIdx.x] = end;
    if (threadIdx.x == 0) {
        double all = 0;
#pragma unroll
        for (double one : warp_norms) all += one;
        args.block_norms[blockIdx.x] = all;
    }
}

// Launched as one block; each thread takes an equal number of consecutive blocks.
__device__ __forceinline__ void sum_blocks(const SampleArguments& args) {
    __shared__ uint64 warp_sums[kScanThreads / kWarp];
    __shared__ double warp_norms[kScanThreads / kWarp];
    const int64 per_thread = (args.blocks + kScanThreads - 1) / kScanThreads;
    const int64 first = min(per_thread * threadIdx.x, args.blocks);
    const int64 last = min(first + per_thread, args.blocks);
    uint64 sum = 0;
    double norm = 0;
    for (int64 i = first; i < last; ++i) {
        sum += args.block_ends[i];
        norm += args.block_norms[i];
    }
    uint64 end = block_running_sum<kScanThreads>(sum, warp_sums) - sum;
    for (int64 i = first; i < last; ++i) {
        end += args.block_ends[i];
        args.block_ends[i] = end;
    }
    norm = block_running_sum<kScanThreads>(norm, warp_norms);
    // All have read their norms: the running sum waits for every thread.
    if (threadIdx.x == kScanThreads - 1) args.block_norms[0] = norm;
}

// The first of `count` running sums above `at`, which is below the last one; `at` becomes what is
// left of it.
__device__ __forceinline__ int64 find_end(const uint64* ends, int64 count, uint64& at) {
    int64 low = 0, high = count - 1;
    while (low < high) {
        const int64 middle = (low + high) / 2;
        if (ends[middle] > at)
            high = middle;
        else
            low = middle + 1;
    }
    if (low > 0) at -= ends[low - 1];
    return low;
}

template <typename Real, bool aligned>
__device__ __forceinline__ void find_shots(const SampleArguments& args) {
    constexpr int kTogether = 4, kAmplitudes = kChunkAmplitudes<Real>;
    const int lane = threadIdx.x % kWarp;
    const uint64 total = args.block_ends[args.blocks - 1];
    const int64 shot = int64(blockIdx.x) * kSampleThreads + threadIdx.x, first = shot - lane;
    uint64 at = 0;
    int64 cell = 0;
    if (shot < args.shots && total > 0) {
        at = __umul64hi(philox_number(args.seed, 0, shot), total);
        const int64 block = find_end(args.block_ends, args.blocks, at);
        cell =
            block * kBlockCells + find_end(args.cell_ends + block * kBlockCells, kBlockCells, at);
    }
    const int64 chunks = args.amplitudes / kAmplitudes;
    for (int turn = 0; turn < kWarp && first + turn < args.shots; turn += kTogether) {
        Chunk<Real> x[kTogether];
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
            const int64 chunk = __shfl_sync(kFullWarp, cell, turn + i) * kWarp + lane;
            x[i] = {};
            if (chunk < chunks) x[i] = load_chunk<Real, aligned>(args.state, chunk);
        }
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
            const int64 its_cell = __shfl_sync(kFullWarp, cell, turn + i);
            const uint64 its_at = __shfl_sync(kFullWarp, at, turn + i);
            uint64 weights[kAmplitudes], sum = 0;
#pragma unroll
            for (int j = 0; j < kAmplitudes; ++j) {
                weights[j] = weight_of(probability_of(x[i].amplitude[j]), args.scale);
                sum += weights[j];
            }
            const uint64 end = warp_running_sum(sum), start = end - sum;
            if (first + turn + i < args.shots && start <= its_at && its_at < end) {
                const int j = kAmplitudes == 2 && its_at - start >= weights[0];
                const int64 state = (its_cell * kWarp + lane) * kAmplitudes + j;
                if (args.found_is_int32)
                    static_cast<int*>(args.found)[first + turn + i] = int(state);
                else
                    static_cast<int64*>(args.found)[first + turn + i] = state;
            }
        }
    }
}
