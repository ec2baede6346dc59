// Gates of a sequence by wgmma with 16-bit operands (sm_90a): the columns of a tile are the rows of
// the instruction, 16 of each warp, in registers; the matrix lies in shared memory. A lane has as
// results the amplitudes that it loaded, so it writes them where it read them.
//
// A matrix is, for each term, two planes of 32 lines by 16 numbers: the real parts of columns take
// the first, the imaginary parts the second. Lines are the rows of the gate, real and imaginary
// parts in turn; a plane consists of core matrices of 8 lines by 16 bytes.
#pragma once
#include "device/term_products.cuh"
#include "device/warpgroup.cuh"
#include "sequence_tile.cuh"
#include "sm80_kernel.cuh"

// argand/gates/sequence_plan.py writes the instruction in front of this header:
// wgmma<sign>(accumulators, rows, columns, accumulate) of 32 columns.

template <Operand Kind, int Terms>
struct WgmmaStep {
    static constexpr Operand operand = Kind;
    static constexpr bool kStoresToState = true;  // results of the last gate
    using Place = unsigned short;  // where a thread reads and writes
    static constexpr uint32 kPlaneBytes = 1024, kMatrixBytes = 2 * Terms * kPlaneBytes;
    static constexpr int kNumbers = 4;  // of a lane, of one column
    using Rows = uint32[2][Terms][4];   // [real, imaginary][term][register]
    using Amplitudes = float2[1][2][kNumbers];

    // The column of the matrix at a place of a line, which is a row too: two bits of a lane's
    // number and two of its amplitudes' numbers.
    template <bool TargetsQubit0>
    __device__ __forceinline__ static uint32 column_of(uint32 lane, uint32 number) {
        return mma_column<operand, TargetsQubit0>(lane, number, 0);
    }

    __device__ __forceinline__ static Place place(uint32 read, uint32) {
        return static_cast<Place>(read);
    }

    // wgmma reads the matrices through the async proxy.
    __device__ __forceinline__ static void publish_matrices() {
        fence_proxy_async_shared();
    }

    // Writes the planes of a gate's matrix, by the threads of one warp.
    template <bool TargetsQubit0>
    __device__ __forceinline__ static void store_matrix(const float2* matrix, uint32 at,
                                                        uint32 lane) {
        for (uint32 place = lane; place < 32 * 8; place += kWarp) {
            const uint32 line = place / 8, pair = place % 8;  // of numbers
            const uint32 row = column_of<TargetsQubit0>(line / 2 % 4, line / 8);
            float parts[2][2];  // of the planes, of the pair
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const uint32 column = column_of<TargetsQubit0>(pair % 4, i + pair / 4 * 2);
                const float2 entry = matrix[16 * row + column];
                parts[0][i] = line % 2 ? entry.y : entry.x;
                parts[1][i] = line % 2 ? entry.x : -entry.y;
            }
#pragma unroll
            for (int plane = 0; plane < 2; ++plane) {
                uint32 words[Terms];
                split<operand, Terms, Rounding::nearest_even, Rounding::nearest_even, true>(
                    parts[plane], words);
#pragma unroll
                for (int term = 0; term < Terms; ++term) {
                    const uint32 to = at + (2 * term + plane) * kPlaneBytes + line / 8 * 256 +
                                      pair / 4 * 128 + line % 8 * 16 + pair % 4 * 4;
                    asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(words[term]) : "memory");
                }
            }
        }
    }

    // The matrix descriptor. Bits 0-13: address / 16; 16-29: stride of 8 numbers / 16; 32-45:
    // stride of 8 lines / 16.
    __device__ __forceinline__ static uint64 descriptor(uint32 address) {
        return uint64(256 >> 4) << 32 | (128 >> 4) << 16 | (address & 0x3ffff) >> 4;
    }

    // Issues the MMAs of the rows in registers by the matrix in shared memory; `wait` returns when
    // they are done.
    __device__ __forceinline__ static void multiply(const Rows& x, uint32 matrix,
                                                    float (&found)[16]) {
        using Products = TermProducts<Terms>;  // of the rows and the matrix
        wgmma_fence_operand(found);
        wgmma_fence();
#pragma unroll
        for (int product = 0; product < Products::kCount; ++product) {
            const uint32 planes = matrix + 2 * Products::right(product) * kPlaneBytes;
#pragma unroll
            for (int part = 0; part < 2; ++part)
                wgmma<1>(found, x[part][Products::left(product)],
                         descriptor(planes + part * kPlaneBytes), product > 0 || part > 0);
        }
        wgmma_commit();
    }

    // The registers of the rows stay until the instructions have read them.
    __device__ __forceinline__ static void wait(Rows& x, float (&found)[16]) {
        wgmma_wait<0>();
        wgmma_fence_operand(found);
#pragma unroll
        for (int part = 0; part < 2; ++part)
#pragma unroll
            for (int term = 0; term < Terms; ++term)
#pragma unroll
                for (int i = 0; i < 4; ++i) asm volatile("" : "+r"(x[part][term][i])::"memory");
    }

    // A chunk of a lane's results: two numbers of a column, or a number of both columns.
    template <bool TargetsQubit0>
    __device__ __forceinline__ static float4 result(const float (&y)[16], int i) {
        const int one = TargetsQubit0 ? 8 * (i / 2) + 2 * (i % 2) : 4 * i;
        const int other = TargetsQubit0 ? one + 4 : one + 2;
        return {y[one], y[one + 1], y[other], y[other + 1]};
    }

    template <bool TargetsQubit0>
    __device__ __forceinline__ static void store(const SequenceMasks& gate, uint32 stage, uint32 at,
                                                 const float (&y)[16]) {
        const uint32 low = TargetsQubit0 ? gate.pair_mask : gate.row_mask[2];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const uint32 mask = (i & 1 ? low : 0) ^ (i & 2 ? gate.row_mask[3] : 0);
            store_shared_16(stage + (at ^ mask), result<TargetsQubit0>(y, i));
        }
    }

    template <bool TargetsQubit0>
    __device__ __forceinline__ static void store(const SequenceArguments& args, char* to,
                                                 const float (&y)[16]) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            store_global_16(to + or_offsets<2>(args.register_offset, i),
                            result<TargetsQubit0>(y, i));
    }

    // Applies one gate. The first of a tile multiplies by its scale, the last divides by it. Where
    // `to` is not null, results go there, to the state.
    template <bool TargetsQubit0, int Steps>
    __device__ __forceinline__ static void apply(const SequenceArguments& args,
                                                 const SequenceMasks& gate, uint32 matrix,
                                                 uint32 stage, Place own, float scale,
                                                 float descale, char* to) {
        uint32 at = own;
        int64 offset = 0;
        using Loads = MmaGate<operand, Terms, Rounding::nearest_even, Rounding::nearest_even, 4,
                              TargetsQubit0, 2, false>;
        Amplitudes x;
        Loads::load_k_tile(gate, stage, at, 0, x[0]);
#pragma unroll 2
        for (int step = 0; step < Steps; ++step) {
            if (is_scaled(operand) && scale != 1.0f) {
#pragma unroll
                for (auto& column : x[0])
#pragma unroll
                    for (float2& one : column) one = {one.x * scale, one.y * scale};
            }
            Rows rows;
#pragma unroll
            for (int column = 0; column < 2; ++column) {
#pragma unroll
                for (int slot = 0; slot < 2; ++slot) {
                    uint32 parts[2][Terms];
                    split_operand<operand, Terms, Rounding::nearest_even, Rounding::nearest_even>(
                        x[0][column] + 2 * slot, 1.0f, parts[0], parts[1]);
#pragma unroll
                    for (int term = 0; term < Terms; ++term) {
                        rows[0][term][column + 2 * slot] = parts[0][term];
                        rows[1][term][column + 2 * slot] = parts[1][term];
                    }
                }
            }
            float y[16];
            multiply(rows, matrix, y);
            const uint32 here = at;
            at ^= step & 1 ? gate.step_mask[1] : gate.step_mask[0];
            if (step + 1 < Steps) Loads::load_k_tile(gate, stage, at, 0, x[0]);
            wait(rows, y);
            if (is_scaled(operand) && descale != 1.0f) {
#pragma unroll
                for (float& one : y) one *= descale;
            }
            if (to == nullptr) {
                store<TargetsQubit0>(gate, stage, here, y);
            } else {
                store<TargetsQubit0>(args, to + offset, y);
                offset ^= step & 1 ? args.step_offset[1] : args.step_offset[0];
            }
        }
    }
};
