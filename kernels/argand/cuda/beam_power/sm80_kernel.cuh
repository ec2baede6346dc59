// Beam power by mma.sync: a block multiplies weights, which stay in L1 as fragments, with a ring of
// stages of samples, and detects each tile in its accumulators. The ring runs on from one tile to
// the next, so samples of the next tile arrive while one is detected.
#pragma once
#include "bins.cuh"
#include "detect.cuh"
#include "device/term_products.cuh"
#include "ring.cuh"

// `Polarizations` is 2 for Stokes parameters, else 1. A block has `Warps` warps: `WarpRows` of them
// lie along beams, each with `RowTiles` row tiles, and the others along time, each with 32 samples.
// `Stages` are the stages of the ring of samples. Lanes sum `Group` samples before shared memory.
// `Scaled`: weights are descaled in the end. `Aligned`: samples are copied by 16 bytes. The members
// of `BeamPowerPlan` (argand/beam_power/plan.py) are the same.
//
// Shared memory has the ring, then the sums of the block's beams by group of samples.
template <Operand operand, int Terms, Rounding first, Rounding second, Samples samples,
          int Polarizations, int Warps, int WarpRows, int RowTiles, int Stages, int Group,
          bool Scaled, bool Aligned>
struct BeamPowerKernel {
    static constexpr int kThreads = Warps * kWarp;
    static constexpr int kWarpColumns = Warps / WarpRows;
    static constexpr int kTileRows = WarpRows * RowTiles;  // row tiles of a block
    static constexpr int kBeams = kTileRows * kRowTile;
    static constexpr int kTileTimes = kWarpColumns * 32;
    static constexpr int kOutputs = Polarizations == 2 ? 4 : 1;
    static constexpr int kMmas = kDepth<samples> / kMmaK<operand>;
    // MMAs whose loads overlap; those of pairs of 16 bits would spill.
    static constexpr int kUnrolled = samples == Samples::half ? 1 : kMmas;
    static constexpr int kPromotedStages = 64 / kDepth<samples>;
    using Ring = Stage<samples, kTileTimes>;
    using Sums = WarpSums<samples, Group>;
    using Fragments = SampleFragments<samples, operand, Terms, first, second, kTileTimes>;
    static constexpr int kRowSums = kTileTimes / Sums::kGroup;
    static constexpr int kSharedBytes = Stages * Ring::kBytes + kOutputs * kBeams * kRowSums * 4;

    struct Accumulators {
        float parts[2][RowTiles][4][4];  // real and imaginary, by row tile and group of columns

        static constexpr int kNumbers = 2 * RowTiles * 4 * 4;

        __device__ __forceinline__ float& at(int n) {
            return parts[n / (16 * RowTiles)][n / 16 % RowTiles][n / 4 % 4][n % 4];
        }

        __device__ __forceinline__ void clear() {
#pragma unroll
            for (int n = 0; n < kNumbers; ++n) at(n) = 0.0f;
        }

        // Promotion: adds `other` and clears it.
        __device__ __forceinline__ void promote(Accumulators& other) {
#pragma unroll
            for (int n = 0; n < kNumbers; ++n) at(n) += other.at(n);
            other.clear();
        }
    };

    // Multiplies one stage. `weights` is the fragment of the warp's first row tile and the stage's
    // first MMA, `row_tile` the distance between row tiles, in fragments.
    __device__ __forceinline__ static void multiply(const uint4* weights, int row_tile,
                                                    uint32 address, Accumulators& accumulators) {
        using Products = TermProducts<Terms>;
        constexpr uint32 kSigns = operand == Operand::tf32 ? 0x80000000u : 0x80008000u;
#pragma unroll kUnrolled
        for (int mma_index = 0; mma_index < kMmas; ++mma_index) {
            Fragments b;
            b.load(address, mma_index);
#pragma unroll
            for (int i = 0; i < RowTiles; ++i) {
#pragma unroll
                for (int product = 0; product < Products::kCount; ++product) {
                    const int left = Products::left(product), right = Products::right(product);
                    const uint4* at =
                        weights + i * row_tile + mma_index * kMmaFragments<Terms> + left * kWarp;
                    const uint4 re = __ldg(at), im = __ldg(at + Terms * kWarp);
                    const uint32 re_upper[2] = {re.x, re.z}, re_lower[2] = {re.y, re.w};
                    const uint32 im_upper[2] = {im.x, im.z}, im_lower[2] = {im.y, im.w};
                    // Eight MMAs apart, so that none waits for the one before it.
#pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        mma<operand>(accumulators.parts[0][i][j], re_upper, re_lower,
                                     b.parts[0][j][right]);
                        mma<operand>(accumulators.parts[1][i][j], re_upper, re_lower,
                                     b.parts[1][j][right]);
                    }
#pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        const uint32(&y)[2] = b.parts[1][j][right];
                        const uint32 minus[2] = {y[0] ^ kSigns, y[1] ^ kSigns};
                        mma<operand>(accumulators.parts[0][i][j], im_upper, im_lower, minus);
                        mma<operand>(accumulators.parts[1][i][j], im_upper, im_lower,
                                     b.parts[0][j][right]);
                    }
                }
            }
        }
    }

    // Descale factors of a lane's rows.
    __device__ __forceinline__ static void load_descales(const BeamPowerArguments& args,
                                                         int64 first_tile, int lane,
                                                         float (&descales)[RowTiles][2]) {
        const float* from = args.descales + first_tile * kRowTile + lane / 4;
#pragma unroll
        for (int i = 0; i < RowTiles; ++i) {
            descales[i][0] = __ldg(from + i * kRowTile);
            descales[i][1] = __ldg(from + i * kRowTile + 8);
        }
    }

    // Stores one output of a tile's rows to shared memory, summed over groups of samples.
    template <int output>
    __device__ __forceinline__ static void detect(
        const Accumulators (&beams)[Polarizations],
        const float (&descales)[Polarizations][RowTiles][2], float* sums, int warp_row,
        int warp_column, int lane) {
        constexpr int kNear = kTimes<samples>;
#pragma unroll
        for (int i = 0; i < RowTiles; ++i) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int row = (warp_row * RowTiles + i) * kRowTile + lane / 4 + half * 8;
                float* to =
                    sums + (output * kBeams + row) * kRowSums + warp_column * 32 / Sums::kGroup;
#pragma unroll
                for (int set = 0; set < Sums::kSets; ++set) {
                    float powers[Sums::kOwn];
#pragma unroll
                    for (int time = 0; time < Sums::kOwn; ++time) {
                        const int j = set * kNear + time % kNear, e = 2 * half + time / kNear;
                        float2 z[Polarizations];
#pragma unroll
                        for (int p = 0; p < Polarizations; ++p) {
                            z[p] = {beams[p].parts[0][i][j][e], beams[p].parts[1][i][j][e]};
                            if constexpr (Scaled) {
                                z[p].x *= descales[p][i][half];
                                z[p].y *= descales[p][i][half];
                            }
                        }
                        powers[time] = detected<Polarizations, output>(z);
                    }
                    Sums::store(powers, to, set, lane);
                }
            }
        }
    }

    // The kernel: a block computes the beams of its rows, tile of times after tile, detects them in
    // the accumulators and sums them to bins.
    __device__ __forceinline__ static void run(const BeamPowerArguments& args) {
        extern __shared__ __align__(16) unsigned char memory[];
        const uint32 ring = shared_address(memory);
        float* sums = reinterpret_cast<float*>(memory + Stages * Ring::kBytes);
        const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
        const int warp_row = warp % WarpRows, warp_column = warp / WarpRows;
        const int beam_blocks = args.row_tiles / kTileRows;
        const int segments = (args.tiles + args.block_tiles - 1) / args.block_tiles;
        const int beam_block = static_cast<int>(blockIdx.x % beam_blocks);
        const int segment = static_cast<int>(blockIdx.x / beam_blocks % segments);
        const int result = static_cast<int>(blockIdx.x / beam_blocks / segments);
        const int last = min(args.tiles, (segment + 1) * args.block_tiles);
        const int first_tile = beam_block * kTileRows + warp_row * RowTiles;
        const int row_tile = args.chunks * kMmas * kMmaFragments<Terms>;
        // The lane's antenna and time in a stage.
        const uint32 own = ring + lane % 4 * Ring::kPitch +
                           (warp_column * 32 + lane / 4 * kTimes<samples>) * Ring::kItem;

        SampleRing<samples, kTileTimes, Polarizations, Stages, Aligned, kThreads> copies(
            args, ring, threadIdx.x, result, segment * args.block_tiles, last);
#pragma unroll 1
        for (int i = 0; i < Stages - 1; ++i) copies.next(args);

        uint32 stage = 0;
#pragma unroll 1
        for (int tile = segment * args.block_tiles; tile < last; ++tile) {
            Accumulators beams[Polarizations];
            float descales[Polarizations][RowTiles][2];
#pragma unroll
            for (int p = 0; p < Polarizations; ++p) {
                beams[p].clear();
                const int64 matrix = args.weights_batched ? int64(result) * Polarizations + p : 0;
                const int64 tiles_before = matrix * args.row_tiles + first_tile;
                const uint4* weights = args.fragments + tiles_before * row_tile + lane;
                if constexpr (Scaled) load_descales(args, tiles_before, lane, descales[p]);
                Accumulators part;
                if constexpr (Terms == 2) part.clear();
#pragma unroll 1
                for (int chunk = 0; chunk < args.chunks; ++chunk) {
                    cp_async_wait<Stages - 2>();
                    __syncthreads();
                    copies.next(args);
                    const uint4* at = weights + chunk * (kMmas * kMmaFragments<Terms>);
                    const uint32 address = own + stage * Ring::kBytes;
                    stage = stage + 1 == Stages ? 0 : stage + 1;
                    if constexpr (Terms == 1) {
                        multiply(at, row_tile, address, beams[p]);
                    } else {
                        multiply(at, row_tile, address, part);
                        if ((chunk + 1) % kPromotedStages == 0 || chunk + 1 == args.chunks)
                            beams[p].promote(part);
                    }
                }
            }
            // The sums of the tile before were read before the last barrier.
            detect<0>(beams, descales, sums, warp_row, warp_column, lane);
            if constexpr (Polarizations == 2) {
                detect<1>(beams, descales, sums, warp_row, warp_column, lane);
                detect<2>(beams, descales, sums, warp_row, warp_column, lane);
                detect<3>(beams, descales, sums, warp_row, warp_column, lane);
            }
            __syncthreads();
            store_bins<kOutputs, kBeams, kRowSums, Sums::kGroup, kThreads>(
                args, sums, TimeTile(args, tile), result, beam_block * kBeams, threadIdx.x,
                [](float sum, int) { return sum; });
        }
    }
};
