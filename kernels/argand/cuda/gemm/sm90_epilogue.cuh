// The part of the epilogue that both stores of the wgmma family share: an element of Z is descaled,
// becomes alpha x + beta C, and is converted to the output format. An elementwise epilogue is added
// beside alpha and beta in linear_combination.cuh, and `epilogue_of` of
// argand/gemm/sm90/epilogue_choice.py must then take `combine`. sm90_epilogue_direct.cuh stores
// from registers, sm90_epilogue_tma.cuh through shared memory.
#pragma once
#include "device/conditional.cuh"
#include "device/predicated_load.cuh"
#include "device/scaling.cuh"
#include "linear_combination.cuh"
#include "sm90_fragments.cuh"
#include "sm90_scheduler.cuh"

// Stores of one and of two neighbouring results: complex64, pairs in the 16-bit operand format, or
// squared magnitudes.
template <WgmmaPlan plan>
struct Output {
    // A result as it is stored.
    using Value = typename Conditional<
        plan.half_output, uint32, typename Conditional<plan.power, float, float2>::Type>::Type;

    static __device__ __forceinline__ float value_of(float x) { return x; }  // squared already
    static __device__ __forceinline__ Value value_of(float2 x) {
        if constexpr (plan.half_output) {
            const float parts[2] = {x.x, x.y};
            return OperandFormat<plan.operand>::pack(parts);
        } else if constexpr (plan.power) {
            return x.x * x.x + x.y * x.y;
        } else {
            return x;
        }
    }

    static __device__ __forceinline__ Value* at(void* out, int64 index) {
        return static_cast<Value*>(out) + index;
    }

    // Two neighbours, of which the first is aligned to both.
    static __device__ __forceinline__ void store_two(Value* to, Value x, Value y) {
        if constexpr (plan.half_output) {
            *reinterpret_cast<uint2*>(to) = {x, y};
        } else if constexpr (plan.power) {
            *reinterpret_cast<float2*>(to) = {x, y};
        } else {
            *reinterpret_cast<float4*>(to) = {x.x, x.y, y.x, y.y};
        }
    }

    // Stores two neighbours, of which the first is aligned to both, where `left` columns are more
    // than `at` + 1, and the first alone where they are as many. It is predicated and not branched,
    // which is less code to compile.
    static __device__ __forceinline__ void store_inside(Value* to, Value x, Value y, int left,
                                                        int at) {
        if constexpr (sizeof(Value) == 8) {
            asm volatile(
                "{\n.reg .pred two, one;\nsetp.gt.s32 two, %5, %6;\nsetp.eq.s32 one, %5, %6;\n"
                "@two st.global.v4.f32 [%0], {%1, %2, %3, %4};\n"
                "@one st.global.v2.f32 [%0], {%1, %2};\n}" ::"l"(to),
                "f"(x.x), "f"(x.y), "f"(y.x), "f"(y.y), "r"(left), "r"(at + 1)
                : "memory");
        } else {
            asm volatile(
                "{\n.reg .pred two, one;\nsetp.gt.s32 two, %3, %4;\nsetp.eq.s32 one, %3, %4;\n"
                "@two st.global.v2.b32 [%0], {%1, %2};\n"
                "@one st.global.b32 [%0], %1;\n}" ::"l"(to),
                "r"(reinterpret_cast<const uint32&>(x)), "r"(reinterpret_cast<const uint32&>(y)),
                "r"(left), "r"(at + 1)
                : "memory");
        }
    }

    static __device__ __forceinline__ Value from_lane(Value x, int lane) {
        if constexpr (plan.half_output || plan.power) {
            return __shfl_sync(~0u, x, lane);
        } else {
            return {__shfl_sync(~0u, x.x, lane), __shfl_sync(~0u, x.y, lane)};
        }
    }

    template <typename Result>
    static __device__ __forceinline__ void store(void* out, int64 index, Result x) {
        *at(out, index) = value_of(x);
    }

    template <typename Result>
    static __device__ __forceinline__ void store_pair(void* out, int64 index, Result x, Result y) {
        store_two(at(out, index), value_of(x), value_of(y));
    }
};

// The mirror image of a lane's results in the upper triangle. Addresses and distances from the
// diagonal follow from those of the lane's first result: no registers are left for each row and
// column beside the accumulators of the largest tiles.
template <WgmmaPlan plan>
struct MirrorImage {
    float2* first;
    int below;  // rows by which the first result lies below the diagonal

    __device__ __forceinline__ MirrorImage(const WgmmaArguments& args, const WgmmaTile& tile,
                                           int row, int column)
        : first(static_cast<float2*>(args.out) + tile.batch * args.out_stride_batch +
                column * args.out_stride_m + row),
          below(row - column) {}

    // Stores the image of the result `rows` and `columns` further where it is below the diagonal
    // and `inside`, and makes it real on the diagonal.
    __device__ __forceinline__ void store(const WgmmaArguments& args, int rows, int columns,
                                          float2& x, bool inside) const {
        static_assert(!plan.half_output, "Hermitian results are complex64");
        const int distance = below + rows - columns;
        if (distance == 0) x.y = 0.0f;
        if (inside && distance > 0) first[columns * args.out_stride_m + rows] = {x.x, -x.y};
    }
};

// The columns of a tile that are stored of a row: all of those that lie inside, or of a result that
// is mirrored those up to the diagonal.
template <WgmmaPlan plan>
__device__ __forceinline__ int stored_columns(const WgmmaTile& tile, int row, int columns) {
    return plan.mirror ? min(columns, row - tile.n0 + 1) : columns;
}

// The descale factors of a row of Z, of the last one for rows beyond it.
template <WgmmaPlan plan>
__device__ __forceinline__ float2 row_descale(const WgmmaArguments& args, const WgmmaTile& tile,
                                              int row) {
    if constexpr (plan.descales_rows()) {
        const float2* descales = args.x_descale + (args.x_batched ? int64(tile.batch) * args.m : 0);
        return __ldg(descales + min(row, args.m - 1));
    } else {
        return {};
    }
}

// Descales a result by the factors of its row and of its column.
template <WgmmaPlan plan>
__device__ __forceinline__ float2 descale(float2 x, float2 row, float2 column) {
    if constexpr (plan.descales_rows()) {
        const float first = row.x * column.x, second = row.y * column.y;
        return {x.x * first * second, x.y * first * second};
    } else if constexpr (plan.scaled) {
        return {x.x * column.x * column.y, x.y * column.x * column.y};
    } else {
        return x;
    }
}

// The descale factors of the columns of a tile. Each lane loads those of every 32nd column, and
// lanes exchange them by shuffles, so that a tile waits for memory once and not before each few
// columns.
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
                // Promotion divided by it.
                if constexpr (plan.scales_stages())
                    own[i].x *= power_of_two(scaled_exponent_of(plan.operand));
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

// An element of Z from its descaled product x: alpha x + beta c, or x alone where the plan only
// descales, which does not read c.
template <WgmmaPlan plan>
__device__ __forceinline__ float2 epilogue_result(const WgmmaArguments& args, float2 x,
                                                  const float2& c) {
    if constexpr (plan.epilogue == Epilogue::descale) {
        return x;
    } else {
        return linear_combination(args, x, c);
    }
}
