// Packs complex integers of 8 bits for the product in s32: planes of real and of imaginary parts,
// k-major, with zeros up to a whole number of k-tiles.
//
// A block packs 32 rows of 128 numbers along k, a thread 16 neighbours of a row, which it holds in
// eight words and stores as 16 bytes of each plane. Where rows are the contiguous axis the block
// transposes its tile in shared memory first.
#pragma once
#include "device/types.cuh"

constexpr int kPackRows = 32, kPackK = 128, kPackThreads = 256;
constexpr int kPackNumbers = kPackRows * kPackK / kPackThreads;  // of a thread, along k

struct PlaneArguments {
    const unsigned short* x;  // (batch, rows, k), real part in the low byte
    signed char* planes;      // (batch, 2, rows, pitch)
    int64 stride_row, stride_k, stride_batch;
    int rows, k, pitch;
    int row_blocks;
    int vectors;  // rows are contiguous along k and begin at multiples of 16 bytes
};

// Loads a thread's numbers of a block's tile, zeros outside the matrix, two numbers a word. `x` is
// the matrix of the batch.
//
// Rows are contiguous: lanes read along rows, and the tile is transposed in shared memory.
__device__ __forceinline__ void load_across(const PlaneArguments& args, const unsigned short* x,
                                            int row0, int k0, int own_row, int own_k,
                                            uint32 (&words)[kPackNumbers / 2]) {
    // The odd half of the pitch in words keeps lanes of different rows in different banks.
    __shared__ unsigned short tile[kPackRows][kPackK + 2];
    const int lane = threadIdx.x % kWarp, row = row0 + lane;
#pragma unroll
    for (int i = threadIdx.x / kWarp; i < kPackK; i += kPackThreads / kWarp) {
        const bool inside = row < args.rows && k0 + i < args.k;
        tile[lane][i] =
            inside ? x[row * args.stride_row + (k0 + i) * args.stride_k] : (unsigned short)0;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kPackNumbers / 2; ++i) {
        words[i] = *reinterpret_cast<const uint32*>(&tile[own_row][own_k + 2 * i]);
    }
}

// k is contiguous, or neither axis is: a thread reads its own numbers, by 16 bytes where it can.
__device__ __forceinline__ void load_along(const PlaneArguments& args, const unsigned short* x,
                                           int row, int k, uint32 (&words)[kPackNumbers / 2]) {
    if (row < args.rows && args.vectors && k + kPackNumbers <= args.k) {
        const uint4* from = reinterpret_cast<const uint4*>(x + row * args.stride_row + k);
#pragma unroll
        for (int i = 0; i < kPackNumbers / 8; ++i) {
            const uint4 found = from[i];
            words[4 * i] = found.x;
            words[4 * i + 1] = found.y;
            words[4 * i + 2] = found.z;
            words[4 * i + 3] = found.w;
        }
    } else {
#pragma unroll
        for (int i = 0; i < kPackNumbers / 2; ++i) {
            words[i] = 0;
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int at = k + 2 * i + half;
                if (row < args.rows && at < args.k) {
                    words[i] |= uint32(x[row * args.stride_row + at * args.stride_k])
                                << 16 * half;
                }
            }
        }
    }
}

// Separates the parts of a thread's numbers and stores 16 bytes in each of the two planes.
__device__ __forceinline__ void store_planes(const PlaneArguments& args,
                                             const uint32 (&words)[kPackNumbers / 2],
                                             signed char* to) {
#pragma unroll
    for (int part = 0; part < 2; ++part) {
        const uint32 bytes = part ? 0x7531 : 0x6420;  // the odd bytes, or the even ones
        uint32 found[kPackNumbers / 4];
#pragma unroll
        for (int i = 0; i < kPackNumbers / 4; ++i)
            found[i] = __byte_perm(words[2 * i], words[2 * i + 1], bytes);
        static_assert(kPackNumbers == 16, "a thread stores 16 bytes of each plane");
        *reinterpret_cast<uint4*>(to + part * int64(args.rows) * args.pitch) = {found[0], found[1],
                                                                               found[2], found[3]};
    }
}

// Packs kPackRows rows of kPackK numbers per block. Lanes read along k, or with `across` along
// rows, which are then contiguous.
template <bool across>
__device__ __forceinline__ void pack_planes(const PlaneArguments& args) {
    const int k_blocks = args.pitch / kPackK;
    const int k_block = blockIdx.x % k_blocks, rest = blockIdx.x / k_blocks;
    const int row_block = rest % args.row_blocks;
    const int64 batch = rest / args.row_blocks;
    const unsigned short* x = args.x + batch * args.stride_batch;
    const int row0 = row_block * kPackRows, k0 = k_block * kPackK;
    constexpr int kThreadsOfRow = kPackK / kPackNumbers;
    const int own_row = threadIdx.x / kThreadsOfRow;
    const int own_k = threadIdx.x % kThreadsOfRow * kPackNumbers;
    uint32 words[kPackNumbers / 2];
    if constexpr (across) {
        load_across(args, x, row0, k0, own_row, own_k, words);
    } else {
        load_along(args, x, row0 + own_row, k0 + own_k, words);
    }
    const int row = row0 + own_row;
    if (row >= args.rows) return;
    store_planes(args, words,
                 args.planes + (2 * batch * args.rows + row) * args.pitch + k0 + own_k);
}
