// Transforms of any length N as cyclic convolutions of length M = R_0 R_1 ... in fp32, one at a time for
// each group of warps: a transform by butterflies of R_i numbers in registers, a product with the
// spectrum of the other sequence, and the transform back by the same butterflies in reverse.
//
// All happens in its place. Number n of digits n_0 n_1 ... (of weights M / R_0, M / (R_0 R_1), ...) has
// digit n_i replaced by k_i in stage i, and what stands at k_0 k_1 ... is number k_0 + R_0 k_1 + R_0 R_1
// k_2 + ..., as the spectrum lies. So a thread writes where it alone has read, numbers wait only for the
// next stage's readers, and the last stage, the spectrum and the first one back need no memory between.
//
// Bluestein: x and X are multiplied by a chirp, and zeros follow, which the first stage leaves out.
// Rader, for a prime N: all but x_0 is taken in the order of powers of a generator, and x_0 is added to
// all but X_0, which is the sum.
#pragma once
#include "butterfly_plan.cuh"
#include "tile_group.cuh"
#include "radix.cuh"

// A stage's butterflies of a thread.
template <ButterflyPlan plan, int Stage>
struct Butterflies {
    static constexpr int kRadix = plan.radices[Stage], kStride = plan.stride(Stage);
    static constexpr int kCount = plan.size() / kRadix;
    static constexpr int kThreads = plan.warps * kWarp;
    static constexpr int kTurns = (kCount + kThreads - 1) / kThreads;
    static constexpr int kStep = Stage + 1 == plan.stages() ? 1 : plan.place(kStride);

    static __device__ __forceinline__ float2* at(float2* tile, int index) {
        return tile + plan.place(index / kStride * (kStride * kRadix) + index % kStride);
    }

    static __device__ __forceinline__ void read(float2 (&z)[kRadix], const float2* from) {
#pragma unroll
        for (int i = 0; i < kRadix; ++i) z[i] = from[i * kStep];
    }

    static __device__ __forceinline__ void write(const float2 (&z)[kRadix], float2* to) {
#pragma unroll
        for (int i = 0; i < kRadix; ++i) to[i * kStep] = z[i];
    }

    static __device__ __forceinline__ void twist(float2 (&z)[kRadix], const float2* twiddles,
                                                 int index) {
        const float2* const own = twiddles + plan.twiddles(Stage) + index % kStride;
#pragma unroll
        for (int k = 1; k < kRadix; ++k) z[k] = complex_product(z[k], __ldg(own + (k - 1) * kStride));
    }

    // `work(index)` of each.
    template <typename Work>
    static __device__ __forceinline__ void each(Work work) {
#pragma unroll 1
        for (int index = Group<plan.warps>::here().thread; index < kCount; index += kThreads) work(index);
    }
};

template <ButterflyPlan plan, int Stage>
__device__ __forceinline__ void exchanged(const Group<plan.warps>& group) {
    if constexpr (plan.within_warp(Stage)) {
        __syncwarp();
    } else {
        group.sync();
    }
}

// Stages from this one on, the product with the spectrum, and back to this one, not included.
template <ButterflyPlan plan, int Stage>
__device__ __forceinline__ void convolve(float2* tile, const float2* twiddles, const float2* spectrum,
                                         float2* total) {
    using Own = Butterflies<plan, Stage>;
    const auto group = Group<plan.warps>::here();
    if constexpr (Stage + 1 < plan.stages()) {
        Own::each([&](int index) {
            float2 z[Own::kRadix];
            float2* const at = Own::at(tile, index);
            Own::read(z, at);
            transform<Own::kRadix>(z);
            Own::twist(z, twiddles, index);
            Own::write(z, at);
        });
        exchanged<plan, Stage>(group);
        convolve<plan, Stage + 1>(tile, twiddles, spectrum, total);
        exchanged<plan, Stage>(group);
        Own::each([&](int index) {
            float2 z[Own::kRadix];
            float2* const at = Own::at(tile, index);
            Own::read(z, at);
            Own::twist(z, twiddles, index);
            transform<Own::kRadix>(z);
            Own::write(z, at);
        });
    } else {
        Own::each([&](int index) {
            float2 z[Own::kRadix];
            float2* const at = Own::at(tile, index);
            Own::read(z, at);
            transform<Own::kRadix>(z);
            if (plan.rader && index == 0) *total = z[0];
            // The way back is the conjugate of that of the conjugate.
#pragma unroll
            for (int k = 0; k < Own::kRadix; ++k) {
                z[k] = complex_product(z[k], __ldg(spectrum + k * Own::kCount + index));
                z[k].y = -z[k].y;
            }
            transform<Own::kRadix>(z);
            Own::write(z, at);
        });
    }
}

__device__ __forceinline__ float larger_of(float largest, float2 z) {
    return fmaxf(largest, fmaxf(fabsf(z.x), fabsf(z.y)));
}

// A transform by Bluestein. Between the last reads of a tile and the next writes there is no barrier:
// the same thread does both.
template <ButterflyPlan plan>
__device__ __forceinline__ void by_chirp(const DftArguments& args, const float2* x, float2* out,
                                         float2* tile, float* board) {
    using First = Butterflies<plan, 0>;
    constexpr int kHeld = (plan.length + First::kStride - 1) / First::kStride;
    const auto group = Group<plan.warps>::here();
    const float2* const twiddles = reinterpret_cast<const float2*>(args.twiddles);
    auto there = [](int turn, int index, int i) {
        const bool whole = First::kCount % First::kThreads == 0 || turn + 1 < First::kTurns;
        return (whole || index < First::kCount) && ((i + 1) * First::kStride <= plan.length ||
                                                    i * First::kStride + index < plan.length);
    };
    float2 held[First::kTurns][kHeld];
    float largest = 0.0f;
#pragma unroll
    for (int turn = 0; turn < First::kTurns; ++turn) {
        const int index = turn * First::kThreads + group.thread;
        const float2* const own = x + index;
        const float2* const chirp = args.chirp + index;
#pragma unroll
        for (int i = 0; i < kHeld; ++i) {
            float2 z = {0.0f, 0.0f};
            if (there(turn, index, i)) {
                z = own[i * First::kStride];
                largest = larger_of(largest, z);
                z = complex_product(z, __ldg(chirp + i * First::kStride));
            }
            held[turn][i] = z;
        }
    }
    const int exponent = transform_exponent(largest_of<plan.warps>(largest, board, group));
    const float scale = power_of_two(exponent);
#pragma unroll
    for (int turn = 0; turn < First::kTurns; ++turn) {
        const int index = turn * First::kThreads + group.thread;
        if (index >= First::kCount) continue;
        float2 z[First::kRadix];
#pragma unroll
        for (int i = 0; i < kHeld; ++i) z[i] = {held[turn][i].x * scale, held[turn][i].y * scale};
        transform<First::kRadix>(z, kHeld);
        First::twist(z, twiddles, index);
        First::write(z, First::at(tile, index));
    }
    exchanged<plan, 0>(group);
    convolve<plan, 1>(tile, twiddles, args.spectrum, nullptr);
    exchanged<plan, 0>(group);
    const float undo = power_of_two(-exponent);
    First::each([&](int index) {
        float2 z[First::kRadix];
        First::read(z, First::at(tile, index));
        First::twist(z, twiddles, index);
        transform<First::kRadix>(z);
        float2* const own = out + index;
        const float2* const chirp = args.chirp + index;
#pragma unroll
        for (int i = 0; i < kHeld; ++i) {
            const int n = i * First::kStride;
            if ((i + 1) * First::kStride > plan.length && n + index >= plan.length) continue;
            const float2 value =
                complex_product({z[i].x * args.unit, -z[i].y * args.unit}, __ldg(chirp + n));
            own[n] = {value.x * undo, value.y * undo};
        }
    });
}

// A transform by Rader.
template <ButterflyPlan plan>
__device__ __forceinline__ void by_powers(const DftArguments& args, const float2* x, float2* out,
                                          float2* tile, float* board, float2* total) {
    using First = Butterflies<plan, 0>;
    constexpr int kSize = plan.size(), kTogether = 4;  // elements that a thread has on their way
    const auto group = Group<plan.warps>::here();
    const float2* const twiddles = reinterpret_cast<const float2*>(args.twiddles);
    float2 rest = x[0];
    float largest = larger_of(0.0f, rest);
#pragma unroll 1
    for (int start = group.thread; start < kSize; start += kTogether * group.kThreads) {
        float2 value[kTogether];
        int place[kTogether];
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
            const int n = start + i * group.kThreads;
            if (n >= kSize) continue;
            value[i] = x[n + 1];
            place[i] = __ldg(args.takes + n);
        }
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
            if (start + i * group.kThreads >= kSize) continue;
            largest = larger_of(largest, value[i]);
            tile[place[i]] = value[i];
        }
    }
    // Its barrier is the tile's too, but for a lone warp.
    const int exponent = transform_exponent(largest_of<plan.warps>(largest, board, group));
    if constexpr (plan.warps == 1) __syncwarp();
    const float scale = power_of_two(exponent);
    First::each([&](int index) {
        float2 z[First::kRadix];
        float2* const at = First::at(tile, index);
        First::read(z, at);
#pragma unroll
        for (int i = 0; i < First::kRadix; ++i) z[i] = {z[i].x * scale, z[i].y * scale};
        transform<First::kRadix>(z);
        First::twist(z, twiddles, index);
        First::write(z, at);
    });
    exchanged<plan, 0>(group);
    convolve<plan, 1>(tile, twiddles, args.spectrum, total);
    exchanged<plan, 0>(group);
    First::each([&](int index) {
        float2 z[First::kRadix];
        float2* const at = First::at(tile, index);
        First::read(z, at);
        First::twist(z, twiddles, index);
        transform<First::kRadix>(z);
        First::write(z, at);
    });
    group.sync();
    const float undo = power_of_two(-exponent);
    rest = {rest.x * args.factor, rest.y * args.factor};
    if (group.thread == 0)
        out[0] = {fmaf(total->x * args.factor, undo, rest.x),
                  fmaf(total->y * args.factor, undo, rest.y)};
#pragma unroll 1
    for (int start = group.thread; start < kSize; start += kTogether * group.kThreads) {
        int place[kTogether];
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
            const int n = start + i * group.kThreads;
            if (n < kSize) place[i] = __ldg(args.gives + n);
        }
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
            const int n = start + i * group.kThreads;
            if (n >= kSize) continue;
            const float2 z = tile[place[i]];
            out[n + 1] = {fmaf(z.x * args.unit, undo, rest.x), fmaf(-z.y * args.unit, undo, rest.y)};
        }
    }
    group.sync();  // the tile and the total are free
}

template <ButterflyPlan plan>
__device__ __forceinline__ void dft_butterfly(const DftArguments& args) {
    static_assert(plan.stages() >= 2, "a stage there and one for the spectrum");
    extern __shared__ __align__(128) unsigned char shared[];
    float2* const totals = reinterpret_cast<float2*>(shared + plan.groups * plan.tile_bytes());
    float* const boards = reinterpret_cast<float*>(totals + plan.groups);
    const int rows = static_cast<int>(args.rows);
    const int own = Group<plan.warps>::here().index;
#pragma unroll 1
    for (int row = blockIdx.x * plan.groups + own; row < rows; row += gridDim.x * plan.groups) {
        const auto group = Group<plan.warps>::here();
        float2* const tile = reinterpret_cast<float2*>(shared + group.index * plan.tile_bytes());
        float* const board = boards + group.index * plan.warps;
        const float2* const x = args.x + row * args.x_stride;
        float2* const out = args.out + row * args.out_stride;
        // The next transform is on its way into the second-level cache.
        if (const int next = row + gridDim.x * plan.groups; next < rows)
            prefetch<plan.length>(args.x + next * args.x_stride, group.thread, group.kThreads);
        if constexpr (plan.rader) {
            by_powers<plan>(args, x, out, tile, board, totals + group.index);
        } else {
            by_chirp<plan>(args, x, out, tile, board);
        }
    }
}
