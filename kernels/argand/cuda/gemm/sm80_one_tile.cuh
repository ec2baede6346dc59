// The results of triangles that one tile covers (`MmaPlan::one_tile`), on their way to memory.
#pragma once
#include "sm80_warp_mma.cuh"

// Stores a Hermitian result of one tile: `tile`, where no thread reads or copies any more, takes
// its numbers, and neighbouring threads store neighbouring ones, those above the diagonal as their
// mirror images. `row0` and `column0` are the first of the lane, `out` is that of the batch.
template <MmaPlan plan>
__device__ __forceinline__ void store_through_shared(const GemmArguments& args, float2* out,
                                                     int row0, int column0,
                                                     const Accumulators<plan>& accumulators,
                                                     float2* tile) {
    constexpr int kPitch = plan.result_pitch();
#pragma unroll
    for (int i = 0; i < plan.warp_m() / 8; ++i)
#pragma unroll
        for (int j = 0; j < plan.warp_n() / 8; ++j) {
            const auto &re = accumulators.re[i / 2][j], &im = accumulators.im[i / 2][j];
            const int e = 2 * (i % 2);
            *reinterpret_cast<float4*>(tile + (row0 + 8 * i) * kPitch + column0 + 8 * j) = {
                re[e], im[e], re[e + 1], im[e + 1]};
        }
    __syncthreads();
    const int n = static_cast<int>(args.n);
    const auto stride = static_cast<Stride<plan>>(args.out_stride_m);
    const int rows_step = plan.threads() / n, columns_step = plan.threads() - rows_step * n;
    int row = static_cast<int>(threadIdx.x) / n, column = static_cast<int>(threadIdx.x) - row * n;
    while (row < n) {
        float2 x = tile[max(row, column) * kPitch + min(row, column)];
        x.y = column < row ? x.y : column == row ? 0.0f : -x.y;
        out[row * int64(stride) + column] = x;
        row += rows_step;
        column += columns_step;
        if (column >= n) {
            column -= n;
            ++row;
        }
    }
}
