// A tile of an operand that is packed: the plan and arguments of packing, the loads of a block, and
// the row absmax of its tile. pack_kernel.cuh converts the tile and stores its planes. A row is a
// row of A or a column of B, by k.
#pragma once
#include "device/predicated_load.cuh"
#include "device/rounding.cuh"
#include "device/scaling.cuh"

constexpr int kPackTileElements = 4096;  // complex numbers of a tile, at most

struct PackPlan {
    Operand operand;
    int terms;
    Rounding roundings[2];
    bool scaled;       // rows are scaled by powers of two
    bool half_source;  // the source holds pairs in the 16-bit operand format, else complex64
    bool k_major;      // k is the contiguous axis of the source, else the rows are
    int vector;        // complex numbers of one load: 2 where all are aligned to it
    int rows;          // of a tile, and of a panel
    // k = 2 i and 2 i + 1 change places in every second matrix (sm90_plan.cuh: odd_batches).
    bool exchanges_k = false;
    int cluster = 1;  // blocks of a cluster that covers a panel, where there are several
    int elements = kPackTileElements;  // complex numbers of a tile
    constexpr int tile_k() const { return elements / rows; }
    // In shared memory a gap follows every eight k, and the pitch of rows is odd, so that loads and
    // stores along rows and along k have at most two-way bank conflicts.
    constexpr int row_pitch() const { return 9 * tile_k() / 8 + 1; }
    // Complex numbers of a tile in shared memory. The next kernel begins beside this one, and takes
    // most of a multiprocessor's.
    constexpr int shared_elements() const { return rows * row_pitch(); }
};

// One source of a launch. Strides count complex numbers.
struct PackArguments {
    const void* x;
    void* planes;  // (batches, 2, rows, pitch / mma_k, terms, mma_k)
    // (batches, rows): bits of each row's absmax. Zero between launches where blocks exchange it.
    uint32* row_absmax;
    // (panels): blocks that have arrived, and that have read. Zero between launches.
    uint2* panel_counters;
    float2* descale;  // (batches, rows): split_power_of_two of minus the row's exponent
    int64 row_stride, k_stride, batch_stride;
    int rows, k;
    int pitch;            // k of a row of planes, a multiple of 16; planes are 0 from k on
    int exchange_absmax;  // whether the blocks of a panel find the row absmax together
    int conjugate;
};

constexpr int kPackThreads = 256, kMaxPackRows = 64;

// Index of an element of the tile in shared memory.
template <PackPlan plan>
__device__ __forceinline__ int shared_offset(int row, int k) {
    return row * plan.row_pitch() + k + k / 8;
}

// A pair in the 16-bit operand format as complex64.
template <PackPlan plan>
__device__ __forceinline__ float2 widen(uint32 pair) {
    float x[2];
    OperandFormat<plan.operand>::unpack(pair, x);
    return {x[0], x[1]};
}

// Loads the first `valid` of one or two pairs in the 16-bit operand format, and zeros. The source
// is read once, so it leaves L2 first.
template <PackPlan plan>
__device__ __forceinline__ void load_pairs(const uint32* from, int valid,
                                           float2 (&x)[plan.vector]) {
#pragma unroll
    for (int i = 0; i < plan.vector; ++i) x[i] = {0.0f, 0.0f};
    if (valid >= plan.vector && plan.vector == 2) {
        const uint2 pairs = __ldcs(reinterpret_cast<const uint2*>(from));
        x[0] = widen<plan>(pairs.x);
        x[plan.vector - 1] = widen<plan>(pairs.y);
    } else if (valid >= 1) {
        x[0] = widen<plan>(__ldcs(from));
    }
}

// The elements of a tile that a thread loads: `vector` neighbours along the contiguous axis, of
// several rows (k-major) or of several k.
template <PackPlan plan>
struct PackTile {
    static constexpr int kContiguous = plan.k_major ? plan.tile_k() : plan.rows;
    static constexpr int kVectors = kContiguous / plan.vector,
                         kStridedStep = kPackThreads / kVectors;
    static constexpr int kLoads = plan.elements / kContiguous / kStridedStep;
    static_assert(kLoads * kStridedStep * kContiguous == plan.elements,
                  "the threads of a block must load whole lines of a tile");
    int contiguous = threadIdx.x % kVectors * plan.vector, strided = threadIdx.x / kVectors;
    float2 x[kLoads][plan.vector];

    __device__ __forceinline__ void load(const PackArguments& args, int64 base, int row0, int k0) {
        const int contiguous_left = (plan.k_major ? args.k - k0 : args.rows - row0) - contiguous;
        const int strided_left = (plan.k_major ? args.rows - row0 : args.k - k0) - strided;
        const int64 contiguous_stride = plan.k_major ? args.k_stride : args.row_stride;
        const int64 stride = plan.k_major ? args.row_stride : args.k_stride;
        int64 at = base + row0 * args.row_stride + k0 * args.k_stride +
                   contiguous * contiguous_stride + strided * stride;
        if constexpr (plan.half_source) {
#pragma unroll
            for (int i = 0; i < kLoads; ++i, at += kStridedStep * stride) {
                load_pairs<plan>(static_cast<const uint32*>(args.x) + at,
                                 i * kStridedStep < strided_left ? contiguous_left : 0, x[i]);
            }
        } else {
            load_numbers(static_cast<const float2*>(args.x) + at, kStridedStep * stride,
                         contiguous_left, strided_left);
        }
    }

   private:
    // Loads complex64 from here on, lines of this thread `step` apart, and zeros. The end of a line
    // may part two neighbours. No load waits for a branch of its own.
    __device__ __forceinline__ void load_numbers(const float2* from, int64 step,
                                                 int contiguous_left, int strided_left) {
        if (contiguous_left >= plan.vector) {
#pragma unroll
            for (int i = 0; i < kLoads; ++i, from += step)
                load_once_or_zero(from, i * kStridedStep < strided_left, x[i]);
            return;
        }
#pragma unroll
        for (int i = 0; i < kLoads; ++i, from += step) {
            float2 first[1];
            load_once_or_zero(from, i * kStridedStep < strided_left && contiguous_left > 0, first);
            x[i][plan.vector - 1] = {0.0f, 0.0f};
            x[i][0] = first[0];
        }
    }
};

// Raises `row_absmax`, in shared memory, to the absmax of the rows of a tile, and returns that of
// the numbers of this thread at least. `bits_of` gives that of a number's two parts as bits, which
// order as the magnitudes do.
template <PackPlan plan, typename Bits>
__device__ __forceinline__ uint32 update_absmax(const PackTile<plan>& tile, uint32* row_absmax,
                                                const Bits& bits_of) {
    using Tile = PackTile<plan>;
    uint32 largest = 0;
    if constexpr (plan.k_major) {
#pragma unroll
        for (int i = 0; i < Tile::kLoads; ++i) {
            uint32 absmax = bits_of(tile.x[i][0]);
            if constexpr (plan.vector == 2)
                absmax = max(absmax, bits_of(tile.x[i][1]));
            absmax = __reduce_max_sync(0xffffffffu, absmax);
            largest = max(largest, absmax);
            if (threadIdx.x % kWarp == 0)
                atomicMax(row_absmax + tile.strided + i * Tile::kStridedStep, absmax);
        }
    } else {
#pragma unroll
        for (int v = 0; v < plan.vector; ++v) {
            uint32 absmax = 0;
#pragma unroll
            for (int i = 0; i < Tile::kLoads; ++i)
                absmax = max(absmax, bits_of(tile.x[i][v]));
#pragma unroll
            for (int lane = Tile::kVectors; lane < kWarp; lane *= 2) {
                absmax = max(absmax, __shfl_xor_sync(0xffffffffu, absmax, lane));
            }
            largest = max(largest, absmax);
            if (threadIdx.x % kWarp < Tile::kVectors)
                atomicMax(row_absmax + tile.contiguous + v, absmax);
        }
    }
    return largest;
}
