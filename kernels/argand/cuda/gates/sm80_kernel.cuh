// Gates on 4 to 7 qubits by tensor-core products of a warp (sm_80 and newer).
//
// Eight warps share a tile of 2^11 amplitudes: each multiplies 16 rows of the matrix, which it holds in
// registers as terms, with 16 columns. The state is split when it is read from shared memory, which at
// so few rows costs less than to write the terms back.
#pragma once
#include "operands.cuh"

// Which bits of a column's number a lane (l % 4), the numbers it holds, and a step have.
template <Operand operand, bool Inside>
__device__ __forceinline__ uint32 mma_column(uint32 lane, uint32 held, uint32 step) {
    constexpr bool kPairs = operand != Operand::tf32;
    constexpr int kLaneInside[2] = {1, 2}, kLaneOutside[2] = {0, 1};
    constexpr int kHeldInside[2] = {0, 3}, kHeldOutside[2] = {2, 3};
    return spread(lane & 3, Inside ? kLaneInside : kLaneOutside) |
           spread(held, Inside ? kHeldInside : kHeldOutside) | step << (kPairs ? 4 : 3);
}

template <Operand operand, int Terms, Rounding first, Rounding second, int Width, bool Inside,
          int Stages, bool Apart>
struct MmaGate {
    static constexpr int kThreads = 256;
    static constexpr int kTileBytes = 16 * 1024;
    static constexpr int kOrder = 1 << Width;
    static constexpr int kRowTiles = kOrder / 16;
    static constexpr int kGroups = 8 / kRowTiles;  // of columns
    static constexpr int kSteps = kOrder / kMmaDepth<operand>;
    static constexpr int kHeld = kMmaDepth<operand> / 4;  // numbers of a line in a lane
    static constexpr int kPer = kHeld / 2;                // numbers in a register
    static constexpr bool kScaled = operand == Operand::fp16;
    // Small products have sums of their own; those of a single step are first in the same ones.
    static constexpr bool kApart = Apart && Terms == 2 && kSteps > 1;
    using Mover = TileMover<kTileBytes, kThreads, Stages>;

    uint32 matrix[kSteps][2][Terms][4];

    __device__ __forceinline__ void load(const GateArguments& args, uint32 lane, uint32 row_tile) {
        const auto place = [lane](int slot, int number, uint32 step) {
            return mma_column<operand, Inside>(lane, slot * kPer + number, step);
        };
        load_matrix<operand, Terms, first, second, Width, Inside>(args, lane, row_tile, place, matrix);
    }

    // The amplitudes of a lane's two columns in one step.
    __device__ __forceinline__ static void read_step(const GateArguments& args, uint32 stage, uint32 at,
                                                     int step, float2 (&x)[2][kHeld]) {
        uint32 step_mask = 0;
#pragma unroll
        for (int bit = 0; bit < log_of(kSteps); ++bit) {
            if (step >> bit & 1) step_mask ^= args.row_mask[(kPer == 2 ? 4 : 3) + bit];
        }
        const uint32 low = args.row_mask[Inside ? 0 : 2];
        const uint32 high = kHeld == 4 ? args.row_mask[3] : 0;
        if constexpr (Inside) {
#pragma unroll
            for (int column = 0; column < 2; ++column) {
#pragma unroll
                for (int slot = 0; slot < kHeld / 2; ++slot) {
                    const uint32 mask = step_mask ^ (column ? args.pair_mask : 0) ^ (slot ? high : 0);
                    const float4 rows = load_shared_16(stage + (at ^ mask));
                    x[column][2 * slot] = {rows.x, rows.y};
                    x[column][2 * slot + 1] = {rows.z, rows.w};
                }
            }
        } else {
#pragma unroll
            for (int held = 0; held < kHeld; ++held) {
                const uint32 mask = step_mask ^ (held & 1 ? low : 0) ^ (held & 2 ? high : 0);
                const float4 columns = load_shared_16(stage + (at ^ mask));
                x[0][held] = {columns.x, columns.y};
                x[1][held] = {columns.z, columns.w};
            }
        }
    }

    __device__ __forceinline__ void multiply(const GateArguments& args, uint32 stage, uint32 at,
                                             float scale, float (&re)[8], float (&im)[8]) const {
        // re is the difference of two sums: a product of mma.sync cannot be subtracted.
        float sums[kApart ? 2 : 1][3][2][4] = {};
        // The first columns of the matrix last, as in sm90_kernel.cuh.
#pragma unroll
        for (int step = kSteps - 1; step >= 0; --step) {
            float2 x[2][kHeld];
            read_step(args, stage, at, step, x);
            uint32 columns[2][2][Terms][2];  // [real, imaginary][column][term][register]
#pragma unroll
            for (int column = 0; column < 2; ++column) {
#pragma unroll
                for (int slot = 0; slot < 2; ++slot) {
                    const float2 a = x[column][slot * kPer], b = x[column][slot * kPer + kPer - 1];
                    uint32 parts[2][Terms];
                    split_operand<operand, Terms, first, second>(a.x * scale, b.x * scale, parts[0]);
                    split_operand<operand, Terms, first, second>(a.y * scale, b.y * scale, parts[1]);
#pragma unroll
                    for (int term = 0; term < Terms; ++term) {
                        columns[0][column][term][slot] = parts[0][term];
                        columns[1][column][term][slot] = parts[1][term];
                    }
                }
            }
            // The smallest products first; the last pair of terms is the first of each.
#pragma unroll
            for (int product = 0; product < (Terms == 2 ? 3 : 1); ++product) {
                const int own = Terms == 2 && product == 1 ? 1 : 0;
                const int other = Terms == 2 && product == 0 ? 1 : 0;
                const int size = kApart && product < 2 ? 1 : 0;
#pragma unroll
                for (int which = 0; which < 4; ++which) {
                    // re re, im im, re im, im re
                    const int left = which & 1, right = which == 1 || which == 2;
                    const int sum = which < 2 ? which : 2;
#pragma unroll
                    for (int column = 0; column < 2; ++column) {
                        const uint32(&rows)[4] = matrix[step][left][own];
                        const uint32 upper[2] = {rows[0], rows[2]}, lower[2] = {rows[1], rows[3]};
                        mma<operand>(sums[size][sum][column], upper, lower, columns[right][column][other]);
                    }
                }
            }
        }
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const int column = i / 4, part = i % 4;
            re[i] = sums[0][0][column][part] - sums[0][1][column][part];
            im[i] = sums[0][2][column][part];
            if constexpr (kApart) {
                re[i] += sums[1][0][column][part] - sums[1][1][column][part];
                im[i] += sums[1][2][column][part];
            }
        }
    }

    __device__ __forceinline__ void run(const GateArguments& args) {
        extern __shared__ __align__(1024) unsigned char memory[];
        __shared__ __align__(16) uint32 largest[kThreads / kWarp];
        const uint32 ring = shared_address(memory);
        const uint32 lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
        const uint32 row_tile = warp % kRowTiles, group = warp / kRowTiles;
        const Mover mover(args);
        mover.load_first(ring);
        load(args, lane, row_tile);
        uint32 read = combine_masks<5>(args.read_mask, lane) ^
                      combine_masks<log_of(kGroups)>(args.read_mask + 5, group);
        uint32 place = combine_masks<Mover::kThreadBits>(args.result_mask, threadIdx.x);

        uint32 stage = ring;
        for (uint32 tile = blockIdx.x; tile < args.tiles; tile += gridDim.x) {
            wait_copies<Stages - 1>();
            opaque(read);
            opaque(place);
            if constexpr (kScaled) {
                float4 own[Mover::kChunks];
#pragma unroll
                for (int i = 0; i < Mover::kChunks; ++i) own[i] = load_shared_16(mover.chunk(stage, i));
                const uint32 found = largest_of_warp(own);
                if (lane == 0) largest[warp] = found;
            }
            __syncthreads();
            const int exponent = kScaled ? scale_exponent(largest_of(largest)) : 0;
            float re[8], im[8];
            multiply(args, stage, read, power_of_two(exponent), re, im);
            __syncthreads();
            // Through the tile and out in order: written to the state from here, at 4 and 5 qubits, it
            // took 3% longer.
            const float2 unscale = half_powers(kScaled ? -exponent - exponent_of_matrix(args) : 0);
            each_result<Inside, 2>(re, im, unscale, [&](int number, float4 chunk) {
                const uint32 from_first = combine_masks<2>(args.register_mask, number);
                store_shared_16(stage + (place ^ from_first), chunk);
            });
            __syncthreads();
            mover.exchange(tile, stage);
            stage = next_stage<kTileBytes, Stages>(stage, ring);
        }
    }
};
