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

constexpr uint32 kUpperBits = 0xfffff000u;  // sign, exponent and 11 bits behind the point

// Whether totals of so many stages move to memory.
template <WgmmaPlan plan>
__device__ __forceinline__ bool totals_move(int steps) {
    return plan.terms > 1 && steps > plan.spill_interval * 3 / 2;
}

// Takes the upper bits from x and returns them; of an infinity nothing is left.
__device__ __forceinline__ float take_upper(float& x) {
    const float upper = __uint_as_float(__float_as_uint(x) & kUpperBits);
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
    __device__ __forceinline__ void take(int group, float (&re)[plan.block_n / 2],
                                         float (&im)[plan.block_n / 2]) {
        constexpr int kMiddle = (first + end) / 2;
        if constexpr (end - first == 1) {
#pragma unroll
            for (int i = 0; i < kPairs; ++i) {
                const int at = 2 * (first * kPairs + i);
                x[i] = {take_upper(re[at]), take_upper(im[at])};
                y[i] = {take_upper(re[at + 1]), take_upper(im[at + 1])};
            }
        } else if (group < kMiddle) {
            take<first, kMiddle>(group, re, im);
        } else {
            take<kMiddle, end>(group, re, im);
        }
    }

    // Moves them to where those of this group are.
    __device__ __forceinline__ void move(const WgmmaArguments& args, const SumsPlace<plan>& place,
                                         int group, bool adds) const {
        if (place.whole) {
            // Nearly always. One branch for all of them: branches of their own would take longer.
            if (adds) {
#pragma unroll
                for (int i = 0; i < kPairs; ++i) {
                    put(place.four(args, group * kPairs + i), x[i], y[i], true);
                }
            } else {
#pragma unroll
                for (int i = 0; i < kPairs; ++i) {
                    put(place.four(args, group * kPairs + i), x[i], y[i], false);
                }
            }
            return;
        }
#pragma unroll
        for (int i = 0; i < kPairs; ++i) {
            const int j = group * kPairs / 2 + i / 2, h = i % 2;
            if (place.has(j, h, 0)) put(place.at(args, j, h, 0), x[i], adds);
            if (place.has(j, h, 1)) put(place.at(args, j, h, 1), y[i], adds);
        }
    }
};

// Where a tile's totals move to and when, in three registers.
template <WgmmaPlan plan>
struct Moves {
    static constexpr int kGroups = UpperBits<plan>::kGroups;
    static_assert(plan.block_n % plan.spill_columns == 0, "every column moves");
    static_assert(plan.spill_interval >= kGroups, "a move after a stage or more");
    float2* first;
    uint32 packed;  // from bit 12 on how many moves there are; the last is number 1

    // Of the work that is told there, of so many stages.
    __device__ __forceinline__ Moves(const WgmmaArguments& args, uint32 told, int steps) {
        packed = 0;
        if (!totals_move<plan>(steps)) return;
        const SumsPlace<plan> place = find_place<plan>(args, read_work(told));
        first = place.first;
        packed = max(0, min(place.columns, plan.block_n)) | place.rows << 8 | place.whole << 10 |
                 place.piece << 11 |
                 max(kGroups, (steps - 1 - plan.spill_interval) / plan.spill_group_interval())
                     << 12;
    }

    // After each stage, where `left` are left.
    __device__ __forceinline__ void after(const WgmmaArguments& args, int left,
                                          float (&re)[plan.block_n / 2],
                                          float (&im)[plan.block_n / 2]) const {
        const int from_end = left - plan.spill_interval / 2,
                  move = from_end / plan.spill_group_interval();
        if (packed == 0 || from_end <= 0 || from_end % plan.spill_group_interval() != 0) return;
        const uint32 now = opaque(packed);
        const int moves = now >> 12;
        if (move > moves) return;
        const SumsPlace<plan> place{first, int(now & 255), int(now >> 8 & 3), (now >> 10 & 1) != 0,
                                    (now >> 11 & 1) != 0};
        const bool adds = move <= moves - kGroups;
        UpperBits<plan> upper;
        upper.take(move % kGroups, re, im);
        upper.move(args, place, move % kGroups, adds);
    }
};
