// The operand of a gate kernel from a matrix that lies on the GPU: its bits in the order of the
// targets, the bias compensated, the exponent of its scale beside it, or its terms where a kernel
// reads these. One block does it, so that neither the host nor another launch waits for the largest
// entry.
#pragma once
#include "device/rounding.cuh"
#include "device/scaling.cuh"
#include "device/types.cuh"

constexpr int kMatrixWarps = 16;
constexpr int kMaxMatrixTiles = 8;
constexpr uint32 kCoreColumns = 8;  // that change places: CORE_COLUMNS of argand/gates/operands.py

// MATRIX_ARGUMENTS of argand/gates/matrix_source.py lists the same members.
struct MatrixArguments {
    const void* source;
    void* operand;
    int* exponent;
    int64 row_stride;  // of the source, in numbers
    int64 column_stride;
    double own;    // TruncationBias of argand/gates/truncation.py
    double later;
    uint32 width;
    uint32 positions;  // four bits each: where a bit of a row or column stands in the source,
    uint32 stored;     // and where a bit of a column stands in the operand
    uint32 tile_bit;   // the first bit of a column's k-tile,
    uint32 tile_bits;  // and how many there are
    uint32 exchanged_rows;  // the bit of rows in which groups of columns change places
    int transposed;         // the operand is stored by columns
};

// The bits of a row's or column's number, each at its position.
__device__ __forceinline__ int64 moved_bits(const MatrixArguments& args, uint32 positions,
                                            uint32 number) {
    uint32 found = 0;
    for (uint32 bit = 0; bit < args.width; ++bit)
        found |= (number >> bit & 1u) << (positions >> 4 * bit & 15u);
    return found;
}

__device__ __forceinline__ int64 source_number(const MatrixArguments& args, uint32 number) {
    return moved_bits(args, args.positions, number);
}

__device__ __forceinline__ uint32 tile_of(const MatrixArguments& args, uint32 column) {
    return column >> args.tile_bit & ((1u << args.tile_bits) - 1);
}

// 2^-n in fp64, for n up to 1022.
__device__ __forceinline__ double half_to_the(uint32 n) {
    return __longlong_as_double(static_cast<int64>(1023 - n) << 52);
}

// The loss of a row's entries in each k-tile, as `compensated` in argand/gates/truncation.py has
// it.
template <typename Source>
__device__ __forceinline__ void find_losses(const MatrixArguments& args, const Source* row,
                                            uint32 lane, double (&lost)[kMaxMatrixTiles]) {
    const uint32 order = 1u << args.width;
    double after = 0.0;
    uint32 entries = 0;
    for (uint32 tile = 0; tile < 1u << args.tile_bits; ++tile) {
        uint32 parts[2] = {0, 0};
        for (uint32 first = 0; first < order; first += kWarp) {
            const uint32 column = first + lane;
            const bool mine = column < order && tile_of(args, column) == tile;
            bool real = false, imaginary = false;
            if (mine) {
                const Source x = row[source_number(args, column) * args.column_stride];
                real = x.x != 0;
                imaginary = x.y != 0;
            }
            parts[0] += __popc(__ballot_sync(0xffffffffu, real));
            parts[1] += __popc(__ballot_sync(0xffffffffu, imaginary));
            entries += __popc(__ballot_sync(0xffffffffu, real || imaginary));
        }
        const double added = 1.0 - 0.5 * (half_to_the(parts[0]) + half_to_the(parts[1]));
        if (lane == 0) lost[tile] = args.own * added + args.later * after;
        after += added;
    }
    __syncwarp();
    if (entries == 1 && lane < kMaxMatrixTiles) lost[lane] = 0.0;
    __syncwarp();
}

// An operand of numbers, which its kernel splits.
struct UnsplitNumbers {
    template <typename Result>
    __device__ __forceinline__ static void replace(Result*, uint32, int) {}
};

// An operand of terms: both 16-bit terms of a part are one word, the first one in its low half.
template <Operand operand, int Terms, Rounding first, Rounding second>
struct PackedTerms {
    __device__ __forceinline__ static float packed(float x) {
        const float numbers[2] = {x, 0.0f};
        uint32 terms[2] = {0, 0};
        split<operand, Terms, first, second, true>(numbers, terms);
        return __uint_as_float(__byte_perm(terms[0], terms[1], 0x5410));
    }

    // Replaces 2^exponent times the numbers of a matrix. Called by all threads of the only block.
    __device__ __forceinline__ static void replace(float2* matrix, uint32 size, int exponent) {
        const float scale = power_of_two(exponent);
        for (uint32 i = threadIdx.x; i < size; i += blockDim.x) {
            const float2 x = matrix[i];
            matrix[i] = {packed(x.x * scale), packed(x.y * scale)};
        }
    }
};

// An operand of fragments, as DirectMmaGate has them.
template <typename Gate>
struct FragmentTerms {
    // Replaces a matrix by 2^exponent times its terms. Called by all threads of the only block.
    __device__ __forceinline__ static void replace(float2* matrix, uint32, int exponent) {
        constexpr uint32 kThreads = kWarp * kMatrixWarps;
        constexpr int kEach = (Gate::kSlots + kThreads - 1) / kThreads;
        const float scale = Gate::kScaled ? power_of_two(exponent) : 1.0f;
        float2 numbers[kEach][Gate::kNumbers];
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            const uint32 slot = threadIdx.x + i * kThreads;
            if (slot < Gate::kSlots) Gate::load_slot(matrix, slot, numbers[i]);
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
            const uint32 slot = threadIdx.x + i * kThreads;
            if (slot < Gate::kSlots)
                Gate::store_slot(reinterpret_cast<uint32*>(matrix), slot, scale, numbers[i]);
        }
    }
};

// Exponent::of(bits) is the exponent of the scale of a matrix whose absmax has these bits. Terms is
// one of the above.
template <typename Source, typename Result, typename Exponent, typename Terms>
__device__ __forceinline__ void prepare_matrix(const MatrixArguments& args) {
    __shared__ double losses[kMatrixWarps][kMaxMatrixTiles];
    __shared__ uint32 warp_maxima[kMatrixWarps];
    const uint32 order = 1u << args.width, warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    const bool compensates = args.own != 0.0 || args.later != 0.0;
    auto* operand = static_cast<Result*>(args.operand);
    uint32 absmax = 0;
    for (uint32 row = warp; row < order; row += kMatrixWarps) {
        const Source* source =
            static_cast<const Source*>(args.source) + source_number(args, row) * args.row_stride;
        if (compensates) find_losses(args, source, lane, losses[warp]);
        for (uint32 column = lane; column < order; column += kWarp) {
            const Source x = source[source_number(args, column) * args.column_stride];
            const double factor =
                compensates ? 1.0 + losses[warp][tile_of(args, column)] : 1.0;
            Result y;
            y.x = x.x * factor;
            y.y = x.y * factor;
            const uint32 exchanged = row & args.exchanged_rows ? kCoreColumns : 0;
            operand[args.transposed
                        ? column * order + row
                        : row * order + (moved_bits(args, args.stored, column) ^ exchanged)] = y;
            absmax = max(absmax, component_absmax_bits({float(x.x), float(x.y)}));
        }
        __syncwarp();
    }
    absmax = __reduce_max_sync(0xffffffffu, absmax);
    if (lane == 0) warp_maxima[warp] = absmax;
    __syncthreads();
    absmax = __reduce_max_sync(0xffffffffu, lane < kMatrixWarps ? warp_maxima[lane] : 0u);
    const int exponent = Exponent::of(absmax);
    if (threadIdx.x == 0) *args.exponent = exponent;
    Terms::replace(operand, order * order, exponent);
}
