// Beam power of weights and samples of complex int8 by wgmma (sm_90a): the beams are exact in s32.
//
// As in `WgmmaBeamPowerKernel` samples are the rows, from registers, weights the columns, which
// stay in shared memory. s8 MMAs cannot negate an operand, and -128 has no negative in s8, so the
// real part is two accumulators, wr xr and wi xi, which are subtracted before detection. Sums stay
// below 2^31 up to 65535 antennas.
//
// `wgmma_s8(sums, rows, columns, keep)` is generated (argand/runtime/compile/wgmma.py).
#pragma once
#include "sm90_kernel.cuh"

// Antennas of an MMA, and of a row of k.
constexpr int kInt8Mma = 32, kInt8RowAntennas = kWeightRowBytes;

// The antenna, within those of an MMA, at its k: a lane reads antennas that are four apart.
__device__ __forceinline__ int int8_antenna_at(int k) {
    return k / 16 * 16 + k % 16 / 4 + 4 * (k % 4);
}

// Packs weights (matrices, beams, antennas) of two bytes each as [row of k][real, imaginary][beam]
// [128 bytes], swizzled as by TMA. One block for a matrix and 16 beams; `args.fragments_k` are rows
// of k.
template <int Beams>
__device__ __forceinline__ void pack_int8_columns(const WeightArguments& args) {
    constexpr int kBlocks = Beams / kRowTile;  // of 16 beams, in a block of beams
    const int tile = static_cast<int>(blockIdx.x % args.row_tiles);
    const int64 matrix = blockIdx.x / args.row_tiles;
    const unsigned char* from = reinterpret_cast<const unsigned char*>(args.weights) +
                                2 * matrix * args.beams * args.antennas;
    unsigned char* to =
        reinterpret_cast<unsigned char*>(args.fragments) +
        (matrix * (args.row_tiles / kBlocks) + tile / kBlocks) * args.fragments_k * 2 * Beams *
            kWeightRowBytes;
    for (int i = threadIdx.x; i < args.fragments_k * 2 * kRowTile * 8; i += blockDim.x) {
        const int at = i % 8, row = i / 8 % kRowTile, part = i / (8 * kRowTile) % 2,
                  row_of_k = i / (16 * kRowTile);
        const int beam = tile * kRowTile + row, within = tile % kBlocks * kRowTile + row;
        uint32 words[4] = {0, 0, 0, 0};
#pragma unroll
        for (int n = 0; n < 16; ++n) {
            const int k = at * 16 + n;
            const int antenna = row_of_k * kInt8RowAntennas + k / kInt8Mma * kInt8Mma +
                                int8_antenna_at(k % kInt8Mma);
            if (beam < args.beams && antenna < args.antennas) {
                const uint32 byte = from[2 * (int64(beam) * args.antennas + antenna) + part];
                words[n / 4] |= byte << 8 * (n % 4);
            }
        }
        const int64 line = (int64(row_of_k) * 2 + part) * Beams + within;
        *reinterpret_cast<uint4*>(to + line * kWeightRowBytes + (at ^ within % 8) * 16) = {
            words[0], words[1], words[2], words[3]};
    }
}

// Template parameters are those of `WgmmaBeamPowerKernel`.
template <int Beams, int Warpgroups, int Stages, int Group, bool Aligned>
struct Int8BeamPowerKernel {
    // The ring of samples, detection and sums are those of the fp16 kernel, whose MMAs are not
    // called.
    using Base = WgmmaBeamPowerKernel<Operand::fp16, 1, Rounding::nearest_even,
                                      Rounding::nearest_even, Samples::int8, 1, Beams, Warpgroups,
                                      Stages, Group, false, Aligned, true, false>;
    using Accumulators = typename Base::Accumulators;
    using Reader = typename Base::Reader;
    static constexpr int kThreads = Base::kThreads, kSharedBytes = Base::kSharedBytes;
    static constexpr int kPartBytes = Beams * kWeightRowBytes, kRowBytes = 2 * kPartBytes;
    static constexpr int kRowStages = kInt8RowAntennas / kInt8Mma;
    static_assert(kDepth<Samples::int8> == kInt8Mma, "a stage is an MMA");

    // The antennas of a stage as a row fragment: of two neighbours in time.
    struct Rows {
        uint32 parts[2][4];

        // Loads the antennas of a stage and gathers their bytes, real parts and imaginary parts
        // apart.
        __device__ __forceinline__ void load(uint32 address) {
            constexpr int kPitch = Base::Copied::kPitch;
#pragma unroll
            for (int slot = 0; slot < 2; ++slot) {
                uint32 x[4];
#pragma unroll
                for (int n = 0; n < 4; ++n)
                    asm volatile("ld.shared.b32 %0, [%1];"
                                 : "=r"(x[n])
                                 : "r"(address + (16 * slot + 4 * n) * kPitch)
                                 : "memory");
#pragma unroll
                for (int time = 0; time < 2; ++time) {
                    const uint32 low = time ? bytes_of_two<0x7362u>(x[0], x[1])
                                            : bytes_of_two<0x5140u>(x[0], x[1]);
                    const uint32 high = time ? bytes_of_two<0x7362u>(x[2], x[3])
                                             : bytes_of_two<0x5140u>(x[2], x[3]);
                    parts[0][2 * slot + time] = bytes_of_two<0x5410u>(low, high);
                    parts[1][2 * slot + time] = bytes_of_two<0x7632u>(low, high);
                }
            }
        }
    };

    // The sums of a warpgroup. They are named arrays, because registers cannot be indexed.
    struct Sums {
        int wr_xr[Beams / 2], wi_xi[Beams / 2], im[Beams / 2];
    };

    // Begins to multiply a stage, as one group of MMAs.
    __device__ __forceinline__ static void multiply(const Rows& rows, uint32 weights, int chunk,
                                                    Sums& sums) {
        constexpr uint64 kHigh = make_matrix_descriptor<kWeightRowBytes>(0) >> 32 << 32;
        const uint32 from =
            weights + chunk / kRowStages * kRowBytes + chunk % kRowStages * kInt8Mma;
        const uint64 real = kHigh | uint32(make_matrix_descriptor<kWeightRowBytes>(from));
        const uint64 imaginary = real + (kPartBytes >> 4);
        wgmma_fence();
        wgmma_s8(sums.wr_xr, rows.parts[0], real, chunk > 0);
        wgmma_s8(sums.wi_xi, rows.parts[1], imaginary, chunk > 0);
        wgmma_s8(sums.im, rows.parts[0], imaginary, chunk > 0);
        wgmma_s8(sums.im, rows.parts[1], real, 1);
        wgmma_commit();
    }

    // The beams of a tile; rows of a stage are loaded while the MMAs of the one before it run.
    __device__ __forceinline__ static void multiply_tile(const BeamPowerArguments& args,
                                                         Reader& reader, uint32 weights, bool waits,
                                                         bool signals, Accumulators& beams) {
        Rows rows[2];
        Sums sums;
        reader.load(args, rows[0]);
        if (Warpgroups == 2 && waits) ping_pong_wait(reader.warpgroup);
#pragma unroll 1
        for (int chunk = 0; chunk < args.chunks; chunk += 2) {
            multiply(rows[0], weights, chunk, sums);
            wgmma_wait<1>();
            if (chunk + 1 < args.chunks) {
                reader.load(args, rows[1]);
                multiply(rows[1], weights, chunk + 1, sums);
                wgmma_wait<1>();
            }
            if (chunk + 2 < args.chunks) reader.load(args, rows[0]);
        }
        if (Warpgroups == 2 && signals) ping_pong_arrive(reader.warpgroup);
        wgmma_wait<0>();
        wgmma_fence_operand(sums.wr_xr);
        wgmma_fence_operand(sums.wi_xi);
        wgmma_fence_operand(sums.im);
#pragma unroll
        for (int i = 0; i < Beams / 2; ++i) {
            beams.re[0][i] = static_cast<float>(sums.wr_xr[i] - sums.wi_xi[i]);
            beams.im[0][i] = static_cast<float>(sums.im[i]);
        }
    }

    __device__ __forceinline__ static void run(const BeamPowerArguments& args) {
        const int weight_bytes = (args.chunks + kRowStages - 1) / kRowStages * kRowBytes;
        Base::run_tiles(args, weight_bytes, [&](Reader& reader, uint32 weights, bool waits,
                                                bool signals, Accumulators& beams) {
            multiply_tile(args, reader, weights, waits, signals, beams);
        });
    }
};
