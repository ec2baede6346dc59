// Complex matrix products of a short k by fused multiply-adds in fp32 registers, at any strides.
// Such a product is bound by the latency of its loads or by storing C, so tensor cores, shared
// memory and barriers would only add to it.
//
// A warp computes `rows` rows by 32 times `columns` columns, a lane every 32nd column of them: the
// lanes read one element of A together, and neighbours in B and C. Where results are few and k is
// long, lanes share each result: they read neighbours along k, and add their sums. Operands of one
// term are rounded as the precision says; split operands, which hold fp32 except its last bits,
// stay fp32.
#pragma once
#include "device/rounding.cuh"
#include "linear_combination.cuh"
#include "sm80_plan.cuh"

struct FmaPlan {
    Operand operand;
    int terms;
    Rounding roundings[2];
    int rows, columns;  // of a lane
    int unroll;         // k whose loads are in flight at once
    int k_lanes;        // lanes that share a result, each with one k of as many
    bool any_strides;   // sizes or strides do not fit 32 bits

    static constexpr int kWarps = 8;  // of a block, one below the other
    constexpr int block_m() const { return kWarps * rows; }
    constexpr int lanes_n() const { return kWarp / k_lanes; }
    constexpr int block_n() const { return lanes_n() * columns; }
};

template <FmaPlan plan>
__device__ __forceinline__ float fma_operand(float x) {
    if constexpr (plan.terms > 1) {
        return x;
    } else if constexpr (plan.operand == Operand::tf32) {
        return round_to_tf32<plan.roundings[0]>(x);
    } else {
        return OperandFormat<plan.operand>::round(x);
    }
}

// Loads and rounds an element, or 0 where k has ended.
template <FmaPlan plan>
__device__ __forceinline__ float2 fma_element(const float2* at, bool inside) {
    const float2 x = inside ? __ldg(at) : float2{0.0f, 0.0f};
    return {fma_operand<plan>(x.x), fma_operand<plan>(x.y)};
}

// Adds the sums of the lanes that share results.
template <FmaPlan plan>
__device__ __forceinline__ void add_lanes_along_k(float2 (&sum)[plan.rows][plan.columns]) {
#pragma unroll
    for (int distance = plan.k_lanes / 2; distance > 0; distance /= 2)
#pragma unroll
        for (int i = 0; i < plan.rows; ++i)
#pragma unroll
            for (int j = 0; j < plan.columns; ++j) {
                sum[i][j].x += __shfl_xor_sync(~0u, sum[i][j].x, distance);
                sum[i][j].y += __shfl_xor_sync(~0u, sum[i][j].y, distance);
            }
}

// The epilogue: the first of the lanes that share results stores them.
template <FmaPlan plan>
__device__ __forceinline__ void store_sums(const GemmArguments& args, int64 batch, int64 row0,
                                           int64 column0, int k_lane,
                                           const float2 (&sum)[plan.rows][plan.columns]) {
    constexpr int kRows = plan.rows, kColumns = plan.columns;
    const float result_sign = args.conjugate_result ? -1.0f : 1.0f;
    // One address for all results of a lane, because products of 64 bits take longer than sums.
    const auto out_step = static_cast<Stride<plan>>(args.out_stride_m);
    const auto c_step = static_cast<Stride<plan>>(args.c_stride_m);
    float2* out = args.out + batch * args.out_stride_batch + row0 * args.out_stride_m +
                  column0 * args.out_stride_n;
    const float2* c = args.c + batch * args.c_stride_batch + row0 * args.c_stride_m +
                      column0 * args.c_stride_n;
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
        for (int j = 0; j < kColumns; ++j)
            if (k_lane == 0 && row0 + i < args.m && column0 + plan.lanes_n() * j < args.n)
                out[int64(i) * out_step + plan.lanes_n() * j * args.out_stride_n] =
                    linear_combination(
                        args, {sum[i][j].x, sum[i][j].y * result_sign},
                        c + int64(i) * c_step + plan.lanes_n() * j * args.c_stride_n);
}

// The kernel. Its grid has the tiles of a row of tiles side by side, then the rows of tiles of a
// product, then the products.
template <FmaPlan plan>
__device__ __forceinline__ void gemm_fma(const GemmArguments& args) {
    constexpr int kRows = plan.rows, kColumns = plan.columns;
    constexpr int kUnroll = plan.unroll;
    const uint32 tiles_n = static_cast<uint32>((args.n + plan.block_n() - 1) / plan.block_n());
    const uint32 tiles_m = static_cast<uint32>((args.m + plan.block_m() - 1) / plan.block_m());
    const uint32 row_of_tiles = blockIdx.x < tiles_n ? 0 : blockIdx.x / tiles_n;
    const uint32 product = row_of_tiles < tiles_m ? 0 : row_of_tiles / tiles_m;
    const int64 batch = args.first_batch + product;
    const int64 row0 = int64(row_of_tiles - product * tiles_m) * plan.block_m() +
                       threadIdx.x / kWarp * kRows;
    const int lane = threadIdx.x % kWarp;
    const int64 column0 = int64(blockIdx.x - row_of_tiles * tiles_n) * plan.block_n() +
                          lane / plan.k_lanes;
    const int k_lane = lane % plan.k_lanes;
    if (plan.k_lanes > 1 && row0 >= args.m) return;  // strided loads take one cycle a lane
    const auto a_step = static_cast<Stride<plan>>(args.a_stride_k);
    const auto b_step = static_cast<Stride<plan>>(args.b_stride_k);
    const float2 *a[kRows], *b[kColumns];
    // Lines outside the matrix read its last one and store nothing.
#pragma unroll
    for (int i = 0; i < kRows; ++i)
        a[i] = args.a + batch * args.a_stride_batch + min(row0 + i, args.m - 1) * args.a_stride_m +
               int64(k_lane) * a_step;
#pragma unroll
    for (int j = 0; j < kColumns; ++j)
        b[j] = args.b + batch * args.b_stride_batch +
               min(column0 + plan.lanes_n() * j, args.n - 1) * args.b_stride_n +
               int64(k_lane) * b_step;
    const float b_sign = args.conjugate_b ? -1.0f : 1.0f;
    float2 sum[kRows][kColumns] = {};
#pragma unroll 1
    for (int k_left = static_cast<int>(args.k) - k_lane; k_left + k_lane > 0;
         k_left -= kUnroll * plan.k_lanes) {
        float2 left[kRows][kUnroll], right[kColumns][kUnroll];
#pragma unroll
        for (int k = 0; k < kUnroll; ++k) {
#pragma unroll
            for (int i = 0; i < kRows; ++i)
                left[i][k] = fma_element<plan>(a[i] + int64(k * plan.k_lanes) * a_step,
                                               k * plan.k_lanes < k_left);
#pragma unroll
            for (int j = 0; j < kColumns; ++j)
                right[j][k] = fma_element<plan>(b[j] + int64(k * plan.k_lanes) * b_step,
                                                k * plan.k_lanes < k_left);
        }
#pragma unroll
        for (int i = 0; i < kRows; ++i) a[i] += int64(kUnroll * plan.k_lanes) * a_step;
#pragma unroll
        for (int j = 0; j < kColumns; ++j) b[j] += int64(kUnroll * plan.k_lanes) * b_step;
#pragma unroll
        for (int k = 0; k < kUnroll; ++k)
#pragma unroll
            for (int j = 0; j < kColumns; ++j) {
                const float2 y = {right[j][k].x, right[j][k].y * b_sign};
#pragma unroll
                for (int i = 0; i < kRows; ++i) {
                    const float2 x = left[i][k];
                    sum[i][j].x = fmaf(-x.y, y.y, fmaf(x.x, y.x, sum[i][j].x));
                    sum[i][j].y = fmaf(x.y, y.x, fmaf(x.x, y.y, sum[i][j].y));
                }
            }
    }
    add_lanes_along_k<plan>(sum);
    store_sums<plan>(args, batch, row0, column0, k_lane, sum);
}
