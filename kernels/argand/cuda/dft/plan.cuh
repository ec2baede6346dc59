// What a kernel of transforms is made for: how products are taken, where numbers lie, who does what.
#pragma once
#include "device/complex.cuh"
#include "device/copy.cuh"
#include "device/mma.cuh"
#include "device/rounding.cuh"
#include "device/scaling.cuh"

// How products with tables are taken. `scaled` transforms are brought into the range of fp16.
struct Precision {
    Operand operand;
    int terms;
    Rounding roundings[2];
    bool scaled;

    // How many k one instruction contracts.
    constexpr int mma_k() const { return operand == Operand::tf32 ? 8 : 16; }
};

// The table of a folded transform of length L: its columns in tiles of 8, each 16 bytes a lane and
// term for every instruction's k. `warps` share the columns equally; what is left over is zero. A warp
// has registers to unroll up to `max_unrolled_tiles` of them.
struct FoldedTable {
    int length;
    int warps;
    Precision precision;
    int max_unrolled_tiles;

    constexpr int half_length() const { return length / 2; }
    constexpr int num_k_tiles() const {
        return (half_length() + precision.mma_k() - 1) / precision.mma_k();
    }
    constexpr int n_tiles() const {
        return ((half_length() + 7) / 8 + warps - 1) / warps;
    }  // a warp
    constexpr int vectors() const {
        return num_k_tiles() * n_tiles() * warps * precision.terms * kWarp;
    }
    constexpr int bytes() const { return vectors() * 16; }
    // Many warps that share a tile fold it together, in its place, where two terms take no more than
    // it. (Two are faster when each folds all of it.)
    constexpr bool folds_in_shared() const { return warps > 2 && precision.mma_k() == 16; }
    // All slices at once where registers allow: loads of the next run beside products of one.
    constexpr bool unrolls_mainloop(int m_tiles) const {
        return num_k_tiles() * m_tiles <= 4 && n_tiles() * m_tiles <= max_unrolled_tiles;
    }
};

// Lines of complex numbers in shared memory, the first of each `pitch` from the last one's.
struct TileLayout {
    int lines;
    int width;
    int pitch;

    constexpr int bytes() const { return (lines * pitch * 8 + 127) / 128 * 128; }
    constexpr bool contiguous() const { return pitch == width; }
};

// A lane reads four lines by four neighbours of a line at a time, 8 bytes each. These hit every pair
// of banks once where lines are 4 apart modulo 8.
// Odd lines stay as they are: tiles without gaps are copied at once.
constexpr int padded(int width) { return width % 2 ? width : (width + 11) / 8 * 8 - 4; }

// `line_stride` and `tile_stride` are of the array in memory, `lines` how many it has in all.
struct GlobalArray {
    float2* base;
    int64 tile_stride;
    int64 line_stride;
    int64 lines;
};

#if __CUDA_ARCH__ >= 900
constexpr bool kHasTma = true;
#else
constexpr bool kHasTma = false;
#endif

// As the launch fills it. Strides count elements.
struct DftArguments {
    const float2* x;
    float2* out;
    const uint4* table;
    const float4* twiddles;
    const float2* mirror_twiddles;
    const float2* spectrum;
    const float2* chirp;
    const unsigned short* gather_offsets;
    const unsigned short* scatter_offsets;
    uint32* tile_counter;  // zero before and after
    int64 rows;
    int64 x_stride;
    int64 out_stride;
    float scale;            // of the result, and of the tables back
    float alternate_scale;  // of x_0 and of sums without a table
    float sign;             // 1 forward, -1 inverse
    float bias_step;  // of a table by Hankel matrices from number to number, relatively, downwards
};

// The largest magnitude m of a transform gives 2^exponent with 2^exponent m in [2^13, 2^14): folding
// adds two. What is not finite makes all of its transform so, whatever it is scaled by.
__device__ __forceinline__ int transform_exponent(float absmax) {
    return scale_exponent(__float_as_uint(absmax)) - 1;
}
