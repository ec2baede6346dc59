// Beam power by wgmma (sm_90a) of one polarization: samples are the rows, from registers, weights the
// columns, which stay in shared memory. Each warpgroup has 64 samples of a tile and all of the
// block's beams; no thread reads what another one rounded, so a stage needs one barrier.
//
// `wgmma<sign>(sums, rows, columns, keep)` is generated (argand/runtime/wgmma.py).
#pragma once
#include "bins.cuh"
#include "device/warpgroup.cuh"
#include "ring.cuh"
#include "sm90_weights.cuh"

constexpr int kWarpgroupThreads = 4 * kWarp, kWarpTimes = 16;

// The row fragments of an MMA: a lane has samples 2 (lane / 4) and the next of the warp's 16.
template <Samples samples, Operand operand, Rounding rounding, int Times>
struct RowFragments {
    static constexpr int kPitch = Stage<samples, Times>::kPitch;
    uint32 parts[2][4];

    // `address` is the lane's first antenna and time in the stage.
    __device__ __forceinline__ void load(uint32 address) {
        if constexpr (samples == Samples::complex64) {
            constexpr int kNumbers = kNumbersPerRegister<operand>;
#pragma unroll
            for (int slot = 0; slot < 2; ++slot) {
                float re[2][kNumbers], im[2][kNumbers];
#pragma unroll
                for (int n = 0; n < kNumbers; ++n) {
                    const float4 x = load_shared_16(address + 4 * (slot * kNumbers + n) * kPitch);
                    re[0][n] = x.x, im[0][n] = x.y, re[1][n] = x.z, im[1][n] = x.w;
                }
#pragma unroll
                for (int time = 0; time < 2; ++time) {
                    split<operand, 1, rounding, rounding>(re[time], &parts[0][2 * slot + time]);
                    split<operand, 1, rounding, rounding>(im[time], &parts[1][2 * slot + time]);
                }
            }
        } else if constexpr (samples == Samples::half) {
#pragma unroll
            for (int slot = 0; slot < 2; ++slot) {
                const float2 a = load_shared_8(address + 8 * slot * kPitch),
                             b = load_shared_8(address + (8 * slot + 4) * kPitch);
                take_half(2 * slot, __float_as_uint(a.x), __float_as_uint(b.x));
                take_half(2 * slot + 1, __float_as_uint(a.y), __float_as_uint(b.y));
            }
        } else {
#pragma unroll
            for (int slot = 0; slot < 2; ++slot) {
                const uint32 a = load_word(address + 8 * slot * kPitch) ^ 0x80808080u,
                             b = load_word(address + (8 * slot + 4) * kPitch) ^ 0x80808080u;
                take_int8(2 * slot, bytes_of_two<0x5410u>(a, b));
                take_int8(2 * slot + 1, bytes_of_two<0x7632u>(a, b));
            }
        }
    }

    __device__ __forceinline__ static uint32 load_word(uint32 address) {
        uint32 x;
        asm volatile("ld.shared.b32 %0, [%1];" : "=r"(x) : "r"(address) : "memory");
        return x;
    }

    __device__ __forceinline__ void take_half(int at, uint32 a, uint32 b) {
        parts[0][at] = bytes_of_two<0x5410u>(a, b);
        parts[1][at] = bytes_of_two<0x7632u>(a, b);
    }

    __device__ __forceinline__ void take_int8(int at, uint32 both) {
        parts[0][at] = from_int8<operand, 0>(both);
        parts[1][at] = from_int8<operand, 1>(both);
    }
};

// Adds the first `Count` of x over lanes whose numbers differ in `Levels` bits from `Mask` on. Each
// lane keeps the sums of Count >> Levels of them, and the result is which is its first.
template <int Count, int Levels, int Mask, int Size>
__device__ __forceinline__ int add_lanes(float (&x)[Size], int lane) {
    if constexpr (Levels == 0) {
        return 0;
    } else {
        constexpr int kKept = Count / 2;
        const bool upper = lane & Mask;
#pragma unroll
        for (int i = 0; i < kKept; ++i) {
            const float low = x[i], high = x[i + kKept];
            const float given = upper ? low : high, own = upper ? high : low;
            x[i] = own + __shfl_xor_sync(~0u, given, Mask);
        }
        return (upper ? kKept : 0) + add_lanes<kKept, Levels - 1, 2 * Mask>(x, lane);
    }
}

// Sums of the squares of a lane's beams over `Group` samples of its warp, in shared memory. Lanes that
// share a sum each keep half of the beams at every exchange.
template <int Beams, int Group, int RowSums>
__device__ __forceinline__ void store_sums(const float (&re)[Beams / 2],
                                           const float (&im)[Beams / 2], float* sums,
                                           int first_time, int lane) {
    constexpr int kValues = Beams / 4;  // beams of a lane: 8 j + 2 (lane % 4) and the next
    const int own = first_time + lane / 4 * 2;
    float powers[kValues];
#pragma unroll
    for (int i = 0; i < kValues; ++i) {
        const int at = 4 * (i / 2) + i % 2;
        const float first = re[at] * re[at] + im[at] * im[at];
        const float second = re[at + 2] * re[at + 2] + im[at + 2] * im[at + 2];
        if constexpr (Group == 1) {
            float* to = sums + (8 * (i / 2) + 2 * (lane % 4) + i % 2) * RowSums + own;
            to[0] = first;
            to[1] = second;
        } else {
            powers[i] = first + second;
        }
    }
    if constexpr (Group > 1) {
        constexpr int kLevels = Group == 2 ? 0 : Group == 4 ? 1 : Group == 8 ? 2 : 3;
        const int first = add_lanes<kValues, kLevels, 4>(powers, lane);
#pragma unroll
        for (int i = 0; i < kValues >> kLevels; ++i) {
            const int at = first + i;
            sums[(8 * (at / 2) + 2 * (lane % 4) + at % 2) * RowSums + own / Group] = powers[i];
        }
    }
}

template <Operand operand, Rounding rounding, Samples samples, int Beams, int Warpgroups,
          int Stages, int Group, bool Scaled, bool Aligned>
struct WgmmaBeamPowerKernel {
    static constexpr int kThreads = Warpgroups * kWarpgroupThreads;
    static constexpr int kTileTimes = 64 * Warpgroups;
    static constexpr int kSteps = kDepth<samples> / kMmaK<operand>;
    static constexpr int kRowSteps = kRowAntennas<operand> / kMmaK<operand>;
    static constexpr int kRowSums = kTileTimes / Group;
    static constexpr int kPartBytes = Beams * kWeightRowBytes;
    using Ring = Stage<samples, kTileTimes>;
    // Without the weights, which follow the alignment of swizzles.
    static constexpr int kSharedBytes = 1024 + Stages * Ring::kBytes + Beams * kRowSums * 4;

    // Multiplies a stage; `steps` MMAs were before it.
    __device__ __forceinline__ static void multiply(uint32 address, uint32 weights, int steps,
                                                    float (&re)[Beams / 2],
                                                    float (&im)[Beams / 2]) {
        constexpr uint64 kHigh = make_matrix_descriptor<kWeightRowBytes>(0) >> 32 << 32;
        RowFragments<samples, operand, rounding, kTileTimes> rows[kSteps];
#pragma unroll
        for (int step = 0; step < kSteps; ++step)
            rows[step].load(address + step * kMmaK<operand> * Ring::kPitch);
        wgmma_fence();
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
            const int at = steps + step;
            const uint32 from = weights + at / kRowSteps * 2 * kPartBytes + at % kRowSteps * 32;
            const uint64 columns =
                kHigh | uint32(make_matrix_descriptor<kWeightRowBytes>(from));
            const uint64 imaginary = columns + (kPartBytes >> 4);
            wgmma<1>(re, rows[step].parts[0], columns, at > 0);
            wgmma<1>(im, rows[step].parts[0], imaginary, at > 0);
            wgmma<-1>(re, rows[step].parts[1], imaginary, 1);
            wgmma<1>(im, rows[step].parts[1], columns, 1);
        }
        wgmma_commit();
        wgmma_wait<0>();
    }

    __device__ __forceinline__ static void run(const BeamPowerArguments& args) {
        extern __shared__ unsigned char memory[];
        const uint32 start = shared_address(memory), weights = (start + 1023u) & ~1023u;
        const int rows_of_k = (args.chunks * kSteps + kRowSteps - 1) / kRowSteps;
        const int weight_bytes = rows_of_k * 2 * kPartBytes;
        const uint32 ring = weights + weight_bytes;
        float* sums = reinterpret_cast<float*>(memory + (ring - start) + Stages * Ring::kBytes);
        const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
        const int beam_blocks = args.row_tiles * kRowTile / Beams;
        const int segments = (args.tiles + args.block_tiles - 1) / args.block_tiles;
        const int beam_block = static_cast<int>(blockIdx.x % beam_blocks);
        const int segment = static_cast<int>(blockIdx.x / beam_blocks % segments);
        const int result = static_cast<int>(blockIdx.x / beam_blocks / segments);
        const int last = min(args.tiles, (segment + 1) * args.block_tiles);
        const int64 matrix = args.weights_batched ? result : 0;
        const unsigned char* packed = reinterpret_cast<const unsigned char*>(args.fragments) +
                                      (matrix * beam_blocks + beam_block) * weight_bytes;
        for (int i = threadIdx.x * 16; i < weight_bytes; i += kThreads * 16)
            cp_async_16(weights + i, packed + i);

        SampleRing<samples, kTileTimes, 1, Stages, Aligned, kThreads> copies(
            args, ring, result, segment * args.block_tiles, last);
#pragma unroll 1
        for (int i = 0; i < Stages - 1; ++i) copies.next(args);
        cp_async_wait<Stages - 2>();
        // The tensor cores read what threads have copied; the first stage's barrier follows.
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");

        const int first_time = warp * kWarpTimes;
        const uint32 own = ring + lane % 4 * Ring::kPitch + (first_time + lane / 4 * 2) * Ring::kItem;
        const float* descales = args.descales + matrix * args.row_tiles * kRowTile;
        uint32 stage = 0;
#pragma unroll 1
        for (int tile = segment * args.block_tiles; tile < last; ++tile) {
            float re[Beams / 2], im[Beams / 2];
#pragma unroll 1
            for (int chunk = 0; chunk < args.chunks; ++chunk) {
                cp_async_wait<Stages - 2>();
                __syncthreads();
                copies.next(args);
                multiply(own + stage * Ring::kBytes, weights, chunk * kSteps, re, im);
                stage = stage + 1 == Stages ? 0 : stage + 1;
            }
            wgmma_fence_operand(re);
            wgmma_fence_operand(im);
            // The sums of the tile before were read before the last barrier.
            store_sums<Beams, Group, kRowSums>(re, im, sums, first_time, lane);
            __syncthreads();
            store_bins<1, Beams, kRowSums, Group, kThreads>(
                args, sums, TimeTile(args, tile), result, beam_block * Beams,
                [&](float sum, int beam) {
                    if constexpr (!Scaled) return sum;
                    const float factor = __ldg(descales + beam);
                    return sum * factor * factor;
                });
        }
    }
};
