// Gates on 6 and 7 qubits on Hopper by asynchronous products of warpgroups, 16-bit operands.
//
// The matrix stays in registers. The columns of a tile are split once into planes, one a term, that
// the tensor cores read from shared memory; while they multiply one tile, the next one is split. A
// plane is made of cores of 8 columns by 8 rows, 16 bytes a column (PTX ISA: K-major without swizzle).
// It holds the tile's columns as real parts and as imaginary parts, side by side. Together: it has the
// negated imaginary parts before them, so that a register of the matrix takes one instruction of twice
// the columns, for the sums of both parts, and its registers are read half as often.
#pragma once
#include "device/warpgroup.cuh"
#include "operands.cuh"

// Before this header (gate_plan.py) stands wgmma<sign>(sums, rows, columns, keep) of 32 columns, or
// where they are taken together wgmma<1>(re, im, rows, columns, keep) of 64.

template <Operand operand, int Terms, int Width, bool Inside, int Stages>
struct WgmmaGate {
    static constexpr int kOrder = 1 << Width;
    static constexpr int kColumns = 32;
    static constexpr int kTileBytes = kOrder * kColumns * 8;
    static constexpr int kRowTiles = kOrder / 16;
    static constexpr int kThreads = kRowTiles * kWarp;
    static constexpr int kSteps = kOrder / 16;
    static constexpr bool kScaled = operand == Operand::fp16;
    static constexpr bool kTogether = Width == 7 && !Inside;
    static constexpr uint32 kPart = kColumns * 16;
    static constexpr uint32 kReal = kTogether ? kPart : 0, kImaginary = kReal + kPart;
    // From 8 rows to the next: 16 bytes more than they take, so that writing them meets all banks.
    static constexpr uint32 kCoreRows = kImaginary + kPart + 16;
    static constexpr uint32 kPlane = kCoreRows * kOrder / 8;
    static constexpr uint32 kPlanes = Terms * kPlane;
    static constexpr int kSharedBytes = Stages * kTileBytes + 2 * static_cast<int>(kPlanes);
    using Mover = TileMover<kTileBytes, kThreads, Stages>;
    static_assert(Mover::kChunks == 8, "a thread's chunks are 8 rows of two columns");

    uint32 matrix[kSteps][2][Terms][4];

    // The column of the matrix at a place of a product: 8 in a core, of which a register has two.
    __device__ __forceinline__ static uint32 column(uint32 lane, uint32 held, uint32 core,
                                                    uint32 step) {
        constexpr int kLaneInside[2] = {Width - 1, Width - 2};
        constexpr int kLaneOutside[2] = {Width - 2, Width - 3};
        return spread(lane & 3, Inside ? kLaneInside : kLaneOutside) | held << (Inside ? 0 : Width - 1) |
               core << (Inside ? 1 : 0) | step << (Inside ? 2 : 1);
    }

    __device__ __forceinline__ void load(const GateArguments& args, uint32 lane, uint32 row_tile) {
        const auto place = [lane](uint32 core, uint32 held, uint32 step) {
            return column(lane, held, core, step);
        };
        load_matrix<operand, Terms, Rounding::nearest_even, Rounding::nearest_even, Width, Inside>(
            args, lane, row_tile, place, matrix);
    }

    // Of two 16-bit numbers, in their place: volatile, so that both signs are not held at once.
    __device__ __forceinline__ static void change_signs(uint32& word) {
        asm volatile("xor.b32 %0, %0, 0x80008000;" : "+r"(word));
    }

    // Eight rows of a column, real or imaginary parts, to their core lines of each term's plane.
    template <bool Imaginary>
    __device__ __forceinline__ static void write_rows(uint32 at, const float (&x)[8], float scale) {
        uint32 words[4][Terms];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            split_operand<operand, Terms, Rounding::nearest_even, Rounding::nearest_even>(
                x[2 * i] * scale, x[2 * i + 1] * scale, words[i]);
        }
#pragma unroll
        for (int term = 0; term < Terms; ++term) {
            const uint32 line = at + term * kPlane;
            store_shared_16(line + (Imaginary ? kImaginary : kReal), words[0][term], words[1][term],
                            words[2][term], words[3][term]);
            if constexpr (Imaginary && kTogether) {
#pragma unroll
                for (int i = 0; i < 4; ++i) change_signs(words[i][term]);
                store_shared_16(line, words[0][term], words[1][term], words[2][term],
                                words[3][term]);
            }
        }
    }

    // A thread's chunks as planes. Inside, the first four and the last four are eight rows of a column
    // each, two a chunk; else all eight are a row each, of the same two columns. Together they are a
    // loop: both columns at once would take more registers than a thread that only splits has.
    __device__ __forceinline__ static void write_planes(const GateArguments& args, uint32 at,
                                                        const float4 (&x)[8], float scale) {
        constexpr int kAtOnce = kTogether ? 1 : 2;
#pragma unroll kAtOnce
        for (int which = 0; which < 2; ++which) {
            float re[8], im[8];
#pragma unroll
            for (int row = 0; row < 8; ++row) {
                const float4 chunk = x[Inside ? 4 * which + row / 2 : row];
                const bool second = Inside ? row % 2 : which;
                re[row] = second ? chunk.z : chunk.x;
                im[row] = second ? chunk.w : chunk.y;
            }
            const uint32 line = at + args.chunk_plane[which];
            write_rows<false>(line, re, scale);
            write_rows<true>(line, im, scale);
        }
    }

    // The largest magnitude of a tile, found by all threads together.
    __device__ __forceinline__ static uint32 tile_maximum(const float4 (&x)[8],
                                                          uint32 (&of_warps)[kRowTiles]) {
        const uint32 found = largest_of_warp(x);
        if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = found;
        __syncthreads();
        return largest_of(of_warps);
    }

    // Splits a tile into planes and returns the exponent of its scale.
    __device__ __forceinline__ static int split_tile(const GateArguments& args, const Mover& mover,
                                                     uint32 stage, uint32 planes,
                                                     uint32 (&of_warps)[kRowTiles]) {
        float4 x[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) x[i] = load_shared_16(mover.chunk(stage, i));
        const int exponent = kScaled ? scale_exponent(tile_maximum(x, of_warps)) : 0;
        write_planes(args, planes, x, power_of_two(exponent));
        return exponent;
    }

    // Bits 0-13: address / 16; 16-29: bytes to the next 8 rows / 16; 32-45: to the next 8 columns / 16.
    __device__ __forceinline__ static uint64 describe(uint32 address) {
        constexpr uint32 kLow = (kCoreRows >> 4) << 16;
        return uint64(128 >> 4) << 32 | (address & 0x3ffff) >> 4 | kLow;
    }

    // One product of terms over all of k. The first columns of the matrix come last: what is added last
    // is cut least, and a state that begins as |0...0> has nothing else.
    __device__ __forceinline__ void multiply_terms(int own, int other, bool first, uint32 planes,
                                                   float (&re)[16], float (&im)[16]) const {
#pragma unroll
        for (int step = kSteps - 1; step >= 0; --step) {
            const uint32 at = planes + other * kPlane + step * 2 * kCoreRows;
            const int keep = !first || step < kSteps - 1;
            if constexpr (kTogether) {
                wgmma<1>(re, im, matrix[step][0][own], describe(at + kReal), keep);
                wgmma<1>(re, im, matrix[step][1][own], describe(at), 1);
            } else {
                const uint64 real = describe(at + kReal), imaginary = describe(at + kImaginary);
                wgmma<1>(re, matrix[step][0][own], real, keep);
                wgmma<1>(im, matrix[step][0][own], imaginary, keep);
                wgmma<-1>(re, matrix[step][1][own], imaginary, 1);
                wgmma<1>(im, matrix[step][1][own], real, 1);
            }
        }
    }

    // The small products of all k first: tensor cores cut a sum whenever they add to it, by as much as
    // the sum is large. argand/gate_cut.py gives back what they cut on average.
    __device__ __forceinline__ void multiply(uint32 planes, float (&re)[16], float (&im)[16]) const {
        if constexpr (Terms == 2) {
            multiply_terms(0, 1, true, planes, re, im);
            multiply_terms(1, 0, false, planes, re, im);
        }
        multiply_terms(0, 0, Terms == 1, planes, re, im);
    }

    __device__ __forceinline__ void run(const GateArguments& args) {
        extern __shared__ __align__(1024) unsigned char memory[];
        __shared__ __align__(16) uint32 largest[kRowTiles];
        const uint32 ring = shared_address(memory), first_planes = ring + Stages * kTileBytes;
        const uint32 lane = threadIdx.x % kWarp, row_tile = threadIdx.x / kWarp;
        Mover mover(args);
        mover.load_first(ring);
        load(args, lane, row_tile);
        uint32 own_plane = 0;
#pragma unroll
        for (int bit = 0; bit < Mover::kThreadBits; ++bit) {
            if (threadIdx.x >> bit & 1) own_plane += args.thread_plane[bit];
        }
        char* target = args.state + combine_offsets<Mover::kThreadBits>(args.result_offset, threadIdx.x);

        uint32 stage = ring, planes = first_planes;
        int exponent = 0;
        wait_copies<Stages - 1>();
        if (blockIdx.x < args.tiles) {
            exponent = split_tile(args, mover, stage, planes + own_plane, largest);
        }
        mover.load(blockIdx.x + Stages * gridDim.x, stage);
        for (uint32 tile = blockIdx.x; tile < args.tiles; tile += gridDim.x) {
            opaque(mover.mask);
            // The planes were written by ordinary stores; the tensor cores read them by other ways.
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            __syncthreads();
            float re[16], im[16];
            settle(re);
            settle(im);
            wgmma_fence();
            multiply(planes, re, im);
            wgmma_commit();

            const int power = kScaled ? -exponent - exponent_of_matrix(args) : 0;
            stage = next_stage<kTileBytes, Stages>(stage, ring);
            planes = 2 * first_planes + kPlanes - planes;
            wait_copies<Stages - 1>();
            if (tile + gridDim.x < args.tiles) {
                exponent = split_tile(args, mover, stage, planes + own_plane, largest);
            }
            mover.load(tile + (Stages + 1) * gridDim.x, stage);
            wgmma_wait<0>();
            settle(re);
            settle(im);
            char* place = target + tile_offset(args, tile);
            each_result<Inside, 4>(re, im, half_powers(power), [&](int number, float4 chunk) {
                put_chunk(args, place + combine_offsets<3>(args.register_offset, number), chunk);
            });
        }
    }
};
