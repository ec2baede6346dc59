// Scales of the mma.sync family: powers of two for the rows of A and the columns of B, from the
// absmax that a launch before has found (absmax_kernel.cuh), or that the block finds in its stages.
#pragma once
#include "device/cp_async.cuh"
#include "device/scaling.cuh"
#include "sm80_operands.cuh"
#include "sm80_scheduler.cuh"

// Raises `absmax` to the absmax of the rows of a block, over stages of `stage` numbers that hold
// `slice_k`; the tiles of this operand begin at `first`. Each thread reads one row, of the
// `rows_left` inside the matrix.
template <MmaPlan plan, int Rows, bool KMajor>
__device__ __forceinline__ void find_block_absmax(uint32* absmax, const float2* first, int stage,
                                                  int slice_k, int64 rows_left) {
    constexpr int kPitch = (KMajor ? plan.block_k : Rows) + kRowPadding;
    // Neighbouring lanes that read along k in one row: as many as keep bank conflicts away.
    constexpr int kLanesK = KMajor ? 4 : 1;
    constexpr int kLaneRows = plan.threads() / kLanesK;
    constexpr int kRows = Rows < kLaneRows ? Rows : kLaneRows, kStepK = plan.threads() / kRows;
    static_assert(plan.threads() % kRows == 0 && Rows % kRows == 0,
                  "every row needs equally many threads");
    const int lane_k = threadIdx.x % kLanesK, lane_row = threadIdx.x / kLanesK;
    const int k0 = lane_row / kRows * kLanesK + lane_k;
#pragma unroll
    for (int i = 0; i < Rows; i += kRows) {
        const int row = i + lane_row % kRows;
        if (row >= rows_left) break;
        auto largest = [&](int k_tile, int k, auto bits_of) {
            const int at = KMajor ? row * kPitch + k + k0 : (k + k0) * kPitch + row;
            const int k_needed = needed_k<plan>(slice_k - k_tile * plan.block_k);
            const uint32 bits = bits_of(first[k_tile * stage + at]);
            return plan.warps_k == 1 || k + k0 < k_needed ? bits : 0;
        };
        uint32 row_absmax = 0;
#pragma unroll 1
        for (int k_tile = 0; k_tile * plan.block_k < slice_k; ++k_tile) {
#pragma unroll
            for (int k = 0; k < plan.block_k; k += kStepK)
                row_absmax = max(row_absmax, largest(k_tile, k, component_abs_bits));
        }
        if (row_absmax >= kInfinityBits) {  // numbers that are not finite have no part in a scale
            row_absmax = 0;
#pragma unroll 1
            for (int k = 0; k < slice_k; k += kStepK) {
                const int k_tile = k / plan.block_k;
                row_absmax = max(row_absmax, largest(k_tile, k - k_tile * plan.block_k,
                                                     component_absmax_bits));
            }
        }
        atomicMax(absmax + row, row_absmax);
    }
}

// The scales of a lane's fragments, and what descales their products.
template <MmaPlan plan>
struct Scales {
    const uint32 *a_absmax, *b_absmax;  // of the tile's rows of A and columns of B
    int a_exponent[plan.warp_m() / 8] = {};
    float a_scale[plan.warp_m() / 8] = {}, b_scale[plan.warp_n() / 8] = {};

    __device__ __forceinline__ Scales(const GemmArguments& args, const Tile<plan>& tile) {
        locate(args, tile, tile.batch);
    }

    // Finds where a launch before has left the absmax of the tile.
    __device__ __forceinline__ void locate(const GemmArguments& args, const Tile<plan>& tile,
                                           Stride<plan> batch) {
        a_absmax = args.a_absmax + batch * args.a_absmax_stride_batch + tile.m0;
        b_absmax = args.b_absmax + batch * args.b_absmax_stride_batch + tile.n0;
    }

    // Finds the absmax of the block's slice of k, all of which is in `stages` or on its way there.
    __device__ __forceinline__ void find_absmax(const Tile<plan>& tile, const Sizes<plan>& sizes,
                                                const KTiles<plan>& k_tiles,
                                                const float2* stages) {
        using Size = Stride<plan>;
        __shared__ uint32 absmax[plan.block_m + plan.block_n];
        for (int i = threadIdx.x; i < plan.block_m + plan.block_n; i += plan.threads())
            absmax[i] = 0;
        cp_async_wait<0>();
        __syncthreads();
        const int slice_k = static_cast<int>(
            min(Size(k_tiles.count) * plan.block_k, sizes.k - k_tiles.first_k()));
        find_block_absmax<plan, plan.block_m, plan.a_k_major>(
            absmax, stages, plan.stage_elements(), slice_k, sizes.m - tile.m0);
        find_block_absmax<plan, plan.block_n, plan.b_k_major>(
            absmax + plan.block_m, stages + plan.b_place(), plan.stage_elements(), slice_k,
            sizes.n - tile.n0);
        __syncthreads();
        a_absmax = absmax;
        b_absmax = absmax + plan.block_m;
    }

    // Reads the scales of a lane's rows and columns, the first of which are these of the tile.
    __device__ __forceinline__ void read(const Tile<plan>& tile, const Sizes<plan>& sizes,
                                         int a_row, int b_column) {
#pragma unroll
        for (int i = 0; i < plan.warp_m() / 8; ++i) {
            const int row = a_row + 8 * i;
            const bool inside = tile.m0 + row < sizes.m;
            a_exponent[i] = inside ? scale_exponent<plan.operand>(a_absmax[row]) : 0;
            a_scale[i] = power_of_two(a_exponent[i]);
        }
#pragma unroll
        for (int j = 0; j < plan.warp_n() / 8; ++j) {
            const int column = b_column + 8 * j;
            const bool inside = tile.n0 + column < sizes.n;
            b_scale[j] = power_of_two(inside ? scale_exponent<plan.operand>(b_absmax[column]) : 0);
        }
    }
};
