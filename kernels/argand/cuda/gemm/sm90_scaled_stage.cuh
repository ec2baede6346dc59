// Scales the rows of an interleaved X stage by stage, each by the power of two that brings its
// absmax within the stage into the range of the format. So X is read once, in place: no earlier
// pass has to find the absmax of whole rows. Promotion undoes the scale of each stage.
#pragma once
#include "device/scaling.cuh"
#include "sm90_fragments.cuh"

// A lane's part of a stage before it is converted, and the absmax of its two rows there.
template <WgmmaPlan plan>
struct ScaledStage {
    static constexpr int kMmas = plan.mmas_per_stage();
    XElements<plan> raw[kMmas];
    float absmax[2];

    __device__ __forceinline__ void load(const XTileReader<plan>& reader, uint32 tile) {
#pragma unroll
        for (int i = 0; i < kMmas; ++i)
            raw[i] = load_elements<plan>(reader, tile, i * plan.mma_k());
    }

    // Finds the absmax of what was loaded. Four lanes hold a row.
    __device__ __forceinline__ void find_absmax() {
        absmax[0] = absmax[1] = 0.0f;
#pragma unroll
        for (int i = 0; i < kMmas; ++i)
#pragma unroll
            for (int h = 0; h < 2; ++h)
#pragma unroll
                for (const float2& x : raw[i].x[h])
                    absmax[h] = fmaxf(absmax[h], fmaxf(fabsf(x.x), fabsf(x.y)));
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            absmax[h] = fmaxf(absmax[h], __shfl_xor_sync(~0u, absmax[h], 1));
            absmax[h] = fmaxf(absmax[h], __shfl_xor_sync(~0u, absmax[h], 2));
        }
    }

    // Scales, rounds and splits what was loaded; `descale` are the factors that undo the scales.
    __device__ __forceinline__ void convert(XFragment<plan> (&fragments)[kMmas],
                                            float (&descale)[2]) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int exponent = scale_exponent<plan.operand>(__float_as_uint(absmax[h]));
            const float scale = power_of_two(exponent);
            // The columns multiplied here were brought to 1, so that sums of large rows stay in
            // fp32's range.
            descale[h] =
                power_of_two(-exponent) * power_of_two(-scaled_exponent_of(plan.operand));
#pragma unroll
            for (int i = 0; i < kMmas; ++i)
#pragma unroll
                for (float2& x : raw[i].x[h]) x = {x.x * scale, x.y * scale};
        }
#pragma unroll
        for (int i = 0; i < kMmas; ++i) convert_fragment<plan>(raw[i], fragments[i]);
    }
};
