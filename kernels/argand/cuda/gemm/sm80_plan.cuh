// What a kernel of the mma.sync family is made for, and what it is called with.
#pragma once
#include "device/rounding.cuh"

// 4 complex beyond a multiple of 16: the eight-byte reads of a half warp (4 lines x 4 k) then fall
// into sixteen different pairs of banks, whichever of line and k is contiguous.
constexpr int kPad = 4;

struct GemmPlan {
    Operand operand;
    int terms;
    Rounding roundings[2];
    int products;
    int product_a[3];
    int product_b[3];
    bool scaled;
    bool looks;  // then: whether each block looks for its lines' magnitudes, else a launch before
                 // has
    int block_m, block_n, block_k;
    int warps_m, warps_n, warps_k;  // warps_k share a stage's k, and add their sums at the end
    int stages;
    int promote_every;        // k after which the accumulators move to fp32 registers; 0: never
    bool a_k_fast, b_k_fast;  // whether k is the contiguous axis in memory
    int vector;               // complex numbers a copy

    constexpr int threads() const { return kWarp * warps_m * warps_n * warps_k; }
    constexpr int warp_m() const { return block_m / warps_m; }
    constexpr int warp_n() const { return block_n / warps_n; }
    constexpr int a_pitch() const { return (a_k_fast ? block_k : block_m) + kPad; }
    constexpr int b_pitch() const { return (b_k_fast ? block_k : block_n) + kPad; }
    constexpr int a_size() const { return a_pitch() * (a_k_fast ? block_m : block_k); }
    constexpr int b_size() const { return b_pitch() * (b_k_fast ? block_n : block_k); }
};

// Strides count complex64. `line` is a row of op(A) and of C, or a column of op(B).
struct GemmArguments {
    const float2* a;
    const float2* b;
    const float2* c;
    float2* out;
    const uint32* a_largest;  // (batch, m): bits of the largest magnitude of each row, for scaling
    const uint32* b_largest;  // (batch, n)
    int64 m, n, k;
    int64 a_line, a_k, a_batch;
    int64 b_line, b_k, b_batch;
    int64 c_row, c_column, c_batch;
    int64 out_row, out_column, out_batch;
    int64 a_largest_batch, b_largest_batch;
    int64 first_batch;
    float alpha_re, alpha_im, beta_re, beta_im;
    int flip_b;            // op_a and op_b conjugate one operand and not the other
    int conjugate_result;  // op_a conjugates: conj(A) B = conj(A conj(B))
    int pairs;             // two neighbouring results may be stored at once
};
