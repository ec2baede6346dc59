// Sequences of gates in one pass over a state, by mma.sync (sm_80 and newer): a tile of 2^12
// amplitudes stays in shared memory while gates on any four of its qubits are applied one after
// another. The tile is scaled once; a sequence of unitary gates keeps its norm, which is at most
// 2^6 of its absmax. Products are those of sm80_kernel.cuh.
#pragma once
#include "sm80_kernel.cuh"

// One gate. Members of these names are those of GateArguments; `step_mask` is the column bit of a
// warp's second half.
struct SequenceGate {
    uint32 row_mask[4];
    uint32 read_mask[8];
    uint32 result_mask[8];
    uint32 register_mask[2];
    uint32 pair_mask;
    uint32 step_mask;
    int inside;
    int matrix_exponent;
};

struct SequenceArguments : GateArguments {
    const SequenceGate* gates;  // `matrix` has theirs, one after another
    int64 count;
};

struct SequenceMatrix {
    const float2* matrix;
    int matrix_exponent;
};

template <Operand operand, int Terms, Rounding first, Rounding second, int Stages,
          bool SeparateSmallProducts>
struct GateSequence {
    static constexpr int kThreads = 256, kWarps = kThreads / kWarp;
    static constexpr int kTileBytes = 32 * 1024;
    static constexpr int kTileBits = 12, kSteps = 2;
    static constexpr bool kScaled = is_scaled(operand);
    template <bool inside>
    using Gate = MmaGate<operand, Terms, first, second, 4, inside, 2, SeparateSmallProducts>;
    static constexpr int kRegisters = 8 * Gate<false>::kNumKTiles * Terms;  // of a matrix
    static constexpr uint32 kMatrixBytes = kRegisters * 4 * kWarp;
    using Pipeline = TilePipeline<kTileBytes, kThreads, Stages>;

    const SequenceArguments& args;
    uint32 matrices;   // shared addresses: of fragments, kMatrixBytes a gate,
    uint32 addresses;  // and of each thread's read and result address in a tile, by gate

    template <bool inside>
    __device__ __forceinline__ void store_fragments(int gate, uint32 lane) const {
        Gate<inside> held;
        const SequenceMatrix matrix{static_cast<const float2*>(args.matrix) + 256 * gate,
                                    args.gates[gate].matrix_exponent};
        held.load_fragments(matrix, lane, 0);
        const uint32* words = &held.matrix[0][0][0][0];
        const uint32 at = matrices + gate * kMatrixBytes + 16 * lane;
#pragma unroll
        for (int i = 0; i < kRegisters; i += 4)
            store_shared_16(at + 4 * kWarp * i, words[i], words[i + 1], words[i + 2], words[i + 3]);
    }

    __device__ __forceinline__ void prepare() const {
        const uint32 lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
        for (int gate = 0; gate < args.count; ++gate) {
            const uint32 read = xor_masks<8>(args.gates[gate].read_mask, threadIdx.x);
            const uint32 result = xor_masks<8>(args.gates[gate].result_mask, threadIdx.x);
            const uint32 at = addresses + 4 * (gate * kThreads + threadIdx.x);
            asm volatile("st.shared.b32 [%0], %1;" ::"r"(at), "r"(read | result << 16) : "memory");
        }
        for (int gate = warp; gate < args.count; gate += kWarps) {
            if (args.gates[gate].inside)
                store_fragments<true>(gate, lane);
            else
                store_fragments<false>(gate, lane);
        }
    }

    template <bool inside>
    __device__ __forceinline__ void apply(const SequenceGate& gate, int number, uint32 lane,
                                          uint32 stage) const {
        Gate<inside> held;
        uint32* words = &held.matrix[0][0][0][0];
        const uint32 at = matrices + number * kMatrixBytes + 16 * lane;
#pragma unroll
        for (int i = 0; i < kRegisters; i += 4) {
            const uint4 found = load_shared_words(at + 4 * kWarp * i);
            words[i] = found.x;
            words[i + 1] = found.y;
            words[i + 2] = found.z;
            words[i + 3] = found.w;
        }
        uint32 both;
        asm volatile("ld.shared.b32 %0, [%1];"
                     : "=r"(both)
                     : "r"(addresses + 4 * (number * kThreads + threadIdx.x))
                     : "memory");
        const float descale = kScaled ? power_of_two(-gate.matrix_exponent) : 1.0f;
#pragma unroll 1
        for (int step = 0; step < kSteps; ++step) {
            const uint32 moved = step ? gate.step_mask : 0;
            float re[8], im[8];
            held.mainloop(gate, stage, (both & 0xffffu) ^ moved, 1.0f, re, im);
            __syncwarp();  // its columns have been read
            for_each_result_chunk<inside, 2>(
                re, im, float2{descale, 1.0f}, [&](int register_number, float4 chunk) {
                    const uint32 offset = xor_masks<2>(gate.register_mask, register_number);
                    store_shared_16(stage + ((both >> 16) ^ moved ^ offset), chunk);
                });
        }
    }

    // Brings a tile's absmax to 2^6 below what a single gate takes; returns the exponent.
    __device__ __forceinline__ int scale_tile(const Pipeline& pipeline, uint32 stage,
                                              uint32 (&warp_maxima)[kWarps]) const {
        float4 chunks[Pipeline::kChunks];
#pragma unroll
        for (int i = 0; i < Pipeline::kChunks; ++i)
            chunks[i] = load_shared_16(pipeline.chunk(stage, i));
        const uint32 absmax = warp_absmax(chunks);
        if (threadIdx.x % kWarp == 0) warp_maxima[threadIdx.x / kWarp] = absmax;
        __syncthreads();
        const int exponent = scale_exponent<operand>(block_absmax(warp_maxima)) - kTileBits / 2;
        const float2 scale = split_power_of_two(exponent);
#pragma unroll
        for (int i = 0; i < Pipeline::kChunks; ++i)
            store_shared_16(pipeline.chunk(stage, i), scaled(chunks[i], scale));
        return exponent;
    }

    __device__ __forceinline__ static float4 scaled(float4 x, float2 scale) {
        return {x.x * scale.x * scale.y, x.y * scale.x * scale.y, x.z * scale.x * scale.y,
                x.w * scale.x * scale.y};
    }

    __device__ __forceinline__ static void store_and_refill(const Pipeline& pipeline, uint32 tile,
                                                            uint32 stage, int exponent) {
        const float2 scale = split_power_of_two(-exponent);
        float4 chunks[Pipeline::kChunks];
        char* target = pipeline.source + tile_offset(pipeline.args, tile);
#pragma unroll
        for (int i = 0; i < Pipeline::kChunks; ++i)
            chunks[i] = load_shared_16(pipeline.chunk(stage, i));
#pragma unroll
        for (int i = 0; i < Pipeline::kChunks; ++i)
            store_global_16(target + pipeline.args.chunk_offset[i],
                            kScaled ? scaled(chunks[i], scale) : chunks[i]);
        pipeline.load(tile + Stages * gridDim.x, stage);
    }

    __device__ __forceinline__ static void run(const SequenceArguments& args) {
        extern __shared__ __align__(1024) unsigned char memory[];
        __shared__ __align__(16) uint32 warp_maxima[kWarps];
        const uint32 ring = shared_address(memory), lane = threadIdx.x % kWarp;
        const uint32 matrices = ring + Stages * kTileBytes;
        const GateSequence sequence{
            args, matrices, matrices + static_cast<uint32>(args.count) * kMatrixBytes};
        const Pipeline pipeline(args);
        pipeline.load_prologue(ring);
        sequence.prepare();
        uint32 stage = ring;
        for (uint32 tile = blockIdx.x; tile < args.tiles; tile += gridDim.x) {
            cp_async_wait<Stages - 1>();
            int exponent = 0;
            if constexpr (kScaled) exponent = sequence.scale_tile(pipeline, stage, warp_maxima);
            for (int number = 0; number < args.count; ++number) {
                __syncthreads();  // the tile is as the gate before left it
                const SequenceGate gate = args.gates[number];
                if (gate.inside)
                    sequence.template apply<true>(gate, number, lane, stage);
                else
                    sequence.template apply<false>(gate, number, lane, stage);
            }
            __syncthreads();
            store_and_refill(pipeline, tile, stage, exponent);
            stage = next_stage<kTileBytes, Stages>(stage, ring);
        }
    }
};
