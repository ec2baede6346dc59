// The arguments of the kernels of spectral estimates, and how they write a bin.
#pragma once
#include "device/complex.cuh"

struct Trend;  // trend.cuh

// How a row of bins is written from sums over segments.
struct Bins {
    double scale;    // of bins whose power is on one side alone
    double inner;    // of those between 0 and N / 2: twice that where one-sided
    int64 length;    // N
    int64 pitch;     // bins of a row
    int64 mirrored;  // whether bin N - k is written beside k: real samples, both sides

    template <typename Real, typename Sum>
    __device__ __forceinline__ void write(Real* row, int k, Sum sum) const {
        const bool within = k > 0 && 2 * static_cast<int64>(k) < length;
        const Sum factor = within ? static_cast<Sum>(inner) : static_cast<Sum>(scale);
        const Real found = static_cast<Real>(sum * factor);
        row[k] = found;
        if (mirrored && within) row[length - k] = found;
    }
};

// Filled in by argand/spectrum/gpu.py; KERNEL_ARGUMENTS, TREND_ARGUMENTS, WINDOW_ARGUMENTS and
// SUM_ARGUMENTS of argand/spectrum/plan.py list the same members.
struct SpectrumArguments {
    const void* x;
    float* out;       // (rows, groups, bins)
    double* partial;  // (items, computed bins) where a group has several chunks, else null
    const float* window;
    const float2* twiddles;
    const Trend* trends;  // of the segments of all rows, where trends are subtracted
    int64 row_stride;  // from row to row of x, in samples
    int64 hop;         // from segment to segment
    int64 groups;      // of a row
    int64 average;     // segments of a group
    int64 items;       // of groups of threads: chunks of a row's segments, or of a group's
    int64 chunks;      // of each of these
    int64 batches;     // of a chunk
    Bins bins;
};

struct TrendArguments {
    const void* x;
    double* trends;  // (count, 4), as `Trend`
    int64 row_stride;
    int64 hop;
    int64 segments;  // of a row
    int64 count;     // of all rows
    int64 length;
    int64 linear;  // whether slopes are subtracted, too
};

struct WindowArguments {
    const void* x;
    void* out;  // (count, length)
    const void* window;
    const Trend* trends;  // of the segments of all rows; null where none are subtracted
    int64 row_stride;
    int64 hop;
    int64 segments;  // of a row
    int64 first;     // of the segments of all rows, and
    int64 count;     // how many
    int64 length;
};

struct SumArguments {
    const void* from;  // (rows, terms, stride)
    void* out;         // (rows, bins), or (rows, parts, computed bins) sums in fp64
    int64 rows;
    int64 terms;
    int64 parts;       // of a row's terms, which are summed apart; 1 where bins are written
    int64 part_terms;  // of each but the last
    int64 stride;      // from term to term
    int64 computed;    // bins of a term that are summed
    int64 partial;     // whether sums are written as they are
    Bins bins;
};
