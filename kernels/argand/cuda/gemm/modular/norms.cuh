// The exponents by which lines of an operand are scaled: rows of op(A), columns of op(B). The
// magnitudes of each block of 256 numbers along k are counted in units of the block's own largest
// one; the sums of a line's blocks give its exponent, which the kernel that encodes finds. All sums
// are of integers, so no order of summation changes a bit (argand/gemm/modular/scaling.py is the
// model).
#pragma once
#include "moduli.cuh"

// Numbers along k that a warp takes at a time.
constexpr int kLineBlock = 256, kLineNumbers = kLineBlock / kWarp;
constexpr int kQuantumBits = 15;
// A block's sum has 40 bits. Above it stand the exponent of its unit, and whether the block holds
// NaN or infinity. A block of zeros is 0.
constexpr int kUnitShift = 40, kUnitBias = 4096;
constexpr uint64 kBlockNotFinite = 1ull << 63;

struct NormArguments {
    const void* x;
    uint64* norms;  // (batches, blocks of k, lines)
    int64 line_stride, k_stride, batch_stride;
    int lines, k, k_blocks, batches;
};

// Magnitudes as integers that compare alike.
__device__ __forceinline__ uint32 magnitude_bits(float x) { return __float_as_uint(fabsf(x)); }
__device__ __forceinline__ uint64 magnitude_bits(double x) {
    return __double_as_longlong(fabs(x));
}

__device__ __forceinline__ uint32 warp_max(uint32 x) { return __reduce_max_sync(~0u, x); }
__device__ __forceinline__ uint64 warp_max(uint64 x) {
    const uint32 high = __reduce_max_sync(~0u, uint32(x >> 32));
    return uint64(high) << 32 | __reduce_max_sync(~0u, uint32(x >> 32) == high ? uint32(x) : 0u);
}

// The sum of numbers of at most 54 bits: their halves are added as 32-bit numbers.
__device__ __forceinline__ uint64 warp_sum(uint64 x) {
    const uint32 low = __reduce_add_sync(~0u, uint32(x) & 0x7ffffffu);
    return (uint64(__reduce_add_sync(~0u, uint32(x >> 27))) << 27) + low;
}

__device__ __forceinline__ bool is_finite_magnitude(uint32 bits) { return bits < kInfinityBits; }
__device__ __forceinline__ bool is_finite_magnitude(uint64 bits) {
    return bits < 0x7ff0000000000000ull;
}

// e, where a magnitude above 0 lies in [2^(e - 1), 2^e).
__device__ __forceinline__ int exponent_of(uint32 bits) {
    return bits >> 23 ? int(bits >> 23) - 126 : 32 - __clz(bits) - 149;
}
__device__ __forceinline__ int exponent_of(uint64 bits) {
    return bits >> 52 ? int(bits >> 52) - 1022 : 64 - __clzll(bits) - 1074;
}

// floor(x) + 1 for x in [0, 2^15]. The sum of x and 2^23, or 2^52, rounded down is an integer whose
// low bits are floor(x).
__device__ __forceinline__ uint32 next_integer(float x) {
    return __float_as_uint(__fadd_rd(x, 0x1p23f)) - __float_as_uint(0x1p23f) + 1;
}
__device__ __forceinline__ uint32 next_integer(double x) {
    return uint32(__double2loint(__dadd_rd(x, 0x1p52))) + 1;
}

// The sum of squares of a thread's numbers in units of 2^unit. Those from `valid` on are zeros and
// do not count: each would add twice the square of 1.
template <typename T, int count>
__device__ __forceinline__ uint64 squares(const Complex<T> (&x)[count], int unit, int valid) {
    uint64 sum = 0;
    with_scaling(PowerOfTwo<T>(-unit), [&](const auto& scaled) {
#pragma unroll
        for (int i = 0; i < count; ++i) {
            const uint32 re = next_integer(scaled(fabs(x[i].x)));
            const uint32 im = next_integer(scaled(fabs(x[i].y)));
            sum += uint64(re) * re + uint64(im) * im;
        }
    });
    return sum - 2 * (count - valid);
}

template <typename Bits>
__device__ __forceinline__ uint64 block_norm(Bits largest, uint64 sum) {
    if (!is_finite_magnitude(largest)) return kBlockNotFinite;
    if (largest == 0) return 0;
    return sum | uint64(exponent_of(largest) - kQuantumBits + kUnitBias) << kUnitShift;
}

// How many of `count` numbers, from `first` on and `step` apart, lie below `end`.
__device__ __forceinline__ int count_below(int first, int step, int count, int end) {
    return max(0, min(count, (end - first + step - 1) / step));
}

// The norm of a block that a warp holds: lane l has numbers l, l + 32, ..., of which the first
// `valid` count.
template <typename T>
__device__ __forceinline__ uint64 warp_norm(const Complex<T> (&x)[kLineNumbers], int valid) {
    decltype(magnitude_bits(T())) largest = 0;
#pragma unroll
    for (int i = 0; i < kLineNumbers; ++i) {
        largest = max(largest, max(magnitude_bits(x[i].x), magnitude_bits(x[i].y)));
    }
    largest = warp_max(largest);
    return block_norm(
        largest, warp_sum(squares<T>(x, exponent_of(largest) - kQuantumBits, valid)));
}

// The block of a line that a warp takes: the blocks of a line, then the lines, then the products.
struct WarpBlock {
    int block, line, batch;

    __device__ __forceinline__ WarpBlock(int k_blocks, int lines) {
        uint32 index = blockIdx.x * (blockDim.x / kWarp) + threadIdx.x / kWarp;
        block = index % k_blocks;
        index /= k_blocks;
        line = index % lines;
        batch = index / lines;
    }

    // Reads the block's numbers below `end` along k; the others become zeros.
    template <typename T>
    __device__ __forceinline__ void load(const Complex<T>* source, int64 k_stride, int end,
                                         Complex<T> (&x)[kLineNumbers]) const {
#pragma unroll
        for (int i = 0; i < kLineNumbers; ++i) {
            const int k = block * kLineBlock + threadIdx.x % kWarp + i * kWarp;
            x[i] = Complex<T>{};
            if (k < end) x[i] = source[k * k_stride];
        }
    }
};

// Operands whose k is contiguous: a warp per block of a line.
template <typename T>
__device__ __forceinline__ void norms_along_k(const NormArguments& args) {
    const WarpBlock at(args.k_blocks, args.lines);
    if (at.batch >= args.batches) return;
    const int lane = threadIdx.x % kWarp;
    Complex<T> x[kLineNumbers];
    at.load<T>(static_cast<const Complex<T>*>(args.x) + at.batch * args.batch_stride +
                   at.line * args.line_stride,
               args.k_stride, args.k, x);
    const uint64 norm = warp_norm<T>(
        x, count_below(at.block * kLineBlock + lane, kWarp, kLineNumbers, args.k));
    if (lane == 0) {
        args.norms[(int64(at.batch) * args.k_blocks + at.block) * args.lines + at.line] = norm;
    }
}

// Operands whose lines are contiguous: a CTA a block of 256 bytes of lines.
constexpr int kNormThreads = 512;
template <typename T>
constexpr int kNormLines = 256 / sizeof(Complex<T>);

template <typename T>
__device__ __forceinline__ void norms_across_lines(const NormArguments& args) {
    using Bits = decltype(magnitude_bits(T()));
    constexpr int kLines = kNormLines<T>, kGroups = kNormThreads / kLines,
                  kNumbers = kLineBlock / kGroups;
    // Padded by one, so that warps read columns without bank conflicts.
    __shared__ Bits largest_of[kGroups][kLines + 1], largest_of_line[kLines];
    __shared__ uint64 sum_of[kGroups][kLines + 1];
    const int cta_line = threadIdx.x % kLines, group = threadIdx.x / kLines;
    const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    const int line_blocks = (args.lines + kLines - 1) / kLines;
    uint32 index = blockIdx.x;
    const int first_line = index % line_blocks * kLines, line = first_line + cta_line;
    index /= line_blocks;
    const int block = index % args.k_blocks, batch = index / args.k_blocks;
    const Complex<T>* source = static_cast<const Complex<T>*>(args.x) +
                               batch * args.batch_stride + line * args.line_stride;
    const int first = block * kLineBlock + group;
    const int valid = line < args.lines ? count_below(first, kGroups, kNumbers, args.k) : 0;
    Complex<T> x[kNumbers];
    Bits largest = 0;
#pragma unroll
    for (int i = 0; i < kNumbers; ++i) {
        x[i] = Complex<T>{};
        if (i < valid) x[i] = source[(first + i * kGroups) * args.k_stride];
        largest = max(largest, max(magnitude_bits(x[i].x), magnitude_bits(x[i].y)));
    }
    largest_of[group][cta_line] = largest;
    __syncthreads();
    for (int i = warp; i < kLines; i += kNormThreads / kWarp) {
        const Bits found = warp_max(lane < kGroups ? largest_of[lane][i] : Bits(0));
        if (lane == 0) largest_of_line[i] = found;
    }
    __syncthreads();
    const int unit = exponent_of(largest_of_line[cta_line]) - kQuantumBits;
    sum_of[group][cta_line] = squares<T>(x, unit, valid);
    __syncthreads();
    for (int i = warp; i < kLines; i += kNormThreads / kWarp) {
        const uint64 sum = warp_sum(lane < kGroups ? sum_of[lane][i] : 0);
        if (lane == 0 && first_line + i < args.lines) {
            args.norms[(int64(batch) * args.k_blocks + block) * args.lines + first_line + i] =
                block_norm(largest_of_line[i], sum);
        }
    }
}

// A block's sum of squares in the unit of its line, rounded up.
__device__ __forceinline__ uint64 in_unit_of(uint64 largest, uint64 norm) {
    const uint64 sum = norm & ((1ull << kUnitShift) - 1);
    const int by = min(2 * (int(largest >> kUnitShift) - int(norm >> kUnitShift)), 62);
    return (sum >> by) + ((sum & ((1ull << by) - 1)) != 0);
}

// The largest exponent of a line within the limit. `largest` is the largest of its blocks' norms,
// in which the unit decides, `sum` that of all in its unit.
__device__ __forceinline__ int exponent_within(uint64 largest, uint64 sum, uint64 limit,
                                               int limit_shift) {
    if (largest >= kBlockNotFinite) return kNotFinite;
    if (largest == 0) return 0;
    int up = (62 - (64 - __clzll(sum))) >> 1;
    up -= (sum << 2 * up) > limit;
    return up - limit_shift - (int(largest >> kUnitShift) - kUnitBias);
}

// The largest exponent of a line of at most as many blocks as a warp has lanes, each of which holds
// a block's norm. All lanes return it.
__device__ __forceinline__ int exponent_of_norms(uint64 norm, uint64 limit, int limit_shift) {
    const uint64 largest = warp_max(norm);
    return exponent_within(largest, warp_sum(in_unit_of(largest, norm)), limit, limit_shift);
}

// The largest exponent of a line whose blocks' norms lie `stride` apart.
__device__ __forceinline__ int warp_exponent(const uint64* norms, int count, int64 stride,
                                             uint64 limit, int limit_shift) {
    const int lane = threadIdx.x % kWarp;
    const uint64 own = lane < count ? norms[lane * stride] : 0;
    if (count <= kWarp) return exponent_of_norms(own, limit, limit_shift);
    uint64 largest = own;
    for (int i = lane + kWarp; i < count; i += kWarp) largest = max(largest, norms[i * stride]);
    largest = warp_max(largest);
    uint64 sum = in_unit_of(largest, own);
    for (int i = lane + kWarp; i < count; i += kWarp) sum += in_unit_of(largest, norms[i * stride]);
    return exponent_within(largest, warp_sum(sum), limit, limit_shift);
}

struct ExponentArguments {
    const uint64* norms;  // (batches, blocks of k, lines)
    int* exponents;       // (batches, lines)
    uint64 limit;         // as in EncodeArguments
    int lines, k_blocks, limit_shift;
};

// The exponents of lines of many blocks, found once. A CTA takes as many lines as a warp has lanes,
// and each of its warps every kExponentWarps-th block.
constexpr int kExponentWarps = 32;

__device__ __forceinline__ void line_exponents(const ExponentArguments& args) {
    __shared__ uint64 shared[kExponentWarps][kWarp];
    const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    const int groups = (args.lines + kWarp - 1) / kWarp;
    const int line = int(blockIdx.x % groups) * kWarp + lane, batch = blockIdx.x / groups;
    const int count = line < args.lines ? args.k_blocks : 0;
    const uint64* norms = args.norms + int64(batch) * args.k_blocks * args.lines + line;
    uint64 largest = 0;
#pragma unroll 4
    for (int i = warp; i < count; i += kExponentWarps) {
        largest = max(largest, norms[int64(i) * args.lines]);
    }
    shared[warp][lane] = largest;
    __syncthreads();
    for (int i = 0; i < kExponentWarps; ++i) largest = max(largest, shared[i][lane]);
    __syncthreads();
    uint64 sum = 0;
#pragma unroll 4
    for (int i = warp; i < count; i += kExponentWarps) {
        sum += in_unit_of(largest, norms[int64(i) * args.lines]);
    }
    shared[warp][lane] = sum;
    __syncthreads();
    if (warp != 0 || line >= args.lines) return;
    for (int i = 1; i < kExponentWarps; ++i) sum += shared[i][lane];
    args.exponents[int64(batch) * args.lines + line] =
        exponent_within(largest, sum, args.limit, args.limit_shift);
}
