// What a kernel of convolutions by butterflies is made for, and where its numbers lie.
#pragma once
#include "plan.cuh"

struct ButterflyPlan {
    int length;
    bool rader;
    int radices[4];  // 1 beyond the last
    int warps;       // of a transform
    int groups;      // transforms worked on at a time

    constexpr int stages() const {
        int found = 0;
        while (found < 4 && radices[found] > 1) ++found;
        return found;
    }
    constexpr int size() const { return radices[0] * stride(0); }
    // Numbers from one to the next of a stage's butterfly.
    constexpr int stride(int stage) const {
        int found = 1;
        for (int i = stage + 1; i < 4; ++i) found *= radices[i];
        return found;
    }
    // Lanes of the last stage read lines, which lie in different banks if they are odd.
    constexpr int line() const {
        const int last = radices[stages() - 1];
        return last % 2 ? size() : last;
    }
    __device__ constexpr int place(int n) const { return n + n / line(); }
    // Whether what a stage and the next exchange stays within a warp.
    constexpr bool within_warp(int stage) const {
        return radices[stage] == radices[stage + 1] && 32 % stride(stage) == 0;
    }
    constexpr int twiddles(int stage) const {
        int found = 0;
        for (int i = 0; i < stage; ++i) found += (radices[i] - 1) * stride(i);
        return found;
    }
    constexpr int threads() const { return groups * warps * kWarp; }
    constexpr int tile_bytes() const { return (place(size() - 1) * 8 + 8 + 127) / 128 * 128; }
    constexpr int shared_bytes() const { return groups * (tile_bytes() + 8 + warps * 4); }
};
