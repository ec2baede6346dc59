// Sums that wait in memory: those of pieces of tiles, and totals of a long k.
//
// A total that is added to again and again is rounded each time, so its error grows with the root
// of how often. Of split precisions totals of some columns at a time therefore move to memory, each
// every plan.spill_interval stages, and begin anew, and at the tile's end they come back. What
// moves are their upper bits, what these leave stays in the registers: so short numbers are added
// in memory without an error, and the second-level cache does it (`red`), for nobody waits. Each
// element belongs to one thread: results repeat bit for bit. Where the tile is whole, they wait
// where its results will be, but in the order of the warps' accesses, 512 bytes each: as the
// results lie there, they would be of 64 bytes a row.
//
// The first and the last stretch between moves have plan.spill_interval / 2 to 3 / 2
// plan.spill_interval stages: none moves just after the tile has begun, or just before it ends.
#pragma once
#include "sm90_accumulator_memory.cuh"

constexpr uint32 kUpperMask = 0xfffff000u;  // sign, exponent and 11 bits behind the point

// Whether totals of so many stages move to memory.
template <WgmmaPlan plan>
__device__ __forceinline__ bool accumulators_spill(int num_k_tiles) {
    return plan.terms > 1 && num_k_tiles > plan.spill_interval * 3 / 2;
}

// Takes the upper bits from x and returns them; of an infinity nothing is left.
__device__ __forceinline__ float extract_upper(float& x) {
    const float upper = __uint_as_float(__float_as_uint(x) & kUpperMask);
    x = upper == x ? 0.0f : x - upper;
    return upper;
}

// Upper bits of the totals of plan.spill_columns columns: of two neighbours in a row each.
template <WgmmaPlan plan>
struct UpperBits {
    static constexpr int kPairs = plan.spill_columns / 4,
                         kGroups = plan.block_n / plan.spill_columns;
    float2 x[kPairs], y[kPairs];

    // Takes those of group number `group`, found by halves. Registers have no addresses, so each
    // group has code of its own: to pass by all of it would take longer than to move what it takes.
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

    // Moves them to where those of this group are.
    __device__ __forceinline__ void store(const WgmmaArguments& args,
                                          const AccumulatorMemory<plan>& memory, int group,
                                          bool reduce) const {
        if (memory.vectorized) {
            // Nearly always. One branch for all of them: branches of their own would take longer.
            if (reduce) {
#pragma unroll
                for (int i = 0; i < kPairs; ++i) {
                    store_or_reduce(memory.vector_at(args, group * kPairs + i), x[i], y[i], true);
                }
            } else {
#pragma unroll
                for (int i = 0; i < kPairs; ++i) {
                    store_or_reduce(memory.vector_at(args, group * kPairs + i), x[i], y[i], false);
                }
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

// Where a tile's totals move to and when, in three registers.
template <WgmmaPlan plan>
struct AccumulatorSpill {
    static constexpr int kGroups = UpperBits<plan>::kGroups;
    static_assert(plan.block_n % plan.spill_columns == 0, "every column moves");
    static_assert(plan.spill_interval >= kGroups, "a move after a stage or more");
    float2* base;
    uint32 packed;  // from bit 12 on how many moves there are; the last is number 1

    // Of the work in the slot, of so many stages.
    __device__ __forceinline__ AccumulatorSpill(const WgmmaArguments& args, uint32 work_slot,
                                                int num_k_tiles) {
        packed = 0;
        if (!accumulators_spill<plan>(num_k_tiles)) return;
        const AccumulatorMemory<plan> memory = accumulator_memory<plan>(args, read_work(work_slot));
        base = memory.base;
        packed = max(0, min(memory.columns, plan.block_n)) | memory.rows << 8 |
                 memory.vectorized << 10 | memory.partial << 11 |
                 max(kGroups, (num_k_tiles - 1 - plan.spill_interval) / plan.spill_group_interval())
                     << 12;
    }

    // After each stage, where `left` are left.
    __device__ __forceinline__ void after_k_tile(const WgmmaArguments& args, int left,
                                                 float (&re)[plan.block_n / 2],
                                                 float (&im)[plan.block_n / 2]) const {
        const int from_end = left - plan.spill_interval / 2,
                  spills_left = from_end / plan.spill_group_interval();
        if (packed == 0 || from_end <= 0 || from_end % plan.spill_group_interval() != 0) return;
        const uint32 now = opaque(packed);
        const int num_spills = now >> 12;
        if (spills_left > num_spills) return;
        const AccumulatorMemory<plan> memory{base, int(now & 255), int(now >> 8 & 3),
                                             (now >> 10 & 1) != 0, (now >> 11 & 1) != 0};
        const bool reduce = spills_left <= num_spills - kGroups;
        UpperBits<plan> upper;
        upper.extract(spills_left % kGroups, re, im);
        upper.store(args, memory, spills_left % kGroups, reduce);
    }
};
