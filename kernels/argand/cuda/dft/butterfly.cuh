// The butterfly kernel: transforms of any length N as cyclic convolutions of a length M, in fp32,
// one transform at a time for each group of warps. The forward transform of length M = R_0 R_1 ...
// runs in stages of butterflies of R_i numbers in registers, then comes the product with the
// spectrum of the other sequence, and the inverse transform runs the same stages in reverse.
//
// Stages are in place in shared memory. Stage i replaces digit n_i of the index n_0 n_1 ... (of
// weights M / R_0, M / (R_0 R_1), ...) by k_i. Index k_0 k_1 ... finally holds the number
// k_0 + R_0 k_1 + R_0 R_1 k_2 + ..., which is the order of the spectrum. A thread writes only where
// it has read itself, so a stage needs one barrier; the last stage, the spectrum and the first
// inverse stage need none between.
//
// Bluestein: x and X are multiplied by a chirp, and the zeros of the padded input are skipped by
// the first stage. Rader, for a prime N: x_1 to x_(N-1) are permuted to powers of a generator, x_0
// is added to all results but X_0, and X_0 is the sum of all inputs.
#pragma once
#include "butterfly_plan.cuh"
#include "powers.cuh"
#include "radix.cuh"
#include "tile_group.cuh"

// The butterflies of a thread in one stage.
template <ButterflyPlan plan, int Stage>
struct StageButterflies {
    static constexpr int kRadix = plan.radices[Stage], kStride = plan.stride(Stage);
    static constexpr int kCount = plan.size() / kRadix;
    static constexpr int kThreads = plan.warps * kWarp;
    static constexpr int kButterfliesPerThread = (kCount + kThreads - 1) / kThreads;
    static constexpr int kElementStride =
        Stage + 1 == plan.stages() ? 1 : plan.padded_index(kStride);

    static __device__ __forceinline__ float2* address(float2* tile, int index) {
        return tile + plan.padded_index(index / kStride * (kStride * kRadix) + index % kStride);
    }

    static __device__ __forceinline__ void load(float2 (&z)[kRadix], const float2* from) {
#pragma unroll
        for (int i = 0; i < kRadix; ++i) z[i] = from[i * kElementStride];
    }

    static __device__ __forceinline__ void store(const float2 (&z)[kRadix], float2* to) {
#pragma unroll
        for (int i = 0; i < kRadix; ++i) to[i * kElementStride] = z[i];
    }

    static __device__ __forceinline__ void apply_twiddles(float2 (&z)[kRadix],
                                                          const float2* twiddles, int index) {
        const float2* const table = twiddles + plan.twiddle_offset(Stage) + index % kStride;
        for_each_power<kRadix, plan.loads_few_twiddles()>(
            [&](int k) { return __ldg(table + (k - 1) * kStride); },
            [&](int k, float2 w) { z[k] = complex_product(z[k], w); });
    }

    // `body(index)` for each.
    template <typename Body>
    static __device__ __forceinline__ void for_each(Body body) {
#pragma unroll 1
        for (int index = TileGroup<plan.warps>::current().thread; index < kCount; index += kThreads)
            body(index);
    }
};

template <ButterflyPlan plan, int Stage>
__device__ __forceinline__ void stage_barrier(const TileGroup<plan.warps>& group) {
    if constexpr (plan.exchanges_within_warp(Stage)) {
        __syncwarp();
    } else {
        group.sync();
    }
}

// Stages from this one to the last, the product with the spectrum, and the inverse stages down to
// this one. The result is conjugated.
template <ButterflyPlan plan, int Stage>
__device__ __forceinline__ void convolve(float2* tile, const float2* twiddles,
                                         const float2* spectrum, float2* dc) {
    using ThisStage = StageButterflies<plan, Stage>;
    const auto group = TileGroup<plan.warps>::current();
    if constexpr (Stage + 1 < plan.stages()) {
        ThisStage::for_each([&](int index) {
            float2 z[ThisStage::kRadix];
            float2* const at = ThisStage::address(tile, index);
            ThisStage::load(z, at);
            butterfly<ThisStage::kRadix>(z);
            ThisStage::apply_twiddles(z, twiddles, index);
            ThisStage::store(z, at);
        });
        stage_barrier<plan, Stage>(group);
        convolve<plan, Stage + 1>(tile, twiddles, spectrum, dc);
        stage_barrier<plan, Stage>(group);
        ThisStage::for_each([&](int index) {
            float2 z[ThisStage::kRadix];
            float2* const at = ThisStage::address(tile, index);
            ThisStage::load(z, at);
            ThisStage::apply_twiddles(z, twiddles, index);
            butterfly<ThisStage::kRadix>(z);
            ThisStage::store(z, at);
        });
    } else {
        ThisStage::for_each([&](int index) {
            float2 z[ThisStage::kRadix];
            float2* const at = ThisStage::address(tile, index);
            ThisStage::load(z, at);
            butterfly<ThisStage::kRadix>(z);
            if (plan.rader && index == 0) *dc = z[0];
            // The inverse transform is the conjugate of the forward transform of the conjugate.
#pragma unroll
            for (int k = 0; k < ThisStage::kRadix; ++k) {
                z[k] = complex_product(z[k], __ldg(spectrum + k * ThisStage::kCount + index));
                z[k].y = -z[k].y;
            }
            butterfly<ThisStage::kRadix>(z);
            ThisStage::store(z, at);
        });
    }
}

__device__ __forceinline__ float absmax_with(float absmax, float2 z) {
    return fmaxf(absmax, fmaxf(fabsf(z.x), fabsf(z.y)));
}

// A transform by Bluestein. No barrier separates the last reads of a tile from the first writes of
// the next, because the same thread does both.
template <ButterflyPlan plan>
__device__ __forceinline__ void bluestein_transform(const DftArguments& args, const float2* x,
                                                    float2* out, float2* tile,
                                                    float* group_scratch) {
    using First = StageButterflies<plan, 0>;
    constexpr int kInputsPerButterfly = (plan.length + First::kStride - 1) / First::kStride;
    const auto group = TileGroup<plan.warps>::current();
    const float2* const twiddles = reinterpret_cast<const float2*>(args.twiddles);
    auto in_range = [](int pass, int index, int i) {
        const bool all =
            First::kCount % First::kThreads == 0 || pass + 1 < First::kButterfliesPerThread;
        return (all || index < First::kCount) && ((i + 1) * First::kStride <= plan.length ||
                                                  i * First::kStride + index < plan.length);
    };
    float2 inputs[First::kButterfliesPerThread][kInputsPerButterfly];
    float absmax = 0.0f;
#pragma unroll
    for (int pass = 0; pass < First::kButterfliesPerThread; ++pass) {
        const int index = pass * First::kThreads + group.thread;
        const float2* const source = x + index;
        const float2* const chirp = args.chirp + index;
#pragma unroll
        for (int i = 0; i < kInputsPerButterfly; ++i) {
            float2 z = {0.0f, 0.0f};
            if (in_range(pass, index, i)) {
                z = source[i * First::kStride];
                absmax = absmax_with(absmax, z);
                z = complex_product(z, __ldg(chirp + i * First::kStride));
            }
            inputs[pass][i] = z;
        }
    }
    const int exponent = transform_exponent(group_max<plan.warps>(absmax, group_scratch, group));
    const float scale = power_of_two(exponent);
#pragma unroll
    for (int pass = 0; pass < First::kButterfliesPerThread; ++pass) {
        const int index = pass * First::kThreads + group.thread;
        if (index >= First::kCount) continue;
        float2 z[First::kRadix];
#pragma unroll
        for (int i = 0; i < kInputsPerButterfly; ++i)
            z[i] = {inputs[pass][i].x * scale, inputs[pass][i].y * scale};
        butterfly<First::kRadix>(z, kInputsPerButterfly);
        First::apply_twiddles(z, twiddles, index);
        First::store(z, First::address(tile, index));
    }
    stage_barrier<plan, 0>(group);
    convolve<plan, 1>(tile, twiddles, args.spectrum, nullptr);
    stage_barrier<plan, 0>(group);
    const float descale = power_of_two(-exponent);
    First::for_each([&](int index) {
        float2 z[First::kRadix];
        First::load(z, First::address(tile, index));
        First::apply_twiddles(z, twiddles, index);
        butterfly<First::kRadix>(z);
        float2* const target = out + index;
        const float2* const chirp = args.chirp + index;
#pragma unroll
        for (int i = 0; i < kInputsPerButterfly; ++i) {
            const int n = i * First::kStride;
            if ((i + 1) * First::kStride > plan.length && n + index >= plan.length) continue;
            const float2 value = complex_product(
                {z[i].x * args.alternate_scale, -z[i].y * args.alternate_scale}, __ldg(chirp + n));
            target[n] = {value.x * descale, value.y * descale};
        }
    });
}

// A transform by Rader. `dc` is shared memory for the sum of x_1 to x_(N-1).
template <ButterflyPlan plan>
__device__ __forceinline__ void rader_transform(const DftArguments& args, const float2* x,
                                                float2* out, float2* tile, float* group_scratch,
                                                float2* dc) {
    using First = StageButterflies<plan, 0>;
    constexpr int kSize = plan.size(), kElementsInFlight = 4;  // loads of a thread
    const auto group = TileGroup<plan.warps>::current();
    const float2* const twiddles = reinterpret_cast<const float2*>(args.twiddles);
    float2 x0 = x[0];
    float absmax = absmax_with(0.0f, x0);
#pragma unroll 1
    for (int start = group.thread; start < kSize; start += kElementsInFlight * group.kThreads) {
        float2 value[kElementsInFlight];
        int offset[kElementsInFlight];
        const float2* const from = x + 1 + start;
        const unsigned short* const offsets = args.gather_offsets + start;
#pragma unroll
        for (int i = 0; i < kElementsInFlight; ++i) {
            if (start + i * group.kThreads >= kSize) continue;
            value[i] = from[i * group.kThreads];
            offset[i] = __ldg(offsets + i * group.kThreads);
        }
#pragma unroll
        for (int i = 0; i < kElementsInFlight; ++i) {
            if (start + i * group.kThreads >= kSize) continue;
            absmax = absmax_with(absmax, value[i]);
            tile[offset[i]] = value[i];
        }
    }
    // The barrier of group_max orders the stores to the tile, too; a group of one warp has none.
    const int exponent = transform_exponent(group_max<plan.warps>(absmax, group_scratch, group));
    if constexpr (plan.warps == 1) __syncwarp();
    const float scale = power_of_two(exponent);
    First::for_each([&](int index) {
        float2 z[First::kRadix];
        float2* const at = First::address(tile, index);
        First::load(z, at);
#pragma unroll
        for (int i = 0; i < First::kRadix; ++i) z[i] = {z[i].x * scale, z[i].y * scale};
        butterfly<First::kRadix>(z);
        First::apply_twiddles(z, twiddles, index);
        First::store(z, at);
    });
    stage_barrier<plan, 0>(group);
    convolve<plan, 1>(tile, twiddles, args.spectrum, dc);
    stage_barrier<plan, 0>(group);
    First::for_each([&](int index) {
        float2 z[First::kRadix];
        float2* const at = First::address(tile, index);
        First::load(z, at);
        First::apply_twiddles(z, twiddles, index);
        butterfly<First::kRadix>(z);
        First::store(z, at);
    });
    group.sync();
    const float descale = power_of_two(-exponent);
    x0 = {x0.x * args.scale, x0.y * args.scale};
    if (group.thread == 0)
        out[0] = {fmaf(dc->x * args.scale, descale, x0.x), fmaf(dc->y * args.scale, descale, x0.y)};
#pragma unroll 1
    for (int start = group.thread; start < kSize; start += kElementsInFlight * group.kThreads) {
        int offset[kElementsInFlight];
        float2* const to = out + 1 + start;
        const unsigned short* const offsets = args.scatter_offsets + start;
#pragma unroll
        for (int i = 0; i < kElementsInFlight; ++i)
            if (start + i * group.kThreads < kSize) offset[i] = __ldg(offsets + i * group.kThreads);
#pragma unroll
        for (int i = 0; i < kElementsInFlight; ++i) {
            if (start + i * group.kThreads >= kSize) continue;
            const float2 z = tile[offset[i]];
            to[i * group.kThreads] = {fmaf(z.x * args.alternate_scale, descale, x0.x),
                                      fmaf(-z.y * args.alternate_scale, descale, x0.y)};
        }
    }
    group.sync();  // the tile and dc may be overwritten
}

// The kernel: groups of warps transform a row each, by Rader's or Bluestein's convolution, while
// the next row comes to L2. Neighbouring rows belong to different blocks, so that all
// multiprocessors share the last rows, for which not every group has one.
template <ButterflyPlan plan>
__device__ __forceinline__ void dft_butterfly(const DftArguments& args) {
    static_assert(plan.stages() >= 2, "a first stage and one for the spectrum");
    extern __shared__ __align__(128) unsigned char shared[];
    float2* const dc_values = reinterpret_cast<float2*>(shared + plan.groups * plan.tile_bytes());
    float* const scratch = reinterpret_cast<float*>(dc_values + plan.groups);
    const int rows = static_cast<int>(args.rows);
    const int group_index = TileGroup<plan.warps>::current().index;
    // A launch may have fewer groups than the plan (ButterflyPlan.busy_groups).
    const int rows_at_once = gridDim.x * (blockDim.x / TileGroup<plan.warps>::kThreads);
#pragma unroll 1
    for (int row = blockIdx.x + gridDim.x * group_index; row < rows; row += rows_at_once) {
        const auto group = TileGroup<plan.warps>::current();
        float2* const tile = reinterpret_cast<float2*>(shared + group.index * plan.tile_bytes());
        float* const group_scratch = scratch + group.index * plan.warps;
        const float2* const x = args.x + row * args.x_stride;
        float2* const out = args.out + row * args.out_stride;
        // Prefetches the next transform to L2.
        if (const int next = row + rows_at_once; next < rows)
            prefetch_to_l2<plan.length>(args.x + next * args.x_stride, group.thread,
                                        group.kThreads);
        if constexpr (plan.rader) {
            rader_transform<plan>(args, x, out, tile, group_scratch, dc_values + group.index);
        } else {
            bluestein_transform<plan>(args, x, out, tile, group_scratch);
        }
    }
}
