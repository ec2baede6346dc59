// Beam power by wgmma (sm_90a) of one polarization: samples are the rows, from registers, weights the
// columns, which stay in shared memory. A tile has 64 samples and is a warpgroup's, with all beams of
// the block: its ring of stages and its sums are its own, and no thread reads what another one
// rounded. Two warpgroups of a block take turns: one multiplies while the other detects.
//
// `wgmma<sign>(sums, rows, columns, keep)` is generated (argand/runtime/wgmma.py).
#pragma once
#include "bins.cuh"
#include "device/warpgroup.cuh"
#include "ring.cuh"
#include "sm90_rows.cuh"
#include "sm90_weights.cuh"

constexpr int kWarpgroupThreads = 4 * kWarp, kWarpTimes = 16;

template <Operand operand, Rounding rounding, Samples samples, int Beams, int Warpgroups,
          int Stages, int Group, bool Scaled, bool Aligned, bool Pipelined>
struct WgmmaBeamPowerKernel {
    static constexpr int kThreads = Warpgroups * kWarpgroupThreads;
    static constexpr int kTileTimes = 4 * kWarpTimes;
    static constexpr int kSteps = kDepth<samples> / kMmaK<operand>;
    static constexpr int kRowSteps = kRowAntennas<operand> / kMmaK<operand>;
    static constexpr int kRowSums = kTileTimes / Group;
    static constexpr int kPartBytes = Beams * kWeightRowBytes;
    static constexpr int kSumsBytes = Beams * kRowSums * 4;
    using Copied = Stage<samples, kTileTimes>;
    using Ring = SampleRing<samples, kTileTimes, 1, Stages, Aligned, kWarpgroupThreads, Warpgroups>;
    static constexpr int kRingBytes = Stages * Copied::kBytes;
    // Without the weights, which follow the alignment of swizzles.
    static constexpr int kSharedBytes = 1024 + Warpgroups * (kRingBytes + kSumsBytes);

    // The antennas of a stage as row fragments, by MMA.
    struct Rows {
        RowFragments<samples, operand, rounding, kTileTimes> steps[kSteps];

        __device__ __forceinline__ void load(uint32 address) {
#pragma unroll
            for (int step = 0; step < kSteps; ++step)
                steps[step].load(address + step * kMmaK<operand> * Copied::kPitch);
        }
    };

    // Begins to multiply a stage, as one group of MMAs.
    __device__ __forceinline__ static void multiply(const Rows& rows, uint32 weights, int chunk,
                                                    float (&re)[Beams / 2],
                                                    float (&im)[Beams / 2]) {
        constexpr uint64 kHigh = make_matrix_descriptor<kWeightRowBytes>(0) >> 32 << 32;
        wgmma_fence();
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
            const int at = chunk * kSteps + step;
            const uint32 from = weights + at / kRowSteps * 2 * kPartBytes + at % kRowSteps * 32;
            const uint64 columns =
                kHigh | uint32(make_matrix_descriptor<kWeightRowBytes>(from));
            const uint64 imaginary = columns + (kPartBytes >> 4);
            wgmma<1>(re, rows.steps[step].parts[0], columns, at > 0);
            wgmma<1>(im, rows.steps[step].parts[0], imaginary, at > 0);
            wgmma<-1>(re, rows.steps[step].parts[1], imaginary, 1);
            wgmma<1>(im, rows.steps[step].parts[1], columns, 1);
        }
        wgmma_commit();
    }

    // A barrier of one warpgroup; those of turns are 1 and 2.
    __device__ __forceinline__ static void meet(int warpgroup) {
        asm volatile("bar.sync %0, %1;" ::"r"(3 + warpgroup), "n"(kWarpgroupThreads) : "memory");
    }

    // Where a warpgroup reads its stages, one after another.
    struct Reader {
        Ring copies;
        uint32 own;  // of the lane in the first stage
        int warpgroup;
        uint32 stage = 0;

        // Waits for the next stage, loads rows, and begins to copy another stage.
        __device__ __forceinline__ void load(const BeamPowerArguments& args, Rows& rows) {
            cp_async_wait<Stages - 2>();
            meet(warpgroup);
            rows.load(own + stage * Copied::kBytes);
            copies.next(args);
            stage = stage + 1 == Stages ? 0 : stage + 1;
        }
    };

    // The beams of a tile. Where Pipelined the rows of a stage are loaded while the MMAs of the one before
    // it run; of two warpgroups, `waits` and `tells` are whether the other has a tile before and after.
    __device__ __forceinline__ static void multiply_tile(const BeamPowerArguments& args,
                                                         Reader& reader, uint32 weights, bool waits,
                                                         bool tells, float (&re)[Beams / 2],
                                                         float (&im)[Beams / 2]) {
        static_assert(Pipelined || Warpgroups == 1, "warpgroups that take turns are pipelined");
        if constexpr (!Pipelined) {
#pragma unroll 1
            for (int chunk = 0; chunk < args.chunks; ++chunk) {
                Rows rows;
                reader.load(args, rows);
                multiply(rows, weights, chunk, re, im);
                wgmma_wait<0>();
            }
        } else {
            Rows rows[2];
            reader.load(args, rows[0]);
            if (Warpgroups == 2 && waits) ping_pong_wait(reader.warpgroup);
#pragma unroll 1
            for (int chunk = 0; chunk < args.chunks; chunk += 2) {
                multiply(rows[0], weights, chunk, re, im);
                wgmma_wait<1>();
                if (chunk + 1 < args.chunks) {
                    reader.load(args, rows[1]);
                    multiply(rows[1], weights, chunk + 1, re, im);
                    wgmma_wait<1>();
                }
                if (chunk + 2 < args.chunks) reader.load(args, rows[0]);
            }
            if (Warpgroups == 2 && tells) ping_pong_arrive(reader.warpgroup);
            wgmma_wait<0>();
        }
        wgmma_fence_operand(re);
        wgmma_fence_operand(im);
    }

    __device__ __forceinline__ static void run(const BeamPowerArguments& args) {
        extern __shared__ unsigned char memory[];
        const uint32 start = shared_address(memory), weights = (start + 1023u) & ~1023u;
        const int rows_of_k = (args.chunks * kSteps + kRowSteps - 1) / kRowSteps;
        const int weight_bytes = rows_of_k * 2 * kPartBytes;
        const int warpgroup = __shfl_sync(~0u, threadIdx.x / kWarpgroupThreads, 0);
        const int thread = threadIdx.x % kWarpgroupThreads;
        const int lane = thread % kWarp, first_time = thread / kWarp * kWarpTimes;
        const uint32 ring = weights + weight_bytes + warpgroup * (kRingBytes + kSumsBytes);
        float* sums = reinterpret_cast<float*>(memory + (ring - start) + kRingBytes);
        const int beam_blocks = args.row_tiles * kRowTile / Beams;
        const int segments = (args.tiles + args.block_tiles - 1) / args.block_tiles;
        const int beam_block = static_cast<int>(blockIdx.x % beam_blocks);
        const int segment = static_cast<int>(blockIdx.x / beam_blocks % segments);
        const int result = static_cast<int>(blockIdx.x / beam_blocks / segments);
        const int first = segment * args.block_tiles, last = min(args.tiles, first + args.block_tiles);
        const int64 matrix = args.weights_batched ? result : 0;
        const unsigned char* packed = reinterpret_cast<const unsigned char*>(args.fragments) +
                                      (matrix * beam_blocks + beam_block) * weight_bytes;
        for (int i = threadIdx.x * 16; i < weight_bytes; i += kThreads * 16)
            cp_async_16(weights + i, packed + i);
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

        const float* descales = args.descales + matrix * args.row_tiles * kRowTile;
#pragma unroll 1
        for (int tile = first + warpgroup; tile < last; tile += Warpgroups) {
            float re[Beams / 2], im[Beams / 2];
            multiply_tile(args, reader, weights, tile > first, tile + 1 < last, re, im);
            // The sums of the tile before were read before the last barrier.
            store_sums<Beams, Group, kRowSums>(re, im, sums, first_time, lane);
            meet(warpgroup);
            store_bins<1, Beams, kRowSums, Group, kWarpgroupThreads>(
                args, sums, TimeTile(args, tile), result, beam_block * Beams, thread,
                [&](float sum, int beam) {
                    if constexpr (!Scaled) return sum;
                    const float factor = __ldg(descales + beam);
                    return sum * factor * factor;
                });
        }
    }
};
