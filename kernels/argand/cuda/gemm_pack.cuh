// Operands in planes for the wgmma family: rounded, split, scaled, k contiguous.
//
// The source is a complex matrix of lines (rows of A, columns of B) by k, any strides, in batches. A
// precision that scales needs each line's largest magnitude first: blocks that look for it and blocks
// that pack share one launch, strip after strip of 64 lines, so that a strip is still in the cache
// when it is read for the second time.
#pragma once
#include "device/rounding.cuh"
#include "device/scaling.cuh"

struct PackPlan {
    Operand operand;
    int terms;
    Rounding roundings[2];
    bool scaled;       // lines are scaled by powers of two
    bool half_source;  // the source holds pairs of 16 bits of the operand format, else of fp32
    bool k_fast;       // whether k is the source's contiguous axis
    int vector;        // complex numbers that one read takes: 2 where they are aligned
};

// Strides count complex numbers.
struct PackArguments {
    const void* x;
    void* planes;      // (batches, 2 terms, lines, pitch)
    uint32* largest;   // (batches, lines), zeros before: bits of each line's largest magnitude
    uint32* arrived;   // (strips), zeros before: blocks that have looked at a strip
    float2* unscale;   // (batches, lines): half_powers of minus the line's exponent
    int64 line_stride, k_stride, batch_stride;
    int lines, k;
    int pitch;         // a multiple of 16, planes are zero from k on
    int batches;
    int lag;           // strips that are looked at before the first is packed
    int flip;          // conjugates
};

constexpr int kPackLines = 64, kPackDepth = 64, kPackThreads = 256;
constexpr int kScanTiles = 4;  // of kPackDepth, that a block looks at
// In shared memory eight k are followed by a gap, and lines have an odd pitch: whole lines and single
// k of many lines are then both read and written with at most two conflicts.
constexpr int kPackPitch = 9 * kPackDepth / 8 + 1;

__device__ __forceinline__ int pack_place(int line, int k) {
    return line * kPackPitch + k + k / 8;
}

template <PackPlan plan>
__device__ __forceinline__ float2 widened(uint32 pair) {
    if constexpr (plan.operand == Operand::bf16) {
        return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u)};
    } else {
        return fp16_values(pair);
    }
}

// One or two neighbours along the contiguous axis; zeros outside.
template <PackPlan plan>
__device__ __forceinline__ void read_neighbours(const PackArguments& args, int64 at, int inside,
                                                float2 (&x)[plan.vector]) {
#pragma unroll
    for (int i = 0; i < plan.vector; ++i) x[i] = {0.0f, 0.0f};
    if constexpr (plan.half_source) {
        const uint32* from = static_cast<const uint32*>(args.x) + at;
        if (inside >= plan.vector && plan.vector == 2) {
            const uint2 pairs = *reinterpret_cast<const uint2*>(from);
            x[0] = widened<plan>(pairs.x);
            x[plan.vector - 1] = widened<plan>(pairs.y);
        } else if (inside >= 1) {
            x[0] = widened<plan>(*from);
        }
    } else {
        const float2* from = static_cast<const float2*>(args.x) + at;
        if (inside >= plan.vector && plan.vector == 2) {
            const float4 pairs = *reinterpret_cast<const float4*>(from);
            x[0] = {pairs.x, pairs.y};
            x[plan.vector - 1] = {pairs.z, pairs.w};
        } else if (inside >= 1) {
            x[0] = *from;
        }
    }
}

// How the threads of a block divide a tile of 64 x 64: each has `vector` neighbours of several lines
// (k_fast) or of several k.
template <PackPlan plan>
struct PackTile {
    static constexpr int kChunks = 64 / plan.vector, kSlow = kPackThreads / kChunks;
    static constexpr int kCount = 64 / kSlow;
    int fast = threadIdx.x % kChunks * plan.vector, slow = threadIdx.x / kChunks;
    float2 x[kCount][plan.vector];

    __device__ __forceinline__ void read(const PackArguments& args, int64 base, int line0, int k0) {
        const int fast_left = (plan.k_fast ? args.k - k0 : args.lines - line0) - fast;
        const int slow_left = plan.k_fast ? args.lines - line0 : args.k - k0;
        const int64 fast_stride = plan.k_fast ? args.k_stride : args.line_stride;
        const int64 slow_stride = plan.k_fast ? args.line_stride : args.k_stride;
        const int64 corner = base + line0 * args.line_stride + k0 * args.k_stride + fast * fast_stride;
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            const int at = slow + i * kSlow;
            read_neighbours<plan>(args, corner + at * slow_stride, at < slow_left ? fast_left : 0,
                                  x[i]);
        }
    }
};

// One block looks at 64 lines by kScanTiles x 64 k.
template <PackPlan plan>
__device__ __forceinline__ void scan_lines(const PackArguments& args, int strip, int64 base,
                                           int64 first_line, int line0, int part) {
    __shared__ uint32 found[kPackLines];
    if (threadIdx.x < kPackLines) found[threadIdx.x] = 0;
    __syncthreads();
    PackTile<plan> tile;
    uint32 largest[plan.k_fast ? PackTile<plan>::kCount : plan.vector] = {};
#pragma unroll 1
    for (int i = 0; i < kScanTiles; ++i) {
        tile.read(args, base, line0, (part * kScanTiles + i) * kPackDepth);
#pragma unroll
        for (int j = 0; j < PackTile<plan>::kCount; ++j)
#pragma unroll
            for (int v = 0; v < plan.vector; ++v) {
                uint32& mine = largest[plan.k_fast ? j : v];
                mine = max(mine, larger_part(tile.x[j][v]));
            }
    }
    if constexpr (plan.k_fast) {
#pragma unroll
        for (int j = 0; j < PackTile<plan>::kCount; ++j) {
            const uint32 most = __reduce_max_sync(0xffffffffu, largest[j]);
            if (threadIdx.x % 32 == 0) {
                atomicMax(found + tile.slow + j * PackTile<plan>::kSlow, most);
            }
        }
    } else {
#pragma unroll
        for (int v = 0; v < plan.vector; ++v) atomicMax(found + tile.fast + v, largest[v]);
    }
    __syncthreads();
    if (threadIdx.x < kPackLines && line0 + threadIdx.x < args.lines) {
        atomicMax(args.largest + first_line + threadIdx.x, found[threadIdx.x]);
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(args.arrived + strip, 1u);
}

// How many k make 16 bytes of a plane, and which ones: in tf32's planes slots 0 to 3 of eight hold the
// even k, 4 to 7 the odd (gemm_wgmma_rows.cuh).
template <PackPlan plan>
struct Chunk {
    static constexpr int kCount = plan.operand == Operand::tf32 ? 4 : 8;

    static __device__ __forceinline__ int k_of(int chunk, int slot) {
        return plan.operand == Operand::tf32 ? chunk / 2 * 8 + chunk % 2 + 2 * slot
                                             : 8 * chunk + slot;
    }
};

// Terms of one chunk of one complex part, into the planes of that part.
template <PackPlan plan>
__device__ __forceinline__ void write_terms(const float (&x)[Chunk<plan>::kCount], void* planes,
                                            int64 at, int64 plane) {
    uint32 words[4][plan.terms];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        if constexpr (plan.operand == Operand::tf32) {
            split_to_tf32<plan.terms, plan.roundings[0], plan.roundings[1]>(x[i], words[i]);
        } else {
            split_to_half<plan.operand>(x[2 * i], x[2 * i + 1], words[i]);
        }
    }
    constexpr int kItem = plan.operand == Operand::tf32 ? 4 : 2;
#pragma unroll
    for (int t = 0; t < plan.terms; ++t) {
        char* to = static_cast<char*>(planes) + (at + 2 * t * plane) * kItem;
        *reinterpret_cast<uint4*>(to) = {words[0][t], words[1][t], words[2][t], words[3][t]};
    }
}

// One block packs 64 lines by 64 k.
template <PackPlan plan>
__device__ __forceinline__ void pack_tile(const PackArguments& args, int64 batch, int line0, int k0) {
    __shared__ float2 tile[kPackLines * kPackPitch];
    PackTile<plan> mine;
    mine.read(args, batch * args.batch_stride, line0, k0);
#pragma unroll
    for (int i = 0; i < PackTile<plan>::kCount; ++i)
#pragma unroll
        for (int v = 0; v < plan.vector; ++v) {
            const int slow = mine.slow + i * PackTile<plan>::kSlow, fast = mine.fast + v;
            tile[plan.k_fast ? pack_place(slow, fast) : pack_place(fast, slow)] = mine.x[i][v];
        }
    __syncthreads();
    const int64 plane = int64(args.lines) * args.pitch;
    constexpr int kCount = Chunk<plan>::kCount, kChunks = kPackDepth / kCount;
#pragma unroll
    for (int i = 0; i < kPackLines * kChunks / kPackThreads; ++i) {
        const int line = threadIdx.x / kChunks + i * (kPackThreads / kChunks);
        const int chunk = threadIdx.x % kChunks, k = k0 + chunk * kCount;
        if (line0 + line >= args.lines || k >= args.pitch) continue;
        float scale = 1.0f;
        if constexpr (plan.scaled) {
            const int64 at = batch * args.lines + line0 + line;
            // Other blocks wrote it during this launch: not from the first-level cache.
            const int exponent = scale_exponent(__ldcg(args.largest + at));
            scale = power_of_two(exponent);
            if (k == 0) args.unscale[at] = half_powers(-exponent);
        }
        const float flipped = args.flip ? -scale : scale;
        float re[kCount], im[kCount];
#pragma unroll
        for (int e = 0; e < kCount; ++e) {
            const float2 x = tile[pack_place(line, Chunk<plan>::k_of(chunk, e))];
            re[e] = plan.scaled ? x.x * scale : x.x;
            im[e] = x.y * flipped;
        }
        const int64 at = batch * 2 * plan.terms * plane + int64(line0 + line) * args.pitch + k;
        write_terms<plan>(re, args.planes, at, plane);
        write_terms<plan>(im, args.planes, at + plane, plane);
    }
}

// One launch over all strips. Blocks that look at a strip come before those that pack it and wait for
// nothing, so the waiting always ends.
template <PackPlan plan>
__device__ __forceinline__ void pack_planes(const PackArguments& args) {
    const int line_tiles = (args.lines + kPackLines - 1) / kPackLines;
    const int packers = (args.pitch + kPackDepth - 1) / kPackDepth;
    const int scanners = plan.scaled ? (packers + kScanTiles - 1) / kScanTiles : 0;
    const int inside = blockIdx.x % (packers + scanners);
    int strip = blockIdx.x / (packers + scanners);
    if (inside >= scanners) strip -= args.lag;
    if (strip < 0 || strip >= line_tiles * args.batches) return;
    const int64 batch = strip / line_tiles;
    const int line0 = strip % line_tiles * kPackLines;
    if (inside < scanners) {
        scan_lines<plan>(args, strip, batch * args.batch_stride, batch * args.lines + line0, line0,
                         inside);
        return;
    }
    if constexpr (plan.scaled) {
        if (threadIdx.x == 0) {
            uint32 arrived = 0;
            while (arrived < scanners) {
                asm volatile("ld.acquire.gpu.u32 %0, [%1];"
                             : "=r"(arrived)
                             : "l"(args.arrived + strip)
                             : "memory");
            }
        }
        __syncthreads();
    }
    pack_tile<plan>(args, batch, line0, (inside - scanners) * kPackDepth);
}
