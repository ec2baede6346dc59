// Operands whose lines are contiguous along k and fit the shared memory of a CTA, read once: for
// their exponents and for their residues.
#pragma once
#include "device/cp_async.cuh"
#include "encode.cuh"

// Copies a line to shared memory, with zeros up to whole blocks; lines that are not `stored` are
// zeros.
template <typename Source>
__device__ __forceinline__ void copy_line(const EncodeArguments& args, unsigned char* target,
                                          uint32 number) {
    const int line = number % args.stored_lines, batch = number / args.stored_lines;
    const bool stored = batch < args.batches && line < args.lines;
    const char* source = static_cast<const char*>(args.x);
    if (stored) {
        source += (batch * args.batch_stride + (args.first_line + line) * args.line_stride) *
                  int64(sizeof(Complex<Source>));
    }
    const int bytes = stored ? args.k * int(sizeof(Complex<Source>)) : 0;
    const int end = args.k_blocks * kLineBlock * int(sizeof(Complex<Source>));
    for (int at = threadIdx.x * 16; at < end; at += blockDim.x * 16) {
        const int valid = max(0, min(16, bytes - at));
        cp_async<16>(target + at, valid ? source + at : source, valid);
    }
}

// The exponent of a line in shared memory. All threads of a CTA; `norms` holds its blocks' norms.
template <typename Source>
__device__ __forceinline__ int shared_line_exponent(const EncodeArguments& args,
                                                    const Complex<Source>* numbers,
                                                    uint64* norms) {
    const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, warps = blockDim.x / kWarp;
    for (int block = warp; block < args.k_blocks; block += warps) {
        const int first = block * kLineBlock + lane;
        Complex<Source> x[kLineNumbers];
#pragma unroll
        for (int i = 0; i < kLineNumbers; ++i) x[i] = numbers[first + i * kWarp];
        const uint64 norm =
            warp_norm<Source>(x, count_below(first, kWarp, kLineNumbers, args.k));
        if (lane == 0) norms[block] = norm;
    }
    __syncthreads();
    return warp_exponent(norms, args.k_blocks, 1, args.limit, args.limit_shift);
}

// Operands whose lines are contiguous along k, aligned to 16 bytes, and fit shared memory. A CTA
// takes one line after another, and reads each once, for its exponent and its residues; with two
// `buffers` the next line comes while one is encoded.
template <typename T, typename Source, bool permuted, bool proved, int buffers>
__device__ __forceinline__ void encode_whole_lines(const EncodeArguments& args) {
    extern __shared__ __align__(16) unsigned char memory[];
    const int line_bytes = args.k_blocks * kLineBlock * int(sizeof(Complex<Source>));
    uint64* const norms = reinterpret_cast<uint64*>(memory + buffers * line_bytes);
    const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, warps = blockDim.x / kWarp;
    const uint32 end = args.batches * args.stored_lines;
    if constexpr (buffers == 2) copy_line<Source>(args, memory, blockIdx.x);
    cp_async_commit();
    int buffer = 0;
    for (uint32 number = blockIdx.x; number < end; number += gridDim.x) {
        const uint32 next = buffers == 2 ? number + gridDim.x : number;
        unsigned char* const current = memory + buffer * line_bytes;
        if constexpr (buffers == 2) buffer ^= 1;
        if (next < end) copy_line<Source>(args, memory + buffer * line_bytes, next);
        cp_async_commit();
        cp_async_wait<buffers - 1>();
        __syncthreads();
        const Complex<Source>* numbers = reinterpret_cast<const Complex<Source>*>(current);
        const int exponent = shared_line_exponent<Source>(args, numbers, norms);
        const int line = number % args.stored_lines, batch = number / args.stored_lines;
        if (threadIdx.x == 0 && line < args.lines) {
            args.exponents[int64(batch) * args.exponent_lines + args.first_line + line] = exponent;
        }
        const int row = permuted ? stored_row<Source>(line) : line;
        for (int block = warp; block < args.k_blocks; block += warps) {
            encode_shared_block<T, Source, proved && !permuted>(args, numbers + block * kLineBlock,
                                                                exponent, batch, row, block);
        }
        __syncthreads();  // the next line may be copied over this one
    }
}
