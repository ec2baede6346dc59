// The plan of the butterfly kernel (butterfly.cuh), which the three-kernel plan uses for its lines
// too: stages, strides, and where numbers lie in shared memory.
#pragma once
#include "plan.cuh"

struct ButterflyPlan {
    int length;
    bool rader;
    int radices[4];  // of the stages; 1 beyond the last
    int warps;       // of a group
    int groups;      // of a block, one transform each

    constexpr int stages() const {
        int stage = 0;
        while (stage < 4 && radices[stage] > 1) ++stage;
        return stage;
    }
    constexpr int size() const { return radices[0] * stride(0); }
    // Distance of the numbers of a stage's butterfly.
    constexpr int stride(int stage) const {
        int product = 1;
        for (int i = stage + 1; i < 4; ++i) product *= radices[i];
        return product;
    }
    // In the last stage lanes read contiguous lines, so even lines are padded by one element
    // against bank conflicts.
    constexpr int padding_period() const {
        const int last = radices[stages() - 1];
        return last % 2 ? size() : last;
    }
    __device__ constexpr int padded_index(int n) const { return n + n / padding_period(); }
    // A stage and the next exchange numbers only within warps.
    constexpr bool exchanges_within_warp(int stage) const {
        return radices[stage] == radices[stage + 1] && 32 % stride(stage) == 0;
    }
    constexpr int twiddle_offset(int stage) const {
        int offset = 0;
        for (int i = 0; i < stage; ++i) offset += (radices[i] - 1) * stride(i);
        return offset;
    }
    // On an H200 products of few twiddles (powers.cuh) are faster than loads of all at long
    // convolutions, and as fast at short ones.
    constexpr bool loads_few_twiddles() const { return size() > 2048; }
    constexpr int threads() const { return groups * warps * kWarp; }
    constexpr int tile_bytes() const {
        return (padded_index(size() - 1) * 8 + 8 + 127) / 128 * 128;
    }
    constexpr int shared_bytes() const { return groups * (tile_bytes() + 8 + warps * 4); }
};
