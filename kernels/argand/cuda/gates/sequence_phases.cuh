// Phases of a sequence of gates (sequence_kernel.cuh) on a tile in shared memory.
#pragma once
#include "sequence_tile.cuh"

// The factor of each setting of the eight qubits in this tile. A warp multiplies those of one of
// them with all qubits outside, in fp64, so that the product is rounded once.
template <int Threads, typename Synchronize>
__device__ __forceinline__ void make_phases(const PhaseTable& table, uint32 tile, uint32 thread,
                                            double2 (&linear)[kPhaseBits],
                                            float2 (&factors)[1 << kPhaseBits],
                                            const Synchronize& synchronize) {
    constexpr int kWarps = Threads / kWarp;
    const uint32 lane = thread % kWarp, warp = thread / kWarp;
#pragma unroll
    for (int bit = warp; bit < kPhaseBits; bit += kWarps) {
        double2 own = {1.0, 0.0};
        if (tile >> lane & 1) own = table.outside[bit][lane];
#pragma unroll
        for (int mask = kWarp / 2; mask > 0; mask /= 2) {
            const double2 other = {__shfl_xor_sync(0xffffffffu, own.x, mask),
                                   __shfl_xor_sync(0xffffffffu, own.y, mask)};
            own = complex_product(own, other);
        }
        if (lane == 0) linear[bit] = own;
    }
    synchronize();
#pragma unroll
    for (int row = thread; row < 1 << kPhaseBits; row += Threads) {
        double2 factor = table.inside[row];
#pragma unroll
        for (int bit = 0; bit < kPhaseBits; ++bit)
            if (row >> bit & 1) factor = complex_product(factor, linear[bit]);
        factors[row] = {static_cast<float>(factor.x), static_cast<float>(factor.y)};
    }
    synchronize();
}

// Each thread multiplies the chunks that it copies.
template <typename Pipeline>
__device__ __forceinline__ void apply_phases(const Pipeline& pipeline, const SequenceGate& gate,
                                             uint32 stage, uint32 thread,
                                             const float2 (&factors)[1 << kPhaseBits]) {
    constexpr int kThreadBits = Pipeline::kThreadBits;
    const uint32 row = xor_masks<kThreadBits>(gate.phase_row + 1, thread);
#pragma unroll
    for (int i = 0; i < Pipeline::kChunks; ++i) {
        const uint32 low =
            row ^ xor_masks<Pipeline::kChunkBits>(gate.phase_row + 1 + kThreadBits, i);
        const float4 x = load_shared_16(pipeline.chunk(stage, i));
        const float2 a = complex_product(factors[low], {x.x, x.y});
        const float2 b = complex_product(factors[low ^ gate.phase_row[0]], {x.z, x.w});
        store_shared_16(pipeline.chunk(stage, i), {a.x, a.y, b.x, b.y});
    }
}
