// Operands in planes for the wgmma family: rounded, split, scaled, k contiguous.
//
// A source is a complex matrix of lines (rows of A, columns of B) by k, any strides, in batches; one
// launch packs one or two. A block reads a tile of 64 lines by 64 k. A precision that scales needs each
// line's largest magnitude first: the blocks of a strip of 64 lines keep their tiles until all of them
// have looked, so that the source is read once. Where the strip's blocks would not all run at once, a
// launch before this one has looked (gemm_scan.cuh).
#pragma once
#include "device/clock.cuh"
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
    uint32* largest;   // (batches, lines): bits of each line's largest magnitude; zeros before where
                       // blocks wait, and after
    uint2* arrived;    // (strips), zeros before and after: blocks that have looked, and gone on
    float2* unscale;   // (batches, lines): half_powers of minus the line's exponent
    int64 line_stride, k_stride, batch_stride;
    int lines, k;
    int pitch;         // a multiple of 16, planes are zero from k on
    int wait;          // whether blocks find the magnitudes, and so wait for those of their strip
    int flip;          // conjugates
};

constexpr int kPackLines = 64, kPackDepth = 64, kPackThreads = 256;
constexpr long long kPatience = 1000000;  // nanoseconds of waiting
// In shared memory eight k are followed by a gap, and lines have an odd pitch: whole lines and single
// k of many lines are then both read and written with at most two conflicts.
constexpr int kPackPitch = 9 * kPackDepth / 8 + 1;
constexpr int kPackTile = kPackLines * kPackPitch;

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

// One or two neighbours along the contiguous axis; zeros outside. They are read once: they leave the
// second-level cache first.
template <PackPlan plan>
__device__ __forceinline__ void read_neighbours(const PackArguments& args, int64 at, int inside,
                                                float2 (&x)[plan.vector]) {
#pragma unroll
    for (int i = 0; i < plan.vector; ++i) x[i] = {0.0f, 0.0f};
    if constexpr (plan.half_source) {
        const uint32* from = static_cast<const uint32*>(args.x) + at;
        if (inside >= plan.vector && plan.vector == 2) {
            const uint2 pairs = __ldcs(reinterpret_cast<const uint2*>(from));
            x[0] = widened<plan>(pairs.x);
            x[plan.vector - 1] = widened<plan>(pairs.y);
        } else if (inside >= 1) {
            x[0] = widened<plan>(__ldcs(from));
        }
    } else {
        const float2* from = static_cast<const float2*>(args.x) + at;
        if (inside >= plan.vector && plan.vector == 2) {
            const float4 pairs = __ldcs(reinterpret_cast<const float4*>(from));
            x[0] = {pairs.x, pairs.y};
            x[plan.vector - 1] = {pairs.z, pairs.w};
        } else if (inside >= 1) {
            x[0] = __ldcs(from);
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
        const int slow_left = (plan.k_fast ? args.lines - line0 : args.k - k0) - slow;
        const int64 fast_stride = plan.k_fast ? args.k_stride : args.line_stride;
        const int64 slow_stride = plan.k_fast ? args.line_stride : args.k_stride;
        int64 at = base + line0 * args.line_stride + k0 * args.k_stride + fast * fast_stride +
                   slow * slow_stride;
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            read_neighbours<plan>(args, at, i * kSlow < slow_left ? fast_left : 0, x[i]);
            at += kSlow * slow_stride;
        }
    }
};

// Raises `found` to the largest magnitudes of a tile's lines.
template <PackPlan plan>
__device__ __forceinline__ void look(const PackTile<plan>& tile, uint32* found) {
    using Tile = PackTile<plan>;
    if constexpr (plan.k_fast) {
#pragma unroll
        for (int i = 0; i < Tile::kCount; ++i) {
            uint32 most = larger_part(tile.x[i][0]);
            if constexpr (plan.vector == 2) most = max(most, larger_part(tile.x[i][1]));
            most = __reduce_max_sync(0xffffffffu, most);
            if (threadIdx.x % kWarp == 0) atomicMax(found + tile.slow + i * Tile::kSlow, most);
        }
    } else {
#pragma unroll
        for (int v = 0; v < plan.vector; ++v) {
            uint32 most = 0;
#pragma unroll
            for (int i = 0; i < Tile::kCount; ++i) most = max(most, larger_part(tile.x[i][v]));
            atomicMax(found + tile.fast + v, most);
        }
    }
}

// Tells the other blocks of the strip what this one found in its tile, and waits for them: `found`
// then holds the lines' largest magnitudes. A block whose patience ends looks for itself, so that it
// never depends on others being under way.
template <PackPlan plan>
__device__ __forceinline__ void agree(const PackArguments& args, int strip, int64 first_line, int lines,
                                      int64 base, int line0, uint32* found) {
    __shared__ uint32 blocks;
    const uint32 strip_blocks = (args.pitch + kPackDepth - 1) / kPackDepth;
    if (threadIdx.x < lines) atomicMax(args.largest + first_line + threadIdx.x, found[threadIdx.x]);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        uint32* arrived = &args.arrived[strip].x;
        atomicAdd(arrived, 1u);
        const long long since = nanoseconds();
        do {
            asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(blocks) : "l"(arrived) : "memory");
        } while (blocks < strip_blocks && nanoseconds() - since < kPatience);
    }
    __syncthreads();
    if (blocks < strip_blocks) {
        PackTile<plan> tile;
#pragma unroll 1
        for (int k0 = 0; k0 < args.k; k0 += kPackDepth) {
            tile.read(args, base, line0, k0);
            look<plan>(tile, found);
        }
    } else if (threadIdx.x < lines) {
        // Other blocks wrote it during this launch: not from the first-level cache.
        found[threadIdx.x] = __ldcg(args.largest + first_line + threadIdx.x);
    }
}

// The last block of a strip to have agreed leaves zeros for the next launch. One warp.
__device__ __forceinline__ void leave_strip(const PackArguments& args, int strip, int64 first_line,
                                            int lines) {
    const int lane = threadIdx.x % kWarp;
    uint32 before = 0;
    if (lane == 0) before = atomicAdd(&args.arrived[strip].y, 1u);
    before = __shfl_sync(0xffffffffu, before, 0);
    if (before + 1 < (args.pitch + kPackDepth - 1) / kPackDepth) return;
    for (int i = lane; i < lines; i += kWarp) args.largest[first_line + i] = 0;
    if (lane == 0) args.arrived[strip] = {0, 0};
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

// Terms of one chunk of one complex part, into the planes of that part. `stays` says that they are soon
// read, and not after all others.
template <PackPlan plan, bool stays = false>
__device__ __forceinline__ void write_terms(const float (&x)[Chunk<plan>::kCount], void* planes,
                                            int64 at, int64 plane) {
    uint32 words[4][plan.terms];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        if constexpr (plan.operand == Operand::tf32) {
            split_to_tf32<plan.terms, plan.roundings[0], plan.roundings[1]>(x[i], words[i]);
            // Tensor cores do not look at these bits, but moving bits that change takes power, which
            // is what limits large products.
            words[i][plan.terms - 1] &= kKeptByTf32;
        } else {
            split_to_half<plan.operand>(x[2 * i], x[2 * i + 1], words[i]);
        }
    }
    constexpr int kItem = plan.operand == Operand::tf32 ? 4 : 2;
#pragma unroll
    for (int t = 0; t < plan.terms; ++t) {
        char* to = static_cast<char*>(planes) + (at + 2 * t * plane) * kItem;
        const uint4 chunk = make_uint4(words[0][t], words[1][t], words[2][t], words[3][t]);
        if constexpr (stays) {
            __stcg(reinterpret_cast<uint4*>(to), chunk);
        } else {
            __stcs(reinterpret_cast<uint4*>(to), chunk);
        }
    }
}

// Block `block` of a source packs 64 lines by 64 k; `tile` is its memory for them.
template <PackPlan plan>
__device__ __forceinline__ void pack_planes(const PackArguments& args, uint32 block, float2* tile) {
    __shared__ uint32 found[kPackLines];
    const int line_tiles = (args.lines + kPackLines - 1) / kPackLines;
    const int strip_blocks = (args.pitch + kPackDepth - 1) / kPackDepth;
    const int strip = block / strip_blocks, k0 = block % strip_blocks * kPackDepth;
    const int64 batch = strip / line_tiles;
    const int line0 = strip % line_tiles * kPackLines, lines = min(kPackLines, args.lines - line0);
    const int64 base = batch * args.batch_stride, first_line = batch * args.lines + line0;
    PackTile<plan> mine;
    mine.read(args, base, line0, k0);
#pragma unroll
    for (int i = 0; i < PackTile<plan>::kCount; ++i)
#pragma unroll
        for (int v = 0; v < plan.vector; ++v) {
            const int slow = mine.slow + i * PackTile<plan>::kSlow, fast = mine.fast + v;
            tile[plan.k_fast ? pack_place(slow, fast) : pack_place(fast, slow)] = mine.x[i][v];
        }
    if constexpr (plan.scaled) {
        if (threadIdx.x < kPackLines) {
            const bool known = !args.wait && threadIdx.x < lines;
            found[threadIdx.x] = known ? __ldcg(args.largest + first_line + threadIdx.x) : 0;
        }
        if (args.wait) {
            __syncthreads();
            look<plan>(mine, found);
            __syncthreads();
            agree<plan>(args, strip, first_line, lines, base, line0, found);
        }
    }
    __syncthreads();
    const int64 plane = int64(args.lines) * args.pitch;
    constexpr int kCount = Chunk<plan>::kCount, kChunks = kPackDepth / kCount;
#pragma unroll
    for (int i = 0; i < kPackLines * kChunks / kPackThreads; ++i) {
        const int line = threadIdx.x / kChunks + i * (kPackThreads / kChunks);
        const int chunk = threadIdx.x % kChunks, k = k0 + chunk * kCount;
        if (line >= lines || k >= args.pitch) continue;
        float scale = 1.0f;
        if constexpr (plan.scaled) {
            const int exponent = scale_exponent(found[line]);
            scale = power_of_two(exponent);
            if (k == 0) args.unscale[first_line + line] = half_powers(-exponent);
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
    if constexpr (plan.scaled) {
        if (args.wait && threadIdx.x < kWarp) leave_strip(args, strip, first_line, lines);
    }
}
