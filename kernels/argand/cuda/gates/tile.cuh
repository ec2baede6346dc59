// Tiles of a state, which all gate kernels share: the kernel arguments, the swizzled addresses of a
// tile in shared memory, and the cp.async pipeline from the state to shared memory and back.
//
// A gate on k qubits multiplies every column of 2^k amplitudes whose indices differ only in the
// targets' bits. A tile holds all values of the target bits times those of some low bits of the
// index, and is copied in chunks of 16 bytes. A chunk lies in shared memory at its number within
// the tile, with address bits 4 to 6 XORed with higher bits (the swizzle). Addresses are therefore
// linear over XOR: each bit of a thread's index contributes one mask. argand/gates/layout.py
// chooses the masks so that accesses are free of bank conflicts.
#pragma once
#include "device/cp_async.cuh"
#include "device/scaling.cuh"
#include "device/shared.cuh"

constexpr int kMaxSegments = 20;
constexpr int kMaxThreadBits = 9;
constexpr int kMaxChunks = 8;
constexpr int kMaxWidth = 7;

// ARGUMENTS of argand/gates/source.py lists the same members, and argand/gates/tile_tables.py gives
// their values. Offsets are in bytes of the state, masks are XORed to byte addresses in a tile.
// Arrays have an entry for each bit of an index (of the thread, the tile, the row of the gate's
// matrix), those of chunks one for each chunk that a thread copies.
struct GateArguments {
    char* state;
    const void* matrix;
    int64 control_offset;    // all controls set
    int64 matrix_exponent;   // the matrix is scaled by 2^matrix_exponent,
    const int* exponent_at;  // or by the power that a kernel wrote here; null where none did
    int64 thread_offset[kMaxThreadBits];
    int64 chunk_offset[kMaxChunks];
    int64 result_offset[kMaxThreadBits];  // of tensor-core results, by the thread's bits,
    int64 register_offset[3];             // and by the register (for_each_result_chunk)
    uint32 thread_mask[kMaxThreadBits];
    uint32 chunk_mask[kMaxChunks];
    uint32 tiles;
    uint32 segments;
    uint32 segment_mask[kMaxSegments];   // adjacent bits of a tile's index,
    uint32 segment_shift[kMaxSegments];  // and their shift to an offset in bytes
    uint32 row_mask[kMaxWidth];          // of the targets, lowest first
    uint32 read_mask[kMaxThreadBits];    // where a thread reads columns
    uint32 column_mask[2];               // further columns of the same thread
    uint32 pair_mask;                    // from a column to its neighbour
    uint32 result_mask[kMaxThreadBits];  // of tensor-core results, as result_offset
    uint32 register_mask[3];
    uint32 thread_row[kMaxThreadBits];  // rows of the chunks that a thread copies
    uint32 chunk_row[kMaxChunks];
    uint32 thread_plane[kMaxThreadBits];  // of these chunks in operand planes, in bytes
    uint32 chunk_plane[kMaxChunks];
    int controls_qubit0;  // qubit 0 is a control: the lower half of each chunk does not change
    int controls_qubit1;  // qubit 1 is one, and a column (controls_in_tile in layout.py)
    uint32 tile_mask;     // bits of a tile's number in its offset, in lines,
    uint32 tile_stride;   // and those of the step from a tile of a block to its next
};

__device__ __forceinline__ int64 tile_offset(const GateArguments& args, uint32 tile) {
    int64 offset = args.control_offset;
    // Four at a time, so that their loads do not wait for each other; masks beyond the last are 0.
    for (uint32 i = 0; i < args.segments; i += 4) {
#pragma unroll
        for (uint32 j = i; j < i + 4; ++j)
            offset |= static_cast<int64>(tile & args.segment_mask[j]) << args.segment_shift[j];
    }
    return offset;
}

// The tiles of a block in turn: where each begins. 32 bits hold that in lines of 128 bytes, since
// no line is part of two tiles. Controls, which may be bits within a line, are not in it.
struct TileWalk {
    static constexpr int kLineBits = 7;
    uint32 line;

    __device__ __forceinline__ explicit TileWalk(const GateArguments& args)
        : line(static_cast<uint32>((tile_offset(args, blockIdx.x) - args.control_offset) >>
                                   kLineBits)) {}

    __device__ __forceinline__ int64 offset() const {
        return static_cast<int64>(line) << kLineBits;
    }

    // Goes on to the next tile, and returns whether there is one. A sum over the bits of a tile's
    // number alone: all others are set, so that they carry, out of the highest one behind the last.
    __device__ __forceinline__ bool next(const GateArguments& args) {
        const uint32 sum = (line | ~args.tile_mask) + args.tile_stride;
        line = sum & args.tile_mask;
        return sum >= args.tile_stride;
    }
};

// XOR of the masks of the bits that are set in a number.
template <int Bits>
__device__ __forceinline__ uint32 xor_masks(const uint32* masks, uint32 number) {
    uint32 mask = 0;
#pragma unroll
    for (int bit = 0; bit < Bits; ++bit) {
        if (number >> bit & 1) mask ^= masks[bit];
    }
    return mask;
}

template <typename Arguments>
__device__ __forceinline__ int matrix_exponent_of(const Arguments& args) {
    return args.matrix_exponent;
}
__device__ __forceinline__ int matrix_exponent_of(const GateArguments& args) {
    // No load where the host knows it: a tile would wait for it.
    return args.exponent_at ? __ldg(args.exponent_at) : static_cast<int>(args.matrix_exponent);
}

__device__ __forceinline__ void store_global_16(char* target, float4 x) {
    asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(target), "f"(x.x), "f"(x.y),
                 "f"(x.z), "f"(x.w)
                 : "memory");
}

// Writes a chunk of the state; only its upper half where qubit 0 is a control.
__device__ __forceinline__ void store_chunk(const GateArguments& args, char* target, float4 x) {
    if (args.controls_qubit0) {
        *reinterpret_cast<float2*>(target + 8) = {x.z, x.w};
    } else {
        store_global_16(target, x);
    }
}

// Writes a chunk of the state to shared memory as `store_chunk` does, unless it is excluded.
// Branches would take registers that mma.sync of tf32 on 6 qubits lacks.
__device__ __forceinline__ void store_shared_chunk(const GateArguments& args, uint32 target,
                                                   float4 x, int excluded) {
    asm volatile(
        "{\n"
        ".reg .pred any, all, upper;\n"
        "setp.eq.s32 any, %5, 0;\n"
        "setp.eq.and.s32 all, %6, 0, any;\n"
        "setp.ne.and.s32 upper, %6, 0, any;\n"
        "@all st.shared.v4.f32 [%0], {%1, %2, %3, %4};\n"
        "@upper st.shared.v2.f32 [%0 + 8], {%3, %4};\n"
        "}\n" ::"r"(target),
        "f"(x.x), "f"(x.y), "f"(x.z), "f"(x.w), "r"(excluded), "r"(args.controls_qubit0)
        : "memory");
}

// OR of the offsets of the bits that are set in a number.
template <int Bits>
__device__ __forceinline__ int64 or_offsets(const int64* offsets, uint32 number) {
    int64 offset = 0;
#pragma unroll
    for (int bit = 0; bit < Bits; ++bit) {
        if (number >> bit & 1) offset |= offsets[bit];
    }
    return offset;
}

// The ring of tiles in shared memory. A thread loads and stores the same chunks of every tile, so
// that no barrier is needed between the store of one tile and the load of the next into its stage.
// WritesWholeChunks is for kernels that leave in the tile what a control excludes.
template <int TileBytes, int Threads, int Stages, bool WritesWholeChunks = false>
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

    // Issues the copies of a tile; an empty group beyond the last tile keeps the count of groups.
    __device__ __forceinline__ void load(uint32 tile, uint32 stage) const {
        if (tile < args.tiles) copy(source + tile_offset(args, tile), stage);
        cp_async_commit();
    }

    __device__ __forceinline__ void copy(const char* from, uint32 stage) const {
#pragma unroll
        for (int i = 0; i < kChunks; ++i) cp_async_16(chunk(stage, i), from + args.chunk_offset[i]);
    }

    __device__ __forceinline__ void load_prologue(uint32 ring) const {
#pragma unroll
        for (int i = 0; i < Stages; ++i) load(blockIdx.x + i * gridDim.x, ring + i * TileBytes);
    }

    // Stores a tile to the state, and issues the load of the next tile into its stage.
    __device__ __forceinline__ void store_and_refill(uint32 tile, uint32 stage) const {
        store(source + tile_offset(args, tile), stage);
        load(tile + Stages * gridDim.x, stage);
    }

    __device__ __forceinline__ void store(char* target, uint32 stage) const {
        float4 chunks[kChunks];
#pragma unroll
        for (int i = 0; i < kChunks; ++i) chunks[i] = load_shared_16(chunk(stage, i));
#pragma unroll
        for (int i = 0; i < kChunks; ++i) {
            if constexpr (WritesWholeChunks) {
                store_global_16(target + args.chunk_offset[i], chunks[i]);
            } else {
                store_chunk(args, target + args.chunk_offset[i], chunks[i]);
            }
        }
    }
};

// TilePipeline that walks from tile to tile. It keeps the offset of the tile to load next in
// registers, because to compute one from a tile's number takes dozens of instructions, for which
// blocks of some kernels wait.
template <int TileBytes, int Threads, int Stages>
struct WalkingPipeline : TilePipeline<TileBytes, Threads, Stages> {
    using Base = TilePipeline<TileBytes, Threads, Stages>;
    using Base::args;
    TileWalk loads;
    bool more = true;  // tiles to load

    __device__ __forceinline__ explicit WalkingPipeline(const GateArguments& arguments)
        : Base(arguments), loads(arguments) {
        this->source += arguments.control_offset;
    }

    // Issues the copies of the next tile.
    __device__ __forceinline__ void load(uint32 stage) {
        if (more) {
            const char* from = this->source + loads.offset();
            more = loads.next(args);
            this->copy(from, stage);
        }
        cp_async_commit();
    }

    __device__ __forceinline__ void load_prologue(uint32 ring) {
#pragma unroll
        for (int i = 0; i < Stages; ++i) load(ring + i * TileBytes);
    }

    // Stores a tile to the state, and issues the load of the next tile into its stage.
    __device__ __forceinline__ void store_and_refill(const TileWalk& tile, uint32 stage) {
        this->store(this->source + tile.offset(), stage);
        load(stage);
    }
};

// Address of the stage after this one.
template <int TileBytes, int Stages>
__device__ __forceinline__ uint32 next_stage(uint32 stage, uint32 ring) {
    stage += TileBytes;
    return stage == ring + Stages * TileBytes ? ring : stage;
}
