// The matrix of a gate on 6 or 7 qubits, which the wgmma kernels keep in registers as the A
// operand. On its way there it lies in shared memory, where the planes of the state will be.
#pragma once
#include "device/tma_bulk.cuh"
#include "operands.cuh"

template <Operand operand, int Terms, Rounding first, Rounding second, int Width,
          bool TargetsQubit0>
struct WgmmaMatrix {
    static constexpr int kOrder = 1 << Width;
    static constexpr int kNumKTiles = kOrder / kMmaK<operand>;
    static constexpr int kNumbers = kNumbersPerRegister<operand>;
    static constexpr bool kScaled = is_scaled(operand);
    static constexpr uint32 kMatrixBytes = kOrder * kOrder * 8;

    uint32 matrix[kNumKTiles][2][Terms][4];  // by k-tile, complex part, term, register

    // Copies the matrix to shared memory in parts. Each part has an mbarrier, which one arrival
    // completes. One thread calls it. Loads by all threads would wait for L2 several times.
    template <int Parts>
    __device__ __forceinline__ static void fetch_matrix(const GateArguments& args, uint32 at,
                                                        uint32 mbarriers) {
        constexpr uint32 kPieceBytes = 16 * 1024, kPart = kMatrixBytes / Parts;
#pragma unroll
        for (uint32 piece = 0; piece < kMatrixBytes; piece += kPieceBytes) {
            const uint32 mbarrier = mbarriers + piece / kPart * sizeof(uint64);
            if (piece % kPart == 0) mbarrier_arrive_expect_tx(mbarrier, kPart);
            bulk_load(at + piece, static_cast<const char*>(args.matrix) + piece, kPieceBytes,
                      mbarrier);
        }
    }

    // The registers of one or two numbers of the matrix, in each term. The operand has both 16-bit
    // terms of a part in one word, the first one in its low half. tf32 is not scaled.
    __device__ __forceinline__ static void take_terms(const float2* numbers, uint32 (&re)[Terms],
                                                      uint32 (&im)[Terms]) {
        if constexpr (kNumbers == 2) {
#pragma unroll
            for (int term = 0; term < Terms; ++term) {
                const uint32 halves = term == 0 ? 0x5410 : 0x7632;
                re[term] = __byte_perm(__float_as_uint(numbers[0].x), __float_as_uint(numbers[1].x),
                                       halves);
                im[term] = __byte_perm(__float_as_uint(numbers[0].y), __float_as_uint(numbers[1].y),
                                       halves);
            }
        } else {
            static_assert(!kScaled);
            split_operand<operand, Terms, first, second>(numbers, 1.0f, re, im);
        }
    }

    // A lane's A fragments of 16 rows, as load_matrix_fragments has them, of the operand in shared
    // memory. argand/gates/operands.py puts the columns of a core matrix beside each other, and
    // exchanges such groups in every other row, so that two rows of an access meet all banks.
    __device__ __forceinline__ void load_fragments(uint32 at, uint32 lane, uint32 row_tile) {
        constexpr int kHalfRows = TargetsQubit0 ? 1 : 8, kSplits = 2 / kNumbers;
        const uint32 odd = lane >> 2 & 1;
        uint32 line =
            at + matrix_row<TargetsQubit0>(lane, 0, row_tile) * kOrder * 8 + lane % 4 * 16;
#pragma unroll
        for (int group = 0; group < kOrder / 8; ++group) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                __syncwarp();  // else more is in flight than registers hold
                line = opaque(line);
                const uint32 exchanged = group & 1 ? (group - odd) : (group + odd);
                const float4 two =
                    load_shared_16(line + half * kHalfRows * kOrder * 8 + exchanged * 64);
                const float2 numbers[2] = {{two.x, two.y}, {two.z, two.w}};
#pragma unroll
                for (int part = 0; part < kSplits; ++part) {
                    const int core = group * kSplits + part, i = 2 * (core & 1) + half;
                    uint32 re[Terms], im[Terms];
                    take_terms(numbers + part * kNumbers, re, im);
#pragma unroll
                    for (int term = 0; term < Terms; ++term) {
                        // Opaque, so that nothing is rounded again between the instructions.
                        matrix[core / 2][0][term][i] = opaque(re[term]);
                        matrix[core / 2][1][term][i] = opaque(im[term]);
                    }
                }
            }
        }
    }
};
