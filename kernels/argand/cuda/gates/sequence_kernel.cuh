// Sequences of gates in one pass over a state, by mma.sync (sm_80 and newer): a tile of 2^12
// amplitudes stays in shared memory while gates on any four of its qubits are applied one after
// another. The tile is scaled once; a sequence of unitary gates keeps its norm, which is at most
// 2^6 of its absmax. Products are those of sm80_kernel.cuh. Phases of one and two qubits are applied
// together, also where one of the two is outside the tile and has one value in all of it.
#pragma once
#include "sequence_phases.cuh"
#include "sm80_kernel.cuh"

template <Operand operand, int Terms, Rounding first, Rounding second, int Threads, int Stages>
struct GateSequence {
    using Pipeline = SequencePipeline<Threads, Stages>;
    static constexpr int kWarps = Threads / kWarp, kThreadBits = Pipeline::kThreadBits;
    static constexpr int kTileBits = 12, kSteps = 16 / kWarps;
    static constexpr bool kScaled = is_scaled(operand);
    template <bool inside>
    using Gate = MmaGate<operand, Terms, first, second, 4, inside, 2, false>;
    static constexpr int kNumKTiles = Gate<false>::kNumKTiles;
    static constexpr int kNumbersPerLane = Gate<false>::kNumbersPerLane;
    static constexpr int kRegisters = 8 * kNumKTiles * Terms;  // of a matrix
    static constexpr uint32 kSigns = bytes_of(operand) == 4 ? 0x80000000u : 0x80008000u;
    using Negative = uint32[kNumKTiles][Terms][4];  // of the imaginary parts
    using Amplitudes = float2[kNumKTiles][2][kNumbersPerLane];  // of 16 columns, in a lane
    static constexpr uint32 kMatrixBytes = kRegisters * 4 * kWarp;

    const SequenceArguments& args;
    uint32 matrices;   // shared addresses: of fragments, kMatrixBytes a gate,
    uint32 addresses;  // and of each thread's read and result address in a tile, by gate

    template <bool inside>
    __device__ __forceinline__ void store_fragments(int gate, uint32 lane) const {
        Gate<inside> held;
        const int index = args.gates[gate].index;
        const SequenceMatrix matrix{static_cast<const float2*>(args.matrix) + 256 * index, 0};
        held.load_fragments(matrix, lane, 0);
        const uint32* words = &held.matrix[0][0][0][0];
        const uint32 at = matrices + index * kMatrixBytes + 16 * lane;
#pragma unroll
        for (int i = 0; i < kRegisters; i += 4)
            store_shared_16(at + 4 * kWarp * i, words[i], words[i + 1], words[i + 2], words[i + 3]);
    }

    __device__ __forceinline__ void prepare() const {
        const uint32 lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
        for (int gate = 0; gate < args.count; ++gate) {
            if (args.gates[gate].is_phase) continue;
            const uint32 read = xor_masks<kThreadBits>(args.gates[gate].read_mask, threadIdx.x);
            const uint32 result = xor_masks<kThreadBits>(args.gates[gate].result_mask, threadIdx.x);
            const uint32 at = addresses + 4 * (args.gates[gate].index * Threads + threadIdx.x);
            asm volatile("st.shared.b32 [%0], %1;" ::"r"(at), "r"(read | result << 16) : "memory");
        }
        for (int gate = warp; gate < args.count; gate += kWarps) {
            if (args.gates[gate].is_phase) continue;
            if (args.gates[gate].inside)
                store_fragments<true>(gate, lane);
            else
                store_fragments<false>(gate, lane);
        }
    }

    // Multiplies a lane's amplitudes of 16 columns, small products of all k-tiles first.
    template <bool inside>
    __device__ __forceinline__ static void multiply(
        const Gate<inside>& held, const Negative& negative, const Amplitudes& x, float (&re)[2][4],
        float (&im)[2][4]) {
        uint32 columns[kNumKTiles][2][2][Terms][2];  // [real, imaginary][column][term][register]
#pragma unroll
        for (int k_tile = 0; k_tile < kNumKTiles; ++k_tile) {
#pragma unroll
            for (int column = 0; column < 2; ++column) {
#pragma unroll
                for (int slot = 0; slot < 2; ++slot) {
                    uint32 parts[2][Terms];
                    split_operand<operand, Terms, first, second>(
                        x[k_tile][column] + slot * kNumbersPerRegister<operand>, 1.0f, parts[0],
                        parts[1]);
#pragma unroll
                    for (int term = 0; term < Terms; ++term) {
                        columns[k_tile][0][column][term][slot] = parts[0][term];
                        columns[k_tile][1][column][term][slot] = parts[1][term];
                    }
                }
            }
        }
#pragma unroll
        for (int product = 0; product < (Terms == 2 ? 3 : 1); ++product) {
            const int m = Terms == 2 && product == 1 ? 1 : 0, s = Terms == 2 && product == 0 ? 1 : 0;
#pragma unroll
            for (int k_tile = kNumKTiles - 1; k_tile >= 0; --k_tile) {
#pragma unroll
                for (int which = 0; which < 4; ++which) {
                    // re re, re im, -im im, im re
                    const uint32(&rows)[4] = which == 2 ? negative[k_tile][m]
                                                        : held.matrix[k_tile][which == 3][m];
                    const uint32 upper[2] = {rows[0], rows[2]}, lower[2] = {rows[1], rows[3]};
                    const int part = which == 1 || which == 2;
#pragma unroll
                    for (int column = 0; column < 2; ++column)
                        mma<operand>(which % 2 ? im[column] : re[column], upper, lower,
                                     columns[k_tile][part][column][s]);
                }
            }
        }
    }

    template <bool inside>
    __device__ __forceinline__ static void load_columns(const SequenceGate& gate, uint32 stage,
                                                        uint32 at, Amplitudes& x) {
#pragma unroll
        for (int k_tile = 0; k_tile < kNumKTiles; ++k_tile)
            Gate<inside>::load_k_tile(gate, stage, at, k_tile, x[k_tile]);
    }

    // Applies one gate. The first of a tile multiplies by its scale, the last divides by it.
    template <bool inside>
    __device__ __forceinline__ void apply(const SequenceGate& gate, uint32 lane, uint32 stage,
                                          float scale, float descale) const {
        Gate<inside> held;
        Negative negative;
        uint32* words = &held.matrix[0][0][0][0];
        const uint32 at = matrices + gate.index * kMatrixBytes + 16 * lane;
#pragma unroll
        for (int i = 0; i < kRegisters; i += 4) {
            const uint4 found = load_shared_words(at + 4 * kWarp * i);
            words[i] = found.x;
            words[i + 1] = found.y;
            words[i + 2] = found.z;
            words[i + 3] = found.w;
        }
#pragma unroll
        for (int i = 0; i < kRegisters / 2; ++i) {
            const int k_tile = i / (4 * Terms), term = i / 4 % Terms;
            negative[k_tile][term][i % 4] = held.matrix[k_tile][1][term][i % 4] ^ kSigns;
        }
        uint32 both;
        asm volatile("ld.shared.b32 %0, [%1];"
                     : "=r"(both)
                     : "r"(addresses + 4 * (gate.index * Threads + threadIdx.x))
                     : "memory");
        const uint32 read = both & 0xffffu, result = both >> 16;
        const auto moved = [&gate](int step) {
            return xor_masks<log2_of(kSteps)>(gate.read_mask + kThreadBits, step);
        };
        // The columns of the next step are on their way while those of this one are multiplied.
        Amplitudes x[2];
        load_columns<inside>(gate, stage, read, x[0]);
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
            if (step + 1 < kSteps)
                load_columns<inside>(gate, stage, read ^ moved(step + 1), x[(step + 1) % 2]);
            Amplitudes& own = x[step % 2];
            if (kScaled && scale != 1.0f) {
#pragma unroll
                for (auto& k_tile : own)
#pragma unroll
                    for (auto& column : k_tile)
#pragma unroll
                        for (float2& one : column) one = {one.x * scale, one.y * scale};
            }
            float re[2][4] = {}, im[2][4] = {};
            multiply<inside>(held, negative, own, re, im);
            if (kScaled && descale != 1.0f) {
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    re[i / 4][i % 4] *= descale;
                    im[i / 4][i % 4] *= descale;
                }
            }
            __syncwarp();  // its columns have been read
            store<inside>(gate, stage, result ^ moved(step), re, im);
        }
    }

    // Bit 0 of a chunk's number is the lowest bit of a column, bit 1 the lower rows or, where a chunk
    // holds both rows, the second tile of columns.
    template <bool inside>
    __device__ __forceinline__ static void store(const SequenceGate& gate, uint32 stage, uint32 at,
                                                 const float (&re)[2][4], const float (&im)[2][4]) {
#pragma unroll
        for (int number = 0; number < 4; ++number) {
            const int edge = number & 1, half = number >> 1;
            const int tile = inside ? half : 0, part = inside ? edge : edge + 2 * half;
            const int next_tile = inside ? half : 1, next_part = inside ? edge + 2 : part;
            const uint32 offset = xor_masks<2>(gate.register_mask, number);
            store_shared_16(stage + (at ^ offset),
                            {re[tile][part], im[tile][part], re[next_tile][next_part],
                             im[next_tile][next_part]});
        }
    }

    // The exponent that brings a tile's absmax to 2^6 below what a single gate takes.
    __device__ __forceinline__ static int scale_of(const Pipeline& pipeline, uint32 stage,
                                                   uint32 (&warp_maxima)[kWarps]) {
        const uint32 absmax = pipeline.absmax(stage);
        if (threadIdx.x % kWarp == 0) warp_maxima[threadIdx.x / kWarp] = absmax;
        __syncthreads();
        return max(-126, scale_exponent<operand>(block_absmax(warp_maxima)) - kTileBits / 2);
    }

    __device__ __forceinline__ static void run(const SequenceArguments& args) {
        extern __shared__ __align__(1024) unsigned char memory[];
        __shared__ __align__(16) uint32 warp_maxima[kWarps];
        __shared__ double2 linear[kPhaseBits];
        __shared__ float2 factors[1 << kPhaseBits];
        const uint32 ring = shared_address(memory), lane = threadIdx.x % kWarp;
        const uint32 matrices = ring + Stages * Pipeline::kTileBytes;
        const GateSequence sequence{
            args, matrices, matrices + static_cast<uint32>(args.products) * kMatrixBytes};
        const Pipeline pipeline(args);
#pragma unroll
        for (int i = 0; i < Stages; ++i)
            pipeline.load(blockIdx.x + i * gridDim.x, ring + i * Pipeline::kTileBytes);
        sequence.prepare();
        uint32 stage = ring;
        for (uint32 tile = blockIdx.x; tile < args.tiles; tile += gridDim.x) {
            cp_async_wait<Stages - 1>();
            const int exponent = kScaled ? scale_of(pipeline, stage, warp_maxima) : 0;
            for (int number = 0; number < args.count; ++number) {
                // The tile is as the gate before left it; the first barrier was that of the scale.
                if (number > 0 || !kScaled) __syncthreads();
                const SequenceGate gate = args.gates[number];
                const float scale = gate.index == 0 ? power_of_two(exponent) : 1.0f;
                const float descale =
                    gate.index == args.products - 1 ? power_of_two(-exponent) : 1.0f;
                if (gate.is_phase) {
                    make_phases<Threads>(args.phases[gate.index], tile, linear, factors);
                    apply_phases(pipeline, gate, stage, factors);
                } else if (gate.inside) {
                    sequence.template apply<true>(gate, lane, stage, scale, descale);
                } else {
                    sequence.template apply<false>(gate, lane, stage, scale, descale);
                }
            }
            __syncthreads();
            pipeline.store_and_refill(tile, stage);
            stage = next_stage<Pipeline::kTileBytes, Stages>(stage, ring);
        }
    }
};
