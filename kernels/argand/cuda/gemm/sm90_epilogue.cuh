// What both epilogues of the wgmma family do to an element of Z: descale, alpha x + beta C, and the
// store in the output format. An elementwise epilogue is added beside alpha and beta in
// device/complex.cuh, and `only_descales` must be false with it. sm90_epilogue_direct.cuh stores
// from registers, sm90_epilogue_tma.cuh through shared memory.
#pragma once
#include "device/complex.cuh"
#include "device/scaling.cuh"
#include "sm90_accumulator_memory.cuh"
#include "sm90_fragments.cuh"
#include "sm90_scheduler.cuh"

// Stores of one and of two neighbouring results: complex64, or pairs in the 16-bit operand format.
template <WgmmaPlan plan>
struct Output {
    static __device__ __forceinline__ uint32 to_16bit(float2 x) {
        const float parts[2] = {x.x, x.y};
        return OperandFormat<plan.operand>::pack(parts);
    }

    static __device__ __forceinline__ void store(void* out, int64 at, float2 x) {
        if constexpr (plan.half_output) {
            static_cast<uint32*>(out)[at] = to_16bit(x);
        } else {
            static_cast<float2*>(out)[at] = x;
        }
    }

    static __device__ __forceinline__ void store_pair(void* out, int64 at, float2 x, float2 y) {
        if constexpr (plan.half_output) {
            *reinterpret_cast<uint2*>(static_cast<uint32*>(out) + at) = {to_16bit(x), to_16bit(y)};
        } else {
            *reinterpret_cast<float4*>(static_cast<float2*>(out) + at) = {x.x, x.y, y.x, y.y};
        }
    }
};

// Descales a result by the factors of its row and of its column.
template <WgmmaPlan plan>
__device__ __forceinline__ float2 descale(float2 x, float2 row, float2 column) {
    if constexpr (plan.scaled) {
        const float first = row.x * column.x, second = row.y * column.y;
        return {x.x * first * second, x.y * first * second};
    } else {
        return x;
    }
}

// Whether the epilogue only descales: alpha is 1, beta 0, and nothing is conjugated. That case has
// short code of its own, because the general code is long, and its instructions are not in the
// instruction cache when a tile ends.
__device__ __forceinline__ bool only_descales(const WgmmaArguments& args) {
    return args.alpha_re == 1.0f && args.alpha_im == 0.0f && args.beta_re == 0.0f &&
           args.beta_im == 0.0f && !args.conjugate_result;
}

// The descale factors of `count` columns of a tile from `first` on. Each lane loads those of every
// 32nd column, and lanes exchange them by shuffles, so that these columns wait for memory once and
// not a few columns at a time.
template <WgmmaPlan plan, int count = plan.block_n>
struct ColumnDescales {
    float2 own[(count + kWarp - 1) / kWarp];

    __device__ __forceinline__ ColumnDescales(const WgmmaArguments& args, const WgmmaTile& tile,
                                              int lane, int first = 0) {
        if constexpr (plan.scaled) {
            const float2* descales =
                args.y_descale + (args.y_batched ? int64(tile.batch) * args.n : 0);
#pragma unroll
            for (int i = 0; i < (count + kWarp - 1) / kWarp; ++i) {
                own[i] = __ldg(descales + min(tile.n0 + first + kWarp * i + lane, args.n - 1));
            }
        }
    }

    // The factors of column `first` + `offset` of the tile; the lanes of a warp ask for eight
    // columns from `first` on.
    __device__ __forceinline__ float2 at(int first, int offset) const {
        if constexpr (plan.scaled) {
            const float2& vector = own[first / kWarp];
            const int source = first % kWarp + offset;
            return {__shfl_sync(~0u, vector.x, source), __shfl_sync(~0u, vector.y, source)};
        } else {
            return {};
        }
    }
};

// Columns that the general epilogue has code for; a loop brings the accumulators of the next ones
// to the registers of these. Code for all columns would be four times as long for a tile of 128, to
// compile and to fetch.
template <WgmmaPlan plan>
constexpr int kGeneralColumns = plan.block_n % kWarp == 0 ? kWarp : plan.block_n;

// Moves accumulators `by` places to the front.
template <int by, int Count>
__device__ __forceinline__ void shift(float (&x)[Count]) {
#pragma unroll
    for (int i = 0; i + by < Count; ++i) x[i] = x[i + by];
}

// conjugate_and_combine() of the results of two rows and two columns, with one branch for all four.
// C lies at `c`, its second row `c_row_stride` on; what is outside Z is not read.
__device__ __forceinline__ void combine_square(const WgmmaArguments& args, float2 (&z)[2][2],
                                               const float2* c, int64 c_row_stride, bool inside,
                                               bool second_row, bool second_column) {
    const float sign = args.conjugate_result ? -1.0f : 1.0f;
#pragma unroll
    for (int i = 0; i < 4; ++i) z[i / 2][i % 2].y *= sign;
    if (args.alpha_re != 1.0f || args.alpha_im != 0.0f) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            float2& x = z[i / 2][i % 2];
            x = complex_product({args.alpha_re, args.alpha_im}, x);
        }
    }
    if (args.beta_re != 0.0f || args.beta_im != 0.0f) {
        float2 addend[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            addend[i] = load_or_zero(c + i / 2 * c_row_stride + i % 2 * args.c_stride_n,
                                     inside && (i / 2 == 0 || second_row) &&
                                         (i % 2 == 0 || second_column));
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            float2& x = z[i / 2][i % 2];
            const float2 y = complex_product({args.beta_re, args.beta_im}, addend[i]);
            x = {x.x + y.x, x.y + y.y};
        }
    }
}
