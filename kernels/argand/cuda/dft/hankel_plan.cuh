// The plan of the Hankel kernel (hankel.cuh): sizes of its table, its tiles and its shared memory.
// argand/dft/hankel.py has the same sizes for launches and tables.
#pragma once
#include "plan.cuh"

struct HankelPlan {
    Precision precision;
    int length;
    int row_copies;        // copies of a transform among the 64 rows of wgmma
    int warpgroups;        // that share a tile's columns
    int groups;            // of a block, one tile each
    int buffers;           // of all groups; relayed between them, or else as many for each group
    bool wide_copies;      // of 16 bytes, or TMA
    int cached_k_tiles;    // whose high-order fragments stay in registers for the second pass
    int promotion_k_tile;  // before whose high-order MMAs accumulators are promoted; 0: never

    constexpr int half_length() const { return length / 2; }
    constexpr int num_k_tiles() const { return (half_length() + 15) / 16; }
    // The last k-tile has k beyond L / 2.
    constexpr bool has_partial_k_tile() const { return 16 * num_k_tiles() != half_length(); }
    // Columns that a copy of the rows computes: even, so that two offsets are one word.
    constexpr int columns_per_copy() const {
        return (half_length() + 2 * row_copies - 1) / (2 * row_copies) * 2;
    }
    // Columns of all copies but the last.
    constexpr int columns_before_last_copy() const { return (row_copies - 1) * columns_per_copy(); }
    // Columns of a warpgroup.
    constexpr int columns() const {
        return ((columns_per_copy() + 7) / 8 + warpgroups - 1) / warpgroups * 8;
    }
    constexpr int warps() const { return 4 * warpgroups; }
    constexpr int threads() const { return groups * warps() * kWarp; }
    constexpr TileLayout layout() const { return {32 / row_copies, length, length}; }
    // Core matrices of 8 x 8 of one term of the cosines or of the sines.
    constexpr int core_matrices() const {
        return 2 * num_k_tiles() + warpgroups * columns() / 8 - 1;
    }
    constexpr int table_bytes() const { return 2 * precision.terms * core_matrices() * 128; }
    // Byte offsets of k = g^(i - columns_before_last_copy()), 2 bytes each.
    constexpr int num_offsets() const {
        const int gathered = 16 * num_k_tiles() + columns_before_last_copy(),
                  scattered = warpgroups * columns() + 2 * columns_before_last_copy();
        return gathered > scattered ? gathered : scattered;
    }
    constexpr int offset_bytes() const { return (2 * num_offsets() + 127) / 128 * 128; }
    constexpr bool relays_buffers() const { return wide_copies && buffers > groups; }
    // Warps that hold the same transforms; each finds the absmax of a part, and they exchange it.
    constexpr int absmax_warps() const { return precision.scaled ? row_copies * warpgroups : 1; }
    constexpr int scratch_bytes() const {
        return absmax_warps() > 1 ? groups * warps() * 8 * 4 : 0;
    }
    constexpr int shared_bytes() const {
        return table_bytes() + offset_bytes() + buffers * (layout().bytes() + 16) + scratch_bytes();
    }
};
