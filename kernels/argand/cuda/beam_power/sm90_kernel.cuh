// Beam power by wgmma (sm_90a): samples are the rows, from registers, weights the columns, which
// stay in shared memory. A tile has 64 samples and is a warpgroup's, with all beams of the block:
// its ring of stages and its accumulators are its own, and no thread reads what another one
// rounded. Two warpgroups of a block alternate (ping-pong): one multiplies while the other detects.
//
// `wgmma<sign>(d, rows, columns, keep)` is generated (argand/runtime/compile/wgmma.py).
#pragma once
#include "bins.cuh"
#include "device/term_products.cuh"
#include "device/warpgroup.cuh"
#include "ring.cuh"
#include "sm90_rows.cuh"
#include "sm90_weights.cuh"

constexpr int kWarpTimes = 16;

// `Polarizations` is 2 for Stokes parameters, else 1; `Beams` are those of the block. `Stages` are
// those of a warpgroup's ring of samples. A warp sums `Group` samples before shared memory.
// `Scaled`: weights are descaled in the end. `Aligned`: samples are copied by 16 bytes.
// `Pipelined`: rows of the next stage are loaded while one is multiplied. `Promoted`: accumulators
// are promoted every kPromotedStages stages, as two terms need.
template <Operand operand, int Terms, Rounding first_rounding, Rounding second_rounding,
          Samples samples, int Polarizations, int Beams, int Warpgroups, int Stages, int Group,
          bool Scaled, bool Aligned, bool Pipelined, bool Promoted>
struct WgmmaBeamPowerKernel {
    static constexpr int kThreads = Warpgroups * kWarpgroupThreads;
    static constexpr int kTileTimes = 4 * kWarpTimes;
    static constexpr int kMmas = kDepth<samples> / kMmaK<operand>;
    static constexpr int kRowMmas = kRowAntennas<operand> / kMmaK<operand>;
    static constexpr int kRowSums = kTileTimes / Group;
    static constexpr int kPartBytes = Beams * kWeightRowBytes;
    // Two terms wait for promotions as well, so their warpgroups do not alternate.
    static constexpr bool kPingPong = Warpgroups == 2 && Terms == 1;
    static constexpr int kRowStages = kRowMmas / kMmas, kRowBytes = 2 * Terms * kPartBytes;
    static_assert(kRowMmas % kMmas == 0, "a stage lies in one row of k");
    static constexpr int kPromotedStages = 64 / kDepth<samples>;
    static_assert(!Promoted || (Pipelined && kPromotedStages % 2 == 0), "stages come in pairs");
    static constexpr int kOutputs = Polarizations == 2 ? 4 : 1;
    static constexpr int kOutputSums = Beams * kRowSums, kSumsBytes = kOutputs * kOutputSums * 4;
    using Copied = Stage<samples, kTileTimes>;
    using Ring = SampleRing<samples, kTileTimes, Polarizations, Stages, Aligned, kWarpgroupThreads,
                            Warpgroups>;
    using Accumulators = WarpgroupBeams<Polarizations, Beams>;
    static constexpr int kRingBytes = Stages * Copied::kBytes;
    // Without the weights, which follow the alignment of swizzles.
    static constexpr int kSharedBytes = 1024 + Warpgroups * (kRingBytes + kSumsBytes);

    // The antennas of a stage as row fragments, by MMA.
    struct Rows {
        RowFragments<samples, operand, Terms, first_rounding, second_rounding, kTileTimes>
            mmas[kMmas];

        __device__ __forceinline__ void load(uint32 address) {
#pragma unroll
            for (int mma_index = 0; mma_index < kMmas; ++mma_index)
                mmas[mma_index].load(address + mma_index * kMmaK<operand> * Copied::kPitch);
        }
    };

    // The weights of a stage, in the rows of k that begin at `weights`.
    __device__ __forceinline__ static uint32 stage_weights(uint32 weights, int chunk) {
        return weights + chunk / kRowStages * kRowBytes + chunk % kRowStages * (kMmas * 32);
    }

    // Whether a stage is added to the ones before it.
    __device__ __forceinline__ static bool follows(int chunk) {
        return Promoted ? chunk % kPromotedStages > 0 : chunk > 0;
    }

    // Begins to multiply a stage, as one group of MMAs. `later` is what `follows` says of the
    // stage.
    __device__ __forceinline__ static void multiply(const Rows& rows, uint32 weights, bool later,
                                                    float (&re)[Beams / 2],
                                                    float (&im)[Beams / 2]) {
        using Products = TermProducts<Terms>;
        constexpr uint64 kHigh = make_matrix_descriptor<kWeightRowBytes>(0) >> 32 << 32;
        wgmma_fence();
#pragma unroll
        for (int mma_index = 0; mma_index < kMmas; ++mma_index) {
            const uint32 from = weights + mma_index * 32;
#pragma unroll
            for (int product = 0; product < Products::kCount; ++product) {
                const int left = Products::left(product), right = Products::right(product);
                const uint64 columns =
                    kHigh | uint32(make_matrix_descriptor<kWeightRowBytes>(
                                from + left * 2 * kPartBytes));
                const uint64 imaginary = columns + (kPartBytes >> 4);
                const uint32(&x)[4] = rows.mmas[mma_index].parts[0][right];
                const uint32(&y)[4] = rows.mmas[mma_index].parts[1][right];
                const bool keep = mma_index > 0 || product > 0 || later;
                wgmma<1>(re, x, columns, keep);
                wgmma<1>(im, x, imaginary, keep);
                wgmma<-1>(re, y, imaginary, 1);
                wgmma<1>(im, y, columns, 1);
            }
        }
        wgmma_commit();
    }

    // Where a warpgroup reads its stages, one after another.
    struct Reader {
        Ring copies;
        uint32 own;  // of the lane in the first stage
        int warpgroup;
        uint32 stage = 0;

        // Waits for the next stage, loads rows, and begins to copy another stage.
        template <typename AnyRows>
        __device__ __forceinline__ void load(const BeamPowerArguments& args, AnyRows& rows) {
            cp_async_wait<Stages - 2>();
            sync_warpgroup(warpgroup);
            rows.load(own + stage * Copied::kBytes);
            copies.next(args);
            stage = stage + 1 == Stages ? 0 : stage + 1;
        }
    };

    // Adds the sums of the stages since the last promotion, whose MMAs it waits for.
    __device__ __forceinline__ static void promote(WarpgroupBeams<1, Beams>& part,
                                                   float (&re)[Beams / 2],
                                                   float (&im)[Beams / 2]) {
        wgmma_wait<0>();
        wgmma_fence_operand(part.re[0]);
        wgmma_fence_operand(part.im[0]);
#pragma unroll
        for (int i = 0; i < Beams / 2; ++i) {
            re[i] += part.re[0][i];
            im[i] += part.im[0][i];
        }
    }

    // The beams of a tile. Where Pipelined the rows of a stage are loaded while the MMAs of the one
    // before it run; of two warpgroups, `waits` and `signals` are whether the other has a tile
    // before and after. The weights of a polarization follow those of the other one, `weight_bytes`
    // further on.
    __device__ __forceinline__ static void multiply_tile(const BeamPowerArguments& args,
                                                         Reader& reader, uint32 weights,
                                                         int weight_bytes, bool waits, bool signals,
                                                         Accumulators& beams) {
        static_assert(Pipelined || !kPingPong, "alternating warpgroups are pipelined");
        Rows rows[Pipelined ? 2 : 1];
        if constexpr (Pipelined) reader.load(args, rows[0]);
        if (kPingPong && waits) ping_pong_wait(reader.warpgroup);
        WarpgroupBeams<1, Beams> part;
        // Accumulates polarization p in `sum_re` and `sum_im`.
        const auto multiply_antennas = [&](int p, float(&sum_re)[Beams / 2],
                                           float(&sum_im)[Beams / 2]) {
            const uint32 own = weights + p * weight_bytes;
            float(&re)[Beams / 2] = Promoted ? part.re[0] : sum_re;
            float(&im)[Beams / 2] = Promoted ? part.im[0] : sum_im;
            if constexpr (!Pipelined) {
#pragma unroll 1
                for (int chunk = 0; chunk < args.chunks; ++chunk) {
                    reader.load(args, rows[0]);
                    multiply(rows[0], stage_weights(own, chunk), follows(chunk), re, im);
                    wgmma_wait<0>();
                }
            } else {
                if (p > 0) {  // the last MMAs may still read these rows
                    wgmma_wait<0>();
                    reader.load(args, rows[0]);
                }
#pragma unroll 1
                for (int chunk = 0; chunk < args.chunks; chunk += 2) {
                    if (Promoted && chunk > 0 && chunk % kPromotedStages == 0)
                        promote(part, sum_re, sum_im);
                    multiply(rows[0], stage_weights(own, chunk), follows(chunk), re, im);
                    wgmma_wait<1>();
                    if (chunk + 1 < args.chunks) {
                        reader.load(args, rows[Pipelined]);
                        multiply(rows[Pipelined], stage_weights(own, chunk + 1), true, re, im);
                        wgmma_wait<1>();
                    }
                    if (chunk + 2 < args.chunks) reader.load(args, rows[0]);
                }
                if constexpr (Promoted) promote(part, sum_re, sum_im);
            }
        };
        if constexpr (Promoted) {
            // Not unrolled, because a copy of the loop would take row registers of its own: it
            // multiplies into the last accumulators, which are moved for the next polarization.
            constexpr int kLast = Polarizations - 1;
#pragma unroll 1
            for (int p = 0; p < Polarizations; ++p) {
                if (p > 0) beams.move_last();
                beams.clear_last();
                multiply_antennas(p, beams.re[kLast], beams.im[kLast]);
            }
        } else {
#pragma unroll
            for (int p = 0; p < Polarizations; ++p) multiply_antennas(p, beams.re[p], beams.im[p]);
        }
        if (kPingPong && signals) ping_pong_arrive(reader.warpgroup);
        wgmma_wait<0>();
#pragma unroll
        for (int p = 0; p < Polarizations; ++p) {
            wgmma_fence_operand(beams.re[p]);
            wgmma_fence_operand(beams.im[p]);
        }
    }

    __device__ __forceinline__ static void store_outputs(const Accumulators& beams, float* sums,
                                                         int first_time, int lane) {
        beams.template store_sums<0, Group, kRowSums>(sums, first_time, lane);
        if constexpr (Polarizations == 2) {
            beams.template store_sums<1, Group, kRowSums>(sums + kOutputSums, first_time, lane);
            beams.template store_sums<2, Group, kRowSums>(sums + 2 * kOutputSums, first_time, lane);
            beams.template store_sums<3, Group, kRowSums>(sums + 3 * kOutputSums, first_time, lane);
        }
    }

    // Stores the bins of a tile. The sums of the tile before were read before the last barrier.
    __device__ __forceinline__ static void store_tile(const BeamPowerArguments& args,
                                                      const Accumulators& beams,
                                                      const float* descales, float* sums,
                                                      const TimeTile& tile, const BlockPlace& place,
                                                      int thread, int warpgroup) {
        const int lane = thread % kWarp, first_beam = place.beam_block * Beams;
        store_outputs(beams, sums, thread / kWarp * kWarpTimes, lane);
        sync_warpgroup(warpgroup);
        store_bins<kOutputs, Beams, kRowSums, Group, kWarpgroupThreads>(
            args, sums, tile, place.result, first_beam, thread, [&](float sum, int beam) {
                if constexpr (!Scaled || Polarizations == 2) return sum;
                const float factor = __ldg(descales + beam - first_beam);
                return sum * factor * factor;
            });
    }

    __device__ __forceinline__ static void run(const BeamPowerArguments& args) {
        const int rows_of_k = (args.chunks * kMmas + kRowMmas - 1) / kRowMmas;
        const int weight_bytes = rows_of_k * kRowBytes;
        run_tiles(
            args, weight_bytes,
            [&](Reader& reader, uint32 weights, bool waits, bool signals, Accumulators& beams) {
                multiply_tile(args, reader, weights, weight_bytes, waits, signals, beams);
            });
    }

    // Copies the weights of the block, `weight_bytes` for each polarization, and computes its
    // tiles: `multiply` returns the beams of one, with `waits` and `signals` as in `multiply_tile`.
    template <typename Multiply>
    __device__ __forceinline__ static void run_tiles(const BeamPowerArguments& args,
                                                     int weight_bytes, const Multiply& multiply) {
        extern __shared__ unsigned char memory[];
        const uint32 start = shared_address(memory), weights = (start + 1023u) & ~1023u;
        const int warpgroup = __shfl_sync(~0u, threadIdx.x / kWarpgroupThreads, 0);
        const int thread = threadIdx.x % kWarpgroupThreads;
        const int lane = thread % kWarp, first_time = thread / kWarp * kWarpTimes;
        const uint32 rings = weights + Polarizations * weight_bytes;
        const uint32 ring = rings + warpgroup * (kRingBytes + kSumsBytes);
        float* sums = reinterpret_cast<float*>(memory + (ring - start) + kRingBytes);
        const BlockPlace place(args, Beams);
        const int beam_block = place.beam_block, result = place.result;
        const int first = place.first, last = place.last;
        const float* descales[Polarizations];  // of the block's first beam
#pragma unroll
        for (int p = 0; p < Polarizations; ++p) {
            const int64 matrix = args.weights_batched ? int64(result) * Polarizations + p : 0;
            descales[p] = args.descales + matrix * args.row_tiles * kRowTile + beam_block * Beams;
            const unsigned char* packed = reinterpret_cast<const unsigned char*>(args.fragments) +
                                          (matrix * place.beam_blocks + beam_block) * weight_bytes;
            for (int i = threadIdx.x * 16; i < weight_bytes; i += kThreads * 16)
                cp_async_16(weights + p * weight_bytes + i, packed + i);
        }
        cp_async_commit();
        Reader reader = {Ring(args, ring, thread, result, first + warpgroup, last),
                         ring + lane % 4 * Copied::kPitch +
                             (first_time + lane / 4 * 2) * Copied::kItem,
                         warpgroup};
#pragma unroll 1
        for (int i = 0; i < Stages - 1; ++i) reader.copies.next(args);
        cp_async_wait<Stages - 1>();
        // The tensor cores read weights that threads have copied.
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();

#pragma unroll 1
        for (int tile = first + warpgroup; tile < last; tile += Warpgroups) {
            Accumulators beams;
            multiply(reader, weights, tile > first, tile + 1 < last, beams);
            if constexpr (Scaled && Polarizations == 2) beams.descale(descales, lane);
            store_tile(args, beams, descales[0], sums, TimeTile(args, tile), place, thread,
                       warpgroup);
        }
    }
};
