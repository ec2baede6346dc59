// A tile of an operand that is packed: how it is read, and how large its lines are.
#pragma once
#include "device/rounding.cuh"
#include "device/scaling.cuh"

constexpr int kPackTileElements = 4096;  // of a tile

struct PackPlan {
    Operand operand;
    int terms;
    Rounding roundings[2];
    bool scaled;       // lines are scaled by powers of two
    bool half_source;  // the source holds pairs of 16 bits of the operand format, else of fp32
    bool k_major;      // whether k is the source's contiguous axis
    int vector;        // complex numbers that one read takes: 2 where they are aligned
    int rows;          // of a tile
    constexpr int tile_k() const { return kPackTileElements / rows; }
    // In shared memory eight k are followed by a gap, and lines have an odd pitch: whole lines and
    // single k of many lines are then both read and written with at most two conflicts.
    constexpr int row_pitch() const { return 9 * tile_k() / 8 + 1; }
};

// Strides count complex numbers.
struct PackArguments {
    const void* x;
    void* planes;        // (batches, 2, lines, pitch / step, terms, step)
    uint32* row_absmax;  // (batches, lines): bits of each line's largest magnitude; zeros before
                         // where blocks wait, and after
    uint2*
        panel_counters;  // (strips), zeros before and after: blocks that have looked, and gone on
    float2* descale;     // (batches, lines): split_power_of_two of minus the line's exponent
    int64 row_stride, k_stride, batch_stride;
    int rows, k;
    int pitch;            // a multiple of 16, planes are zero from k on
    int exchange_absmax;  // whether blocks find the magnitudes, and so wait for those of their
                          // strip
    int conjugate;        // conjugates
};

constexpr int kPackThreads = 256, kMaxPackRows = 64;
constexpr int kPackSharedElements =
    64 * (9 * 64 / 8 + 1);  // numbers of the largest tile, of 64 lines

template <PackPlan plan>
__device__ __forceinline__ int shared_offset(int row, int k) {
    return row * plan.row_pitch() + k + k / 8;
}

template <PackPlan plan>
__device__ __forceinline__ float2 widen(uint32 pair) {
    if constexpr (plan.operand == Operand::bf16) {
        return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u)};
    } else {
        return fp16_values(pair);
    }
}

// One or two neighbours along the contiguous axis; zeros outside. They are read once: they leave
// the second-level cache first.
template <PackPlan plan>
__device__ __forceinline__ void load_vector(const PackArguments& args, int64 at, int inside,
                                            float2 (&x)[plan.vector]) {
#pragma unroll
    for (int i = 0; i < plan.vector; ++i) x[i] = {0.0f, 0.0f};
    if constexpr (plan.half_source) {
        const uint32* from = static_cast<const uint32*>(args.x) + at;
        if (inside >= plan.vector && plan.vector == 2) {
            const uint2 pairs = __ldcs(reinterpret_cast<const uint2*>(from));
            x[0] = widen<plan>(pairs.x);
            x[plan.vector - 1] = widen<plan>(pairs.y);
        } else if (inside >= 1) {
            x[0] = widen<plan>(__ldcs(from));
        }
    } else {
        const float2* from = static_cast<const float2*>(args.x) + at;
        if (inside >= plan.vector && plan.vector == 2) {
            const float4 pairs = __ldcs(reinterpret_cast<const float4*>(from));
            x[0] = {pairs.x, pairs.y};
            x[plan.vector - 1] = {pairs.z, pairs.w};
        } else if (inside >= 1) {
            x[0] = __ldcs(from);
        }
    }
}

// How the threads of a block divide a tile: each has `vector` neighbours of several lines (k_fast)
// or of several k.
template <PackPlan plan>
struct PackTile {
    static constexpr int kContiguous = plan.k_major ? plan.tile_k() : plan.rows;
    static constexpr int kVectors = kContiguous / plan.vector,
                         kStridedStep = kPackThreads / kVectors;
    static constexpr int kLoads = kPackTileElements / kContiguous / kStridedStep;
    int contiguous = threadIdx.x % kVectors * plan.vector, strided = threadIdx.x / kVectors;
    float2 x[kLoads][plan.vector];

    __device__ __forceinline__ void load(const PackArguments& args, int64 base, int row0, int k0) {
        const int contiguous_left = (plan.k_major ? args.k - k0 : args.rows - row0) - contiguous;
        const int strided_left = (plan.k_major ? args.rows - row0 : args.k - k0) - strided;
        const int64 contiguous_stride = plan.k_major ? args.k_stride : args.row_stride;
        const int64 stride = plan.k_major ? args.row_stride : args.k_stride;
        int64 at = base + row0 * args.row_stride + k0 * args.k_stride +
                   contiguous * contiguous_stride + strided * stride;
#pragma unroll
        for (int i = 0; i < kLoads; ++i) {
            load_vector<plan>(args, at, i * kStridedStep < strided_left ? contiguous_left : 0,
                              x[i]);
            at += kStridedStep * stride;
        }
    }
};

// Raises `found` to the largest magnitudes of a tile's lines.
template <PackPlan plan>
__device__ __forceinline__ void update_absmax(const PackTile<plan>& tile, uint32* row_absmax) {
    using Tile = PackTile<plan>;
    if constexpr (plan.k_major) {
#pragma unroll
        for (int i = 0; i < Tile::kLoads; ++i) {
            uint32 absmax = component_absmax_bits(tile.x[i][0]);
            if constexpr (plan.vector == 2)
                absmax = max(absmax, component_absmax_bits(tile.x[i][1]));
            absmax = __reduce_max_sync(0xffffffffu, absmax);
            if (threadIdx.x % kWarp == 0)
                atomicMax(row_absmax + tile.strided + i * Tile::kStridedStep, absmax);
        }
    } else {
#pragma unroll
        for (int v = 0; v < plan.vector; ++v) {
            uint32 absmax = 0;
#pragma unroll
            for (int i = 0; i < Tile::kLoads; ++i)
                absmax = max(absmax, component_absmax_bits(tile.x[i][v]));
#pragma unroll
            for (int lane = Tile::kVectors; lane < kWarp; lane *= 2) {
                absmax = max(absmax, __shfl_xor_sync(0xffffffffu, absmax, lane));
            }
            if (threadIdx.x % kWarp < Tile::kVectors)
                atomicMax(row_absmax + tile.contiguous + v, absmax);
        }
    }
}
