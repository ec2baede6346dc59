// Complex matrix products with mma.sync (sm_80 and newer): one family for tf32, 3xtf32, 3xfp16,
// fp16 and bf16.
//
// C = alpha op(A) op(B) + beta C in one launch. Operands stay interleaved complex64 until they are
// in registers: a ring of shared-memory stages receives raw tiles, and each warp rounds, splits and
// scales what it reads. Four real products a complex one: re += ar br, re += ai (-bi), im += ar bi,
// im += ai br, for each pair of terms that the precision keeps.
#pragma once
#include "device/complex.cuh"
#include "device/scaling.cuh"
#include "sm80_operands.cuh"

// Tiles of C that share columns of B run together this many at a time, so that they meet in L2.
constexpr uint32 kTileGroup = 8;

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
    int flip_b;       // op_a and op_b conjugate one operand and not the other
    int flip_result;  // op_a conjugates: conj(A) B = conj(A conj(B))
    int pairs;        // two neighbouring results may be stored at once
};

template <GemmPlan plan>
struct Accumulators {
    float re[plan.warp_m() / 16][plan.warp_n() / 8][4];
    float im[plan.warp_m() / 16][plan.warp_n() / 8][4];

    __device__ __forceinline__ void clear() {
        each([](float& x, float) { x = 0.0f; }, *this);
    }

    // Adds what the other has, and leaves there what rounding lost of it.
    __device__ __forceinline__ void take(Accumulators& other) {
        each(
            [](float& x, float& y) {
                const float old = x;
                x += y;
                y -= x - old;
            },
            other);
    }

    template <typename Function, typename Other>
    __device__ __forceinline__ void each(Function function, Other& other) {
#pragma unroll
        for (int i = 0; i < plan.warp_m() / 16; ++i)
#pragma unroll
            for (int j = 0; j < plan.warp_n() / 8; ++j)
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    function(re[i][j][e], other.re[i][j][e]);
                    function(im[i][j][e], other.im[i][j][e]);
                }
    }
};

// A register of operands negated. For tf32 by a multiplication: rounding and indexing already fill
// the integer units, those for fp32 are idle.
template <Operand operand>
__device__ __forceinline__ uint32 minus(uint32 x) {
    if constexpr (operand == Operand::tf32) {
        return __float_as_uint(__fmul_rn(__uint_as_float(x), -1.0f));
    } else {
        return x ^ 0x80008000u;
    }
}

// Multiplies one 16 x 8 piece: every kept pair of terms, the small ones first.
template <GemmPlan plan>
__device__ __forceinline__ void multiply(float (&re)[4], float (&im)[4], const Line<plan>& upper,
                                         const Line<plan>& lower, const Line<plan>& b) {
#pragma unroll
    for (int p = 0; p < plan.products; ++p) {
        const int s = plan.product_a[p], t = plan.product_b[p];
        const uint32 minus_bi[2] = {minus<plan.operand>(b.im[t][0]),
                                    minus<plan.operand>(b.im[t][1])};
        mma<plan.operand>(re, upper.re[s], lower.re[s], b.re[t]);
        mma<plan.operand>(im, upper.re[s], lower.re[s], b.im[t]);
        mma<plan.operand>(re, upper.im[s], lower.im[s], minus_bi);
        mma<plan.operand>(im, upper.im[s], lower.im[s], b.re[t]);
    }
}

// Multiplies the tiles of one stage, this warp's share of k from k0 on. `a` and `b` point at this
// warp's part.
template <GemmPlan plan>
__device__ __forceinline__ void multiply_stage(Accumulators<plan>& sum, const float2* a_tile,
                                               const float2* b_tile, int a_line, int b_line, int k0,
                                               const float (&a_scale)[plan.warp_m() / 8],
                                               const float (&b_scale)[plan.warp_n() / 8],
                                               float flip_b) {
    constexpr int kRows = plan.warp_m() / 16, kColumns = plan.warp_n() / 8;
    const int k_lane = k0 + threadIdx.x % 4;
    // More steps at once hoist more reads than there are registers for.
    constexpr int kTogether = 16 / kMmaK<plan.operand>;
#pragma unroll kTogether
    for (int k = 0; k < plan.block_k / plan.warps_k; k += kMmaK<plan.operand>) {
        Line<plan> a[2 * kRows];
#pragma unroll
        for (int i = 0; i < 2 * kRows; ++i) {
            a[i] = load_line<plan, plan.a_k_fast, plan.a_pitch()>(a_tile, a_line + 8 * i,
                                                                  k + k_lane, a_scale[i], 1.0f);
        }
#pragma unroll
        for (int j = 0; j < kColumns; ++j) {
            const Line<plan> b = load_line<plan, plan.b_k_fast, plan.b_pitch()>(
                b_tile, b_line + 8 * j, k + k_lane, b_scale[j], flip_b);
#pragma unroll
            for (int i = 0; i < kRows; ++i) {
                multiply<plan>(sum.re[i][j], sum.im[i][j], a[2 * i], a[2 * i + 1], b);
            }
        }
    }
}

// Adds the sums of all shares of k to those of the first, in order. `memory` is the block's.
template <GemmPlan plan>
__device__ __forceinline__ void join_shares(Accumulators<plan>& sum, float* memory, int share) {
    constexpr int kThreads = kWarp * plan.warps_m * plan.warps_n;
    constexpr int kCount = plan.warp_m() / 16 * (plan.warp_n() / 8) * 8;
    static_assert(4 * (plan.warps_k - 1) * kCount * kThreads <=
                      8 * plan.stages * (plan.a_size() + plan.b_size()),
                  "the stages' memory holds what is left");
    float* mine = memory + threadIdx.x % kThreads;
    if (share > 0) {
        float* to = mine + (share - 1) * kCount * kThreads;
        sum.each(
            [&](float& x, float) {
                *to = x;
                to += kThreads;
            },
            sum);
    }
    __syncthreads();
    if (share == 0) {
        const float* from = mine;
        for (int other = 1; other < plan.warps_k; ++other) {
            sum.each(
                [&](float& x, float) {
                    x += *from;
                    from += kThreads;
                },
                sum);
        }
    }
}

// `row0` and `column0` are the lane's first, whose column's magnitude is the first of `b_largest`.
template <GemmPlan plan>
__device__ __forceinline__ void store(const GemmArguments& args, const Accumulators<plan>& sum,
                                      int64 batch, int64 row0, int64 column0,
                                      const int (&a_exponent)[plan.warp_m() / 8],
                                      const uint32* b_largest) {
    const float2* c = args.c + batch * args.c_batch;
    float2* out = args.out + batch * args.out_batch;
#pragma unroll
    for (int j = 0; j < plan.warp_n() / 8; ++j) {
        const int64 column = column0 + 8 * j;
        int b_exponent[2] = {0, 0};
        if constexpr (plan.scaled) {
            for (int e = 0; e < 2; ++e)
                if (column + e < args.n) b_exponent[e] = scale_exponent(b_largest[8 * j + e]);
        }
#pragma unroll
        for (int i = 0; i < plan.warp_m() / 8; ++i) {
            const int64 row = row0 + 8 * i;
            if (row >= args.m || column >= args.n) continue;
            float2 x[2];
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const int at = 2 * (i % 2) + e;
                x[e] = {sum.re[i / 2][j][at], sum.im[i / 2][j][at]};
                if constexpr (plan.scaled) {
                    const int exponent = -(a_exponent[i] + b_exponent[e]);
                    x[e] = {scale_by_power(x[e].x, exponent), scale_by_power(x[e].y, exponent)};
                }
            }
            const bool second = column + 1 < args.n;
            const float2* c_at = c + row * args.c_row + column * args.c_column;
            float2* out_at = out + row * args.out_row + column * args.out_column;
            x[0] = conjugate_and_combine(args, x[0], c_at);
            if (second) x[1] = conjugate_and_combine(args, x[1], c_at + args.c_column);
            if (second && args.pairs) {
                *reinterpret_cast<float4*>(out_at) = {x[0].x, x[0].y, x[1].x, x[1].y};
            } else {
                *out_at = x[0];
                if (second) out_at[args.out_column] = x[1];
            }
        }
    }
}

// Which tile of which product this block computes.
struct Tile {
    int64 batch, row, column;
};

template <GemmPlan plan>
__device__ __forceinline__ Tile find_tile(const GemmArguments& args) {
    // A grid's blocks fit 32 bits, in which divisions take a fraction of what they take in 64.
    const uint32 rows = static_cast<uint32>((args.m + plan.block_m - 1) / plan.block_m);
    const uint32 columns = static_cast<uint32>((args.n + plan.block_n - 1) / plan.block_n);
    const uint32 batch = blockIdx.x / (rows * columns), tile = blockIdx.x % (rows * columns);
    const uint32 group = tile / (kTileGroup * columns), inside = tile % (kTileGroup * columns);
    const uint32 height = min(rows - group * kTileGroup, kTileGroup);
    return {args.first_batch + batch, int64(group * kTileGroup + inside % height) * plan.block_m,
            int64(inside / height) * plan.block_n};
}

// One block computes one block_m x block_n tile of one product.
template <GemmPlan plan>
__device__ __forceinline__ void gemm_mma(const GemmArguments& args) {
    static_assert(plan.block_k % kMmaK<plan.operand> == 0, "whole instructions");
    static_assert(plan.promote_every % plan.block_k == 0, "promoted between stages");
    extern __shared__ __align__(16) float2 stages[];
    constexpr int kStage = plan.a_size() + plan.b_size();
    const Tile tile = find_tile<plan>(args);
    const float2* a = args.a + tile.batch * args.a_batch + tile.row * args.a_line;
    const float2* b = args.b + tile.batch * args.b_batch + tile.column * args.b_line;
    const int steps = static_cast<int>((args.k + plan.block_k - 1) / plan.block_k);

    auto load = [&](int step) {
        if (step < steps) {
            float2* stage = stages + step % plan.stages * kStage;
            const int64 k = int64(step) * plan.block_k;
            load_tile<plan, plan.block_m, plan.block_k, plan.a_k_fast>(
                stage, a + k * args.a_k, args.a_line, args.a_k, args.m - tile.row, args.k - k);
            load_tile<plan, plan.block_n, plan.block_k, plan.b_k_fast>(
                stage + plan.a_size(), b + k * args.b_k, args.b_line, args.b_k,
                args.n - tile.column, args.k - k);
        }
        cp_async_commit();
    };

    constexpr int kWarps = plan.warps_m * plan.warps_n;
    const int warp = threadIdx.x / kWarp % kWarps, lane = threadIdx.x % kWarp;
    const int share = threadIdx.x / kWarp / kWarps;
    const int a_line = warp / plan.warps_n * plan.warp_m() + lane / 4;
    const int b_line = warp % plan.warps_n * plan.warp_n() + lane / 4;
    const float flip_b = args.flip_b ? -1.0f : 1.0f;
#pragma unroll
    for (int stage = 0; stage < plan.stages - 1; ++stage) load(stage);

    // Of the tile's lines.
    const uint32* a_largest = args.a_largest + tile.batch * args.a_largest_batch + tile.row;
    const uint32* b_largest = args.b_largest + tile.batch * args.b_largest_batch + tile.column;
    if constexpr (plan.looks) {
        __shared__ uint32 found[plan.block_m + plan.block_n];
        for (int i = threadIdx.x; i < plan.block_m + plan.block_n; i += plan.threads())
            found[i] = 0;
        cp_async_wait<0>();  // all of k is in the stages
        __syncthreads();
        look_at_lines<plan, plan.block_m, plan.a_k_fast>(found, stages, kStage, steps);
        look_at_lines<plan, plan.block_n, plan.b_k_fast>(found + plan.block_m,
                                                         stages + plan.a_size(), kStage, steps);
        __syncthreads();
        a_largest = found;
        b_largest = found + plan.block_m;
    }
    int a_exponent[plan.warp_m() / 8] = {};
    float a_scale[plan.warp_m() / 8] = {}, b_scale[plan.warp_n() / 8] = {};
    if constexpr (plan.scaled) {
#pragma unroll
        for (int i = 0; i < plan.warp_m() / 8; ++i) {
            const int line = a_line + 8 * i;
            a_exponent[i] = tile.row + line < args.m ? scale_exponent(a_largest[line]) : 0;
            a_scale[i] = power_of_two(a_exponent[i]);
        }
#pragma unroll
        for (int j = 0; j < plan.warp_n() / 8; ++j) {
            const int line = b_line + 8 * j;
            const bool inside = tile.column + line < args.n;
            b_scale[j] = power_of_two(inside ? scale_exponent(b_largest[line]) : 0);
        }
    }

    // Tensor cores truncate when they accumulate: left there, the error of a split operand would
    // grow with k to 1e-4. Moved into fp32 registers every few steps it stays at fp32's, flat in k:
    // what rounding loses of one slice is where the next begins.
    constexpr bool kPromotes = plan.promote_every > 0;
    Accumulators<plan> sum, total;
    sum.clear();
    if constexpr (kPromotes) total.clear();
    for (int step = 0; step < steps; ++step) {
        cp_async_wait<plan.stages - 2>();
        // All warps see the stage that has arrived, and have left the one that is filled next.
        __syncthreads();
        load(step + plan.stages - 1);
        const float2* stage = stages + step % plan.stages * kStage;
        multiply_stage<plan>(sum, stage, stage + plan.a_size(), a_line, b_line,
                             share * (plan.block_k / plan.warps_k), a_scale, b_scale, flip_b);
        if constexpr (kPromotes) {
            constexpr int kSteps = plan.promote_every / plan.block_k;
            if ((step + 1) % kSteps == 0 || step + 1 == steps) total.take(sum);
        }
    }
    Accumulators<plan>& result = kPromotes ? total : sum;
    if constexpr (plan.warps_k > 1) {
        __syncthreads();  // no stage is read any more
        join_shares<plan>(result, reinterpret_cast<float*>(stages), share);
        if (share > 0) return;
    }
    const int64 row = tile.row + a_line;
    const int64 first = warp % plan.warps_n * plan.warp_n() + lane % 4 * 2;
    store<plan>(args, result, tile.batch, row, tile.column + first, a_exponent, b_largest + first);
}
