// Phases of a sequence of gates (sequence_kernel.cuh) on a tile in shared memory.
#pragma once
#include "sequence_tile.cuh"

// The factors of eight qubits where a qubit outside is 1 in this tile as well, in fp64. Four lanes of
// the first warp multiply those of one of the eight: few shuffles, which shared memory serves.
__device__ __forceinline__ void make_linear(const PhaseTable& table, uint32 tile, uint32 thread,
                                            double2 (&linear)[kPhaseBits]) {
    constexpr int kLanes = kWarp / kPhaseBits;
    if (thread >= kWarp) return;
    const uint32 bit = thread / kLanes;
    double2 own = {1.0, 0.0};
    for (uint32 other = thread % kLanes; tile >> other; other += kLanes)
        if (tile >> other & 1) own = phase_product(own, table.outside[bit][other]);
#pragma unroll
    for (int mask = kLanes / 2; mask > 0; mask /= 2) {
        const double2 other = {__shfl_xor_sync(0xffffffffu, own.x, mask),
                               __shfl_xor_sync(0xffffffffu, own.y, mask)};
        own = phase_product(own, other);
    }
    if (thread % kLanes == 0) linear[bit] = own;
}

// The factor of each setting of the eight qubits in this tile, rounded once. Rows of a thread have
// their lower bits in common.
template <int Threads, typename Synchronize>
__device__ __forceinline__ void make_phases(const PhaseTable& table, uint32 tile, uint32 thread,
                                            double2 (&linear)[kPhaseBits],
                                            float2 (&factors)[1 << kPhaseBits],
                                            const Synchronize& synchronize) {
    constexpr int kShared = log2_of(Threads) < kPhaseBits ? log2_of(Threads) : kPhaseBits;
    make_linear(table, tile, thread, linear);
    synchronize();
    double2 low = {1.0, 0.0};
#pragma unroll
    for (int bit = 0; bit < kShared; ++bit)
        if (thread >> bit & 1) low = phase_product(low, linear[bit]);
#pragma unroll
    for (uint32 row = thread; row < 1 << kPhaseBits; row += Threads) {
        double2 factor = phase_product(table.inside[row], low);
#pragma unroll
        for (int bit = kShared; bit < kPhaseBits; ++bit)
            if (row >> bit & 1) factor = phase_product(factor, linear[bit]);
        factors[row] = {static_cast<float>(factor.x), static_cast<float>(factor.y)};
    }
    synchronize();
}

// Each thread multiplies the chunks that it copies. Where `to` is not null, they go there, to the state.
template <typename Pipeline>
__device__ __forceinline__ void apply_phases(const Pipeline& pipeline, const SequenceGate& gate,
                                             uint32 stage, uint32 thread,
                                             const float2 (&factors)[1 << kPhaseBits], char* to) {
    constexpr int kThreadBits = Pipeline::kThreadBits;
    const uint32 row = xor_masks<kThreadBits>(gate.phase_row + 1, thread);
#pragma unroll
    for (int i = 0; i < Pipeline::kChunks; ++i) {
        const uint32 low =
            row ^ xor_masks<Pipeline::kChunkBits>(gate.phase_row + 1 + kThreadBits, i);
        const float4 x = load_shared_16(pipeline.chunk(stage, i));
        const float2 a = complex_product(factors[low], {x.x, x.y});
        const float2 b = complex_product(factors[low ^ gate.phase_row[0]], {x.z, x.w});
        const float4 found = {a.x, a.y, b.x, b.y};
        if (to == nullptr)
            store_shared_16(pipeline.chunk(stage, i), found);
        else
            store_global_16(to + pipeline.chunk_offset(i), found);
    }
}
