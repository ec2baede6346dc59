// Results of the wgmma family: scaled back, alpha X + beta C, stored.
#pragma once
#include "device/complex.cuh"
#include "device/scaling.cuh"
#include "sm90_fragments.cuh"
#include "sm90_scheduler.cuh"

// Where results go: pairs of fp32, or of the 16-bit operand format.
template <WgmmaPlan plan>
struct Output {
    static __device__ __forceinline__ uint32 to_16bit(float2 x) {
        return plan.operand == Operand::bf16 ? pack_bf16(x.x, x.y) : pack_fp16(x.x, x.y);
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

// A result scaled back by what its row and its column were scaled by.
template <WgmmaPlan plan>
__device__ __forceinline__ float2 descale(float2 x, float2 row, float2 column) {
    if constexpr (plan.scaled) {
        const float first = row.x * column.x, second = row.y * column.y;
        return {x.x * first * second, x.y * first * second};
    } else {
        return x;
    }
}

// Whether results are the sums as they are, scaled back: then a code of its own, which is short,
// stores them. All cases in one take a hundred kilobytes, and the instructions of a tile's end are
// not in the cache when they are wanted.
__device__ __forceinline__ bool only_descales(const WgmmaArguments& args) {
    return args.alpha_re == 1.0f && args.alpha_im == 0.0f && args.beta_re == 0.0f &&
           args.beta_im == 0.0f && !args.conjugate_result;
}

// What scales the columns of a tile back. Each lane reads every 32nd at once, so that memory is
// waited for once a tile and not before each few columns, and all lanes of a warp tell each other.
template <WgmmaPlan plan>
struct ColumnDescales {
    float2 own[(plan.block_n + kWarp - 1) / kWarp];

    __device__ __forceinline__ ColumnDescales(const WgmmaArguments& args, const WgmmaTile& tile,
                                              int lane) {
        if constexpr (plan.scaled) {
            const float2* descales =
                args.y_descale + (args.y_batched ? int64(tile.batch) * args.n : 0);
#pragma unroll
            for (int i = 0; i < (plan.block_n + kWarp - 1) / kWarp; ++i) {
                own[i] = __ldg(descales + min(tile.n0 + kWarp * i + lane, args.n - 1));
            }
        }
    }

    // Of column `first` + `offset` of the tile, of which eight from `first` on are wanted.
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
