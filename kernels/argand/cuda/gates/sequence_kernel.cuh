// Sequences of gates in one pass over a state: a tile stays in shared memory while gates on any
// four of its qubits are applied one after another, by tensor cores. The tile is scaled once; a
// sequence of unitary gates keeps its norm, which is at most 2^(TileBits / 2) of its absmax. Phases
// of one and two qubits are applied together, also where one of the two is outside the tile and has
// one value in all of it.
//
// A step multiplies 16 columns of 16 amplitudes a warp by the matrix of a gate: `MmaStep` of
// sequence_sm80.cuh or `WgmmaStep` of sequence_sm90.cuh.
#pragma once
#include "sequence_phases.cuh"

// A tile has 2^TileBits amplitudes. A block has `Groups` groups of threads, each of which applies
// all gates to a tile of its own, and holds `Stages` tiles in shared memory: those that no group
// computes are copied. A warp takes `Steps` steps for a gate.
template <typename Step, int TileBits, int Groups, int Stages, int Steps>
struct GateSequence {
    static constexpr int kThreads = (1 << (TileBits - 3)) / Steps;  // of a group
    using Pipeline = SequencePipeline<TileBits, kThreads>;
    using Place = typename Step::Place;
    static constexpr int kWarps = kThreads / kWarp, kThreadBits = Pipeline::kThreadBits;
    static_assert(Steps <= 4 && Steps * kWarps == 1 << (TileBits - 8));
    static constexpr bool kScaled = is_scaled(Step::operand);

    const SequenceArguments& args;
    uint32 matrices;       // shared address of the matrices,
    uint32 places;         // and of each thread's `Place` in a tile, by gate
    uint32 thread, group;  // the number of a thread in its group

    // Shared memory that each group has for itself.
    struct Scratch {
        uint32 warp_maxima[kWarps];
        double2 linear[kPhaseBits];
        float2 factors[1 << kPhaseBits];
    };

    __device__ __forceinline__ uint32 matrix(uint32 index) const {
        return matrices + index * Step::kMatrixBytes;
    }

    __device__ __forceinline__ uint32 place(uint32 index) const {
        return places + sizeof(Place) * (index * kThreads + thread);
    }

    // Groups share the matrices and the places.
    __device__ __forceinline__ void prepare() const {
        const uint32 lane = thread % kWarp, warp = threadIdx.x / kWarp;
        for (int number = group; number < args.count; number += Groups) {
            const SequenceGate& gate = args.gates[number];
            const uint32 entry = args.order[number];
            if (kind_of(entry) == kPhase) continue;
            const uint32 read = xor_masks<kThreadBits>(gate.read_mask, thread);
            const uint32 result = xor_masks<kThreadBits>(gate.result_mask, thread);
            store_shared(place(index_of(entry)), Step::place(read, result));
        }
        const auto* all = static_cast<const float2*>(args.matrix);
        for (int number = warp; number < args.count; number += kWarps * Groups) {
            const uint32 entry = args.order[number], index = index_of(entry);
            if (kind_of(entry) == kPhase) continue;
            if (kind_of(entry) != kWithoutQubit0)
                Step::template store_matrix<true>(all + 256 * index, matrix(index), lane);
            else
                Step::template store_matrix<false>(all + 256 * index, matrix(index), lane);
        }
        Step::publish_matrices();
    }

    template <bool TargetsQubit0>
    __device__ __forceinline__ void apply(uint32 index, uint32 stage, float scale, float descale,
                                          char* to) const {
        Place own;
        load_shared(place(index), own);
        Step::template apply<TargetsQubit0, Steps>(args, args.masks[index], matrix(index), stage,
                                                   own, scale, descale, to);
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
        return max(-126,
                   scale_exponent<Step::operand>(block_absmax(warp_maxima)) - (TileBits + 1) / 2);
    }

    // Applies all gates to the tile of a stage and stores it. By wgmma the results of the last gate
    // go straight to the state; phases, whose factors each thread waits for, lose by that.
    __device__ __forceinline__ void apply_all(const Pipeline& pipeline, uint32 tile, uint32 stage,
                                              Scratch& scratch) const {
        const uint32 count = args.count, last = args.products - 1;
        bool direct = false;
        const int exponent = kScaled ? scale_of(pipeline, stage, scratch.warp_maxima) : 0;
        for (uint32 number = 0; number < count; ++number) {
            // All threads have written the gate before; the mbarrier signalled the tile to the
            // first.
            if (number > 0) synchronize();
            const uint32 entry = args.order[number];
            const uint32 kind = kind_of(entry), index = index_of(entry);
            const float scale = index == 0 ? power_of_two(exponent) : 1.0f;
            const float descale = index == last ? power_of_two(-exponent) : 1.0f;
            char* to = nullptr;
            direct = Step::kStoresToState && goes_to_state(entry);
            if (direct) {
                uint32 own = thread;
                own = opaque(own);
                const int64 offset = or_offsets<kThreadBits>(args.result_offset, own);
                to = args.state + (tile_offset(args, tile) | offset);
            }
            if (kind == kPhase) {
                make_phases<kThreads>(args.phases[index], tile, thread, scratch.linear,
                                      scratch.factors, [this] { synchronize(); });
                apply_phases(pipeline, args.gates[number], stage, thread, scratch.factors);
            } else if (kind != kWithoutQubit0) {
                apply<true>(index, stage, scale, descale, to);
            } else {
                apply<false>(index, stage, scale, descale, to);
            }
        }
        synchronize();  // the stage may be written
        if (!direct) pipeline.store(tile, stage);
    }

    // Groups take the block's tiles in turn, in stages used round-robin: while groups compute, the
    // other stages receive their tiles. So a multiprocessor computes and copies at any time; blocks
    // of one group and one stage alternated between the two, all of them in phase.
    __device__ __forceinline__ static void run(const SequenceArguments& args) {
        extern __shared__ __align__(1024) unsigned char memory[];
        __shared__ Scratch scratch[Groups];
        __shared__ uint64 barriers[Stages];
        __shared__ uint32 times[Stages];  // how often a stage's copies have been issued
        const uint32 ring = shared_address(memory), full = shared_address(barriers);
        const uint32 matrices = ring + Stages * Pipeline::kTileBytes;
        const uint32 thread = threadIdx.x % kThreads;
        // The compiler knows that all lanes have the same result of a shuffle: what follows from
        // the group takes uniform registers, which addresses of shared memory add for nothing.
        const uint32 group = __shfl_sync(0xffffffffu, threadIdx.x / kThreads, 0);
        const uint32 products = args.products;
        const uint32 places = matrices + products * Step::kMatrixBytes;
        const GateSequence sequence{args, matrices, places, thread, group};
        const Pipeline pipeline(args, thread);
        if (threadIdx.x < Stages) {
            mbarrier_init(full + 8 * threadIdx.x, kThreads);
            times[threadIdx.x] = 1;
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
            // A parity distinguishes a phase only from the next one, and groups drift apart: the
            // group that used this stage before may itself still wait for its tile.
            if (thread % kWarp == 0) {
                while (atomicOr(times + number, 0) <= round) {
                }
            }
            __syncwarp();
            mbarrier_spin(barrier, round & 1);
            sequence.apply_all(pipeline, tile, stage, scratch[group]);
            pipeline.load(tile + Stages * gridDim.x, stage, barrier);
            if (thread == 0) atomicExch(times + number, round + 2);
        }
    }
};
