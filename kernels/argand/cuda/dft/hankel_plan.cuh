// What a kernel of transforms by Hankel matrices is made for.
#pragma once
#include "plan.cuh"

struct HankelPlan {
    Products products;
    int length;
    int turns;    // how often a transform's rows are taken
    int sharing;  // warpgroups that share a tile's columns
    int groups;   // tiles worked on at a time
    int buffers;  // of all groups: with wide copies each takes the next one, else each has its own
    bool wide;    // 16 bytes a copy
    int held;     // slices whose first terms wait in registers
    int aside;    // slices after whose large products sums are put aside; 0 where they are not

    constexpr int half() const { return length / 2; }
    // Of a warpgroup.
    constexpr int slices() const { return (half() + 15) / 16; }
    // Whether there are k beyond the last one.
    constexpr bool ragged() const { return 16 * slices() != half(); }
    // Columns of a turn: even, so that two places are one word.
    constexpr int shift() const { return (half() + 2 * turns - 1) / (2 * turns) * 2; }
    // Columns of all turns before the last.
    constexpr int before() const { return (turns - 1) * shift(); }
    // Of a warpgroup.
    constexpr int columns() const { return ((shift() + 7) / 8 + sharing - 1) / sharing * 8; }
    constexpr int warps() const { return 4 * sharing; }
    constexpr int threads() const { return groups * warps() * kWarp; }
    constexpr Lines lines() const { return {32 / turns, length, length}; }
    // Tiles of 8 x 8 of a term of the cosines or sines.
    constexpr int cores() const { return 2 * slices() + sharing * columns() / 8 - 1; }
    constexpr int table_bytes() const { return 2 * products.terms * cores() * 128; }
    // Of k = g^(i - before()), 2 bytes each.
    constexpr int places() const {
        const int taken = 16 * slices() + before(), given = sharing * columns() + 2 * before();
        return taken > given ? taken : given;
    }
    constexpr int place_bytes() const { return (2 * places() + 127) / 128 * 128; }
    constexpr bool relayed() const { return wide && buffers > groups; }
    // Warps that look at the same transforms tell each other the largest magnitude of their part.
    constexpr int lookers() const { return products.scaled ? turns * sharing : 1; }
    constexpr int board_bytes() const { return lookers() > 1 ? groups * warps() * 8 * 4 : 0; }
    constexpr int shared_bytes() const {
        return table_bytes() + place_bytes() + buffers * (lines().bytes() + 16) + board_bytes();
    }
};
