// Packs weights as A fragments of mma.sync, each row scaled by a power of two where the operand is.
#pragma once
#include "plan.cuh"

constexpr int kPackThreads = 256;

// One block for a matrix and a row tile.
template <Operand operand, int Terms, Rounding first, Rounding second>
__device__ __forceinline__ void pack_weights(const WeightArguments& args) {
    constexpr int kNumbers = kNumbersPerRegister<operand>;
    __shared__ int exponents[kRowTile];
    const int tile = static_cast<int>(blockIdx.x % args.row_tiles);
    const int64 matrix = blockIdx.x / args.row_tiles;
    const float2* from = args.weights + matrix * args.beams * args.antennas;
    if constexpr (is_scaled(operand))
        scale_rows<operand, kPackThreads / kRowTile>(args, from, matrix, tile, exponents);
    uint4* to = args.fragments +
                (matrix * args.row_tiles + tile) * args.fragments_k * kMmaFragments<Terms>;
    for (int i = threadIdx.x; i < args.fragments_k * 2 * kWarp; i += kPackThreads) {
        const int lane = i % kWarp, part = i / kWarp % 2, mma_index = i / (2 * kWarp);
        uint32 words[4][Terms];
#pragma unroll
        for (int word = 0; word < 4; ++word) {
            const int row = lane / 4 + word / 2 * 8, beam = tile * kRowTile + row;
            float x[kNumbers];
#pragma unroll
            for (int n = 0; n < kNumbers; ++n) {
                const int k = mma_index * kMmaK<operand> + lane % 4 + 4 * (word % 2 * kNumbers + n);
                x[n] = 0.0f;
                if (beam < args.beams && k < args.antennas) {
                    const float2 w = from[int64(beam) * args.antennas + k];
                    x[n] = part ? w.y : w.x;
                    if constexpr (is_scaled(operand)) x[n] *= power_of_two(exponents[row]);
                }
            }
            split<operand, Terms, first, second>(x, words[word]);
        }
#pragma unroll
        for (int term = 0; term < Terms; ++term)
            to[(mma_index * 2 + part) * Terms * kWarp + term * kWarp + lane] = {
                words[0][term], words[2][term], words[1][term], words[3][term]};
    }
}
