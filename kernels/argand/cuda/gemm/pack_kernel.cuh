// Operands in planes for the wgmma family: rounded, split, scaled, k contiguous.
//
// A source is a complex matrix of lines (rows of A, columns of B) by k, any strides, in batches;
// one launch packs one or two. A block reads a tile of 4096 numbers. A precision that scales needs
// each line's largest magnitude first: the blocks of a strip of lines keep their tiles until all of
// them have looked, so that the source is read once. The fewer lines a strip has, the fewer blocks
// wait for each other. Where they would not all run at once, a launch before this one has looked
// (absmax_scan.cuh).
#pragma once
#include "device/clock.cuh"
#include "pack_tile.cuh"

constexpr long long kPatience = 1000000;  // nanoseconds of waiting

// Which tile this block packs, of a source that has the launch's blocks from `first` on.
template <PackPlan plan>
struct PackPlace {
    int strip, k0, line0, lines;
    int64 batch, base, first_line;

    __device__ __forceinline__ PackPlace(const PackArguments& args, uint32 first) {
        // Read each time: nothing of it is kept while others are waited for, as there are no
        // registers to spare.
        uint32 block;
        asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
        block -= first;
        const int line_tiles = (args.lines + plan.lines - 1) / plan.lines;
        const int strip_blocks = (args.pitch + plan.depth() - 1) / plan.depth();
        strip = block / strip_blocks;
        k0 = block % strip_blocks * plan.depth();
        batch = strip / line_tiles;
        line0 = strip % line_tiles * plan.lines;
        lines = min(plan.lines, args.lines - line0);
        base = batch * args.batch_stride;
        first_line = batch * args.lines + line0;
    }
};

// Tells the other blocks of the strip what this one found in its tile, and waits for them: `found`
// then holds the lines' largest magnitudes. A block whose patience ends looks for itself, so that
// it never depends on others being under way.
template <PackPlan plan>
__device__ __forceinline__ void agree(const PackArguments& args, const PackPlace<plan>& place,
                                      uint32* found) {
    __shared__ uint32 blocks;
    const uint32 strip_blocks = (args.pitch + plan.depth() - 1) / plan.depth();
    uint32* largest = args.largest + place.first_line + threadIdx.x;
    if (threadIdx.x < place.lines) atomicMax(largest, found[threadIdx.x]);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        uint32* arrived = &args.arrived[place.strip].x;
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
        for (int k0 = 0; k0 < args.k; k0 += plan.depth()) {
            tile.read(args, place.base, place.line0, k0);
            look<plan>(tile, found);
        }
    } else if (threadIdx.x < place.lines) {
        // Other blocks wrote it during this launch: not from the first-level cache.
        found[threadIdx.x] = __ldcg(largest);
    }
}

// The last block of a strip to have agreed leaves zeros for the next launch. One warp.
template <PackPlan plan>
__device__ __forceinline__ void leave_strip(const PackArguments& args,
                                            const PackPlace<plan>& place) {
    const int lane = threadIdx.x % kWarp;
    uint32 before = 0;
    if (lane == 0) before = atomicAdd(&args.arrived[place.strip].y, 1u);
    before = __shfl_sync(0xffffffffu, before, 0);
    if (before + 1 < (args.pitch + plan.depth() - 1) / plan.depth()) return;
    for (int i = lane; i < place.lines; i += kWarp) args.largest[place.first_line + i] = 0;
    if (lane == 0) args.arrived[place.strip] = {0, 0};
}

// How many k make 16 bytes of a plane, and which ones: in tf32's planes slots 0 to 3 of eight hold
// the even k, 4 to 7 the odd (sm90_fragments.cuh).
template <PackPlan plan>
struct Chunk {
    static constexpr int kCount = plan.operand == Operand::tf32 ? 4 : 8;
    static constexpr int kStep =
        2 * kCount;  // k of an instruction, of which all terms are side by side

    // Where k of a line is, its first term.
    static __device__ __forceinline__ int place(int k) {
        return k / kStep * kStep * plan.terms + k % kStep;
    }

    static __device__ __forceinline__ int k_of(int chunk, int slot) {
        return plan.operand == Operand::tf32 ? chunk / 2 * 8 + chunk % 2 + 2 * slot
                                             : 8 * chunk + slot;
    }
};

// Terms of one chunk of one complex part, into the plane of that part. `stays` says that they are
// soon read, and not after all others.
template <PackPlan plan, bool stays = false>
__device__ __forceinline__ void write_terms(const float (&x)[Chunk<plan>::kCount], void* planes,
                                            int64 at) {
    uint32 words[4][plan.terms];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        if constexpr (plan.operand == Operand::tf32) {
            split_to_tf32<plan.terms, plan.roundings[0], plan.roundings[1]>(x[i], words[i]);
            // Tensor cores do not look at these bits, but moving bits that change takes power,
            // which is what limits large products.
            words[i][plan.terms - 1] &= kTf32KeptMask;
        } else {
            split_to_half<plan.operand>(x[2 * i], x[2 * i + 1], words[i]);
        }
    }
    constexpr int kItem = plan.operand == Operand::tf32 ? 4 : 2;
#pragma unroll
    for (int t = 0; t < plan.terms; ++t) {
        char* to = static_cast<char*>(planes) + (at + t * Chunk<plan>::kStep) * kItem;
        const uint4 chunk = make_uint4(words[0][t], words[1][t], words[2][t], words[3][t]);
        if constexpr (stays) {
            __stcg(reinterpret_cast<uint4*>(to), chunk);
        } else {
            __stcs(reinterpret_cast<uint4*>(to), chunk);
        }
    }
}

// Reads a tile into shared memory and, where lines are scaled, finds their largest magnitudes.
template <PackPlan plan>
__device__ __forceinline__ void gather(const PackArguments& args, const PackPlace<plan>& place,
                                       float2* tile, uint32* found) {
    PackTile<plan> mine;
    mine.read(args, place.base, place.line0, place.k0);
#pragma unroll
    for (int i = 0; i < PackTile<plan>::kCount; ++i)
#pragma unroll
        for (int v = 0; v < plan.vector; ++v) {
            const int slow = mine.slow + i * PackTile<plan>::kSlow, fast = mine.fast + v;
            tile[plan.k_fast ? pack_place<plan>(slow, fast) : pack_place<plan>(fast, slow)] =
                mine.x[i][v];
        }
    if constexpr (plan.scaled) {
        if (threadIdx.x < plan.lines) {
            const bool known = !args.wait && threadIdx.x < place.lines;
            found[threadIdx.x] = known ? __ldcg(args.largest + place.first_line + threadIdx.x) : 0;
        }
        if (args.wait) {
            __syncthreads();
            look<plan>(mine, found);
        }
    }
}

// Packs one tile of a source that has the launch's blocks from `first` on; `tile` is memory for it,
// `found` for its lines.
template <PackPlan plan>
__device__ __forceinline__ void pack_planes(const PackArguments& args, uint32 first, float2* tile,
                                            uint32* found) {
    gather<plan>(args, PackPlace<plan>(args, first), tile, found);
    __syncthreads();
    if (plan.scaled && args.wait) {
        agree<plan>(args, PackPlace<plan>(args, first), found);
        __syncthreads();
    }
    const PackPlace<plan> place(args, first);
    const int64 plane = int64(args.lines) * args.pitch * plan.terms;
    constexpr int kCount = Chunk<plan>::kCount, kChunks = plan.depth() / kCount;
#pragma unroll
    for (int i = 0; i < plan.lines * kChunks / kPackThreads; ++i) {
        const int line = threadIdx.x / kChunks + i * (kPackThreads / kChunks);
        const int chunk = threadIdx.x % kChunks, k = place.k0 + chunk * kCount;
        if (line >= place.lines || k >= args.pitch) continue;
        float scale = 1.0f;
        if constexpr (plan.scaled) {
            const int exponent = scale_exponent(found[line]);
            scale = power_of_two(exponent);
            if (k == 0) args.unscale[place.first_line + line] = split_power_of_two(-exponent);
        }
        const float flipped = args.flip ? -scale : scale;
        float re[kCount], im[kCount];
#pragma unroll
        for (int e = 0; e < kCount; ++e) {
            const float2 x = tile[pack_place<plan>(line, Chunk<plan>::k_of(chunk, e))];
            re[e] = plan.scaled ? x.x * scale : x.x;
            im[e] = x.y * flipped;
        }
        const int64 at = place.batch * 2 * plane +
                         int64(place.line0 + line) * args.pitch * plan.terms +
                         Chunk<plan>::place(k);
        write_terms<plan>(re, args.planes, at);
        write_terms<plan>(im, args.planes, at + plane);
    }
    if constexpr (plan.scaled) {
        if (args.wait && threadIdx.x < kWarp) leave_strip<plan>(args, place);
    }
}
