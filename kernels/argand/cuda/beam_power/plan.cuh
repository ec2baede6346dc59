// Packed weights, arguments and tiles along time, for all kernels of beam power.
//
// A block forms beams of kBeams rows of weights and the samples of one tile after another, detects
// them in its accumulators and stores sums. Weights come as A fragments of mma.sync
// (pack_kernel.cuh), samples as they are: complex64, or pairs of 16 bits or int8.
#pragma once
#include "device/rounding.cuh"
#include "device/scaling.cuh"

constexpr int kRowTile = 16;  // rows of an MMA

// How samples lie in memory.
enum class Samples { complex64, half, int8 };

constexpr int sample_bytes(Samples samples) {
    return samples == Samples::complex64 ? 8 : samples == Samples::half ? 4 : 2;
}

// Fragments of a row tile and one mma_k: [real, imaginary][term][lane], 16 bytes each.
template <int Terms>
constexpr int kMmaFragments = 2 * Terms * kWarp;

struct WeightArguments {
    const float2* weights;  // (matrices, beams, antennas)
    uint4* fragments;       // (matrices, row tiles, fragments_k, kMmaFragments)
    float* descales;        // (matrices, 16 row tiles), where the operand is scaled
    int beams;
    int antennas;
    int row_tiles;
    int fragments_k;        // along k: MMAs of mma.sync, rows of a wgmma operand
};

// Finds the exponents of 16 rows of weights, by as many threads per row, and stores the factors
// that scale back.
template <Operand operand, int ThreadsPerRow>
__device__ __forceinline__ void scale_rows(const WeightArguments& args, const float2* weights,
                                           int64 matrix, int tile, int* exponents) {
    const int row = threadIdx.x / ThreadsPerRow, beam = tile * kRowTile + row;
    uint32 largest = 0;
    for (int k = threadIdx.x % ThreadsPerRow; beam < args.beams && k < args.antennas;
         k += ThreadsPerRow)
        largest = max(largest, component_absmax_bits(weights[int64(beam) * args.antennas + k]));
#pragma unroll
    for (int apart = ThreadsPerRow / 2; apart > 0; apart /= 2)
        largest = max(largest, __shfl_xor_sync(~0u, largest, apart));
    if (threadIdx.x % ThreadsPerRow == 0) {
        exponents[row] = scale_exponent<operand>(largest);
        args.descales[(matrix * args.row_tiles + tile) * kRowTile + row] =
            power_of_two(-exponents[row]);
    }
    __syncthreads();
}

struct BeamPowerArguments {
    const uint4* fragments;
    const float* descales;
    const void* samples;
    float* power;          // (results, outputs, beams, columns)
    int64 stride_antenna;  // of samples, in complex numbers
    int64 stride_batch;
    int weights_batched;  // 0 where all products share the weights
    int antennas;
    int chunks;  // stages of a product
    int beams;
    int row_tiles;
    int columns;    // of a row of the result: bins, or slices of bins
    int bins;       // whole bins of samples
    int integrate;  // samples of a bin
    int tile_bins;  // bins of a tile
    int slices;     // tiles of a bin; above 1 a tile has a part of one bin
    int slice;      // samples of a slice but the last
    int tiles;      // of a result
    int block_tiles;
};

// The work of a block: tiles `first` to `last` of a result, for one of `beam_blocks` blocks of
// beams.
struct BlockPlace {
    int beam_blocks, beam_block, result, first, last;

    __device__ __forceinline__ BlockPlace(const BeamPowerArguments& args, int beams)
        : beam_blocks(args.row_tiles * kRowTile / beams) {
        const int segments = (args.tiles + args.block_tiles - 1) / args.block_tiles;
        beam_block = static_cast<int>(blockIdx.x % beam_blocks);
        result = static_cast<int>(blockIdx.x / beam_blocks / segments);
        first = static_cast<int>(blockIdx.x / beam_blocks % segments) * args.block_tiles;
        last = min(args.tiles, first + args.block_tiles);
    }
};

// The samples and bins of a tile.
struct TimeTile {
    int64 first;  // sample
    int valid;    // samples
    int column;   // of the result
    int bins;     // columns

    __device__ __forceinline__ TimeTile(const BeamPowerArguments& args, int tile) {
        if (args.slices > 1) {
            const int bin = tile / args.slices, at = tile % args.slices * args.slice;
            first = int64(bin) * args.integrate + at;
            valid = min(args.slice, args.integrate - at);
            column = tile;
            bins = 1;
        } else {
            column = tile * args.tile_bins;
            bins = min(args.tile_bins, args.bins - column);
            first = int64(column) * args.integrate;
            valid = bins * args.integrate;
        }
    }
};
