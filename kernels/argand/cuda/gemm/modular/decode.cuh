// Results from residues: C' / P as a fixed-point fraction by the Chinese remainder theorem, times P
// in fp64, and rounded once. Where the fraction does not decide the rounding, which is rare, the
// integer C' is found and rounded exactly (reconstruction.cuh). So every result is C' 2^-(e + f),
// rounded to nearest, ties to even, on every machine.
//
// `kDecodeModuli`, `kProductHigh`, `kProductLow`, `kProductTail` and `kFractionError` are generated
// (argand/gemm/modular/constants.py), which also derives how far off the fraction may be.
#pragma once
#include "device/cp_async.cuh"
#include "decode_epilogue.cuh"
#include "reconstruction.cuh"

// Limbs are sums of 32-bit integers that begin at this bias, which conversion to fp64 needs.
constexpr uint32 kLimbBias = 0x80000000u;

// Decoding without a proof.
template <typename T>
struct NoProof {
    static constexpr int kPlaneBytes = kColumnBlock;

    __device__ __forceinline__ NoProof(const DecodeArguments&, int, const int (&)[4]) {}
    // Hidden from the optimiser, which would add it to each limb at the end.
    __device__ __forceinline__ static uint32 limb_bias() {
        uint32 found;
        asm("mov.u32 %0, %1;" : "=r"(found) : "n"(kLimbBias));
        return found;
    }
    __device__ __forceinline__ void add_row(const uint32 (&)[4][2], uint32, uint64*) const {}
};

// Fixed-point digits of sum S_p w_p / p modulo 1: 32 bits, then 19 bits each with carries kept.
template <typename T>
constexpr int kLimbs = sizeof(T) == 4 ? 3 : 4;

// A limb less its bias as fp64, without a conversion instruction: the limb becomes the low bits of
// 2^52's significand.
__device__ __forceinline__ double limb_value(uint32 limb) {
    return __hiloint2double(0x43300000, int(limb)) - (0x1p52 + kLimbBias);
}

// C' from its fraction's limbs, scaled by 2^-exponent and rounded. Sets `certain` to false where
// the error of the fraction may change the rounding.
__device__ __forceinline__ float round_fraction(const uint32 (&limbs)[3], double scale, float,
                                                bool& certain) {
    const double high = __fma_rn(limb_value(limbs[0]), 0x1p19, limb_value(limbs[1]));
    const double value = __fma_rn(limb_value(limbs[2]), kProductTail, high * kProductHigh);
    const double error = __fma_rn(fabs(value), 0x1p-50, kFractionError);
    const float upper = __double2float_rn((value + error) * scale);
    const float lower = __double2float_rn((value - error) * scale);
    certain = certain && upper == lower;
    return upper + 0.0f;  // not -0
}

__device__ __forceinline__ double round_fraction(const uint32 (&limbs)[4], double scale, double,
                                                 bool& certain) {
    const double high = __fma_rn(limb_value(limbs[0]), 0x1p19, limb_value(limbs[1]));
    const double low = __fma_rn(limb_value(limbs[2]), 0x1p19, limb_value(limbs[3]));
    // Not fused with the sums below: `rest` holds what this product loses.
    const double value = __dmul_rn(high, kProductHigh);
    const double rest = __fma_rn(high, kProductHigh, -value) +
                        __fma_rn(high, kProductLow, low * kProductTail);
    const double upper = value + (rest + kFractionError), lower = value + (rest - kFractionError);
    const double result = upper * scale;
    // A subnormal result was rounded twice.
    certain = certain && upper == lower && fabs(result) >= 0x1p-1022;
    return result;
}

// Pairs the residues of bytes 0 and 1, and of bytes 2 and 3: a word of both residues of one byte
// and then of the next.
__device__ __forceinline__ void pair_residues(uint32 (&words)[2 * kModuli]) {
#pragma unroll
    for (int p = 0; p < kModuli; ++p) {
        const uint32 plus = words[2 * p], minus = words[2 * p + 1];
        words[2 * p] = __byte_perm(plus, minus, 0x5140);
        words[2 * p + 1] = __byte_perm(plus, minus, 0x7362);
    }
}

// Factors that add, and that subtract, the residues of the first and of the second byte of a pair;
// not immediate operands, which would take registers.
__constant__ uint32 kPairSigns[2][2] = {{0x0101u, 0xff01u}, {0x01010000u, 0xff010000u}};

// The limbs of both parts of C' / P for byte `which` of residues that are paired. Dot products of
// bytes add and subtract the two residues of a modulus.
template <typename T, int which>
__device__ __forceinline__ void add_residues(const uint32 (&pairs)[2 * kModuli],
                                             uint32 (&re)[kLimbs<T>], uint32 (&im)[kLimbs<T>]) {
#pragma unroll
    for (int p = 0; p < kModuli; ++p) {
        const uint32 pair = pairs[2 * p + which / 2];
        const uint32 sum = dot_bytes(pair, kPairSigns[which % 2][0], 0);
        const uint32 difference = dot_bytes(pair, kPairSigns[which % 2][1], 0);
#pragma unroll
        for (int limb = 0; limb < kLimbs<T>; ++limb) {
            re[limb] += sum * kDecodeModuli[p].real[limb];
            im[limb] += difference * kDecodeModuli[p].imag[limb];
        }
    }
}

// Largest magnitude of an exponent whose power of two scales without a second rounding.
constexpr int kPlainExponent = 900;

// One element of C', scaled by 2^-(a_exponent + b_exponent) and rounded, whether that is certain,
// and the leading digits of both fractions.
template <typename T, int which>
__device__ __forceinline__ Complex<T> decode_element(const uint32 (&pairs)[2 * kModuli],
                                                     uint32 bias, int a_exponent, int b_exponent,
                                                     bool& certain, uint32 (&leading)[2]) {
    uint32 re[kLimbs<T>], im[kLimbs<T>];
#pragma unroll
    for (int limb = 0; limb < kLimbs<T>; ++limb) re[limb] = im[limb] = bias;
    add_residues<T, which>(pairs, re, im);
    leading[0] = re[0] - kLimbBias;
    leading[1] = im[0] - kLimbBias;
    const bool finite = a_exponent != kNotFinite && b_exponent != kNotFinite;
    const int exponent = finite ? -(a_exponent + b_exponent) : 0;
    certain = abs(exponent) <= kPlainExponent;
    const double scale = power_of_two(0.0, certain ? exponent : 0);
    Complex<T> result = {round_fraction(re, scale, T(), certain),
                         round_fraction(im, scale, T(), certain)};
    if (!finite) {
        result.x = result.y = T(not_a_number());
        certain = true;
    }
    return result;
}

// The block that a warp decodes, kColumnBlock columns of some rows of a product, by the warp's
// number in the launch.
struct DecodePosition {
    int column_blocks;  // of the result
    int block, first_row, batch;

    __device__ __forceinline__ explicit DecodePosition(const DecodeArguments& args)
        : column_blocks((args.n + kColumnBlock - 1) / kColumnBlock) {
        const int row_groups = (args.m + args.warp_rows - 1) / args.warp_rows;
        uint32 index = blockIdx.x * (blockDim.x / kWarp) + threadIdx.x / kWarp;
        block = index % column_blocks;
        index /= column_blocks;
        first_row = index % row_groups * args.warp_rows;
        batch = index / row_groups;
    }
};

// Computes again, from the integers themselves, the results of a lane's four columns that the
// fractions did not decide. `source` are the lane's residues of the row.
template <typename T, int plane_bytes>
__device__ __forceinline__ void decode_exactly(const signed char* source, int a_exponent,
                                               const int (&b_exponents)[4],
                                               const bool (&certain)[4],
                                               Complex<T> (&results)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        if (certain[i]) continue;
        const int exponent = -(a_exponent + b_exponents[i]);
        results[i].x = exact_part<T>(source + i, plane_bytes, false, exponent);
        results[i].y = exact_part<T>(source + i, plane_bytes, true, exponent);
    }
}

// The kernel. A warp decodes kColumnBlock columns of warp_rows rows, a lane four of the columns.
template <typename T, typename Proof>
__device__ __forceinline__ void decode(const DecodeArguments& args) {
    constexpr int kPlaneBytes = Proof::kPlaneBytes;
    // A warp has shared memory for two rows: one is decoded while the next one is copied.
    constexpr int kRowBytes = 2 * kModuli * kPlaneBytes;
    const int lane = threadIdx.x % kWarp;
    const DecodePosition position(args);
    const int block = position.block, first_row = position.first_row, batch = position.batch;
    if (batch >= args.batches) return;
    const int64 pitch = int64(position.column_blocks) * kColumnBlock, plane = args.m * pitch;
    int columns[4], b_exponents[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        columns[i] = block * kColumnBlock + column_of_byte<T>(4 * lane + i);
        b_exponents[i] = columns[i] < args.n ? args.b_exponents[int64(batch) * args.b_lines +
                                                                args.first_column + columns[i]]
                                             : kNotFinite;
    }
    extern __shared__ __align__(16) unsigned char memory[];
    unsigned char* const rows = memory + threadIdx.x / kWarp * 2 * kRowBytes;
    const Proof proof(args, block, columns);
    const uint32 bias = Proof::limb_bias();
    const signed char* first_source =
        args.residues + int64(batch) * 2 * kModuli * plane + block * kColumnBlock;
    const int end_row = min(first_row + args.warp_rows, args.m);
    // Begins to copy a row; a lane copies 16 bytes of every fourth plane. After the last row an
    // empty group is committed, because `cp_async_wait` counts groups.
    const auto copy_row = [&](int row) {
        if (row < end_row) {
#pragma unroll
            for (int i = 0; i < (2 * kModuli + 3) / 4; ++i) {
                const int p = 4 * i + lane / 8;
                if (p < 2 * kModuli) {
                    cp_async_16(shared_address(rows + (row - first_row) % 2 * kRowBytes +
                                               p * kPlaneBytes + lane % 8 * 16),
                                first_source + p * plane + row * pitch + lane % 8 * 16);
                }
            }
        }
        cp_async_commit();
    };
    copy_row(first_row);
#pragma unroll 1
    for (int row = first_row; row < end_row; ++row) {
        __syncwarp();  // the row before has been read
        copy_row(row + 1);
        cp_async_wait<1>();
        __syncwarp();
        const signed char* const source = reinterpret_cast<const signed char*>(
            rows + (row - first_row) % 2 * kRowBytes + 4 * lane);
        uint32 words[2 * kModuli];
#pragma unroll
        for (int i = 0; i < 2 * kModuli; ++i) {
            words[i] = *reinterpret_cast<const uint32*>(source + i * kPlaneBytes);
        }
        pair_residues(words);
        const int a_exponent = args.a_exponents[int64(batch) * args.a_lines + row];
        bool certain[4];
        uint32 leading[4][2];
        Complex<T> results[4] = {
            decode_element<T, 0>(words, bias, a_exponent, b_exponents[0], certain[0], leading[0]),
            decode_element<T, 1>(words, bias, a_exponent, b_exponents[1], certain[1], leading[1]),
            decode_element<T, 2>(words, bias, a_exponent, b_exponents[2], certain[2], leading[2]),
            decode_element<T, 3>(words, bias, a_exponent, b_exponents[3], certain[3], leading[3])};
        proof.add_row(leading, shared_address(rows + (row - first_row) % 2 * kRowBytes),
                      args.proof_sums + int64(batch) * args.m + row);
        // One branch for all four, so that their arithmetic can overlap.
        if (!(certain[0] && certain[1] && certain[2] && certain[3])) {
            decode_exactly<T, kPlaneBytes>(source, a_exponent, b_exponents, certain, results);
        }
        combine<T>(args, results, columns, batch, row);
        Complex<T>* out = static_cast<Complex<T>*>(args.out) + batch * args.out_stride_batch +
                          row * args.out_stride_m + args.first_column * args.out_stride_n;
        store_results(args, results, columns, out);
    }
}
