// Gates on 6 and 7 qubits by wgmma (sm_90a): tiles of the state from WalkingPipeline are split into
// operand planes in shared memory, multiplied, and stored to the state from registers. The matrix
// is the A operand and stays in registers; on its way there it lies where the planes will be. While
// the tensor cores multiply one tile, the threads split the next one.
//
// There is one plane per term. A plane consists of core matrices of 8 columns by 16 bytes a column,
// which are 8 rows of 16-bit operands or 4 of tf32 (PTX ISA: K-major without swizzle), with the
// real and the imaginary parts of the tile's columns side by side. With joint parts, the negated
// imaginary parts come before them. One instruction of twice the columns then accumulates real and
// imaginary parts, and reads the matrix's registers half as often.
#pragma once
#include "device/warpgroup.cuh"
#include "sm90_matrix.cuh"

// argand/gates/source.py writes the instruction in front of this header: wgmma<sign>(accumulators,
// rows, columns, accumulate) of 32 columns, with joint parts wgmma<1>(re, im, rows, columns,
// accumulate) of 64.

// Template parameters are those of `MmaGate` (sm80_kernel.cuh). Shared memory has `Stages` tiles as
// they come from the state, then two buffers of planes.
template <Operand operand, int Terms, Rounding first, Rounding second, int Width,
          bool TargetsQubit0, int Stages>
struct WgmmaGate : WgmmaMatrix<operand, Terms, first, second, Width, TargetsQubit0> {
    using Matrix = WgmmaMatrix<operand, Terms, first, second, Width, TargetsQubit0>;
    using Matrix::kNumbers;
    using Matrix::kNumKTiles;
    using Matrix::kOrder;
    using Matrix::kScaled;
    using Matrix::matrix;
    static constexpr int kColumns = 32;
    static constexpr int kTileBytes = kOrder * kColumns * 8;
    static constexpr int kRowTiles = kOrder / 16;
    static constexpr int kThreads = kRowTiles * kWarp;
    static constexpr bool kJointParts = Width == 7 && !TargetsQubit0;
    static constexpr uint32 kPartBytes = kColumns * 16;
    static constexpr uint32 kRealOffset = kJointParts ? kPartBytes : 0,
                            kImaginaryOffset = kRealOffset + kPartBytes;
    // A thread writes 8 rows of a column, in as many core matrices. Their stride is padded by 16
    // bytes, so that stores are free of bank conflicts.
    static constexpr int kCoresPerLine = bytes_of(operand) / 2;
    static constexpr uint32 kCoreRowBytes = kImaginaryOffset + kPartBytes;
    static constexpr uint32 kLineBytes = kCoresPerLine * kCoreRowBytes + 16;
    static constexpr uint32 kPlaneBytes = kLineBytes * kOrder / 8;
    static constexpr uint32 kCoreStride = kCoresPerLine == 1 ? kLineBytes : kCoreRowBytes;
    static constexpr uint32 kKTileBytes = kLineBytes * kMmaK<operand> / 8;
    static constexpr uint32 kBufferBytes = Terms * kPlaneBytes;
    using Pipeline = WalkingPipeline<kTileBytes, kThreads, Stages>;
    static_assert(Pipeline::kChunks == 8, "a thread's chunks are 8 rows of two columns");

    // Flips the signs of a register's numbers. Volatile, so that the compiler does not keep both
    // signs in registers.
    __device__ __forceinline__ static void negate(uint32& word) {
        asm volatile("xor.b32 %0, %0, %1;"
                     : "+r"(word)
                     : "n"(kNumbers == 2 ? 0x80008000 : 1 << 31));
    }

    // Splits eight rows of a column, real or imaginary parts, and stores them as one line of each
    // core matrix in the plane of each term.
    template <bool IsImaginary>
    __device__ __forceinline__ static void store_core_line(uint32 at, const float (&x)[8],
                                                           float scale) {
#pragma unroll
        for (int core = 0; core < kCoresPerLine; ++core) {
            uint32 words[4][Terms];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                float numbers[kNumbers];
#pragma unroll
                for (int number = 0; number < kNumbers; ++number)
                    numbers[number] = x[2 * i + (kNumbers == 1 ? core : number)] * scale;
                split<operand, Terms, first, second, true>(numbers, words[i]);
            }
#pragma unroll
            for (int term = 0; term < Terms; ++term) {
                const uint32 line = at + term * kPlaneBytes + core * kCoreRowBytes;
                store_shared_16(line + (IsImaginary ? kImaginaryOffset : kRealOffset),
                                words[0][term], words[1][term], words[2][term], words[3][term]);
                if constexpr (IsImaginary && kJointParts) {
#pragma unroll
                    for (int i = 0; i < 4; ++i) negate(words[i][term]);
                    store_shared_16(line, words[0][term], words[1][term], words[2][term],
                                    words[3][term]);
                }
            }
        }
    }

    // Stores a thread's chunks to the planes. Where qubit 0 is a target, the first and the last
    // four chunks are eight rows of one column each; else the eight chunks are one row each of the
    // same two columns. With joint parts, and at tf32 there, the columns are not unrolled, because
    // both would take more registers than a thread has.
    __device__ __forceinline__ static void store_planes(const GateArguments& args, uint32 at,
                                                        const float4 (&x)[8], float scale) {
        constexpr int kAtOnce = kJointParts || (!TargetsQubit0 && kNumbers == 1) ? 1 : 2;
#pragma unroll kAtOnce
        for (int column = 0; column < 2; ++column) {
            float re[8], im[8];
#pragma unroll
            for (int row = 0; row < 8; ++row) {
                const float4 chunk = x[TargetsQubit0 ? 4 * column + row / 2 : row];
                const bool upper = TargetsQubit0 ? row % 2 : column;
                re[row] = upper ? chunk.z : chunk.x;
                im[row] = upper ? chunk.w : chunk.y;
            }
            const uint32 line = at + args.chunk_plane[column];
            store_core_line<false>(line, re, scale);
            store_core_line<true>(line, im, scale);
        }
    }

    // Where a thread's chunks begin in the planes.
    __device__ __forceinline__ static uint32 thread_plane_offset(const GateArguments& args) {
        uint32 offset = 0;
#pragma unroll
        for (int bit = 0; bit < Pipeline::kThreadBits; ++bit) {
            if (threadIdx.x >> bit & 1) offset += args.thread_plane[bit];
        }
        return offset;
    }

    // Takes a thread's chunks of the next tile to registers, and leaves their absmax for all
    // threads.
    __device__ __forceinline__ static void take_tile(const Pipeline& pipeline, uint32 stage,
                                                     float4 (&x)[8],
                                                     uint32 (&warp_maxima)[kRowTiles]) {
        cp_async_wait<Stages - 1>();
#pragma unroll
        for (int i = 0; i < 8; ++i) x[i] = load_shared_16(pipeline.chunk(stage, i));
        if constexpr (kScaled) {
            const uint32 absmax = warp_absmax(x);
            if (threadIdx.x % kWarp == 0) warp_maxima[threadIdx.x / kWarp] = absmax;
        }
    }

    // Splits a tile in registers into planes. Returns the exponent of its scale.
    __device__ __forceinline__ static int split_tile(const GateArguments& args, uint32 planes,
                                                     const float4 (&x)[8],
                                                     const uint32 (&warp_maxima)[kRowTiles]) {
        const int exponent = kScaled ? scale_exponent<operand>(block_absmax(warp_maxima)) : 0;
        store_planes(args, planes, x, power_of_two(exponent));
        return exponent;
    }

    // The matrix descriptor. Bits 0-13: address / 16; 16-29: stride of core matrices along the rows
    // / 16; 32-45: stride of 8 columns / 16.
    __device__ __forceinline__ static uint64 plane_descriptor(uint32 address) {
        constexpr uint32 kLow = (kCoreStride >> 4) << 16;
        return uint64(128 >> 4) << 32 | (address & 0x3ffff) >> 4 | kLow;
    }

    // The product of one term of the matrix and one of the state over all of k. The first columns
    // of the matrix come last: what is accumulated last is truncated least, and a state that starts
    // as |0...0> has nothing else.
    __device__ __forceinline__ void mma_terms(int matrix_term, int state_term, bool clear,
                                              uint32 planes, float (&re)[16],
                                              float (&im)[16]) const {
#pragma unroll
        for (int k_tile = kNumKTiles - 1; k_tile >= 0; --k_tile) {
            const uint32 at = planes + state_term * kPlaneBytes + k_tile * kKTileBytes;
            const int accumulate = !clear || k_tile < kNumKTiles - 1;
            if constexpr (kJointParts) {
                wgmma<1>(re, im, matrix[k_tile][0][matrix_term], plane_descriptor(at + kRealOffset),
                         accumulate);
                wgmma<1>(re, im, matrix[k_tile][1][matrix_term], plane_descriptor(at), 1);
            } else {
                const uint64 real = plane_descriptor(at + kRealOffset),
                             imaginary = plane_descriptor(at + kImaginaryOffset);
                wgmma<1>(re, matrix[k_tile][0][matrix_term], real, accumulate);
                wgmma<1>(im, matrix[k_tile][0][matrix_term], imaginary, accumulate);
                wgmma<-1>(re, matrix[k_tile][1][matrix_term], imaginary, 1);
                wgmma<1>(im, matrix[k_tile][1][matrix_term], real, 1);
            }
        }
    }

    // Each product of terms over all of k, before the next one begins. argand/gates/truncation.py
    // compensates the truncation bias in the matrix.
    __device__ __forceinline__ void mainloop(uint32 planes, float (&re)[16],
                                             float (&im)[16]) const {
        using Products = TermProducts<Terms>;  // of the state and the matrix
#pragma unroll
        for (int product = 0; product < Products::kCount; ++product)
            mma_terms(Products::right(product), Products::left(product), product == 0, planes, re,
                      im);
    }

    // The kernel: cp.async fills a ring of tiles. A tile is split into operand planes while the
    // MMAs of the tile before run.
    __device__ __forceinline__ void run(const GateArguments& args) {
        extern __shared__ __align__(1024) unsigned char memory[];
        __shared__ __align__(16) uint32 warp_maxima[2][kRowTiles];
        __shared__ unsigned long long matrix_full;
        const uint32 ring = shared_address(memory), first_planes = ring + Stages * kTileBytes;
        const uint32 lane = threadIdx.x % kWarp, row_tile = threadIdx.x / kWarp;
        if (threadIdx.x == 0) {
            mbarrier_init(shared_address(&matrix_full), 1);
            mbarrier_init_fence();
            Matrix::template fetch_matrix<1>(args, first_planes, shared_address(&matrix_full));
        }
        Pipeline pipeline(args);
        pipeline.load_prologue(ring);
        __syncthreads();
        mbarrier_wait(shared_address(&matrix_full), 0);
        this->load_fragments(first_planes, lane, row_tile);
        __syncthreads();
        const uint32 plane_offset = thread_plane_offset(args);
        char* const results =
            args.state + (args.control_offset |
                          or_offsets<Pipeline::kThreadBits>(args.result_offset, threadIdx.x));
        TileWalk walk(args);

        // A tile is taken to registers one iteration before it is split, so that its absmax needs
        // no barrier of its own.
        float4 x[8];
        uint32 stage = ring, planes = first_planes, absmax_buffer = 0;
        const auto split_and_take_next = [&] {
            const int exponent =
                split_tile(args, planes + plane_offset, x, warp_maxima[absmax_buffer]);
            pipeline.load(stage);
            stage = next_stage<kTileBytes, Stages>(stage, ring);
            absmax_buffer ^= 1;
            take_tile(pipeline, stage, x, warp_maxima[absmax_buffer]);
            return exponent;
        };
        take_tile(pipeline, stage, x, warp_maxima[absmax_buffer]);
        __syncthreads();
        int exponent = split_and_take_next();
        for (bool more = true; more;) {
            pipeline.mask = opaque(pipeline.mask);
            // wgmma reads the planes through the async proxy; threads wrote them by generic stores.
            fence_proxy_async_shared();
            __syncthreads();
            float re[16], im[16];
            wgmma_fence_operand(re);
            wgmma_fence_operand(im);
            wgmma_fence();
            mainloop(planes, re, im);
            wgmma_commit();

            const int power = kScaled ? -exponent - matrix_exponent_of(args) : 0;
            planes = 2 * first_planes + kBufferBytes - planes;
            exponent = split_and_take_next();
            wgmma_wait<0>();
            wgmma_fence_operand(re);
            wgmma_fence_operand(im);
            char* tile_results = results + walk.offset();
            more = walk.next(args);
            for_each_result_chunk<TargetsQubit0, 4>(
                re, im, split_power_of_two(power), [&](int number, float4 chunk) {
                    store_chunk(args, tile_results + or_offsets<3>(args.register_offset, number),
                                chunk);
                });
        }
    }
};
