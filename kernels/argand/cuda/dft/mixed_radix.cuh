// The mixed-radix kernel: transforms of a length N = R_0 R_1 ... in fp32, whose radices have
// butterflies in registers. A block has a tile of transforms in shared memory.
//
// With L_s the product of the radices after R_s, number n = sum of n_s L_s and result k = k_0 + R_0
// (k_1 + R_1 (k_2 + ...)). Stage s transforms n_s to k_s, in the place of its numbers, and applies
// W_(R_s L_s)^(k_s n), n below L_s. The first stage reads global memory, the last one writes it.
#pragma once
#include "plan.cuh"
#include "powers.cuh"
#include "radix.cuh"

struct MixedRadixPlan {
    int radices[4];  // 1 beyond the last stage
    int pitches[4];  // of each stage's index in shared memory
    int stages;
    int transforms;  // of a tile
    int warps;       // of a block

    constexpr int length() const { return radices[0] * radices[1] * radices[2] * radices[3]; }
    constexpr int threads() const { return warps * kWarp; }
    // On an H200 products of few twiddles (powers.cuh) are faster than loads of all where there are
    // three stages, and as fast where there are two.
    constexpr bool loads_few_twiddles() const { return stages > 2; }
    // Whether the first of two stages hides its thread index from the optimiser and adds offsets to
    // one address of twiddles. Otherwise the compiler keeps what it derives from the index, and an
    // address for each twiddle, and spills where the first radix needs as many registers as the
    // second. Some of the other plans are slower with it.
    constexpr bool saves_registers() const {
        return stages == 2 && radices[0] + 2 >= radices[1] &&
               (radices[0] <= 23 || first_factor(radices[0]) == 1);
    }
    // L_s.
    constexpr int rest(int stage) const {
        int product = 1;
        for (int s = stage + 1; s < 4; ++s) product *= radices[s];
        return product;
    }
    // Elements from transform to transform in shared memory.
    constexpr int row_pitch() const { return radices[0] * pitches[0]; }
    constexpr int shared_bytes() const { return transforms * row_pitch() * 8; }
    // Offset of a stage's twiddles: (R_s, L_s) of each before it.
    constexpr int twiddles(int stage) const {
        int offset = 0;
        for (int s = 0; s < stage; ++s) offset += radices[s] * rest(s);
        return offset;
    }
};

// Place of the index `rest` below L_(kStage - 1), whose last digit is the fastest.
template <MixedRadixPlan plan, int kStage>
__device__ __forceinline__ int place_of_rest(int rest) {
    if constexpr (kStage + 1 >= plan.stages) {
        return rest * plan.pitches[kStage];
    } else if constexpr (plan.pitches[kStage] == plan.rest(kStage) &&
                         kStage + 2 == plan.stages) {
        return rest;
    } else {
        constexpr int kRest = plan.rest(kStage);
        return rest / kRest * plan.pitches[kStage] + place_of_rest<plan, kStage + 1>(rest % kRest);
    }
}

// Place of the results' index of the stages before the last, whose first digit is the fastest.
template <MixedRadixPlan plan, int kStage = 0>
__device__ __forceinline__ int place_of_result(int index) {
    if constexpr (kStage + 2 >= plan.stages) {
        return index * plan.pitches[kStage];
    } else {
        constexpr int kRadix = plan.radices[kStage];
        return index % kRadix * plan.pitches[kStage] +
               place_of_result<plan, kStage + 1>(index / kRadix);
    }
}

// Place of the results' index of the stages before a middle one, whose last digit is the fastest.
template <MixedRadixPlan plan, int kBefore>
__device__ __forceinline__ int place_before(int index) {
    if constexpr (kBefore == 1) {
        return index * plan.pitches[0];
    } else {
        constexpr int kRadix = plan.radices[kBefore - 1];
        return index % kRadix * plan.pitches[kBefore - 1] +
               place_before<plan, kBefore - 1>(index / kRadix);
    }
}

// Computes stage `kStage` and those after it. The first reads global memory, the last writes to it,
// and shared memory lies between them. All threads of the block call it.
template <MixedRadixPlan plan, int kStage>
__device__ __forceinline__ void mixed_radix_stages(const float2* x, float2* out, float2* numbers,
                                                   int rows, const DftArguments& args) {
    constexpr int kRadix = plan.radices[kStage], kRest = plan.rest(kStage),
                  kPitch = plan.pitches[kStage], kEach = plan.length() / kRadix;
    constexpr bool kFirst = kStage == 0, kLast = kStage + 1 == plan.stages;
    constexpr bool kSaves = kFirst && plan.saves_registers();
    const float2* const twiddles =
        reinterpret_cast<const float2*>(args.twiddles) + plan.twiddles(kStage);
#pragma unroll 1
    for (int item = kSaves ? opaque_thread() : threadIdx.x; item < rows * kEach;
         item += plan.threads()) {
        const int row = item / kEach, within = item % kEach, rest = within % kRest;
        float2 z[kRadix];
        float2* place = numbers + row * plan.row_pitch();
        if constexpr (kFirst) {
            const float2* const from = x + row * args.x_stride + within;
#pragma unroll
            for (int i = 0; i < kRadix; ++i) {
                z[i] = from[i * kRest];
                z[i].y *= args.sign;
            }
            place += place_of_rest<plan, 1>(within);
        } else {
            if constexpr (kLast) {
                place += place_of_result<plan>(within);
            } else {
                place += place_before<plan, kStage>(within / kRest) +
                         place_of_rest<plan, kStage + 1>(rest);
            }
#pragma unroll
            for (int i = 0; i < kRadix; ++i) z[i] = place[i * kPitch];
        }
        butterfly<kRadix>(z);
        if constexpr (kLast) {
            float2* const to = out + row * args.out_stride + within;
#pragma unroll
            for (int k = 0; k < kRadix; ++k)
                to[k * kEach] = {z[k].x * args.scale, z[k].y * args.alternate_scale};
        } else {
            const float2* const mine = twiddles + rest;
            place[0] = z[0];
            for_each_power<kRadix, plan.loads_few_twiddles()>(
                [&](int k) {
                    return __ldg(kSaves ? mine + k * kRest : twiddles + k * kRest + rest);
                },
                [&](int k, float2 w) { place[k * kPitch] = complex_product(z[k], w); });
        }
    }
    if constexpr (!kLast) {
        __syncthreads();
        mixed_radix_stages<plan, kStage + 1>(x, out, numbers, rows, args);
    }
}

template <MixedRadixPlan plan>
__device__ __forceinline__ void dft_mixed_radix(const DftArguments& args) {
    extern __shared__ __align__(128) unsigned char shared[];
    const int64 first = static_cast<int64>(blockIdx.x) * plan.transforms;
    const int rows = static_cast<int>(min(args.rows - first, static_cast<int64>(plan.transforms)));
    mixed_radix_stages<plan, 0>(args.x + first * args.x_stride, args.out + first * args.out_stride,
                                reinterpret_cast<float2*>(shared), rows, args);
}
