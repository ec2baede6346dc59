// Tiles of sequences of gates (sequence_kernel.cuh): the arguments, and a tile's way to shared
// memory and back. argand/gates/sequence_plan.py and sequence_tables.py list the same members.
#pragma once
#include "device/complex.cuh"
#include "device/mbarrier.cuh"
#include "operands.cuh"

// The members of GateArguments that a gate other than a phase needs at every tile. `step_mask` has
// the bits of the number of a thread's step.
struct SequenceMasks {
    uint32 row_mask[4];
    uint32 register_mask[2];
    uint32 step_mask[2];
    uint32 pair_mask;
};

// One gate. `read_mask` and `result_mask` have the bits of a thread's number. A set of phases uses
// only `phase_row`, the bit of each place in the number of a row of its table.
struct SequenceGate {
    uint32 phase_row[13];
    uint32 read_mask[9];
    uint32 result_mask[9];
};

constexpr int kPhaseBits = 8;
constexpr int kOutsideQubits = 32;
constexpr int kMaxProducts = 8;
constexpr int kMaxGates = 128;

// Phase factors by the values of eight qubits of the tile, and further factors for each of these
// qubits where a qubit outside the tile is 1 too.
struct PhaseTable {
    double2 inside[1 << kPhaseBits];
    double2 outside[kPhaseBits][kOutsideQubits];
};

// `chunk_offset` and `chunk_mask` of GateArguments have an entry for each bit of a chunk's number.
// `result_offset` and `register_offset` are those of the last gate where it is a product by wgmma.
// What all threads need at every gate is read from here, through the constant cache: shared memory
// is what bounds the kernel.
struct SequenceArguments : GateArguments {
    const SequenceGate* gates;  // `matrix` has those that are not phases, one after another
    const PhaseTable* phases;
    int64 count;
    int64 products;  // gates that are not phases
    int64 step_offset[2];
    SequenceMasks masks[kMaxProducts];
    // Each gate: its kind, 4 where its results go straight to the state, and 8 times its number
    // among phases or among the others.
    uint32 order[kMaxGates];
};

// A gate that is a product, without or with qubit 0 among its targets
// (`gates.layout.Tile.targets_qubit0`), or a phase.
enum GateKind : uint32 { kWithoutQubit0, kWithQubit0, kPhase };

__device__ __forceinline__ uint32 kind_of(uint32 entry) { return entry % 4; }
__device__ __forceinline__ bool goes_to_state(uint32 entry) { return entry & 4; }
__device__ __forceinline__ uint32 index_of(uint32 entry) { return entry / 8; }

__device__ __forceinline__ void load_shared(uint32 from, uint32& found) {
    asm volatile("ld.volatile.shared.b32 %0, [%1];" : "=r"(found) : "r"(from) : "memory");
}

__device__ __forceinline__ void load_shared(uint32 from, unsigned short& found) {
    asm volatile("ld.volatile.shared.b16 %0, [%1];" : "=h"(found) : "r"(from) : "memory");
}

__device__ __forceinline__ void store_shared(uint32 to, uint32 value) {
    asm volatile("st.volatile.shared.b32 [%0], %1;" ::"r"(to), "r"(value) : "memory");
}

__device__ __forceinline__ void store_shared(uint32 to, unsigned short value) {
    asm volatile("st.volatile.shared.b16 [%0], %1;" ::"r"(to), "h"(value) : "memory");
}

// Entries of unitary matrices are not scaled: those that fp16 rounds to a multiple of 2^-24 are
// small beside the others of their row.
struct SequenceMatrix {
    const float2* matrix;
    int matrix_exponent;
};

// The way of a tile of 2^TileBits amplitudes to shared memory and back, as TilePipeline has it: a
// thread copies the same chunks in and out.
template <int TileBits, int Threads>
struct SequencePipeline {
    static constexpr int kTileBytes = 8 << TileBits, kThreadBits = log2_of(Threads);
    static constexpr int kChunks = kTileBytes / 16 / Threads, kChunkBits = log2_of(kChunks);
    static constexpr int kGroup = kChunks < 8 ? kChunks : 8;

    const SequenceArguments& args;
    char* source;
    uint32 mask;

    __device__ __forceinline__ SequencePipeline(const SequenceArguments& arguments, uint32 thread)
        : args(arguments),
          source(arguments.state + or_offsets<kThreadBits>(arguments.thread_offset, thread)),
          mask(xor_masks<kThreadBits>(arguments.thread_mask, thread)) {}

    __device__ __forceinline__ uint32 chunk(uint32 stage, int i) const {
        return chunk(stage, mask, i);
    }

    __device__ __forceinline__ uint32 chunk(uint32 stage, uint32 own, int i) const {
        return stage + (own ^ xor_masks<kChunkBits>(args.chunk_mask, i));
    }

    __device__ __forceinline__ int64 chunk_offset(int i) const {
        return or_offsets<kChunkBits>(args.chunk_offset, i);
    }

    // Issues the copies of a tile; when they have arrived, so has the thread at the mbarrier.
    __device__ __forceinline__ void load(uint32 tile, uint32 stage, uint32 mbarrier) const {
        if (tile >= args.tiles) return;
        const char* from = source + tile_offset(args, tile);
        uint32 own = mask;
        own = opaque(own);
#pragma unroll
        for (int i = 0; i < kChunks; ++i) cp_async_16(chunk(stage, own, i), from + chunk_offset(i));
        cp_async_arrive(mbarrier);
    }

    __device__ __forceinline__ void store(uint32 tile, uint32 stage) const {
        char* target = source + tile_offset(args, tile);
#pragma unroll
        for (int first = 0; first < kChunks; first += kGroup) {
            float4 chunks[kGroup];
#pragma unroll
            for (int i = 0; i < kGroup; ++i) chunks[i] = load_shared_16(chunk(stage, first + i));
#pragma unroll
            for (int i = 0; i < kGroup; ++i)
                store_global_16(target + chunk_offset(first + i), chunks[i]);
        }
    }

    // Absmax of the warp's chunks, as bits.
    __device__ __forceinline__ uint32 absmax(uint32 stage) const {
        uint32 found = 0, own = mask;
        own = opaque(own);
#pragma unroll
        for (int first = 0; first < kChunks; first += kGroup) {
            float4 chunks[kGroup];
#pragma unroll
            for (int i = 0; i < kGroup; ++i)
                chunks[i] = load_shared_16(chunk(stage, own, first + i));
            found = max(found, warp_absmax(chunks));
        }
        return found;
    }
};
