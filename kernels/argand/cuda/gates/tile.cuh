// What the kernels of gates share: tiles of a state, and their way to shared memory and back.
//
// A gate on k qubits multiplies every column of 2^k amplitudes that differ in the targets' bits alone.
// A tile is all settings of the targets times those of some low bits of an amplitude's number, gathered
// 16 bytes (a chunk) at a time. In shared memory a chunk lies at its number within the tile, its
// address bits 4 to 6 changed by an exclusive or of higher ones, so that addresses are linear over
// exclusive or: each bit of a thread's number adds one mask. argand/gate_layout.py finds the masks.
#pragma once
#include "device/copy.cuh"
#include "device/scaling.cuh"
#include "device/shared.cuh"

constexpr int kMaxSegments = 17;
constexpr int kMaxThreadBits = 9;
constexpr int kMaxChunks = 8;
constexpr int kMaxWidth = 7;

// As argand/gate_plan.py lists it. Offsets are in bytes of the state, masks in bytes of a tile.
struct GateArguments {
    char* state;
    const void* matrix;
    int64 control_offset;   // the controls' bits
    int64 matrix_exponent;  // of the power of two that the matrix is multiplied by
    int64 thread_offset[kMaxThreadBits];
    int64 chunk_offset[kMaxChunks];
    int64 result_offset[kMaxThreadBits];  // of tensor cores' results, by a thread's bits,
    int64 register_offset[3];             // and by the register: see each_result
    uint32 thread_mask[kMaxThreadBits];
    uint32 chunk_mask[kMaxChunks];
    uint32 tiles;
    uint32 segments;
    uint32 segment_mask[kMaxSegments];   // bits of a tile's number that stay neighbours,
    uint32 segment_shift[kMaxSegments];  // and how far up they go, in bytes
    uint32 row_mask[kMaxWidth];          // of the targets, lowest first
    uint32 read_mask[kMaxThreadBits];    // a thread's bits when it reads columns
    uint32 column_mask[2];               // further columns of the same thread
    uint32 pair_mask;                    // from a column to its neighbour
    uint32 result_mask[kMaxThreadBits];  // as the offsets of results, in the tile
    uint32 register_mask[3];
    uint32 thread_row[kMaxThreadBits];  // rows of a thread's own chunks
    uint32 chunk_row[kMaxChunks];
    uint32 thread_plane[kMaxThreadBits];  // where own chunks go in planes of operands
    uint32 chunk_plane[kMaxChunks];
    int controls_qubit0;  // qubit 0 is a control: the lower half of each chunk stays
};

__device__ __forceinline__ int64 tile_offset(const GateArguments& args, uint32 tile) {
    int64 offset = args.control_offset;
    for (uint32 i = 0; i < args.segments; ++i) {
        offset |= static_cast<int64>(tile & args.segment_mask[i]) << args.segment_shift[i];
    }
    return offset;
}

// The exclusive or of the masks of the bits that are set in a number.
template <int Bits>
__device__ __forceinline__ uint32 xor_masks(const uint32* masks, uint32 number) {
    uint32 mask = 0;
#pragma unroll
    for (int bit = 0; bit < Bits; ++bit) {
        if (number >> bit & 1) mask ^= masks[bit];
    }
    return mask;
}

constexpr int log2_of(int power) { return power <= 1 ? 0 : 1 + log2_of(power / 2); }

__device__ __forceinline__ int matrix_exponent_of(const GateArguments& args) {
    return static_cast<int>(args.matrix_exponent);
}

// Keeps the compiler from computing every address that follows from x ahead of a loop.
__device__ __forceinline__ void opaque(uint32& x) { asm volatile("" : "+r"(x)); }

__device__ __forceinline__ void store_global_16(char* target, float4 x) {
    asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(target), "f"(x.x), "f"(x.y),
                 "f"(x.z), "f"(x.w)
                 : "memory");
}

// Writes a chunk of the state, or its upper half where qubit 0 is a control.
__device__ __forceinline__ void store_chunk(const GateArguments& args, char* target, float4 x) {
    if (args.controls_qubit0) {
        *reinterpret_cast<float2*>(target + 8) = {x.z, x.w};
    } else {
        store_global_16(target, x);
    }
}

// The offset of the bits that are set in a number.
template <int Bits>
__device__ __forceinline__ int64 or_offsets(const int64* offsets, uint32 number) {
    int64 offset = 0;
#pragma unroll
    for (int bit = 0; bit < Bits; ++bit) {
        if (number >> bit & 1) offset |= offsets[bit];
    }
    return offset;
}

// The chunks that a thread copies: the same ones on the way in and out, so that between writing one
// back and reading the next into its place nobody has to wait.
template <int TileBytes, int Threads, int Stages>
struct TilePipeline {
    static constexpr int kChunks = TileBytes / 16 / Threads;
    static constexpr int kThreadBits = log2_of(Threads);
    static_assert(kChunks >= 1 && kChunks <= kMaxChunks && kThreadBits <= kMaxThreadBits);

    const GateArguments& args;
    char* source;
    uint32 mask;

    __device__ __forceinline__ explicit TilePipeline(const GateArguments& arguments)
        : args(arguments),
          source(arguments.state + or_offsets<kThreadBits>(arguments.thread_offset, threadIdx.x)),
          mask(xor_masks<kThreadBits>(arguments.thread_mask, threadIdx.x)) {}

    __device__ __forceinline__ uint32 chunk(uint32 stage, int i) const {
        return stage + (mask ^ args.chunk_mask[i]);
    }

    // Queues the copies of a tile; past the last one a group without copies.
    __device__ __forceinline__ void load(uint32 tile, uint32 stage) const {
        if (tile < args.tiles) {
            const char* from = source + tile_offset(args, tile);
#pragma unroll
            for (int i = 0; i < kChunks; ++i)
                copy_chunk(chunk(stage, i), from + args.chunk_offset[i]);
        }
        commit_copies();
    }

    __device__ __forceinline__ void load_prologue(uint32 ring) const {
#pragma unroll
        for (int i = 0; i < Stages; ++i) load(blockIdx.x + i * gridDim.x, ring + i * TileBytes);
    }

    // Writes a tile back, and queues the tile that takes its place.
    __device__ __forceinline__ void store_and_refill(uint32 tile, uint32 stage) const {
        float4 chunks[kChunks];
        char* target = source + tile_offset(args, tile);
#pragma unroll
        for (int i = 0; i < kChunks; ++i) chunks[i] = load_shared_16(chunk(stage, i));
#pragma unroll
        for (int i = 0; i < kChunks; ++i)
            store_chunk(args, target + args.chunk_offset[i], chunks[i]);
        load(tile + Stages * gridDim.x, stage);
    }
};

// The stage after this one.
template <int TileBytes, int Stages>
__device__ __forceinline__ uint32 next_stage(uint32 stage, uint32 ring) {
    stage += TileBytes;
    return stage == ring + Stages * TileBytes ? ring : stage;
}
