// What a kernel of the mma.sync family is made for, and what it is called with.
#pragma once
#include "device/rounding.cuh"

// 4 complex beyond a multiple of 16: the eight-byte reads of a half warp (4 lines x 4 k) then fall
// into sixteen different pairs of banks, whichever of line and k is contiguous.
constexpr int kRowPadding = 4;

struct GemmPlan {
    Operand operand;
    int terms;
    Rounding roundings[2];
    int products;
    int product_a[3];
    int product_b[3];
    bool scaled;
    bool finds_absmax;  // then: whether each block looks for its lines' magnitudes, else a launch
                        // before has
    int block_m, block_n, block_k;
    int warps_m, warps_n, warps_k;  // warps_k share a stage's k, and add their sums at the end
    int stages;
    int promotion_interval;     // k after which the accumulators move to fp32 registers; 0: never
    bool a_k_major, b_k_major;  // whether k is the contiguous axis in memory
    int vector;                 // complex numbers a copy

    constexpr int threads() const { return kWarp * warps_m * warps_n * warps_k; }
    constexpr int warp_m() const { return block_m / warps_m; }
    constexpr int warp_n() const { return block_n / warps_n; }
    constexpr int a_pitch() const { return (a_k_major ? block_k : block_m) + kRowPadding; }
    constexpr int b_pitch() const { return (b_k_major ? block_k : block_n) + kRowPadding; }
    constexpr int a_tile_elements() const { return a_pitch() * (a_k_major ? block_m : block_k); }
    constexpr int b_tile_elements() const { return b_pitch() * (b_k_major ? block_n : block_k); }
};

// Strides count complex64. `line` is a row of op(A) and of C, or a column of op(B).
struct GemmArguments {
    const float2* a;
    const float2* b;
    const float2* c;
    float2* out;
    const uint32* a_absmax;  // (batch, m): bits of the largest magnitude of each row, for scaling
    const uint32* b_absmax;  // (batch, n)
    int64 m, n, k;
    int64 a_stride_m, a_stride_k, a_stride_batch;
    int64 b_stride_n, b_stride_k, b_stride_batch;
    int64 c_stride_m, c_stride_n, c_stride_batch;
    int64 out_stride_m, out_stride_n, out_stride_batch;
    int64 a_absmax_stride_batch, b_absmax_stride_batch;
    int64 first_batch;
    float alpha_re, alpha_im, beta_re, beta_im;
    int conjugate_b;       // op_a and op_b conjugate one operand and not the other
    int conjugate_result;  // op_a conjugates: conj(A) B = conj(A conj(B))
    int store_pairs_n;     // two neighbouring results may be stored at once
};
