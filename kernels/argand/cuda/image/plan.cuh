// The order of a covariance's real form, and its fragments, for all kernels of an image.
//
// With R = X + i Y and w = c + i s the power w^H R w is z^T M z, z = [c; s], M = [[X, -Y], [Y, X]],
// all real and M symmetric. So it is z^T L z with L the lower triangle of M, doubled off the
// diagonal: half the products. z comes in panels of 64 antennas, their cosines before their sines.
#pragma once
#include "device/rounding.cuh"
#include "device/scaling.cuh"

constexpr int kPanelAntennas = 64;
constexpr int kPanelRows = 2 * kPanelAntennas;
constexpr int kTile = 16;  // rows of an MMA, and the k of a unit of L
constexpr int kPanelTiles = kPanelRows / kTile;

// A unit of L has 16 rows and 16 k. Its fragments are [k of an MMA][term][lane], 16 bytes each.
template <Operand operand>
constexpr int kUnitMmas = kTile / kMmaK<operand>;

template <Operand operand, int Terms>
constexpr int kUnitFragments = kUnitMmas<operand> * Terms * kWarp;

// The unit of a row tile and a k unit; only those with k <= row are there.
__device__ __forceinline__ int64 unit_of(int row_tile, int k_unit) {
    return int64(row_tile) * (row_tile + 1) / 2 + k_unit;
}

struct PackArguments {
    const float2* covariances;  // (matrices, antennas, antennas)
    const uint32* largest;      // (matrices, parts), as CheckArguments has it
    uint4* fragments;           // (matrices, units, kUnitFragments)
    float* descales;            // (matrices,), NaN where the matrix is not Hermitian
    int64 matrices;
    int parts;
    int antennas;
    int row_tiles;
};

struct ImageArguments {
    const uint4* fragments;
    const float* descales;
    const double* positions;   // (64 panels, 3) in m, zero where there is no antenna
    const double* scales;      // (channels,) sign f / c, in units of 2^-30 turns
    const double* directions;  // (directions, 3)
    float* power;              // (splits, images, directions)
    double longest_square;     // largest |direction|^2
    int images;
    int channels;
    int panels;
    int row_tiles;
    int direction_count;
    int splits;
};
