// Gates on 4 to 7 qubits by mma.sync (sm_80 and newer): tiles of the state from TilePipeline, times
// the matrix, in place and back. Eight warps share a tile of 2^11 amplitudes. Each multiplies 16
// rows of the matrix, whose terms it holds in registers, by 16 columns. Columns are split into
// terms when they are loaded from shared memory; with so few rows per column that costs less than
// storing the terms.
#pragma once
#include "operands.cuh"

// The column of the matrix that a lane holds as one of its numbers of a k-tile.
template <Operand operand, bool TargetsQubit0>
__device__ __forceinline__ uint32 mma_column(uint32 lane, uint32 number, uint32 k_tile) {
    constexpr int kLaneWithQubit0[2] = {1, 2}, kLaneWithoutQubit0[2] = {0, 1};
    constexpr int kNumberWithQubit0[3] = {0, 3, 4}, kNumberWithoutQubit0[3] = {2, 3, 4};
    return deposit_bits(lane & 3, TargetsQubit0 ? kLaneWithQubit0 : kLaneWithoutQubit0) |
           deposit_bits(number, TargetsQubit0 ? kNumberWithQubit0 : kNumberWithoutQubit0) |
           k_tile << log2_of(kMmaK<operand>);
}

// `Width` is the number of target qubits. `TargetsQubit0`: a chunk of 16 bytes holds two rows of a
// column, else two columns of a row. A block holds `Stages` tiles in shared memory.
template <Operand operand, int Terms, Rounding first, Rounding second, int Width,
          bool TargetsQubit0, int Stages, bool SeparateSmallProducts>
struct MmaGate {
    static constexpr int kThreads = 256;
    static constexpr int kTileBytes = 16 * 1024;
    static constexpr int kOrder = 1 << Width;
    static constexpr int kRowTiles = kOrder / 16;
    static constexpr int kColumnGroups = 8 / kRowTiles;
    static constexpr int kNumKTiles = kOrder / kMmaK<operand>;
    static constexpr int kNumbersPerLane = kMmaK<operand> / 4;  // of a row or column
    static constexpr bool kScaled = is_scaled(operand);
    // Products of low-order terms have accumulators of their own, against truncation bias. With a
    // single k-tile they are accumulated first instead.
    static constexpr bool kSeparateSmallProducts =
        SeparateSmallProducts && Terms == 2 && kNumKTiles > 1;
    using Pipeline = TilePipeline<kTileBytes, kThreads, Stages, true>;

    // A lane's part of 16 columns in a k-tile: [real, imaginary][column][term][register].
    using Columns = uint32[2][2][Terms][2];

    uint32 matrix[kNumKTiles][2][Terms][4];

    // `args` is here and below any structure with the matrix, or with the masks of rows and pairs.
    template <typename Arguments>
    __device__ __forceinline__ void load_fragments(const Arguments& args, uint32 lane,
                                                   uint32 row_tile) {
        const auto column = [lane](int slot, int number, uint32 k_tile) {
            return mma_column<operand, TargetsQubit0>(
                lane, slot * kNumbersPerRegister<operand> + number, k_tile);
        };
        load_matrix_fragments<operand, Terms, first, second, Width, TargetsQubit0>(
            args, lane, row_tile, column, matrix);
    }

    // Loads the amplitudes of a lane's two columns in one k-tile.
    template <typename Arguments>
    __device__ __forceinline__ static void load_k_tile(const Arguments& args, uint32 stage,
                                                       uint32 at, int k_tile,
                                                       float2 (&x)[2][kNumbersPerLane]) {
        uint32 k_tile_mask = 0;
#pragma unroll
        for (int bit = 0; bit < log2_of(kNumKTiles); ++bit) {
            if (k_tile >> bit & 1)
                k_tile_mask ^= args.row_mask[log2_of(kMmaK<operand>) + bit];
        }
        const uint32 low = args.row_mask[TargetsQubit0 ? 0 : 2];
        const uint32 high = kNumbersPerLane >= 4 ? args.row_mask[3] : 0;
        if constexpr (TargetsQubit0) {
#pragma unroll
            for (int column = 0; column < 2; ++column) {
#pragma unroll
                for (int slot = 0; slot < kNumbersPerLane / 2; ++slot) {
                    uint32 mask =
                        k_tile_mask ^ (column ? args.pair_mask : 0) ^ (slot & 1 ? high : 0);
                    if constexpr (kNumbersPerLane == 8) mask ^= slot & 2 ? args.row_mask[4] : 0;
                    const float4 rows = load_shared_16(stage + (at ^ mask));
                    x[column][2 * slot] = {rows.x, rows.y};
                    x[column][2 * slot + 1] = {rows.z, rows.w};
                }
            }
        } else {
#pragma unroll
            for (int number = 0; number < kNumbersPerLane; ++number) {
                uint32 mask = k_tile_mask ^ (number & 1 ? low : 0) ^ (number & 2 ? high : 0);
                if constexpr (kNumbersPerLane == 8) mask ^= number & 4 ? args.row_mask[4] : 0;
                const float4 columns = load_shared_16(stage + (at ^ mask));
                x[0][number] = {columns.x, columns.y};
                x[1][number] = {columns.z, columns.w};
            }
        }
    }

    // Scales the amplitudes of a lane's two columns in one k-tile and splits them into terms.
    __device__ __forceinline__ static void split_columns(const float2 (&x)[2][kNumbersPerLane],
                                                         float scale, Columns& columns) {
#pragma unroll
        for (int column = 0; column < 2; ++column) {
#pragma unroll
            for (int slot = 0; slot < 2; ++slot) {
                uint32 parts[2][Terms];
                split_operand<operand, Terms, first, second>(
                    x[column] + slot * kNumbersPerRegister<operand>, scale, parts[0], parts[1]);
#pragma unroll
                for (int term = 0; term < Terms; ++term) {
                    columns[0][column][term][slot] = parts[0][term];
                    columns[1][column][term][slot] = parts[1][term];
                }
            }
        }
    }

    // Multiplies the matrix and the columns of a tile that a lane reads from `at` on, over all k.
    template <typename Arguments>
    __device__ __forceinline__ void mainloop(const Arguments& args, uint32 stage, uint32 at,
                                             float scale, float (&re)[8], float (&im)[8]) const {
        // re is the difference of two accumulators, because mma.sync cannot subtract a product.
        float accumulators[kSeparateSmallProducts ? 2 : 1][3][2][4] = {};
        // The first columns of the matrix come last, as in sm90_kernel.cuh.
#pragma unroll
        for (int k_tile = kNumKTiles - 1; k_tile >= 0; --k_tile) {
            float2 x[2][kNumbersPerLane];
            load_k_tile(args, stage, at, k_tile, x);
            Columns columns;
            split_columns(x, scale, columns);
            for_each_real_product<Terms>([&](const RealProduct& x) {
                const uint32(&rows)[4] = matrix[k_tile][x.matrix_part][x.matrix_term];
                const uint32 upper[2] = {rows[0], rows[2]}, lower[2] = {rows[1], rows[3]};
#pragma unroll
                for (int column = 0; column < 2; ++column) {
                    mma<operand>(accumulators[kSeparateSmallProducts && x.is_low_order]
                                             [x.accumulator][column],
                                 upper, lower, columns[x.state_part][column][x.state_term]);
                }
            });
        }
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const int column = i / 4, part = i % 4;
            re[i] = accumulators[0][0][column][part] - accumulators[0][1][column][part];
            im[i] = accumulators[0][2][column][part];
            if constexpr (kSeparateSmallProducts) {
                re[i] += accumulators[1][0][column][part] - accumulators[1][1][column][part];
                im[i] += accumulators[1][2][column][part];
            }
        }
    }

    // The kernel: cp.async fills a ring of tiles, each of which is multiplied and written back.
    __device__ __forceinline__ void run(const GateArguments& args) {
        extern __shared__ __align__(1024) unsigned char memory[];
        __shared__ __align__(16) uint32 warp_maxima[kThreads / kWarp];
        const uint32 ring = shared_address(memory);
        const uint32 lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
        const uint32 row_tile = warp % kRowTiles, column_group = warp / kRowTiles;
        const Pipeline pipeline(args);
        pipeline.load_prologue(ring);
        load_fragments(args, lane, row_tile);
        uint32 read_address = xor_masks<5>(args.read_mask, lane) ^
                              xor_masks<log2_of(kColumnGroups)>(args.read_mask + 5, column_group);
        uint32 result_address = xor_masks<Pipeline::kThreadBits>(args.result_mask, threadIdx.x);

        uint32 stage = ring;
        for (uint32 tile = blockIdx.x; tile < args.tiles; tile += gridDim.x) {
            cp_async_wait<Stages - 1>();
            read_address = opaque(read_address);
            result_address = opaque(result_address);
            if constexpr (kScaled) {
                float4 chunks[Pipeline::kChunks];
#pragma unroll
                for (int i = 0; i < Pipeline::kChunks; ++i)
                    chunks[i] = load_shared_16(pipeline.chunk(stage, i));
                const uint32 absmax = warp_absmax(chunks);
                if (lane == 0) warp_maxima[warp] = absmax;
            }
            __syncthreads();
            const int exponent = kScaled ? scale_exponent<operand>(block_absmax(warp_maxima)) : 0;
            float re[8], im[8];
            mainloop(args, stage, read_address, power_of_two(exponent), re, im);
            __syncthreads();
            // Results go through shared memory, so that stores to the state are contiguous. Where
            // qubits 0 or 1 are controls, columns on which they are 0 stay there as they were; bit
            // 0 of a chunk's number is qubit 1 then.
            const float2 descale =
                split_power_of_two(kScaled ? -exponent - matrix_exponent_of(args) : 0);
            for_each_result_chunk<TargetsQubit0, 2>(re, im, descale, [&](int number, float4 chunk) {
                const uint32 offset = xor_masks<2>(args.register_mask, number);
                const uint32 target = stage + (result_address ^ offset);
                store_shared_chunk(args, target, chunk, number & 1 ? 0 : args.controls_qubit1);
            });
            __syncthreads();
            pipeline.store_and_refill(tile, stage);
            stage = next_stage<kTileBytes, Stages>(stage, ring);
        }
    }
};
