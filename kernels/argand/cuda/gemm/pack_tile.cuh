// A tile of an operand that is packed: how it is read, and how large its lines are.
#pragma once
#include "device/rounding.cuh"
#include "device/scaling.cuh"

constexpr int kPackNumbers = 4096;  // of a tile

struct PackPlan {
    Operand operand;
    int terms;
    Rounding roundings[2];
    bool scaled;       // lines are scaled by powers of two
    bool half_source;  // the source holds pairs of 16 bits of the operand format, else of fp32
    bool k_fast;       // whether k is the source's contiguous axis
    int vector;        // complex numbers that one read takes: 2 where they are aligned
    int lines;         // of a tile
    constexpr int depth() const { return kPackNumbers / lines; }
    // In shared memory eight k are followed by a gap, and lines have an odd pitch: whole lines and
    // single k of many lines are then both read and written with at most two conflicts.
    constexpr int line_pitch() const { return 9 * depth() / 8 + 1; }
};

// Strides count complex numbers.
struct PackArguments {
    const void* x;
    void* planes;     // (batches, 2, lines, pitch / step, terms, step)
    uint32* largest;  // (batches, lines): bits of each line's largest magnitude; zeros before where
                      // blocks wait, and after
    uint2* arrived;   // (strips), zeros before and after: blocks that have looked, and gone on
    float2* unscale;  // (batches, lines): split_power_of_two of minus the line's exponent
    int64 line_stride, k_stride, batch_stride;
    int lines, k;
    int pitch;  // a multiple of 16, planes are zero from k on
    int wait;   // whether blocks find the magnitudes, and so wait for those of their strip
    int flip;   // conjugates
};

constexpr int kPackThreads = 256, kMostPackLines = 64;
constexpr int kPackTile = 64 * (9 * 64 / 8 + 1);  // numbers of the largest tile, of 64 lines

template <PackPlan plan>
__device__ __forceinline__ int pack_place(int line, int k) {
    return line * plan.line_pitch() + k + k / 8;
}

template <PackPlan plan>
__device__ __forceinline__ float2 widened(uint32 pair) {
    if constexpr (plan.operand == Operand::bf16) {
        return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u)};
    } else {
        return fp16_values(pair);
    }
}

// One or two neighbours along the contiguous axis; zeros outside. They are read once: they leave
// the second-level cache first.
template <PackPlan plan>
__device__ __forceinline__ void read_neighbours(const PackArguments& args, int64 at, int inside,
                                                float2 (&x)[plan.vector]) {
#pragma unroll
    for (int i = 0; i < plan.vector; ++i) x[i] = {0.0f, 0.0f};
    if constexpr (plan.half_source) {
        const uint32* from = static_cast<const uint32*>(args.x) + at;
        if (inside >= plan.vector && plan.vector == 2) {
            const uint2 pairs = __ldcs(reinterpret_cast<const uint2*>(from));
            x[0] = widened<plan>(pairs.x);
            x[plan.vector - 1] = widened<plan>(pairs.y);
        } else if (inside >= 1) {
            x[0] = widened<plan>(__ldcs(from));
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
    static constexpr int kFast = plan.k_fast ? plan.depth() : plan.lines;
    static constexpr int kChunks = kFast / plan.vector, kSlow = kPackThreads / kChunks;
    static constexpr int kCount = kPackNumbers / kFast / kSlow;
    int fast = threadIdx.x % kChunks * plan.vector, slow = threadIdx.x / kChunks;
    float2 x[kCount][plan.vector];

    __device__ __forceinline__ void read(const PackArguments& args, int64 base, int line0, int k0) {
        const int fast_left = (plan.k_fast ? args.k - k0 : args.lines - line0) - fast;
        const int slow_left = (plan.k_fast ? args.lines - line0 : args.k - k0) - slow;
        const int64 fast_stride = plan.k_fast ? args.k_stride : args.line_stride;
        const int64 slow_stride = plan.k_fast ? args.line_stride : args.k_stride;
        int64 at = base + line0 * args.line_stride + k0 * args.k_stride + fast * fast_stride +
                   slow * slow_stride;
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            read_neighbours<plan>(args, at, i * kSlow < slow_left ? fast_left : 0, x[i]);
            at += kSlow * slow_stride;
        }
    }
};

// Raises `found` to the largest magnitudes of a tile's lines.
template <PackPlan plan>
__device__ __forceinline__ void look(const PackTile<plan>& tile, uint32* found) {
    using Tile = PackTile<plan>;
    if constexpr (plan.k_fast) {
#pragma unroll
        for (int i = 0; i < Tile::kCount; ++i) {
            uint32 most = component_absmax_bits(tile.x[i][0]);
            if constexpr (plan.vector == 2) most = max(most, component_absmax_bits(tile.x[i][1]));
            most = __reduce_max_sync(0xffffffffu, most);
            if (threadIdx.x % kWarp == 0) atomicMax(found + tile.slow + i * Tile::kSlow, most);
        }
    } else {
#pragma unroll
        for (int v = 0; v < plan.vector; ++v) {
            uint32 most = 0;
#pragma unroll
            for (int i = 0; i < Tile::kCount; ++i)
                most = max(most, component_absmax_bits(tile.x[i][v]));
#pragma unroll
            for (int lane = Tile::kChunks; lane < kWarp; lane *= 2) {
                most = max(most, __shfl_xor_sync(0xffffffffu, most, lane));
            }
            if (threadIdx.x % kWarp < Tile::kChunks) atomicMax(found + tile.fast + v, most);
        }
    }
}
