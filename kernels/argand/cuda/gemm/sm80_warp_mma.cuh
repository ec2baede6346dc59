// The MMAs of a warp of the mma.sync family: accumulators and their promotion, and the products of
// one k-tile. Everything is in registers.
#pragma once
#include "sm80_operands.cuh"

// Where a lane stands in the tile of its block.
template <MmaPlan plan>
struct Lane {
    static constexpr int kWarps = plan.warps_m * plan.warps_n;
    const int warp = threadIdx.x / kWarp % kWarps, number = threadIdx.x % kWarp;
    const int k_group = threadIdx.x / kWarp / kWarps;  // of warps that share the k of a stage
    // The row of A, the column of B, and the k of a stage from which its fragments begin.
    const int a_row = warp / plan.warps_n * plan.warp_m() + number / 4;
    const int b_column = warp % plan.warps_n * plan.warp_n() + number / 4;
    const int k = number % 4;

    // Whether all results of its warp are above the diagonal of a tile that lies on it.
    __device__ __forceinline__ bool above_diagonal() const {
        return (warp / plan.warps_n + 1) * plan.warp_m() <= warp % plan.warps_n * plan.warp_n();
    }

    // The column of its first accumulator, which is of row `a_row`.
    __device__ __forceinline__ int result_column() const {
        return warp % plan.warps_n * plan.warp_n() + number % 4 * 2;
    }
};

// Calls `function(i, j, e)` for each result of a lane: in 8 rows, 8 columns, and which of two
// neighbouring columns.
template <MmaPlan plan, typename Function>
__device__ __forceinline__ void each_result(Function function) {
#pragma unroll
    for (int i = 0; i < plan.warp_m() / 8; ++i)
#pragma unroll
        for (int j = 0; j < plan.warp_n() / 8; ++j)
#pragma unroll
            for (int e = 0; e < 2; ++e) function(i, j, e);
}

// Accumulators of a warp: by 16 rows, 8 columns, and the four registers of an MMA. Where parts are
// apart, `re` and `im` hold ar br and ai br up to `join`, `re_of_bi` ai bi, `im_of_bi` ar bi; and
// where small products of terms are apart, `small_` those of them.
template <MmaPlan plan>
struct Accumulators {
    static constexpr int kApart = plan.parts_apart();
    float re[plan.warp_m() / 16][plan.warp_n() / 8][4];
    float im[plan.warp_m() / 16][plan.warp_n() / 8][4];
    float re_of_bi[kApart ? plan.warp_m() / 16 : 1][kApart ? plan.warp_n() / 8 : 1][4];
    float im_of_bi[kApart ? plan.warp_m() / 16 : 1][kApart ? plan.warp_n() / 8 : 1][4];
    static constexpr bool kSmall = plan.small_apart();
    static constexpr int kSmallRows = kSmall ? plan.warp_m() / 16 : 1;
    static constexpr int kSmallColumns = kSmall ? plan.warp_n() / 8 : 1;
    float small_re[kSmallRows][kSmallColumns][4], small_im[kSmallRows][kSmallColumns][4];
    float small_re_of_bi[kSmallRows][kSmallColumns][4];
    float small_im_of_bi[kSmallRows][kSmallColumns][4];

    __device__ __forceinline__ void clear() {
        each_register([&](int i, int j, int e) {
            re[i][j][e] = im[i][j][e] = 0.0f;
            if constexpr (kApart) re_of_bi[i][j][e] = im_of_bi[i][j][e] = 0.0f;
            if constexpr (kSmall) {
                small_re[i][j][e] = small_im[i][j][e] = 0.0f;
                small_re_of_bi[i][j][e] = small_im_of_bi[i][j][e] = 0.0f;
            }
        });
    }

    // Adds the products with the imaginary part of B, which `b_sign` of -1 conjugates, and small
    // products.
    __device__ __forceinline__ void join(float b_sign) {
        if constexpr (kApart) {
            each_register([&](int i, int j, int e) {
                re[i][j][e] = fmaf(-b_sign, re_of_bi[i][j][e], re[i][j][e]);
                im[i][j][e] = fmaf(b_sign, im_of_bi[i][j][e], im[i][j][e]);
                if constexpr (kSmall) {
                    re[i][j][e] += fmaf(-b_sign, small_re_of_bi[i][j][e], small_re[i][j][e]);
                    im[i][j][e] += fmaf(b_sign, small_im_of_bi[i][j][e], small_im[i][j][e]);
                }
            });
        }
    }

    __device__ __forceinline__ void conjugate() {
        each_result<plan>([this](int i, int j, int e) {
            float& x = im[i / 2][j][2 * (i % 2) + e];
            x = -x;
        });
    }

    // Whether all accumulators of this lane in rows and columns inside the matrix are finite. The
    // others multiply zeros, except where groups of warps share k.
    __device__ __forceinline__ bool finite(int rows_left, int columns_left) const {
        float zeros[2] = {};
        each_result<plan>([&](int i, int j, int e) {
            const bool outside = 8 * i >= rows_left || 8 * j + e >= columns_left;
            if (plan.skips_outside() && outside) return;
            zeros[0] = __fmaf_rn(re[i / 2][j][2 * (i % 2) + e], 0.0f, zeros[0]);
            zeros[1] = __fmaf_rn(im[i / 2][j][2 * (i % 2) + e], 0.0f, zeros[1]);
        });
        return zeros[0] + zeros[1] == 0.0f;
    }

    // Promotion: adds `other` to these fp32 accumulators, whose parts are joined, and leaves in
    // `other` the rounding error of each addition, with which its next MMAs begin.
    __device__ __forceinline__ void promote(Accumulators& other, float b_sign) {
        other.join(b_sign);
        each_register([&](int i, int j, int e) {
            add_keeping_error(re[i][j][e], other.re[i][j][e]);
            add_keeping_error(im[i][j][e], other.im[i][j][e]);
            if constexpr (kApart) other.re_of_bi[i][j][e] = other.im_of_bi[i][j][e] = 0.0f;
        });
    }

    // Promotion of a whole k, which takes so few that their rounding errors are left: adds `other`
    // to these fp32 accumulators, or makes them its values, and clears it.
    __device__ __forceinline__ void promote_whole(Accumulators& other, float b_sign, bool first) {
        other.join(b_sign);
        each_register([&](int i, int j, int e) {
            re[i][j][e] = first ? other.re[i][j][e] : re[i][j][e] + other.re[i][j][e];
            im[i][j][e] = first ? other.im[i][j][e] : im[i][j][e] + other.im[i][j][e];
        });
        other.clear();
    }

    // Adds y to x, and leaves in y what rounding has lost.
    static __device__ __forceinline__ void add_keeping_error(float& x, float& y) {
        const float old = x;
        x += y;
        y -= x - old;
    }

    // Calls `function(i, j, e)` for each register of an accumulator array.
    template <typename Function>
    static __device__ __forceinline__ void each_register(Function function) {
#pragma unroll
        for (int i = 0; i < plan.warp_m() / 16; ++i)
#pragma unroll
            for (int j = 0; j < plan.warp_n() / 8; ++j)
#pragma unroll
                for (int e = 0; e < 4; ++e) function(i, j, e);
    }
};

// Negates the operands in a register. tf32 is negated by a multiplication, because rounding and
// addressing already occupy the integer units.
template <Operand operand>
__device__ __forceinline__ uint32 negate(uint32 x) {
    if constexpr (operand == Operand::tf32) {
        return __float_as_uint(__fmul_rn(__uint_as_float(x), -1.0f));
    } else {
        return x ^ OperandFormat<operand>::kSignBits;
    }
}

// The MMAs of 16 rows by 8 columns at (i, j): every pair of terms, the small ones first. B is
// `conjugated` here.
template <MmaPlan plan, bool conjugated = false>
__device__ __forceinline__ void multiply(Accumulators<plan>& accumulators, int i, int j,
                                         const Fragment<plan>& a_upper,
                                         const Fragment<plan>& a_lower, const Fragment<plan>& b) {
    auto &re = accumulators.re[i][j], &im = accumulators.im[i][j];
#pragma unroll
    for (int p = 0; p < plan.products; ++p) {
        const int s = plan.product_a[p], t = plan.product_b[p];
        if constexpr (plan.small_apart()) {
            if (p + 1 < plan.products) {
                mma<plan.operand>(accumulators.small_re[i][j], a_upper.re[s], a_lower.re[s],
                                  b.re[t]);
                mma<plan.operand>(accumulators.small_im[i][j], a_upper.im[s], a_lower.im[s],
                                  b.re[t]);
                mma<plan.operand>(accumulators.small_im_of_bi[i][j], a_upper.re[s], a_lower.re[s],
                                  b.im[t]);
                mma<plan.operand>(accumulators.small_re_of_bi[i][j], a_upper.im[s], a_lower.im[s],
                                  b.im[t]);
                continue;
            }
        }
        if constexpr (plan.parts_apart()) {
            mma<plan.operand>(re, a_upper.re[s], a_lower.re[s], b.re[t]);
            mma<plan.operand>(im, a_upper.im[s], a_lower.im[s], b.re[t]);
            mma<plan.operand>(accumulators.im_of_bi[i][j], a_upper.re[s], a_lower.re[s], b.im[t]);
            mma<plan.operand>(accumulators.re_of_bi[i][j], a_upper.im[s], a_lower.im[s], b.im[t]);
            continue;
        }
        const uint32 negated_bi[2] = {negate<plan.operand>(b.im[t][0]),
                                      negate<plan.operand>(b.im[t][1])};
        mma<plan.operand>(re, a_upper.re[s], a_lower.re[s], b.re[t]);
        mma<plan.operand>(im, a_upper.re[s], a_lower.re[s], conjugated ? negated_bi : b.im[t]);
        mma<plan.operand>(re, a_upper.im[s], a_lower.im[s], conjugated ? b.im[t] : negated_bi);
        mma<plan.operand>(im, a_upper.im[s], a_lower.im[s], b.re[t]);
    }
}

// Multiplies the rows of a triangle that a warp has alone by their conjugates, up to the diagonal.
template <MmaPlan plan>
__device__ __forceinline__ void multiply_by_own_rows(Accumulators<plan>& accumulators,
                                                     const Fragment<plan> (&a)[plan.warp_m() / 8]) {
#pragma unroll
    for (int j = 0; j < plan.warp_n() / 8; ++j)
#pragma unroll
        for (int i = j / 2; i < plan.warp_m() / 16; ++i)
            // Where parts are apart, `join` applies the sign of a conjugated B.
            multiply<plan, !plan.parts_apart()>(accumulators, i, j, a[2 * i], a[2 * i + 1], a[j]);
}

// Multiplies the tiles of one stage along the k of this warp, from k0 on. `a_lane` and `b_lane` are
// the addresses of its first elements, `k_left` is the k from this stage on, of a whole k that of
// MMAs. After the MMAs of each k `between` is called with their number.
template <MmaPlan plan, bool moderate, typename Between>
__device__ __forceinline__ void multiply_k_tile(Accumulators<plan>& accumulators, uint32 a_lane,
                                                uint32 b_lane, int k0,
                                                Stride<plan> k_left,
                                                const float (&a_scale)[plan.warp_m() / 8],
                                                const float (&b_scale)[plan.warp_n() / 8],
                                                float b_sign, Between between) {
    constexpr int kRows = plan.warp_m() / 16, kColumns = plan.warp_n() / 8;
    if (plan.warps_k > 1 && k0 >= k_left) return;
    // The loads of a later k overlap the MMAs of one. A longer unroll would hoist more loads than
    // there are registers for. The second computation of a tile is rare and takes the least code.
    constexpr bool kAgain = plan.splits_by_products() && !moderate;
    constexpr bool kOne = kAgain || plan.blocks_per_sm > 1;
    constexpr int kUnroll = kOne ? 1 : plan.unrolled_k() / kMmaK<plan.operand>;
#pragma unroll kUnroll
    for (int k = 0; k < plan.block_k / plan.warps_k; k += kMmaK<plan.operand>) {
        // A tiny k ends within the k of one group of warps; what follows is zeros.
        if (plan.skips_outside() && k > 0 && k0 + k >= k_left) break;
        if (plan.whole_k > 0 && k >= k_left) break;  // known to the compiler
        if (plan.skips_half() && k == plan.block_k / 2 && k >= k_left) break;
        Fragment<plan> a[2 * kRows];
#pragma unroll
        for (int i = 0; i < 2 * kRows; ++i) {
            a[i] = load_fragment<plan, moderate, plan.a_k_major, plan.a_pitch()>(
                a_lane, 8 * i, k, a_scale[i], 1.0f);
        }
        if constexpr (plan.one_warp()) {
            multiply_by_own_rows<plan>(accumulators, a);
            between(k / kMmaK<plan.operand>);
            continue;
        }
#pragma unroll
        for (int j = 0; j < kColumns; ++j) {
            const Fragment<plan> b = load_fragment<plan, moderate, plan.b_k_major, plan.b_pitch()>(
                b_lane, 8 * j, k, b_scale[j],
                plan.parts_apart() ? 1.0f : b_sign);
#pragma unroll
            for (int i = 0; i < kRows; ++i) {
                multiply<plan>(accumulators, i, j, a[2 * i], a[2 * i + 1], b);
            }
        }
        between(k / kMmaK<plan.operand>);
    }
}
