// Common to the DFT kernels: the precision of products with tables, layouts in shared and global
// memory, and the kernel arguments. Each kernel's own plan is in its file; argand/dft/plan.py
// writes it as a template argument.
#pragma once
#include "device/complex.cuh"
#include "device/cp_async.cuh"
#include "device/rounding.cuh"
#include "device/scaling.cuh"

// The precision of products with tables, as argand.Precision. `scaled`: each transform is scaled to
// the range of the format.
struct Precision {
    Operand operand;
    int terms;
    Rounding roundings[2];
    bool scaled;

    // k of one MMA instruction, which is also a k-tile here.
    constexpr int mma_k() const { return 32 / bytes_of(operand); }
};

// The cosine and sine table of a folded transform of length L, in fragment order: for each k-tile
// and n-tile of 8 columns, 16 bytes per lane and term. `warps` share the columns equally, padded
// with zeros. Registers suffice to unroll the mainloop for up to `max_unrolled_tiles` n-tiles of a
// warp.
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
    // More than two warps that share a tile fold it once, in place in shared memory, where two
    // terms take no more bytes than the element. With two warps it is faster if each folds the
    // whole tile itself.
    constexpr bool folds_in_shared() const { return warps > 2 && precision.mma_k() == 16; }
    // Unrolled where registers allow, so that loads of the next k-tile overlap with MMAs of this
    // one.
    constexpr bool unrolls_mainloop(int m_tiles) const {
        return num_k_tiles() * m_tiles <= 4 && n_tiles() * m_tiles <= max_unrolled_tiles;
    }
};

// A tile in shared memory: lines of `width` complex numbers, `pitch` elements apart.
struct TileLayout {
    int lines;
    int width;
    int pitch;

    constexpr int bytes() const { return (lines * pitch * 8 + 127) / 128 * 128; }
    constexpr bool contiguous() const { return pitch == width; }
};

// Pitch of lines of this width, free of bank conflicts: a half-warp reads four lines by four
// neighbours of 8 bytes, which hit every pair of banks once where lines are 4 elements apart modulo
// 8. Odd widths stay as they are, so that contiguous tiles are one bulk copy.
constexpr int padded(int width) { return width % 2 ? width : (width + 11) / 8 * 8 - 4; }

// An array in global memory as tiles and lines, with strides in elements and the number of all
// lines.
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

// Filled in by argand/dft/launch.py; ARGUMENTS of argand/dft/plan.py lists the same members.
// Strides count elements. A kernel uses the tables that it needs:
//
//     table            folded cosines and sines in fragment order, or core matrices (hankel)
//     twiddles         between the stages of a kernel
//     mirror_twiddles  W_N2^n2, from which two_factor computes the twiddles of mirrored columns
//     spectrum, chirp  of the convolution (butterfly)
//     gather_offsets   permutation of the input to powers of a generator: indices (butterfly), or
//                      byte offsets, which serve the results too (hankel)
//     scatter_offsets  permutation of the results: indices (butterfly)
//
// `scale` and `alternate_scale` multiply results:
//
//     dense, two_factor, hankel         products with a table, and sums without one
//     butterfly                         x_0 and X_0, and results of the convolution
//     mixed_radix, single_cta, cluster  real parts, and imaginary parts
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
    float scale;
    float alternate_scale;
    float sign;       // 1 forward, -1 inverse
    float bias_step;  // hankel: relative decrease of the bias compensation per table entry
};

// Exponent of a transform's scale: absmax times 2^exponent lies one power of two below what the
// format is scaled to, because folding adds two numbers. Transforms in fp32 are scaled as fp16 is.
// An infinity or NaN makes its whole transform so at any scale.
template <Operand operand = Operand::fp16>
__device__ __forceinline__ int transform_exponent(float absmax) {
    return scale_exponent<operand>(__float_as_uint(absmax)) - 1;
}
