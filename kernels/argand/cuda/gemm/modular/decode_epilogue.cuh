// The epilogue of exact products, on results that decode.cuh has rounded: alpha x + beta C, each
// operation rounded once in the type of the result, and the stores of a lane's four columns of a
// row. The arguments of decoding stand here, because both parts read them.
#pragma once
#include "moduli.cuh"

struct DecodeArguments {
    const signed char* residues;  // (batches, 2 kModuli, m, n), in B's stored order of columns
    const int *a_exponents, *b_exponents;
    const void* c;
    void* out;
    int64 c_stride_m, c_stride_n, c_stride_batch;
    int64 out_stride_m, out_stride_n, out_stride_batch;
    int m, n, batches;          // of the result; residues have n rounded up to kColumnBlock
    int a_lines, b_lines;       // exponents of a product; 0 where products share the operand
    int first_column;           // of B's exponents, C and out, where residues are of a panel
    int scaled, has_c;          // whether alpha is not 1; whether C is added
    int warp_rows;              // rows of a warp; the next one comes while one is decoded
    int pairs;                  // whether neighbouring columns of out can be stored as one vector
    double alpha_re, alpha_im, beta_re, beta_im;
    // For a proof (decode_proof.cuh): x as MMAs and as leading digits take it; Re C' x of the rows.
    const uint4* proof_fragments;
    const int2* proof_scaled_x;
    uint64* proof_sums;  // (batches, m)
};

__device__ __forceinline__ float2 multiply(float2 x, double re, double im) {
    const float a = float(re), b = float(im);
    return {__fsub_rn(__fmul_rn(x.x, a), __fmul_rn(x.y, b)),
            __fadd_rn(__fmul_rn(x.x, b), __fmul_rn(x.y, a))};
}
__device__ __forceinline__ double2 multiply(double2 x, double re, double im) {
    return {__dsub_rn(__dmul_rn(x.x, re), __dmul_rn(x.y, im)),
            __dadd_rn(__dmul_rn(x.x, im), __dmul_rn(x.y, re))};
}
__device__ __forceinline__ float2 add(float2 x, float2 y) {
    return {__fadd_rn(x.x, y.x), __fadd_rn(x.y, y.y)};
}
__device__ __forceinline__ double2 add(double2 x, double2 y) {
    return {__dadd_rn(x.x, y.x), __dadd_rn(x.y, y.y)};
}

// Stores a lane's four results of a row, those of complex64 in pairs where they are neighbours.
__device__ __forceinline__ void store_results(const DecodeArguments& args,
                                              const float2 (&results)[4], const int (&columns)[4],
                                              float2* out) {
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
        if (args.pairs && columns[i + 1] < args.n) {
            __stcs(reinterpret_cast<float4*>(out + columns[i]),
                   float4{results[i].x, results[i].y, results[i + 1].x, results[i + 1].y});
            continue;
        }
#pragma unroll
        for (int j = i; j < i + 2; ++j) {
            if (columns[j] < args.n) __stcs(out + columns[j] * args.out_stride_n, results[j]);
        }
    }
}
__device__ __forceinline__ void store_results(const DecodeArguments& args,
                                              const double2 (&results)[4],
                                              const int (&columns)[4], double2* out) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        if (columns[i] < args.n) __stcs(out + columns[i] * args.out_stride_n, results[i]);
    }
}

// The epilogue of a lane's results of a row: alpha x + beta C.
template <typename T>
__device__ __forceinline__ void combine(const DecodeArguments& args, Complex<T> (&results)[4],
                                        const int (&columns)[4], int batch, int row) {
    if (args.scaled) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            results[i] = multiply(results[i], args.alpha_re, args.alpha_im);
        }
    }
    if (args.has_c) {
        const Complex<T>* c = static_cast<const Complex<T>*>(args.c) +
                              batch * args.c_stride_batch + row * args.c_stride_m;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if (columns[i] >= args.n) continue;
            const Complex<T> addend = c[(args.first_column + columns[i]) * args.c_stride_n];
            results[i] = add(results[i], multiply(addend, args.beta_re, args.beta_im));
        }
    }
}
