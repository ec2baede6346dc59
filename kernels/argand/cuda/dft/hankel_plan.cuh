// What a kernel of transforms by Hankel matrices is made for.
#pragma once
#include "plan.cuh"

struct HankelPlan {
    Precision precision;
    int length;
    int row_copies;  // how often a transform's rows are taken
    int warpgroups;  // warpgroups that share a tile's columns
    int groups;      // tiles worked on at a time
    int buffers;  // of all groups: with wide copies each takes the next one, else each has its own
    bool wide_copies;    // 16 bytes a copy
    int cached_k_tiles;  // slices whose first terms wait in registers
    int promotion_k_tile;  // slices after whose large products sums are put aside; 0 where they are not

    constexpr int half_length() const { return length / 2; }
    // Of a warpgroup.
    constexpr int num_k_tiles() const { return (half_length() + 15) / 16; }
    // Whether there are k beyond the last one.
    constexpr bool has_partial_k_tile() const { return 16 * num_k_tiles() != half_length(); }
    // Columns of a turn: even, so that two places are one word.
    constexpr int columns_per_copy() const {
        return (half_length() + 2 * row_copies - 1) / (2 * row_copies) * 2;
    }
    // Columns of all turns before the last.
    constexpr int columns_before_last_copy() const { return (row_copies - 1) * columns_per_copy(); }
    // Of a warpgroup.
    constexpr int columns() const {
        return ((columns_per_copy() + 7) / 8 + warpgroups - 1) / warpgroups * 8;
    }
    constexpr int warps() const { return 4 * warpgroups; }
    constexpr int threads() const { return groups * warps() * kWarp; }
    constexpr TileLayout layout() const { return {32 / row_copies, length, length}; }
    // Tiles of 8 x 8 of a term of the cosines or sines.
    constexpr int core_matrices() const {
        return 2 * num_k_tiles() + warpgroups * columns() / 8 - 1;
    }
    constexpr int table_bytes() const { return 2 * precision.terms * core_matrices() * 128; }
    // Of k = g^(i - before()), 2 bytes each.
    constexpr int num_offsets() const {
        const int gathered = 16 * num_k_tiles() + columns_before_last_copy(),
                  scattered = warpgroups * columns() + 2 * columns_before_last_copy();
        return gathered > scattered ? gathered : scattered;
    }
    constexpr int offset_bytes() const { return (2 * num_offsets() + 127) / 128 * 128; }
    constexpr bool relays_buffers() const { return wide_copies && buffers > groups; }
    // Warps that look at the same transforms tell each other the largest magnitude of their part.
    constexpr int absmax_warps() const { return precision.scaled ? row_copies * warpgroups : 1; }
    constexpr int scratch_bytes() const {
        return absmax_warps() > 1 ? groups * warps() * 8 * 4 : 0;
    }
    constexpr int shared_bytes() const {
        return table_bytes() + offset_bytes() + buffers * (layout().bytes() + 16) + scratch_bytes();
    }
};
