// Marginal probabilities. A tile is the lowest qubits of a state; each thread keeps the sums of its
// places in a tile over all tiles with the same values of the higher chosen qubits. The block then
// adds the places that differ only in qubits that were not chosen.
#pragma once
#include "amplitudes.cuh"

constexpr int kMarginalThreads = 256;
constexpr int kMarginalChunks = 4;  // of a thread in a tile
constexpr int kMaxSegments = 34;
constexpr int kMaxChosen = 34;

struct MarginalArguments {
    const void* state;
    double* partials;  // (settings of high qubits, shares, settings of low ones); of one share the
                       // marginals themselves, by outcome
    int64 tiles;       // for each setting of the high qubits
    int64 amplitudes;  // of a tile: fewer than a block's places where the state is small
    int64 free_mask[kMaxSegments];
    int64 high_mask[kMaxSegments];
    int free_shift[kMaxSegments];
    int high_shift[kMaxSegments];
    int low_bit[kMaxChosen];  // of a place in a tile, of each bit of an outcome
    int free_segments;
    int high_segments;
    int low_count;
    int shares;
    int high_settings;
    int place_mask;         // bits of a place whose qubits are not chosen
    int order[kMaxChosen];  // bit of an outcome, of each bit of (setting of high qubits, of low)
};

__device__ __forceinline__ int64 ordered(int64 number, const int* order) {
    int64 outcome = 0;
    for (int i = 0; number >> i; ++i) outcome |= (number >> i & 1) << order[i];
    return outcome;
}

template <typename Real, bool aligned>
__device__ __forceinline__ void sum_marginals(const MarginalArguments& args) {
    constexpr int kAmplitudes = kChunkAmplitudes<Real>;
    constexpr int kTile = kMarginalThreads * kMarginalChunks * kAmplitudes;
    __shared__ double places[kTile];
    const int64 tile_chunks = kTile / kAmplitudes, held = args.amplitudes / kAmplitudes;
    for (int64 item = blockIdx.x; item < int64(args.high_settings) * args.shares;
         item += gridDim.x) {
        const int64 setting = item / args.shares, share = item % args.shares;
        const int64 fixed =
            deposited(setting, args.high_mask, args.high_shift, args.high_segments);
        double sums[kMarginalChunks][kAmplitudes] = {};
#pragma unroll 2
        for (int64 number = share; number < args.tiles; number += args.shares) {
            const int64 tile =
                fixed | deposited(number, args.free_mask, args.free_shift, args.free_segments);
            Chunk<Real> x[kMarginalChunks];
#pragma unroll
            for (int i = 0; i < kMarginalChunks; ++i) {
                const int64 chunk = threadIdx.x + i * kMarginalThreads;
                x[i] = {};
                if (chunk < held)
                    x[i] = load_chunk<Real, aligned>(args.state, tile * tile_chunks + chunk);
            }
#pragma unroll
            for (int i = 0; i < kMarginalChunks; ++i)
#pragma unroll
                for (int j = 0; j < kAmplitudes; ++j)
                    sums[i][j] += probability_of(x[i].amplitude[j]);
        }
#pragma unroll
        for (int i = 0; i < kMarginalChunks; ++i)
#pragma unroll
            for (int j = 0; j < kAmplitudes; ++j)
                places[(threadIdx.x + i * kMarginalThreads) * kAmplitudes + j] = sums[i][j];
        for (int bit = kTile / 2; bit > 0; bit /= 2) {
            if (!(args.place_mask & bit)) continue;
            __syncthreads();
            for (int place = threadIdx.x; place < kTile; place += kMarginalThreads)
                if (!(place & args.place_mask & (2 * kTile - bit)))
                    places[place] += places[place + bit];
        }
        __syncthreads();
        for (int low = threadIdx.x; low < 1 << args.low_count; low += kMarginalThreads) {
            int place = 0;
            for (int i = 0; i < args.low_count; ++i) place |= (low >> i & 1) << args.low_bit[i];
            const int64 at = (item << args.low_count) + low;
            args.partials[args.shares == 1 ? ordered(at, args.order) : at] = places[place];
        }
        __syncthreads();
    }
}

struct FinishArguments {
    const double* partials;
    double* out;
    int64 outcomes;
    int low_count;
    int shares;
    int lanes;              // that add the shares of an outcome: a power of two up to a warp
    int order[kMaxChosen];  // bit of an outcome, of each bit of (setting of high qubits, of low)
};

__device__ __forceinline__ void finish_marginals(const FinishArguments& args) {
    const int lane = threadIdx.x % args.lanes, together = kWarp / args.lanes;
    const int64 warps = int64(gridDim.x) * (kMarginalThreads / kWarp);
    const int64 warp = (int64(blockIdx.x) * kMarginalThreads + threadIdx.x) / kWarp;
    for (int64 first = warp * together; first < args.outcomes; first += warps * together) {
        const int64 outcome = first + threadIdx.x % kWarp / args.lanes;
        const bool taken = outcome < args.outcomes;
        const int64 low = outcome & ((int64(1) << args.low_count) - 1);
        const int64 item = (outcome >> args.low_count) * args.shares;
        double sum = 0;
#pragma unroll 8
        for (int share = lane; taken && share < args.shares; share += args.lanes)
            sum += args.partials[((item + share) << args.low_count) + low];
        for (int mask = args.lanes / 2; mask > 0; mask /= 2)
            sum += __shfl_xor_sync(kFullWarp, sum, mask);
        if (!taken || lane > 0) continue;
        args.out[ordered(outcome, args.order)] = sum;
    }
}
