// The part of decoding in a proof (proof.cuh): Re C' x of each row, from the residues that it
// decodes and from the leading digits of the fractions that it finds.
//
// With S_p the sum or difference of two residues of modulus p, d_p the leading digit of w_p / p and
// L that of C' / P as a signed number, C' = sum (c_p - P 2^-32 d_p) S_p + P 2^-32 L exactly. The
// first sum is linear in the residues, so s8 MMAs multiply them by the bytes of both parts of x,
// and weights modulo the prime join what they give: `kProofWeights`, of a plane and a pair of
// bytes, is generated (argand/gemm/modular/proof_constants.py).
#pragma once
#include "decode.cuh"
#include "device/ldmatrix.cuh"
#include "proof.cuh"

// d + a b of residues by unsigned bytes.
__device__ __forceinline__ void mma_s8_u8(int (&d)[4], const uint32 (&a)[4], uint32 b0, uint32 b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// The proof's part of a warp that decodes: a block of columns of some rows.
template <typename T>
struct RowProof {
    // 16 bytes beside each plane's row, so that ldmatrix reads rows without bank conflicts.
    static constexpr int kPlaneBytes = kColumnBlock + 16;
    static constexpr int kTiles = (2 * kModuli + 15) / 16;

    const uint4* fragments;  // of this block, and lane
    int2 scaled_x[4];
    int weights[kTiles][2];  // of the planes of a lane's accumulators

    __device__ __forceinline__ RowProof(const DecodeArguments& args, int block,
                                        const int (&columns)[4]) {
        const int lane = threadIdx.x % kWarp;
        const int64 at = args.first_column / kColumnBlock + block;
        fragments = args.proof_fragments + at * 2 * kWarp + lane;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            scaled_x[i] = args.proof_scaled_x[args.first_column + columns[i]];
        }
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int plane = 16 * tile + 8 * half + lane / 4;
                weights[tile][half] =
                    plane < 2 * kModuli ? kProofWeights[plane * 4 + lane % 4] : 0;
            }
        }
    }

    // Known to the optimiser: leading digits without it are needed too.
    __device__ __forceinline__ static uint32 limb_bias() { return kLimbBias; }

    // Adds a row whose residues lie at `rows`, given the leading digits that a lane found of both
    // parts of four columns.
    __device__ __forceinline__ void add_row(const uint32 (&leading)[4][2], uint32 rows,
                                            uint64* sum) const {
        const int lane = threadIdx.x % kWarp;
        int64 found = 0, real = 0, imag = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            real = multiply_add(int(leading[i][0]), scaled_x[i].x, real);
            imag = multiply_add(int(leading[i][1]), scaled_x[i].y, imag);
        }
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
            const int plane = min(16 * tile + lane % 16, 2 * kModuli - 1);
            int d[4] = {}, other[4] = {};  // apart, so that no MMA waits for the one before it
#pragma unroll
            for (int two = 0; two < kColumnBlock / 64; ++two) {
                const uint4 x = fragments[two * kWarp];
                const uint32 row = rows + plane * kPlaneBytes + 64 * two + lane / 16 * 16;
                uint32 a[4];
                load_matrices(a, row);
                mma_s8_u8(d, a, x.x, x.y);
                load_matrices(a, row + 32);
                mma_s8_u8(other, a, x.z, x.w);
            }
#pragma unroll
            for (int i = 0; i < 4; ++i) d[i] += other[i];
            found = multiply_add(d[0] + 256 * d[1], weights[tile][0], found);
            found = multiply_add(d[2] + 256 * d[3], weights[tile][1], found);
        }
        // Three folded numbers are above -3 2^32, which eight times the prime keeps positive.
        const uint64 total = warp_sum(fold(found) + fold(real) + fold(imag) + 8 * kPrime);
        if (lane == 0) atomicAdd(sum, total);
    }
};
