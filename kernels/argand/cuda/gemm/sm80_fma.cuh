// Products of the mma.sync family by fused multiply-adds in fp32, from the same ring of stages. Where
// k is short, splitting operands takes the tensor cores' gain: with three products for one they
// multiply little faster than fp32 does. Split operands hold fp32 but for its last bits, so operands
// stay as they are. A lane has several rows and columns of C; those of a warp are four by eight lanes.
#pragma once
#include "device/complex.cuh"
#include "device/cp_async.cuh"
#include "sm80_plan.cuh"

// The rows and columns of a lane. Two of an operand whose rows are contiguous in shared memory are
// neighbours, so that one load of 16 bytes has both; else such a load has two neighbours along k.
template <MmaPlan plan>
struct FmaLane {
    static constexpr int kRows = plan.block_m / (4 * plan.warps_m);
    static constexpr int kColumns = plan.block_n / (8 * plan.warps_n);
    int first_row, first_column;

    __device__ __forceinline__ FmaLane() {
        const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = threadIdx.x % kWarp;
        first_row = warp / plan.warps_n * 4 * kRows + lane / 8 * (plan.a_k_major ? 1 : 2);
        first_column = warp % plan.warps_n * 8 * kColumns + lane % 8 * (plan.b_k_major ? 1 : 2);
    }
    static constexpr int row_offset(int i) { return plan.a_k_major ? 4 * i : i / 2 * 8 + i % 2; }
    static constexpr int column_offset(int j) {
        return plan.b_k_major ? 8 * j : j / 2 * 16 + j % 2;
    }
};

// Sums of xr yr, xi yi, xr yi and xi yr apart: the sign of a conjugated B takes no instruction then.
template <MmaPlan plan>
struct FmaAccumulators {
    static constexpr int kRows = FmaLane<plan>::kRows, kColumns = FmaLane<plan>::kColumns;
    float sum[kRows][kColumns][4];

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int i = 0; i < kRows * kColumns * 4; ++i) (&sum[0][0][0])[i] = 0.0f;
    }
    // Adds `other` to these sums, and leaves in it the rounding error of each addition.
    __device__ __forceinline__ void promote(FmaAccumulators& other) {
#pragma unroll
        for (int i = 0; i < kRows * kColumns * 4; ++i) {
            float &x = (&sum[0][0][0])[i], &y = (&other.sum[0][0][0])[i];
            const float old = x;
            x += y;
            y -= x - old;
        }
    }
    __device__ __forceinline__ void add(int i, int j, float2 x, float2 y) {
        sum[i][j][0] = fmaf(x.x, y.x, sum[i][j][0]);
        sum[i][j][1] = fmaf(x.y, y.y, sum[i][j][1]);
        sum[i][j][2] = fmaf(x.x, y.y, sum[i][j][2]);
        sum[i][j][3] = fmaf(x.y, y.x, sum[i][j][3]);
    }
    // Adds the products with the imaginary part of B, which `b_sign` of -1 conjugates.
    __device__ __forceinline__ void join(float b_sign) {
#pragma unroll
        for (int i = 0; i < kRows; ++i)
#pragma unroll
            for (int j = 0; j < kColumns; ++j) {
                sum[i][j][0] = fmaf(-b_sign, sum[i][j][1], sum[i][j][0]);
                sum[i][j][1] = fmaf(b_sign, sum[i][j][2], sum[i][j][3]);
            }
    }
    __device__ __forceinline__ float2 result(int i, int j) const {
        return {sum[i][j][0], sum[i][j][1]};
    }
};

// Loads a lane's numbers of an operand at k and k + 1, by two loads of 16 bytes for two rows.
template <int Count, int Pitch, bool KMajor, int Stride>
__device__ __forceinline__ void load_two_k(const float2* tile, int first, int k,
                                           float2 (&found)[2][Count]) {
    static_assert(KMajor || Count % 2 == 0, "contiguous rows are loaded by two");
#pragma unroll
    for (int i = 0; i < Count; ++i) {
        // Contiguous rows: rows i and i + 1 at k + i % 2.
        const int at = KMajor ? (first + Stride * i) * Pitch + k
                              : (k + i % 2) * Pitch + first + i / 2 * 2 * Stride;
        const float4 x = *reinterpret_cast<const float4*>(tile + at);
        const int row = i / 2 * 2;
        (KMajor ? found[0][i] : found[i % 2][row]) = {x.x, x.y};
        (KMajor ? found[1][i] : found[i % 2][row + 1]) = {x.z, x.w};
    }
}

// Multiplies the tiles of one stage, of whose k `k_left` are inside the matrix.
template <MmaPlan plan>
__device__ __forceinline__ void fma_k_tile(FmaAccumulators<plan>& accumulators,
                                           const float2* a_tile, const float2* b_tile,
                                           const FmaLane<plan>& lane, int64 k_left) {
    constexpr int kRows = FmaLane<plan>::kRows, kColumns = FmaLane<plan>::kColumns;
    constexpr int kUnroll = kRows * kColumns > 8 ? 2 : 4;
    // Zeros follow the end of k.
    const int passes = static_cast<int>(
        (min(k_left, int64(plan.block_k)) + 2 * kUnroll - 1) / (2 * kUnroll));
#pragma unroll 1
    for (int pass = 0; pass < passes; ++pass)
#pragma unroll
    for (int step = 0; step < kUnroll; ++step) {
        const int k = 2 * (pass * kUnroll + step);
        float2 a[2][kRows], b[2][kColumns];
        load_two_k<kRows, plan.a_pitch(), plan.a_k_major, 4>(a_tile, lane.first_row, k, a);
        load_two_k<kColumns, plan.b_pitch(), plan.b_k_major, 8>(b_tile, lane.first_column, k, b);
#pragma unroll
        for (int which = 0; which < 2; ++which)
#pragma unroll
            for (int i = 0; i < kRows; ++i)
#pragma unroll
                for (int j = 0; j < kColumns; ++j)
                    accumulators.add(i, j, a[which][i], b[which][j]);
    }
}

// Stores alpha x + beta C of a lane's results, in whole 16 bytes where they are neighbours and begin
// there. `c` and `out` are those of the tile.
template <MmaPlan plan>
__device__ __forceinline__ void store_fma(const GemmArguments& args,
                                          const FmaAccumulators<plan>& accumulators,
                                          const FmaLane<plan>& lane, const float2* c, float2* out,
                                          int64 rows_left, int64 columns_left) {
    constexpr int kRows = FmaLane<plan>::kRows, kColumns = FmaLane<plan>::kColumns;
    constexpr int kTogether = plan.b_k_major ? 1 : 2;
    const bool combined = combines(args);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
        const int row = lane.first_row + FmaLane<plan>::row_offset(i);
        if (row >= rows_left) continue;
        float2* out_row = out + row * args.out_stride_m;
        const float2* c_row = c + row * args.c_stride_m;
#pragma unroll
        for (int j = 0; j < kColumns; j += kTogether) {
            const int column = lane.first_column + FmaLane<plan>::column_offset(j);
            const int inside = static_cast<int>(min(columns_left - column, int64(kTogether)));
            float2 x[kTogether];
#pragma unroll
            for (int e = 0; e < kTogether; ++e) {
                x[e] = accumulators.result(i, j + e);
                if (combined && e < inside)
                    x[e] = conjugate_and_combine(args, x[e], c_row + (column + e) * args.c_stride_n);
            }
            float2* at = out_row + column * args.out_stride_n;
            if (kTogether == 2 && inside == 2 && args.out_stride_n == 1 &&
                reinterpret_cast<uint64>(at) % 16 == 0) {
                *reinterpret_cast<float4*>(at) = {x[0].x, x[0].y, x[kTogether - 1].x,
                                                  x[kTogether - 1].y};
            } else {
#pragma unroll
                for (int e = 0; e < kTogether; ++e)
                    if (e < inside) at[e * args.out_stride_n] = x[e];
            }
        }
    }
}
