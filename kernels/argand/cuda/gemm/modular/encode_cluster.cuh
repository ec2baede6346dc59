// Operands whose lines are contiguous and not too long along k, read once (sm_90 and newer): a
// cluster of CTAs holds some lines in shared memory, each CTA some of their blocks along k, and
// finds their exponents from the norms that its CTAs exchange.
#pragma once
#include "device/cluster.cuh"
#include "device/cp_async.cuh"
#include "encode.cuh"

// Loads lines from `first_k` on to rows of `pitch` numbers, zeros past k and past the last line.
template <typename Source, int lines, int span, int pitch>
__device__ __forceinline__ void load_lines_to_shared(const EncodeArguments& args,
                                                     Complex<Source>* tile, int batch,
                                                     int first_line, int first_k) {
    constexpr int kItem = sizeof(Complex<Source>), kThreads = kAcrossWarps * kWarp;
    const int line = threadIdx.x % lines;
    const Complex<Source>* source =
        static_cast<const Complex<Source>*>(args.x) + batch * args.batch_stride +
        (args.first_line + first_line + line) * args.line_stride + first_k * args.k_stride;
    const int end = first_line + line < args.lines ? args.k - first_k : 0;
#pragma unroll 8
    for (int k = threadIdx.x / lines; k < span; k += kThreads / lines) {
        const bool valid = k < end;
        cp_async<kItem>(tile + line * pitch + k, valid ? source + k * args.k_stride : args.x,
                        valid ? kItem : 0);
    }
}

// Stores the norm of each block of the lines in shared memory.
template <typename Source, int lines, int blocks, int pitch>
__device__ __forceinline__ void store_block_norms(const EncodeArguments& args,
                                                  const Complex<Source>* tile, uint64* norms,
                                                  int first_k) {
    const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
#pragma unroll 1
    for (int i = warp; i < lines * blocks; i += kAcrossWarps) {
        const Complex<Source>* numbers =
            tile + i / blocks * pitch + i % blocks * kLineBlock + lane;
        Complex<Source> x[kLineNumbers];
#pragma unroll
        for (int j = 0; j < kLineNumbers; ++j) x[j] = numbers[j * kWarp];
        const int k = first_k + i % blocks * kLineBlock + lane;
        const uint64 norm = warp_norm<Source>(x, count_below(k, kWarp, kLineNumbers, args.k));
        if (lane == 0) norms[i] = norm;
    }
}

// `cluster` CTAs, each of which holds `blocks` blocks of kAcrossBytes of lines.
template <typename T, typename Source, bool permuted, bool proved, int cluster, int blocks>
__device__ __forceinline__ void encode_clustered_lines(const EncodeArguments& args) {
    constexpr int kItem = sizeof(Complex<Source>), kLines = kAcrossBytes / kItem;
    constexpr int kSpan = blocks * kLineBlock, kPitch = kSpan + 1;  // odd, against bank conflicts
    constexpr int kWarps = kAcrossWarps;
    constexpr int kWarpLines = kLines / kWarps;
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ LineFactor<T> factors[proved && permuted ? kLines : 1];
    Complex<Source>* const tile = reinterpret_cast<Complex<Source>*>(memory);
    uint64* const norms = reinterpret_cast<uint64*>(memory + kLines * kPitch * kItem);
    const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, rank = cluster_rank();
    const int groups = (args.stored_lines + kLines - 1) / kLines;
    const uint32 index = blockIdx.x / cluster;
    const int first_line = index % groups * kLines, batch = index / groups;
    const int first_k = rank * kSpan;
    load_lines_to_shared<Source, kLines, kSpan, kPitch>(args, tile, batch, first_line, first_k);
    cp_async_commit();
    cp_async_wait<0>();
    __syncthreads();
    store_block_norms<Source, kLines, blocks, kPitch>(args, tile, norms, first_k);
    cluster_arrive();
    cluster_wait();
    int exponents[kWarpLines];
#pragma unroll
    for (int i = 0; i < kWarpLines; ++i) {
        const int line = warp + i * kWarps;
        exponents[i] = kNotFinite;
        if (first_line + line < args.lines) {  // else no thread would wait for the load
            uint64 own = 0;
            if (lane < args.k_blocks) {
                own = load_cluster_64(
                    map_shared_rank(norms + line * blocks + lane % blocks, lane / blocks));
            }
            exponents[i] = exponent_of_norms(own, args.limit, args.limit_shift);
        }
        if constexpr (proved && permuted) {
            if (lane == 0) {
                factors[line] = line_factor<T>(args.proof, args.first_line + first_line + line,
                                               exponents[i]);
            }
        }
        if (rank == 0 && lane == 0 && first_line + line < args.lines) {
            args.exponents[int64(batch) * args.exponent_lines + args.first_line + first_line +
                           line] = exponents[i];
        }
    }
    cluster_arrive_relaxed();  // every norm that was loaded is part of an exponent
    const int first_block = rank * blocks;
#pragma unroll 1
    for (int i = warp; i < kLines * blocks; i += kWarps) {
        const int tile_line = i % kLines, line = first_line + tile_line;
        const int block = first_block + i / kLines;
        if (line >= args.stored_lines || block >= args.k_blocks) continue;
        const int row = permuted ? stored_row<Source>(line) : line;
        const int number = i / kWarps % kWarpLines;
        encode_shared_block<T, Source, proved && !permuted>(
            args, tile + tile_line * kPitch + i / kLines * kLineBlock,
            number == 0 ? exponents[0] : exponents[kWarpLines - 1], batch, row, block);
    }
    if constexpr (proved && permuted) {
        __syncthreads();  // all factors are stored
        add_image_of_lines<T, Source, kLines, kPitch>(args.proof, tile, factors, args.conjugate,
                                                      batch, first_k, min(args.k - first_k, kSpan));
    }
    cluster_wait();
}
