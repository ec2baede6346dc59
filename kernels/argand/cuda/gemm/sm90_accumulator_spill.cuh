// The accumulator spill of split precisions: fp32 accumulators that go to memory every
// `spill_interval` k-tiles and come back at the tile's end. The promoted mainloop calls it after
// each k-tile.
//
// Each promotion rounds the accumulator that it adds to, so the error would grow with the square
// root of k. A spill moves the upper 12 bits of each accumulator to memory and leaves the rest in
// its register; accumulators then stay small, and so do the rounding errors. Sums of numbers of 12
// bits are exact in memory, so L2 may add them (`red`), nobody waits for the result, and results
// repeat bit for bit.
//
// Groups of `spill_columns` columns spill in turn. The first and the last stretch of a group are
// spill_interval / 2 to 3 / 2 spill_interval k-tiles long, so no group spills just after the tile
// begins or just before it ends; a shorter k does not spill at all.
#pragma once
#include "sm90_accumulator_memory.cuh"

constexpr uint32 kUpperMask = 0xfffff000u;  // sign, exponent and 11 bits after the point

// Whether the accumulators of `num_k_tiles` k-tiles spill.
template <WgmmaPlan plan>
__device__ __forceinline__ bool accumulators_spill(int num_k_tiles) {
    return plan.terms > 1 && plan.k_warpgroups == 1 && plan.cluster == 1 &&
           num_k_tiles > plan.spill_interval * 3 / 2;
}

// Returns the upper bits of x and leaves the rest in x; an infinity leaves 0.
__device__ __forceinline__ float extract_upper(float& x) {
    const float upper = __uint_as_float(__float_as_uint(x) & kUpperMask);
    x = upper == x ? 0.0f : x - upper;
    return upper;
}

// Upper bits of one group of `spill_columns` columns: of two neighbours along n in x and y each.
template <WgmmaPlan plan>
struct UpperBits {
    static constexpr int kPairs = plan.spill_columns / 4,
                         kGroups = plan.block_n / plan.spill_columns;
    float2 x[kPairs], y[kPairs];

    // Extracts them from the accumulators of group `group`. Registers have no addresses, so each
    // group needs code of its own; a binary search selects it, because a walk past the code of all
    // groups took longer than the spill.
    template <int first = 0, int end = kGroups>
    __device__ __forceinline__ void extract(int group, float (&re)[plan.block_n / 2],
                                            float (&im)[plan.block_n / 2]) {
        constexpr int kMiddle = (first + end) / 2;
        if constexpr (end - first == 1) {
#pragma unroll
            for (int i = 0; i < kPairs; ++i) {
                const int at = 2 * (first * kPairs + i);
                x[i] = {extract_upper(re[at]), extract_upper(im[at])};
                y[i] = {extract_upper(re[at + 1]), extract_upper(im[at + 1])};
            }
        } else if (group < kMiddle) {
            extract<first, kMiddle>(group, re, im);
        } else {
            extract<kMiddle, end>(group, re, im);
        }
    }

    // Stores or adds them in the memory of the group.
    __device__ __forceinline__ void store(const WgmmaArguments& args,
                                          const AccumulatorMemory<plan>& memory, int group,
                                          bool reduce) const {
        if (memory.vectorized) {
#pragma unroll
            for (int i = 0; i < kPairs; ++i) {
                store_or_reduce(memory.vector_at(args, group * kPairs + i), x[i], y[i], reduce);
            }
            return;
        }
#pragma unroll
        for (int i = 0; i < kPairs; ++i) {
            const int j = group * kPairs / 2 + i / 2, h = i % 2;
            if (memory.inside(j, h, 0)) store_or_reduce(memory.at(args, j, h, 0), x[i], reduce);
            if (memory.inside(j, h, 1)) store_or_reduce(memory.at(args, j, h, 1), y[i], reduce);
        }
    }
};

// When the accumulators of a work item spill and where to, in three registers.
template <WgmmaPlan plan>
struct AccumulatorSpill {
    static constexpr int kGroups = UpperBits<plan>::kGroups;
    static_assert(plan.block_n % plan.spill_columns == 0, "every column spills");
    static_assert(plan.spill_interval >= kGroups, "at most one group spills after a k-tile");
    // The bits of `packed`: columns of the memory lowest, then its rows, its flags, and the number
    // of spills.
    static constexpr int kRowsBit = 8, kVectorizedBit = 10, kPartialBit = 11, kSpillsBit = 12;
    static_assert(plan.block_n < 1 << kRowsBit, "columns must fit the bits below the rows");
    float2* base;
    uint32 packed;  // 0: none spill

    __device__ __forceinline__ AccumulatorSpill(const WgmmaArguments& args, uint32 work_slot,
                                                int num_k_tiles) {
        packed = 0;
        if (!accumulators_spill<plan>(num_k_tiles)) return;
        const AccumulatorMemory<plan> memory = accumulator_memory<plan>(args, read_work(work_slot));
        base = memory.base;
        packed = max(0, min(memory.columns, plan.block_n)) | memory.rows << kRowsBit |
                 memory.vectorized << kVectorizedBit | memory.partial << kPartialBit |
                 max(kGroups, (num_k_tiles - 1 - plan.spill_interval) / plan.spill_group_interval())
                     << kSpillsBit;
    }

    // Call after each k-tile, with the number of k-tiles that are left.
    __device__ __forceinline__ void after_k_tile(const WgmmaArguments& args, int left,
                                                 float (&re)[plan.block_n / 2],
                                                 float (&im)[plan.block_n / 2]) const {
        const int from_end = left - plan.spill_interval / 2,
                  spills_left = from_end / plan.spill_group_interval();
        if (packed == 0 || from_end <= 0 || from_end % plan.spill_group_interval() != 0) return;
        const uint32 now = opaque(packed);
        const int num_spills = now >> kSpillsBit;
        if (spills_left > num_spills) return;
        const AccumulatorMemory<plan> memory{
            .base = base,
            .columns = int(now & ((1 << kRowsBit) - 1)),
            .rows = int(now >> kRowsBit & 3),
            .vectorized = (now >> kVectorizedBit & 1) != 0,
            .partial = (now >> kPartialBit & 1) != 0};
        // The first spill of each group stores, the others add.
        const bool reduce = spills_left <= num_spills - kGroups;
        UpperBits<plan> upper;
        upper.extract(spills_left % kGroups, re, im);
        upper.store(args, memory, spills_left % kGroups, reduce);
    }
};
