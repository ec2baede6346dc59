// Weights of the wgmma family as they lie in shared memory: the column operand, k-major in rows of
// 128 bytes with TMA's swizzle. A block of beams is [row of k][term][real, imaginary][beam][128
// bytes].
//
// A lane of a row fragment holds neighbours in k; samples of antennas that are four apart meet no
// bank conflict (samples.cuh). So the k of an MMA stand in the order in which lanes read antennas.
#pragma once
#include "plan.cuh"

constexpr int kWeightRowBytes = 128;

template <Operand operand>
constexpr int kRowAntennas = kWeightRowBytes / bytes_of(operand);

// The antenna, within those of an MMA, at its k.
template <Operand operand>
__device__ __forceinline__ int antenna_at(int k) {
    if constexpr (operand == Operand::tf32) return k;
    return k / 8 * 8 + k % 8 / 2 + 4 * (k % 2);
}

// One block for a matrix and 16 beams, `args.row_tiles` of them; `args.fragments_k` are rows of k.
template <Operand operand, int Terms, Rounding first, Rounding second, int Beams>
__device__ __forceinline__ void pack_columns(const WeightArguments& args) {
    constexpr int kThreads = 256, kThreadsPerRow = kThreads / kRowTile;
    constexpr int kNumbers = 16 / bytes_of(operand);  // of 16 bytes
    __shared__ int exponents[kRowTile];
    const int tile = static_cast<int>(blockIdx.x % args.row_tiles);
    const int64 matrix = blockIdx.x / args.row_tiles;
    const float2* from = args.weights + matrix * args.beams * args.antennas;
    if constexpr (is_scaled(operand)) {
        scale_rows<operand, kThreadsPerRow>(args, from, matrix, tile, exponents);
    }
    constexpr int kBlocks = Beams / kRowTile;  // of 16 beams, in a block of beams
    unsigned char* to = reinterpret_cast<unsigned char*>(args.fragments) +
                        (matrix * (args.row_tiles / kBlocks) + tile / kBlocks) * args.fragments_k *
                            (2 * Terms) * Beams * kWeightRowBytes;
    for (int i = threadIdx.x; i < args.fragments_k * 2 * kRowTile * 8; i += kThreads) {
        const int at = i % 8, row = i / 8 % kRowTile, part = i / (8 * kRowTile) % 2,
                  row_of_k = i / (16 * kRowTile);
        const int beam = tile * kRowTile + row, within = tile % kBlocks * kRowTile + row;
        uint32 words[Terms][4];
#pragma unroll
        for (int word = 0; word < 4; ++word) {
            float x[kNumbersPerRegister<operand>];
#pragma unroll
            for (int n = 0; n < kNumbersPerRegister<operand>; ++n) {
                const int k = at * kNumbers + word * kNumbersPerRegister<operand> + n;
                const int antenna = row_of_k * kRowAntennas<operand> +
                                    k / kMmaK<operand> * kMmaK<operand> +
                                    antenna_at<operand>(k % kMmaK<operand>);
                x[n] = 0.0f;
                if (beam < args.beams && antenna < args.antennas) {
                    const float2 w = from[int64(beam) * args.antennas + antenna];
                    x[n] = part ? w.y : w.x;
                    if constexpr (is_scaled(operand)) x[n] *= power_of_two(exponents[row]);
                }
            }
            split<operand, Terms, first, second>(x, &words[0][word], 4);
        }
#pragma unroll
        for (int term = 0; term < Terms; ++term) {
            const int64 line = ((int64(row_of_k) * Terms + term) * 2 + part) * Beams + within;
            *reinterpret_cast<uint4*>(to + line * kWeightRowBytes + (at ^ within % 8) * 16) = {
                words[term][0], words[term][1], words[term][2], words[term][3]};
        }
    }
}
