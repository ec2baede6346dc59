// The operands of sm80_kernel.cuh: from global memory to a tensor core's registers.
//
// Tiles of interleaved complex64 come into shared memory as they are; a lane rounds, splits and
// scales what it reads from there.
#pragma once
#include "device/cp_async.cuh"
#include "device/mma.cuh"
#include "device/scaling.cuh"
#include "sm80_plan.cuh"

// One operand's lines of the tile: fills a stage, `Lines` x `Depth`, zero outside the matrix.
template <GemmPlan plan, int Lines, int Depth, bool KFast>
__device__ __forceinline__ void load_tile(float2* tile, const float2* source, int64 line_stride,
                                          int64 k_stride, int64 lines_left, int64 k_left) {
    constexpr int kFast = KFast ? Depth : Lines, kSlow = KFast ? Lines : Depth;
    constexpr int kChunks = kFast / plan.vector, kStep = plan.threads() / kChunks;
    static_assert(plan.threads() % kChunks == 0 && kSlow % kStep == 0, "whole passes of the block");
    const int fast = threadIdx.x % kChunks * plan.vector, slow = threadIdx.x / kChunks;
    const int64 fast_stride = KFast ? k_stride : line_stride;
    const int64 slow_stride = KFast ? line_stride : k_stride;
    const int64 fast_left = (KFast ? k_left : lines_left) - fast;
    const int64 slow_left = (KFast ? lines_left : k_left) - slow;
    const int inside = fast_left >= plan.vector ? plan.vector : fast_left > 0 ? int(fast_left) : 0;
    const float2* from = source + fast * fast_stride + slow * slow_stride;
    float2* to = tile + slow * (kFast + kPad) + fast;
#pragma unroll
    for (int i = 0; i < kSlow; i += kStep) {
        const int bytes = i < slow_left ? inside * int(sizeof(float2)) : 0;
        // Outside the matrix the address is one that exists; nothing is read there.
        cp_async<8 * plan.vector>(to + i * (kFast + kPad), bytes ? from + i * slow_stride : source,
                                  bytes);
    }
}

// What a lane holds of one line for one instruction: registers by term and complex part.
template <GemmPlan plan>
struct Line {
    uint32 re[plan.terms][2];
    uint32 im[plan.terms][2];
};

// Rounds and splits a lane's numbers. tf32 has one of them in a register, the 16-bit formats two.
template <GemmPlan plan>
__device__ __forceinline__ void convert(const float (&x)[kMmaK<plan.operand> / 4],
                                        uint32 (&registers)[plan.terms][2]) {
    static_assert(plan.terms == 1 || plan.operand != Operand::bf16, "bf16 has one term");
#pragma unroll
    for (int j = 0; j < 2; ++j) {
        uint32 terms[plan.terms];
        if constexpr (plan.operand == Operand::tf32) {
            split_to_tf32<plan.terms, plan.roundings[0], plan.roundings[1]>(x[j], terms);
        } else if constexpr (plan.operand == Operand::fp16) {
            split_to_fp16(x[2 * j], x[2 * j + 1], terms);
        } else {
            terms[0] = pack_bf16(x[2 * j], x[2 * j + 1]);
        }
#pragma unroll
        for (int t = 0; t < plan.terms; ++t) registers[t][j] = terms[t];
    }
}

// Reads this lane's numbers of a line at k, k + 4, ... and makes them the tensor core's operands.
template <GemmPlan plan, bool KFast, int Pitch>
__device__ __forceinline__ Line<plan> load_line(const float2* tile, int line, int k, float scale,
                                                float flip) {
    constexpr int kCount = kMmaK<plan.operand> / 4;
    float re[kCount], im[kCount];
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
        const int at = KFast ? line * Pitch + k + 4 * j : (k + 4 * j) * Pitch + line;
        const float2 x = tile[at];
        re[j] = plan.scaled ? x.x * scale : x.x;
        im[j] = x.y * (plan.scaled ? scale * flip : flip);
    }
    Line<plan> result;
    convert<plan>(re, result.re);
    convert<plan>(im, result.im);
    return result;
}

// Raises `found` to the largest magnitudes of a block's lines, in `steps` stages of which this
// operand's tiles begin at `first`, `stage` numbers apart. A thread has one line, and reads without
// waiting.
template <GemmPlan plan, int Lines, bool KFast>
__device__ __forceinline__ void look_at_lines(uint32* found, const float2* first, int stage,
                                              int steps) {
    constexpr int kPitch = (KFast ? plan.block_k : Lines) + kPad;
    // Neighbouring lanes read so many k of a line: as many as keep banks apart.
    constexpr int kBeside = KFast ? 4 : 1;
    constexpr int kApart = plan.threads() / kBeside;
    constexpr int kLines = Lines < kApart ? Lines : kApart, kEvery = plan.threads() / kLines;
    static_assert(plan.threads() % kLines == 0 && Lines % kLines == 0,
                  "every line has its threads");
    const int beside = threadIdx.x % kBeside, apart = threadIdx.x / kBeside;
    const int k0 = apart / kLines * kBeside + beside;
#pragma unroll
    for (int i = 0; i < Lines; i += kLines) {
        const int line = i + apart % kLines;
        uint32 most = 0;
#pragma unroll 1
        for (int step = 0; step < steps; ++step) {
#pragma unroll
            for (int k = 0; k < plan.block_k; k += kEvery) {
                const int at = KFast ? line * kPitch + k + k0 : (k + k0) * kPitch + line;
                most = max(most, component_absmax_bits(first[step * stage + at]));
            }
        }
        atomicMax(found + line, most);
    }
}
