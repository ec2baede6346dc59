// Gates of a sequence by mma.sync (sm_80 and newer). Products are those of sm80_kernel.cuh, of 16
// rows by 16 columns per warp and step; the matrix lies in shared memory as fragments.
#pragma once
#include "sequence_tile.cuh"
#include "sm80_kernel.cuh"

template <Operand Kind, int Terms, Rounding first, Rounding second>
struct MmaStep {
    static constexpr Operand operand = Kind;
    template <bool TargetsQubit0>
    using Gate = MmaGate<operand, Terms, first, second, 4, TargetsQubit0, 2, false>;
    static constexpr int kNumKTiles = Gate<false>::kNumKTiles;
    static constexpr int kNumbersPerLane = Gate<false>::kNumbersPerLane;
    static constexpr int kRegisters = 8 * kNumKTiles * Terms;  // of a matrix
    static constexpr uint32 kMatrixBytes = kRegisters * 4 * kWarp;
    static constexpr uint32 kSigns = bytes_of(operand) == 4 ? 0x80000000u : 0x80008000u;
    static constexpr bool kStoresToState = false;
    using Place = uint32;  // where a thread reads, and writes results << 16
    using Negative = uint32[kNumKTiles][Terms][4];  // of the imaginary parts
    using Amplitudes = float2[kNumKTiles][2][kNumbersPerLane];  // of 16 columns, in a lane
    using Columns = typename Gate<false>::Columns[kNumKTiles];

    __device__ __forceinline__ static Place place(uint32 read, uint32 result) {
        return read | result << 16;
    }

    // Writes a gate's fragments, by the threads of one warp.
    template <bool TargetsQubit0>
    __device__ __forceinline__ static void store_matrix(const float2* matrix, uint32 at,
                                                        uint32 lane) {
        Gate<TargetsQubit0> held;
        held.load_fragments(SequenceMatrix{matrix, 0}, lane, 0);
        const uint32* words = &held.matrix[0][0][0][0];
#pragma unroll
        for (int i = 0; i < kRegisters; i += 4)
            store_shared_16(at + 16 * lane + 4 * kWarp * i, words[i], words[i + 1], words[i + 2],
                            words[i + 3]);
    }

    __device__ __forceinline__ static void publish_matrices() {}

    __device__ __forceinline__ static void split(const Amplitudes& x, Columns& columns) {
#pragma unroll
        for (int k_tile = 0; k_tile < kNumKTiles; ++k_tile)
            Gate<false>::split_columns(x[k_tile], 1.0f, columns[k_tile]);
    }

    // Multiplies 16 columns, products with low-order terms of all k-tiles first.
    template <bool TargetsQubit0>
    __device__ __forceinline__ static void multiply(const Gate<TargetsQubit0>& held,
                                                    const Negative& negative,
                                                    const Columns& columns, float (&re)[2][4],
                                                    float (&im)[2][4]) {
        using Products = TermProducts<Terms>;  // of the state and the matrix
#pragma unroll
        for (int product = 0; product < Products::kCount; ++product) {
            const int state_term = Products::left(product), matrix_term = Products::right(product);
#pragma unroll
            for (int k_tile = kNumKTiles - 1; k_tile >= 0; --k_tile) {
#pragma unroll
                for (int which = 0; which < 4; ++which) {
                    // re re, re im, -im im, im re
                    const uint32(&rows)[4] = which == 2
                                                 ? negative[k_tile][matrix_term]
                                                 : held.matrix[k_tile][which == 3][matrix_term];
                    const uint32 upper[2] = {rows[0], rows[2]}, lower[2] = {rows[1], rows[3]};
                    const int part = which == 1 || which == 2;
#pragma unroll
                    for (int column = 0; column < 2; ++column)
                        mma<operand>(which % 2 ? im[column] : re[column], upper, lower,
                                     columns[k_tile][part][column][state_term]);
                }
            }
        }
    }

    template <bool TargetsQubit0>
    __device__ __forceinline__ static void load_columns(const SequenceMasks& gate, uint32 stage,
                                                        uint32 at, Amplitudes& x) {
#pragma unroll
        for (int k_tile = 0; k_tile < kNumKTiles; ++k_tile)
            Gate<TargetsQubit0>::load_k_tile(gate, stage, at, k_tile, x[k_tile]);
    }

    // Applies one gate. The first of a tile multiplies by its scale, the last divides by it.
    template <bool TargetsQubit0, int Steps>
    __device__ __forceinline__ static void apply(const SequenceArguments&,
                                                 const SequenceMasks& gate, uint32 matrix,
                                                 uint32 stage, Place both, float scale,
                                                 float descale, char*) {
        const uint32 lane = threadIdx.x % kWarp;
        uint32 read = both & 0xffffu, result = both >> 16;
        Amplitudes x;
        load_columns<TargetsQubit0>(gate, stage, read, x);
        Gate<TargetsQubit0> held;
        Negative negative;
        uint32* words = &held.matrix[0][0][0][0];
        const uint32 at = matrix + 16 * lane;
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
#pragma unroll 1
        for (int step = 0; step < Steps; ++step) {
            if (is_scaled(operand) && scale != 1.0f) {
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
            if (step + 1 < Steps) load_columns<TargetsQubit0>(gate, stage, read, x);
            float re[2][4] = {}, im[2][4] = {};
            multiply<TargetsQubit0>(held, negative, columns, re, im);
            if (is_scaled(operand)) {
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    re[i / 4][i % 4] *= descale;
                    im[i / 4][i % 4] *= descale;
                }
            }
            __syncwarp();  // its columns have been read
            store<TargetsQubit0>(gate, stage, result, re, im);
            result ^= moved;
        }
    }

    // Bit 0 of a chunk's number is the lowest bit of a column, bit 1 the lower rows or, where a
    // chunk holds both rows, the second tile of columns.
    template <bool TargetsQubit0>
    __device__ __forceinline__ static void store(const SequenceMasks& gate, uint32 stage, uint32 at,
                                                 const float (&re)[2][4], const float (&im)[2][4]) {
#pragma unroll
        for (int number = 0; number < 4; ++number) {
            const int edge = number & 1, half = number >> 1;
            const int tile = TargetsQubit0 ? half : 0;
            const int part = TargetsQubit0 ? edge : edge + 2 * half;
            const int next_tile = TargetsQubit0 ? half : 1;
            const int next_part = TargetsQubit0 ? edge + 2 : part;
            const uint32 offset = xor_masks<2>(gate.register_mask, number);
            store_shared_16(stage + (at ^ offset),
                            {re[tile][part], im[tile][part], re[next_tile][next_part],
                             im[next_tile][next_part]});
        }
    }
};
