// Beam power by wgmma (sm_90a) where the weights of many antennas do not fit shared memory: rows of
// k come in turn from L2, by TMA, to a ring that two warpgroups share. Each warpgroup has tiles, a
// ring of samples and sums of its own as in `WgmmaBeamPowerKernel`; a thread of a third one issues
// the copies.
#pragma once
#include "device/tma_bulk.cuh"
#include "sm90_kernel.cuh"

// Template parameters are those of `WgmmaBeamPowerKernel`, and `WeightStages`: rows of k that the
// ring of weights holds.
template <Operand operand, int Terms, Rounding first_rounding, Rounding second_rounding,
          Samples samples, int Polarizations, int Beams, int Stages, int WeightStages, int Group,
          bool Scaled, bool Aligned, bool Promoted>
struct StreamedBeamPowerKernel {
    static constexpr int kWarpgroups = 2;
    using Base = WgmmaBeamPowerKernel<operand, Terms, first_rounding, second_rounding, samples,
                                      Polarizations, Beams, kWarpgroups, Stages, Group, Scaled,
                                      Aligned, true, Promoted>;
    using Rows = typename Base::Rows;
    using Reader = typename Base::Reader;
    using Accumulators = typename Base::Accumulators;
    static constexpr int kThreads = Base::kThreads + kWarpgroupThreads;
    static constexpr int kRowBytes = Base::kRowBytes;
    static constexpr int kSharedBytes = Base::kSharedBytes + WeightStages * kRowBytes;
    static_assert(Base::kRowStages % 2 == 0, "pairs of stages lie in one row of k");

    // The position of the producer or of a warpgroup in the ring of rows of k.
    struct WeightRing {
        uint32 base, barriers;
        uint32 parity;
        int stage = 0;

        __device__ __forceinline__ uint32 address() const { return base + stage * kRowBytes; }
        __device__ __forceinline__ uint32 full() const { return barriers + 8 * stage; }
        __device__ __forceinline__ uint32 empty() const { return full() + 8 * WeightStages; }
        __device__ __forceinline__ void advance() {
            if (++stage == WeightStages) {
                stage = 0;
                parity ^= 1;
            }
        }
    };

    __device__ __forceinline__ static void release(uint32 empty, int lane) {
        if (lane == 0) mbarrier_arrive(empty);
    }

    // Copies the rows of k of each polarization, whose weights lie `apart` bytes further on, for
    // every pass.
    __device__ __forceinline__ static void produce(WeightRing ring, const unsigned char* packed,
                                                   int rows, int64 apart, int passes) {
#pragma unroll 1
        for (int product = 0; product < passes * Polarizations; ++product) {
            const unsigned char* from = packed + product % Polarizations * apart;
#pragma unroll 1
            for (int row = 0; row < rows; ++row) {
                mbarrier_wait(ring.empty(), ring.parity ^ 1);
                mbarrier_arrive_expect_tx(ring.full(), kRowBytes);
                bulk_load(ring.address(), from + int64(row) * kRowBytes, kRowBytes, ring.full());
                ring.advance();
            }
        }
    }

    // Releases the rows of a pass in which the warpgroup has no tile.
    __device__ __forceinline__ static void skip(WeightRing& ring, int rows, int lane) {
#pragma unroll 1
        for (int row = 0; row < Polarizations * rows; ++row) {
            mbarrier_wait(ring.full(), ring.parity);
            release(ring.empty(), lane);
            ring.advance();
        }
    }

    // The beams of a tile; the rows of a stage are loaded while the MMAs of the one before it run.
    // Polarizations are multiplied by one loop into the last accumulators, which are moved: a copy
    // of the loop would take row registers of its own. `descales` are those of the block's first
    // beam.
    __device__ __forceinline__ static void multiply_tile(const BeamPowerArguments& args,
                                                         Reader& reader, WeightRing& ring,
                                                         const float* descales, int lane,
                                                         Accumulators& beams) {
        constexpr int kLast = Polarizations - 1;
        Rows rows[2];
        WarpgroupBeams<1, Beams> part;
        float(&re)[Beams / 2] = Promoted ? part.re[0] : beams.re[kLast];
        float(&im)[Beams / 2] = Promoted ? part.im[0] : beams.im[kLast];
#pragma unroll 1
        for (int p = 0; p < Polarizations; ++p) {
            if (p > 0) beams.move_last();
            if constexpr (Promoted) beams.clear_last();
            uint32 previous = 0;  // the `empty` mbarrier of the row before, whose MMAs still run
            reader.load(args, rows[0]);
#pragma unroll 1
            for (int chunk = 0; chunk < args.chunks; chunk += 2) {
                const int within = chunk % Base::kRowStages;
                if (Promoted && chunk > 0 && chunk % Base::kPromotedStages == 0)
                    Base::promote(part, beams.re[kLast], beams.im[kLast]);
                if (within == 0) mbarrier_wait(ring.full(), ring.parity);
                Base::multiply(rows[0], Base::stage_weights(ring.address(), within),
                               Base::follows(chunk), re, im);
                wgmma_wait<1>();
                if (within == 0 && chunk > 0) release(previous, lane);
                if (chunk + 1 < args.chunks) {
                    reader.load(args, rows[1]);
                    Base::multiply(rows[1], Base::stage_weights(ring.address(), within + 1), true,
                                   re, im);
                    wgmma_wait<1>();
                }
                if (within + 2 == Base::kRowStages || chunk + 2 >= args.chunks) {
                    previous = ring.empty();
                    ring.advance();
                }
                if (chunk + 2 < args.chunks) reader.load(args, rows[0]);
            }
            if constexpr (Promoted) Base::promote(part, beams.re[kLast], beams.im[kLast]);
            wgmma_wait<0>();
            wgmma_fence_operand(beams.re[kLast]);
            wgmma_fence_operand(beams.im[kLast]);
            release(previous, lane);
            if constexpr (Scaled && Polarizations == 2) {
                const int apart = args.weights_batched ? args.row_tiles * kRowTile : 0;
                beams.descale_one(kLast, descales + p * apart, lane);
            }
        }
    }

    // The kernel: initialises mbarriers and gives each warpgroup its role. The producer streams
    // weights, and each consumer has tiles of times of its own.
    __device__ __forceinline__ static void run(const BeamPowerArguments& args) {
        extern __shared__ unsigned char memory[];
        __shared__ __align__(8) uint64 barriers[2 * WeightStages];
        const uint32 start = shared_address(memory), weights = (start + 1023u) & ~1023u;
        const int rows = (args.chunks + Base::kRowStages - 1) / Base::kRowStages;
        const int warpgroup = __shfl_sync(~0u, threadIdx.x / kWarpgroupThreads, 0);
        const BlockPlace place(args, Beams);
        const int passes = (place.last - place.first + kWarpgroups - 1) / kWarpgroups;
        WeightRing ring = {weights, shared_address(barriers), 0};
        if (threadIdx.x == 0) {
            for (int i = 0; i < WeightStages; ++i) {
                mbarrier_init(ring.barriers + 8 * i, 1);
                mbarrier_init(ring.barriers + 8 * (WeightStages + i), Base::kThreads / kWarp);
            }
            mbarrier_init_fence();
        }
        __syncthreads();
        const int64 matrix = args.weights_batched ? int64(place.result) * Polarizations : 0;
        if (warpgroup == kWarpgroups) {
            warpgroup_reg_dealloc<24>();
            const int64 block_bytes = int64(rows) * kRowBytes;
            const unsigned char* packed =
                reinterpret_cast<const unsigned char*>(args.fragments) +
                (matrix * place.beam_blocks + place.beam_block) * block_bytes;
            const int64 apart = args.weights_batched ? place.beam_blocks * block_bytes : 0;
            if (threadIdx.x % kWarpgroupThreads == 0) produce(ring, packed, rows, apart, passes);
        } else {
            warpgroup_reg_alloc<240>();
            consume(args, place, ring, rows, matrix, warpgroup);
        }
    }

    // Computes the tiles of a warpgroup.
    __device__ __forceinline__ static void consume(const BeamPowerArguments& args,
                                                   const BlockPlace& place, WeightRing ring,
                                                   int rows, int64 matrix, int warpgroup) {
        extern __shared__ unsigned char memory[];
        const uint32 weights = ring.base, start = shared_address(memory);
        const int thread = threadIdx.x % kWarpgroupThreads, lane = thread % kWarp;
        constexpr int kOwn = Base::kRingBytes + Base::kSumsBytes;
        const uint32 samples_ring = weights + WeightStages * kRowBytes + warpgroup * kOwn;
        float* sums = reinterpret_cast<float*>(memory + (samples_ring - start) + Base::kRingBytes);
        const float* descales =
            args.descales + matrix * args.row_tiles * kRowTile + place.beam_block * Beams;
        using Copied = typename Base::Copied;
        Reader reader = {
            typename Base::Ring(args, samples_ring, thread, place.result, place.first + warpgroup,
                                place.last),
            samples_ring + lane % 4 * Copied::kPitch +
                (thread / kWarp * kWarpTimes + lane / 4 * 2) * Copied::kItem,
            warpgroup};
#pragma unroll 1
        for (int i = 0; i < Stages - 1; ++i) reader.copies.next(args);
#pragma unroll 1
        for (int tile = place.first + warpgroup; tile < place.last; tile += kWarpgroups) {
            Accumulators beams;
            multiply_tile(args, reader, ring, descales, lane, beams);
            Base::store_tile(args, beams, descales, sums, TimeTile(args, tile), place, thread,
                             warpgroup);
        }
        // The first warpgroup may have one tile more.
        if (warpgroup == 1 && (place.last - place.first) % kWarpgroups) skip(ring, rows, lane);
    }
};
