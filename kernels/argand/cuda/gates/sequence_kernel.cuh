// Sequences of gates in one pass over a state, by mma.sync (sm_80 and newer): a tile of 2^12
// amplitudes stays in shared memory while gates on any four of its qubits are applied one after
// another. The tile is scaled once; a sequence of unitary gates keeps its norm, which is at most
// 2^6 of its absmax. Products are those of sm80_kernel.cuh. Phases of one and two qubits are applied
// together, also where one of the two is outside the tile and has one value in all of it.
#pragma once
#include "sequence_phases.cuh"
#include "sm80_kernel.cuh"

#ifndef SEQUENCE_UNROLL
#define SEQUENCE_UNROLL 1
#endif

// Gates by wgmma (sequence_sm90.cuh).
template <Operand operand, int Terms>
struct WgmmaStep;

template <Operand operand, int Terms, Rounding first, Rounding second, int TileBits, int Groups,
          int Stages, bool Wgmma = false>
struct GateSequence {
    static constexpr int kThreads = 1 << (TileBits - 5);  // of a group
    using Pipeline = SequencePipeline<TileBits, kThreads>;
    static constexpr int kWarps = kThreads / kWarp, kThreadBits = Pipeline::kThreadBits;
    static constexpr int kSteps = 4;  // of 16 columns, of each warp
    static_assert(kSteps * kWarps == 1 << (TileBits - 8));
    static constexpr bool kScaled = is_scaled(operand);
    template <bool inside>
    using Gate = MmaGate<operand, Terms, first, second, 4, inside, 2, false>;
    static constexpr int kNumKTiles = Gate<false>::kNumKTiles;
    static constexpr int kNumbersPerLane = Gate<false>::kNumbersPerLane;
    static constexpr int kRegisters = 8 * kNumKTiles * Terms;  // of a matrix
    static constexpr uint32 kSigns = bytes_of(operand) == 4 ? 0x80000000u : 0x80008000u;
    using Negative = uint32[kNumKTiles][Terms][4];  // of the imaginary parts
    // Of 16 columns, in a lane: [k-tile][real, imaginary][column][term][register].
    using Columns = uint32[kNumKTiles][2][2][Terms][2];
    using Amplitudes = float2[kNumKTiles][2][kNumbersPerLane];  // of 16 columns, in a lane
    static constexpr uint32 kAddressBytes = Wgmma ? 2 : 4;  // wgmma writes where it reads
    static constexpr uint32 kMatrixBytes = Wgmma ? 2048 * Terms : kRegisters * 4 * kWarp;

    const SequenceArguments& args;
    uint32 matrices;   // shared addresses: of fragments, kMatrixBytes a gate,
    uint32 addresses;  // of each thread's read and result address in a tile, by gate,
    uint32 masks;      // and of the gates' masks
    uint32 thread, group;  // the number of a thread in its group

    // What a group has of its own.
    struct Scratch {
        uint32 warp_maxima[kWarps];
        double2 linear[kPhaseBits];
        float2 factors[1 << kPhaseBits];
    };

    template <bool inside>
    __device__ __forceinline__ void store_fragments(int gate, uint32 lane) const {
        const int index = args.gates[gate].index;
        if constexpr (Wgmma) {
            WgmmaStep<operand, Terms>::template store_matrix<inside>(
                static_cast<const float2*>(args.matrix) + 256 * index,
                matrices + index * kMatrixBytes, lane);
            return;
        }
        Gate<inside> held;
        const SequenceMatrix matrix{static_cast<const float2*>(args.matrix) + 256 * index, 0};
        held.load_fragments(matrix, lane, 0);
        const uint32* words = &held.matrix[0][0][0][0];
        const uint32 at = matrices + index * kMatrixBytes + 16 * lane;
#pragma unroll
        for (int i = 0; i < kRegisters; i += 4)
            store_shared_16(at + 4 * kWarp * i, words[i], words[i + 1], words[i + 2], words[i + 3]);
    }

    // Groups share the matrices and the addresses.
    __device__ __forceinline__ void prepare() const {
        const uint32 lane = thread % kWarp, warp = threadIdx.x / kWarp;
        for (int gate = group; gate < args.count; gate += Groups) {
            if (args.gates[gate].kind == 2) continue;
            const uint32 read = xor_masks<kThreadBits>(args.gates[gate].read_mask, thread);
            const uint32 result = xor_masks<kThreadBits>(args.gates[gate].result_mask, thread);
            const uint32 at =
                addresses + kAddressBytes * (args.gates[gate].index * kThreads + thread);
            if constexpr (Wgmma)
                asm volatile("st.shared.b16 [%0], %1;" ::"r"(at), "h"(static_cast<unsigned short>(read))
                             : "memory");
            else
                asm volatile("st.shared.b32 [%0], %1;" ::"r"(at), "r"(read | result << 16)
                             : "memory");
            const uint4* from = reinterpret_cast<const uint4*>(&args.gates[gate].masks);
            const uint32 to = masks + args.gates[gate].index * sizeof(SequenceMasks);
            if (thread < sizeof(SequenceMasks) / 16)
                store_shared_16(to + 16 * thread, from[thread].x, from[thread].y, from[thread].z,
                                from[thread].w);
        }
        for (int gate = warp; gate < args.count; gate += kWarps * Groups) {
            if (args.gates[gate].kind == 2) continue;
            if (args.gates[gate].kind)
                store_fragments<true>(gate, lane);
            else
                store_fragments<false>(gate, lane);
        }
        // wgmma reads the matrices through the async proxy.
        if constexpr (Wgmma) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }

    __device__ __forceinline__ static void split(const Amplitudes& x, Columns& columns) {
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
    }

    // Multiplies 16 columns, small products of all k-tiles first.
    template <bool inside>
    __device__ __forceinline__ static void multiply(const Gate<inside>& held,
                                                    const Negative& negative,
                                                    const Columns& columns, float (&re)[2][4],
                                                    float (&im)[2][4]) {
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
    __device__ __forceinline__ static void load_columns(const SequenceMasks& gate, uint32 stage,
                                                        uint32 at, Amplitudes& x) {
#pragma unroll
        for (int k_tile = 0; k_tile < kNumKTiles; ++k_tile)
            Gate<inside>::load_k_tile(gate, stage, at, k_tile, x[k_tile]);
    }

    __device__ __forceinline__ SequenceMasks masks_of(uint32 index) const {
        SequenceMasks found;
        uint32* words = found.row_mask;
        const uint32 at = masks + index * sizeof(SequenceMasks);
#pragma unroll
        for (int i = 0; i < sizeof(SequenceMasks) / 16; ++i) {
            const uint4 four = load_shared_words(at + 16 * i);
            words[4 * i] = four.x;
            words[4 * i + 1] = four.y;
            words[4 * i + 2] = four.z;
            words[4 * i + 3] = four.w;
        }
        return found;
    }

    // Applies one gate. The first of a tile multiplies by its scale, the last divides by it.
    template <bool inside>
    __device__ __forceinline__ void apply(uint32 index, uint32 lane, uint32 stage, float scale,
                                          float descale) const {
        const SequenceMasks gate = masks_of(index);
        const uint32 from = addresses + kAddressBytes * (index * kThreads + thread);
        if constexpr (Wgmma) {
            unsigned short place;
            asm volatile("ld.shared.b16 %0, [%1];" : "=h"(place) : "r"(from) : "memory");
            WgmmaStep<operand, Terms>::template apply<inside, kSteps>(
                gate, matrices + index * kMatrixBytes, stage, place, scale, descale);
            return;
        }
        uint32 both;
        asm volatile("ld.shared.b32 %0, [%1];" : "=r"(both) : "r"(from) : "memory");
        uint32 read = both & 0xffffu, result = both >> 16;
        Amplitudes x;
        load_columns<inside>(gate, stage, read, x);
        Gate<inside> held;
        Negative negative;
        uint32* words = &held.matrix[0][0][0][0];
        const uint32 at = matrices + index * kMatrixBytes + 16 * lane;
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
        // The steps are in the order of a Gray code. The columns of the next one are on their way
        // while those of this one are multiplied.
#pragma unroll SEQUENCE_UNROLL
        for (int step = 0; step < kSteps; ++step) {
            if (kScaled && scale != 1.0f) {
#pragma unroll
                for (auto& k_tile : x)
#pragma unroll
                    for (auto& column : k_tile)
#pragma unroll
                        for (float2& one : column) one = {one.x * scale, one.y * scale};
            }
            Columns columns;
            split(x, columns);
            const uint32 moved = step & 1 ? gate.step_mask[1] : gate.step_mask[0];
            read ^= moved;
            if (step + 1 < kSteps) load_columns<inside>(gate, stage, read, x);
            float re[2][4] = {}, im[2][4] = {};
            multiply<inside>(held, negative, columns, re, im);
            if (kScaled) {
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    re[i / 4][i % 4] *= descale;
                    im[i / 4][i % 4] *= descale;
                }
            }
            __syncwarp();  // its columns have been read
            store<inside>(gate, stage, result, re, im);
            result ^= moved;
        }
    }

    // Bit 0 of a chunk's number is the lowest bit of a column, bit 1 the lower rows or, where a chunk
    // holds both rows, the second tile of columns.
    template <bool inside>
    __device__ __forceinline__ static void store(const SequenceMasks& gate, uint32 stage, uint32 at,
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

    __device__ __forceinline__ void synchronize() const {
        asm volatile("bar.sync %0, %1;" ::"r"(group + 1), "n"(kThreads) : "memory");
    }

    // The exponent that brings a tile's absmax to 2^(TileBits / 2) below what a single gate takes.
    __device__ __forceinline__ int scale_of(const Pipeline& pipeline, uint32 stage,
                                            uint32 (&warp_maxima)[kWarps]) const {
        const uint32 absmax = pipeline.absmax(stage);
        if (thread % kWarp == 0) warp_maxima[thread / kWarp] = absmax;
        synchronize();
        return max(-126, scale_exponent<operand>(block_absmax(warp_maxima)) - (TileBits + 1) / 2);
    }

    // Applies all gates to the tile of a stage.
    __device__ __forceinline__ void apply_all(const Pipeline& pipeline, uint32 tile, uint32 stage,
                                              Scratch& own) const {
        const uint32 lane = thread % kWarp;
        const int exponent = kScaled ? scale_of(pipeline, stage, own.warp_maxima) : 0;
        uint32 index = args.gates[0].index, kind = args.gates[0].kind;
        for (int number = 0; number < args.count; ++number) {
            // The tile is as the gate before left it; the first barrier was that of the scale.
            if (number > 0) synchronize();
            const SequenceGate& next = args.gates[min(number + 1, static_cast<int>(args.count) - 1)];
            const uint32 next_index = next.index, next_kind = next.kind;
            const float scale = index == 0 ? power_of_two(exponent) : 1.0f;
            const float descale = index == args.products - 1 ? power_of_two(-exponent) : 1.0f;
            if (kind == 2) {
                make_phases<kThreads>(args.phases[index], tile, thread, own.linear, own.factors,
                                      [this] { synchronize(); });
                apply_phases(pipeline, args.gates[number], stage, thread, own.factors);
            } else if (kind) {
                apply<true>(index, lane, stage, scale, descale);
            } else {
                apply<false>(index, lane, stage, scale, descale);
            }
            index = next_index;
            kind = next_kind;
        }
        synchronize();
    }

    // Groups take the block's tiles in turn, stages go around: while groups compute, the stages that
    // are left wait for their tiles. So a multiprocessor computes and copies at any time; blocks of
    // one group and one stage each did both in turn, all of them at the same time.
    __device__ __forceinline__ static void run(const SequenceArguments& args) {
        extern __shared__ __align__(1024) unsigned char memory[];
        __shared__ Scratch scratch[Groups];
        __shared__ uint64 barriers[Stages];
        __shared__ uint32 issued[Stages];  // how often a stage's copies have been issued
        const uint32 ring = shared_address(memory), full = shared_address(barriers);
        const uint32 matrices = ring + Stages * Pipeline::kTileBytes;
        const uint32 thread = threadIdx.x % kThreads, group = threadIdx.x / kThreads;
        const uint32 products = args.products;
        const uint32 addresses = matrices + products * kMatrixBytes;
        const GateSequence sequence{args,   matrices, addresses, addresses + products * kAddressBytes * kThreads,
                                    thread, group};
        const Pipeline pipeline(args, thread);
        if (threadIdx.x < Stages) {
            mbarrier_init(full + 8 * threadIdx.x, kThreads);
            issued[threadIdx.x] = 1;
        }
        __syncthreads();
        for (uint32 stage = group; stage < Stages; stage += Groups)
            pipeline.load(blockIdx.x + stage * gridDim.x, ring + stage * Pipeline::kTileBytes,
                          full + 8 * stage);
        sequence.prepare();
        __syncthreads();
        for (uint32 turn = group;; turn += Groups) {
            const uint32 tile = blockIdx.x + turn * gridDim.x;
            if (tile >= args.tiles) break;
            const uint32 number = turn % Stages, round = turn / Stages;
            const uint32 stage = ring + number * Pipeline::kTileBytes, barrier = full + 8 * number;
            // A parity tells a phase from the next one alone, and groups drift apart: the group
            // that had this stage before may itself still wait for its tile.
            while (load_shared_volatile(&issued[number]) <= round) {
            }
            mbarrier_spin(barrier, round & 1);
            sequence.apply_all(pipeline, tile, stage, scratch[group]);
            pipeline.store(tile, stage);
            pipeline.load(tile + Stages * gridDim.x, stage, barrier);
            if (thread == 0) store_shared_volatile(&issued[number], round + 2);
        }
    }
};
