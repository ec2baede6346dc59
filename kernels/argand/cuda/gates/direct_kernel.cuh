// Gates of complex64 on few qubits without shared memory: each thread loads rows of its columns
// into registers, multiplies in fp32, and stores them where they lay. Rows that lie near each other
// in memory are loaded by two lanes, which exchange them by shuffles, so that a warp reads and
// writes contiguous memory.
#pragma once
#include "cuda_core_kernel.cuh"

// The rows that a thread holds. Bits of a row's number are, lowest first, qubit 0 where a chunk of
// 16 bytes holds both of its values; `Near` (0 or 1) targets that are bits of the lane; the others.
template <int Width, bool TargetsQubit0, int Near>
struct DirectRows {
    static constexpr int kOrder = 1 << Width, kNear = 1 << Near;
    static constexpr int kInChunk = TargetsQubit0 ? 2 : 1;
    static constexpr int kChunks = kOrder / kNear / kInChunk;  // that a thread loads and stores

    static __device__ __forceinline__ int row(int chunk, uint32 near, int item) {
        return (chunk * kNear + near) * kInChunk + (TargetsQubit0 ? item : 0);
    }
};

__device__ __forceinline__ float4 from_lane_xor(float4 x, uint32 mask) {
    return {__shfl_xor_sync(~0u, x.x, mask), __shfl_xor_sync(~0u, x.y, mask),
            __shfl_xor_sync(~0u, x.z, mask), __shfl_xor_sync(~0u, x.w, mask)};
}

// `args.tiles` counts threads, a multiple of a warp's; `args.chunk_offset` are the offsets of their
// chunks, and `args.row_mask` has the bit of the lane that is a near target.
// With WholeSectors, what a control on qubit 0 or 1 excludes is written back as it was; qubit 1 is
// then the lowest bit of a thread's number.
template <int Width, bool TargetsQubit0, int Near, int Threads, bool WholeSectors>
__device__ __forceinline__ void direct_gate(const GateArguments& args) {
    using Rows = DirectRows<Width, TargetsQubit0, Near>;
    constexpr int kOrder = Rows::kOrder;
    __shared__ __align__(16) float2 matrix[kOrder * kOrder];  // transposed
    const uint32 thread = blockIdx.x * Threads + threadIdx.x;
    char* const at = args.state + tile_offset(args, min(thread, args.tiles - 1));
    float4 x[Rows::kChunks][Rows::kNear];  // this thread's, then the other lane's
#pragma unroll
    for (int chunk = 0; chunk < Rows::kChunks; ++chunk)
        x[chunk][0] = *reinterpret_cast<const float4*>(at + args.chunk_offset[chunk]);
    for (int i = threadIdx.x; i < kOrder * kOrder; i += Threads)
        matrix[i] = static_cast<const float2*>(args.matrix)[i];
    __syncthreads();
    uint32 own = 0;  // the near bit of this thread's rows
    if constexpr (Near > 0) {
        own = thread & args.row_mask[0] ? 1u : 0u;
#pragma unroll
        for (int chunk = 0; chunk < Rows::kChunks; ++chunk)
            x[chunk][1] = from_lane_xor(x[chunk][0], args.row_mask[0]);
    }
    if (thread >= args.tiles) return;
    const bool excluded = args.controls_qubit1 && !(thread & 1);
#pragma unroll
    for (int to = 0; to < Rows::kChunks; ++to) {
        float2 results[2] = {};
#pragma unroll
        for (int from = 0; from < Rows::kChunks; ++from) {
#pragma unroll
            for (int near = 0; near < Rows::kNear; ++near) {
                const float4 both = x[from][near];
                const float2 items[2] = {{both.x, both.y}, {both.z, both.w}};
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    const int row = Rows::row(to, own, i);
#pragma unroll
                    for (int s = 0; s < Rows::kInChunk; ++s) {
                        const float2 u = matrix[Rows::row(from, own ^ near, s) * kOrder + row];
                        multiply_add(results[i], u, items[TargetsQubit0 ? s : i]);
                    }
                }
            }
        }
        char* const target = at + args.chunk_offset[to];
        if constexpr (WholeSectors) {
            const float4 before = x[to][0];
            const bool lower = !excluded && !args.controls_qubit0;
            store_global_16(
                target, {lower ? results[0].x : before.x, lower ? results[0].y : before.y,
                         excluded ? before.z : results[1].x, excluded ? before.w : results[1].y});
        } else {
            store_chunk(args, target, {results[0].x, results[0].y, results[1].x, results[1].y});
        }
    }
}
