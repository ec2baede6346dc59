// Operands of the mma.sync family: cp.async of raw complex64 tiles into the ring of stages, and
// fragments from there. A lane rounds, splits and scales what it loads, so operands need no
// packing.
#pragma once
#include "device/cp_async.cuh"
#include "device/rounding.cuh"
#include "device/scaling.cuh"
#include "device/shared.cuh"
#include "sm80_plan.cuh"

// The k of a stage that warps read, where `k_left` of the slice are left: all of it, or that of the
// groups of warps that have any.
template <MmaPlan plan>
__device__ __forceinline__ int needed_k(int k_left) {
    constexpr int kGroupK = plan.block_k / plan.warps_k;
    if constexpr (!plan.skips_outside()) return plan.block_k;
    return (k_left + kGroupK - 1) / kGroupK * kGroupK;
}

// The element some lines of a stride after `from`.
__device__ __forceinline__ const float2* lines_after(const float2* from, int stride, int lines) {
    const float2* found;
    asm("mad.wide.s32 %0, %1, %2, %3;"
        : "=l"(found)
        : "r"(stride), "r"(lines * static_cast<int>(sizeof(float2))), "l"(from));
    return found;
}
__device__ __forceinline__ const float2* lines_after(const float2* from, int64 stride,
                                                      int64 lines) {
    return from + lines * stride;
}

// Adds bytes to an address. The compiler would multiply them again for each line, by more
// instructions and registers.
__device__ __forceinline__ void advance(const float2*& from, int64 bytes) {
    asm volatile("add.s64 %0, %0, %1;" : "+l"(from) : "l"(bytes));
}

// The copies by which a thread fills its part of each k-tile of an operand, with 0 outside the
// matrix. What all tiles share is computed once: a small product waits for every address. A row is
// a row of op(A) or a column of op(B). Where groups of warps share k, rows outside the matrix and k
// of groups that have none are left as they are: small products would wait for the zeros.
template <MmaPlan plan, int Rows, bool KMajor>
class TileCopies {
    static constexpr int kContiguous = KMajor ? plan.block_k : Rows;
    static constexpr int kLines = KMajor ? Rows : plan.block_k;
    static constexpr int kVectors = kContiguous / plan.vector;
    static constexpr int kStep = plan.threads() / kVectors;
    static_assert(plan.threads() % kVectors == 0 && kLines % kStep == 0,
                  "a copy by all threads must cover whole rows");

    const float2 *from, *at;  // what this thread copies first of the next tile, and next of it
    int64 line_step;          // bytes from a copy of this thread to its next one
    int64 k_step;             // bytes from a tile to the next one along contiguous k
    int rows_left;            // of the tile, inside the matrix
    uint32 to;                // where the first copy goes in the first stage

    __device__ __forceinline__ static int contiguous() {
        return static_cast<int>(threadIdx.x % kVectors) * plan.vector;
    }
    __device__ __forceinline__ static int line() {
        return static_cast<int>(threadIdx.x / kVectors);
    }

   public:
    // `source` is the first element of the batch, `row` and `k` are where the tile begins, of an
    // operand of `rows`; `tile` is its place.
    __device__ __forceinline__ TileCopies(const float2* source, int64 row_stride, int64 k_stride,
                                          Stride<plan> row, Stride<plan> k, Stride<plan> rows,
                                          const float2* tile)
        : rows_left(static_cast<int>(min(rows - row, Stride<plan>(Rows)))),
          to(opaque(shared_address(tile + line() * (kContiguous + kRowPadding) + contiguous()))) {
        const auto line_stride = static_cast<Stride<plan>>(KMajor ? row_stride : k_stride);
        Stride<plan> stride = 1;
        if constexpr (plan.any_strides) stride = KMajor ? k_stride : row_stride;
        const Stride<plan> first_line = (KMajor ? row : k) + line();
        const Stride<plan> first = (KMajor ? k : row) + contiguous();
        from = lines_after(lines_after(source, stride, first), line_stride, first_line);
        line_step = static_cast<int64>(line_stride) * (kStep * static_cast<int>(sizeof(float2)));
        k_step = static_cast<int64>(stride) * (plan.block_k * static_cast<int>(sizeof(float2)));
    }

    // Fills the next tile, the one of number `k_tile`, `stage` bytes after the first one's place,
    // of whose k `k_left` is inside. Copies of two elements lie inside the matrix or outside. Those
    // outside read nothing, wherever their address is.
    __device__ __forceinline__ void fill(uint32 stage, int k_left, int k_tile) {
        const float2* source = from;
        if constexpr (KMajor) advance(from, k_step);
        const int k_needed = needed_k<plan>(k_left);
        if (plan.skips_outside() && contiguous() >= (KMajor ? k_needed : rows_left)) return;
        const bool inside = contiguous() < (KMajor ? k_left : rows_left);
        const int lines_left = inside ? (KMajor ? rows_left : k_left) - line() : 0;
#pragma unroll
        for (int i = 0; i < kLines; i += kStep) {
            if (plan.skips_outside() && line() + i >= (KMajor ? rows_left : k_needed)) break;
            const int k = k_tile * plan.block_k + i;
            if (plan.whole_k > 0 && !KMajor && k >= plan.whole_k) break;  // no MMA reads it
            constexpr int kBytes = 8 * plan.vector;
            cp_async<kBytes>(to + stage + i * (kContiguous + kRowPadding) * uint32(sizeof(float2)),
                             source, i < lines_left ? kBytes : 0);
            advance(source, line_step);
        }
        // After the last line of a tile along contiguous rows the next tile begins.
        if constexpr (!KMajor) from = source;
    }

    // Fills one of several parts of the next tile, which are called in order. No groups of warps
    // share its k.
    template <int parts>
    __device__ __forceinline__ void fill_part(uint32 stage, int k_left, int part) {
        const bool inside = contiguous() < (KMajor ? k_left : rows_left);
        const int lines_left = inside ? (KMajor ? rows_left : k_left) - line() : 0;
        constexpr int kCopies = kLines / kStep, kBytes = 8 * plan.vector;
        if (part == 0) at = from;
        const int first = kCopies * part / parts, end = kCopies * (part + 1) / parts;
        // The compiler knows this count, so it leaves no copy in a loop.
        constexpr int kMax = (kCopies + parts - 1) / parts;
#pragma unroll
        for (int copy = 0; copy < kMax; ++copy) {
            const int i = first + copy;
            if (kCopies % parts != 0 && i >= end) break;
            cp_async<kBytes>(
                to + stage + i * kStep * (kContiguous + kRowPadding) * uint32(sizeof(float2)), at,
                i * kStep < lines_left ? kBytes : 0);
            advance(at, line_step);
        }
        if (part + 1 < parts) return;
        if constexpr (KMajor) {
            advance(from, k_step);
        } else {
            from = at;
        }
    }
};

// A fragment: what a lane holds of one row of A or column of B for one MMA, by term and complex
// part.
template <MmaPlan plan>
struct Fragment {
    uint32 re[plan.terms][2];
    uint32 im[plan.terms][2];
};

// Rounds and splits the numbers of a lane. `moderate` takes them for less than 2^115.
template <MmaPlan plan, bool moderate>
__device__ __forceinline__ void split_fragment(const float (&x)[kMmaK<plan.operand> / 4],
                                               uint32 (&registers)[plan.terms][2]) {
    constexpr int kNumbers = kNumbersPerRegister<plan.operand>;
#pragma unroll
    for (int j = 0; j < 2; ++j) {
        uint32 terms[plan.terms];
        if constexpr (moderate) {
            split_moderate_to_tf32<plan.roundings[1], true>(x[j], terms);
        } else {
            split<plan.operand, plan.terms, plan.roundings[0], plan.roundings[1]>(x + kNumbers * j,
                                                                                   terms);
        }
#pragma unroll
        for (int t = 0; t < plan.terms; ++t) registers[t][j] = terms[t];
    }
}

// The bytes of an element of a tile after its first.
template <bool KMajor, int Pitch>
__device__ __forceinline__ uint32 element_bytes(int row, int k) {
    return sizeof(float2) * (KMajor ? row * Pitch + k : k * Pitch + row);
}

// Loads the numbers of a lane, `row` and `k` after its first, at k, k + 4, ... and converts them
// to a fragment. `sign` of -1 conjugates.
template <MmaPlan plan, bool moderate, bool KMajor, int Pitch>
__device__ __forceinline__ Fragment<plan> load_fragment(uint32 lane, int row, int k, float scale,
                                                        float sign) {
    constexpr int kCount = kMmaK<plan.operand> / 4;
    float re[kCount], im[kCount];
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
        const float2 x =
            load_shared_8_unordered(lane + element_bytes<KMajor, Pitch>(row, k + 4 * j));
        re[j] = plan.scaled ? x.x * scale : x.x;
        im[j] = x.y * (plan.scaled ? scale * sign : sign);
    }
    Fragment<plan> result;
    if constexpr (plan.operand == Operand::tf32 && plan.terms == 1) {
        add_tf32_rounding_increments<plan.roundings[0]>(re, im, result.re[0], result.im[0]);
    } else {
        split_fragment<plan, moderate>(re, result.re);
        split_fragment<plan, moderate>(im, result.im);
    }
    return result;
}
