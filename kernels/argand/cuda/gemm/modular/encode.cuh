// Operands as residues: lines are scaled by a power of two, rounded to Gaussian integers, and
// re + s im and re - s im modulo each p stored as int8, in a plane each. Along k byte 8 l + i of a
// block of 256 holds number l + 32 i, in A and B alike, so that a thread stores 8 bytes of numbers
// that it read a warp apart. The last block may be half as long; its byte 4 l + i holds number
// l + 32 i.
//
// `kEncodeModuli` and `kModuli` are generated (argand/gemm/modular/constants.py).
#pragma once
#include "encode_proof.cuh"

struct EncodeArguments {
    const void* x;
    signed char* planes;   // (batches, 2 kModuli, stored lines, pitch)
    int* exponents;        // (batches, lines), which are found here where they are not known
    const uint64* norms;   // (batches, blocks of k, lines); of whole lines they are found here too
    uint64 limit;          // the largest squared norm times 4^limit_shift, of 61 or 62 bits
    int64 line_stride, k_stride, batch_stride;
    int lines, stored_lines, k, k_blocks, pitch, batches;
    int first_line;  // of the exponents and of x, where planes hold a panel of lines
    int exponent_lines;
    int limit_shift;
    int conjugate;
    int known;  // whether exponents have been found
    EncodeProof proof;
};

// Digits of an integer to base 256, from -128 to 127, as bytes of words, the least first.
template <int words>
struct Digits {
    uint32 word[words];
};

__device__ __forceinline__ Digits<1> digits_of(int x) {
    return {{(uint32(x) + 0x00808080u) ^ 0x00808080u}};
}
__device__ __forceinline__ Digits<2> digits_of(int64 x) {
    const uint64 digits = (uint64(x) + 0x0080808080808080ull) ^ 0x0080808080808080ull;
    return {{uint32(digits), uint32(digits >> 32)}};
}

// Stores a lane's residues of a block, or of half a one.
__device__ __forceinline__ void store_residues(signed char* target,
                                               const uint32 (&x)[kLineNumbers], bool half) {
    // Both words are packed before the choice, which then is one of two predicated stores.
    const uint2 words = {pack_bytes(x[0], x[1], x[2], x[3]), pack_bytes(x[4], x[5], x[6], x[7])};
    if (half) *reinterpret_cast<uint32*>(target) = words.x;
    if (!half) *reinterpret_cast<uint2*>(target) = words;
}

// Stores the residues of eight integers in every plane.
template <typename Integer>
__device__ __forceinline__ void encode_integers(const Integer (&real_part)[kLineNumbers],
                                                const Integer (&imag_part)[kLineNumbers],
                                                signed char* target, int64 plane_bytes, bool half) {
    constexpr int kWords = sizeof(Integer) / 4;
    Digits<kWords> re[kLineNumbers], im[kLineNumbers];
#pragma unroll
    for (int i = 0; i < kLineNumbers; ++i) {
        re[i] = digits_of(real_part[i]);
        im[i] = digits_of(imag_part[i]);
    }
#pragma unroll
    for (int p = 0; p < kModuli; ++p) {
        const EncodeModulus& modulus = kEncodeModuli[p];
        uint32 plus[kLineNumbers], minus[kLineNumbers];
#pragma unroll
        for (int i = 0; i < kLineNumbers; ++i) {
            uint32 real = modulus.offset;
#pragma unroll
            for (int w = 0; w < kWords; ++w) {
                real = dot_bytes(re[i].word[w], modulus.real[w], real);
            }
            uint32 sum = real, difference = real;
#pragma unroll
            for (int w = 0; w < kWords; ++w) {
                sum = dot_bytes(im[i].word[w], modulus.turned[w], sum);
                difference = dot_bytes(im[i].word[w], modulus.negated[w], difference);
            }
            plus[i] = nearest_residue(sum, modulus);
            minus[i] = nearest_residue(difference, modulus);
        }
        store_residues(target, plus, half);
        target += plane_bytes;
        store_residues(target, minus, half);
        target += plane_bytes;
    }
}

// Encodes a block of a stored line, whose numbers a lane holds. T is the type in which they are
// scaled: fp32 where their integers fit 32 bits.
template <typename T, typename Source, bool subtracted>
__device__ __forceinline__ void encode_block(const EncodeArguments& args,
                                             const Complex<Source> (&x)[kLineNumbers],
                                             int exponent, int batch, int row, int block) {
    const PowerOfTwo<T> scale(exponent == kNotFinite ? 0 : exponent);
    const PowerOfTwo<T> turned(args.conjugate ? -scale.first : scale.first, scale.second);
    decltype(nearest_integer(T())) re[kLineNumbers], im[kLineNumbers];
    with_scaling(scale, [&](const auto& scaled) {
#pragma unroll
        for (int i = 0; i < kLineNumbers; ++i) re[i] = nearest_integer(scaled(T(x[i].x)));
    });
    with_scaling(turned, [&](const auto& scaled) {
#pragma unroll
        for (int i = 0; i < kLineNumbers; ++i) im[i] = nearest_integer(scaled(T(x[i].y)));
    });
    if constexpr (subtracted) {
        if (exponent != kNotFinite) subtract_line_image(args.proof, re, im, batch, row, block);
    }
    const bool half = (block + 1) * kLineBlock > args.pitch;
    const int lane = threadIdx.x % kWarp;
    signed char* target = args.planes +
                          (int64(batch) * 2 * kModuli * args.stored_lines + row) * args.pitch +
                          block * kLineBlock + lane * (half ? 4 : kLineNumbers);
    encode_integers(re, im, target, int64(args.stored_lines) * args.pitch, half);
}

// The exponent of a line from its blocks' norms, which the warp of the first block also stores;
// kNotFinite for one that is not stored as numbers but as zeros.
__device__ __forceinline__ int line_exponent(const EncodeArguments& args, int batch, int line,
                                             int block) {
    if (line >= args.lines) return kNotFinite;
    const int64 lines = args.exponent_lines, number = args.first_line + line;
    if (args.known) return args.exponents[batch * lines + number];
    const int exponent = warp_exponent(args.norms + batch * args.k_blocks * lines + number,
                                       args.k_blocks, lines, args.limit, args.limit_shift);
    if (block == 0 && threadIdx.x % kWarp == 0) args.exponents[batch * lines + number] = exponent;
    return exponent;
}

// Encodes a block of a stored line that lies in shared memory. It is zeros where the line is not
// stored as numbers.
template <typename T, typename Source, bool subtracted>
__device__ __forceinline__ void encode_shared_block(const EncodeArguments& args,
                                                    const Complex<Source>* numbers, int exponent,
                                                    int batch, int row, int block) {
    Complex<Source> x[kLineNumbers];
#pragma unroll
    for (int i = 0; i < kLineNumbers; ++i) {
        x[i] = Complex<Source>{};
        if (exponent != kNotFinite) x[i] = numbers[threadIdx.x % kWarp + i * kWarp];
    }
    encode_block<T, Source, subtracted>(args, x, exponent, batch, row, block);
}

// Operands whose k is contiguous: a warp per block of a line.
template <typename T, typename Source, bool permuted, bool proved>
__device__ __forceinline__ void encode_along_k(const EncodeArguments& args) {
    const WarpBlock at(args.k_blocks, args.stored_lines);
    if (at.batch >= args.batches) return;
    const int exponent = line_exponent(args, at.batch, at.line, at.block);
    Complex<Source> x[kLineNumbers];
    at.load<Source>(static_cast<const Complex<Source>*>(args.x) + at.batch * args.batch_stride +
                        (args.first_line + at.line) * args.line_stride,
                    args.k_stride, exponent == kNotFinite ? 0 : args.k, x);
    const int row = permuted ? stored_row<Source>(at.line) : at.line;
    encode_block<T, Source, proved && !permuted>(args, x, exponent, at.batch, row, at.block);
}

// Operands whose lines are contiguous: a CTA reads a block of 128 bytes of lines and transposes it
// through shared memory. CTAs take kAcrossGroup neighbours along lines, then the blocks along k, so
// that both what is read and what is written at a time fills pages of memory.
constexpr int kAcrossBytes = 128, kAcrossWarps = 8, kAcrossGroup = 8;

template <typename T, typename Source, bool permuted, bool proved>
__device__ __forceinline__ void encode_across_lines(const EncodeArguments& args) {
    constexpr int kLines = kAcrossBytes / sizeof(Complex<Source>);
    constexpr int kWarps = kAcrossWarps, kGroup = kAcrossGroup;
    constexpr int kRows = kWarp / kLines;  // numbers along k that a warp reads at once
    constexpr int kLoads = kLineBlock / (kWarps * kRows);
    static_assert(kLines == kWarps || kLines == 2 * kWarps, "a warp encodes one line or two");
    __shared__ Complex<Source> tile[kLines][kLineBlock + 1];
    __shared__ LineFactor<T> factors[proved && permuted ? kLines : 1];
    const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    const int line_groups = (args.stored_lines + kGroup * kLines - 1) / (kGroup * kLines);
    uint32 index = blockIdx.x;
    int first_line = index % kGroup;
    index /= kGroup;
    const int block = index % args.k_blocks;
    index /= args.k_blocks;
    first_line = (index % line_groups * kGroup + first_line) * kLines;
    const int batch = index / line_groups;
    if (first_line >= args.stored_lines) return;
    const int read_line = first_line + lane % kLines;
    const Complex<Source>* source = static_cast<const Complex<Source>*>(args.x) +
                                    batch * args.batch_stride +
                                    (args.first_line + read_line) * args.line_stride;
    Complex<Source> loaded[kLoads];
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
        const int k = block * kLineBlock + (warp + kWarps * i) * kRows + lane / kLines;
        loaded[i] = Complex<Source>{};
        if (read_line < args.lines && k < args.k) loaded[i] = source[k * args.k_stride];
    }
    // While the loads are under way.
    int exponents[kLines / kWarps];
#pragma unroll
    for (int i = 0; i < kLines / kWarps; ++i) {
        const int line = first_line + warp + i * kWarps;
        exponents[i] = line_exponent(args, batch, line, block);
        if constexpr (proved && permuted) {
            if (lane == 0) {
                factors[warp + i * kWarps] =
                    line_factor<T>(args.proof, args.first_line + line, exponents[i]);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
        tile[lane % kLines][(warp + kWarps * i) * kRows + lane / kLines] = loaded[i];
    }
    __syncthreads();
#pragma unroll 1
    for (int i = 0; i < kLines / kWarps; ++i) {
        const int tile_line = warp + i * kWarps, line = first_line + tile_line;
        if (line >= args.stored_lines) break;
        const int exponent = i == 0 ? exponents[0] : exponents[kLines / kWarps - 1];
        const int row = permuted ? stored_row<Source>(line) : line;
        encode_shared_block<T, Source, proved && !permuted>(args, tile[tile_line], exponent, batch,
                                                            row, block);
    }
    if constexpr (proved && permuted) {
        const int first_k = block * kLineBlock;
        add_image_of_lines<T, Source, kLines, kLineBlock + 1>(
            args.proof, tile[0], factors, args.conjugate, batch, first_k,
            min(args.k - first_k, kLineBlock));
    }
}
