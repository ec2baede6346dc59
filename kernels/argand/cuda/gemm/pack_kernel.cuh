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

constexpr long long kAbsmaxTimeout = 1000000;  // nanoseconds of waiting

// Which tile this block packs, of a source that has the launch's blocks from `first` on.
template <PackPlan plan>
struct PackPosition {
    int panel, k0, row0, rows;
    int64 batch, base, first_row;

    __device__ __forceinline__ PackPosition(const PackArguments& args, uint32 first) {
        // Read each time: nothing of it is kept while others are waited for, as there are no
        // registers to spare.
        uint32 block;
        asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
        block -= first;
        const int panels_per_matrix = (args.rows + plan.rows - 1) / plan.rows;
        const int panel_blocks = (args.pitch + plan.tile_k() - 1) / plan.tile_k();
        panel = block / panel_blocks;
        k0 = block % panel_blocks * plan.tile_k();
        batch = panel / panels_per_matrix;
        row0 = panel % panels_per_matrix * plan.rows;
        rows = min(plan.rows, args.rows - row0);
        base = batch * args.batch_stride;
        first_row = batch * args.rows + row0;
    }
};

// Tells the other blocks of the strip what this one found in its tile, and waits for them: `found`
// then holds the lines' largest magnitudes. A block whose patience ends looks for itself, so that
// it never depends on others being under way.
template <PackPlan plan>
__device__ __forceinline__ void exchange_row_absmax(const PackArguments& args,
                                                    const PackPosition<plan>& position,
                                                    uint32* row_absmax) {
    __shared__ uint32 arrived_blocks;
    const uint32 panel_blocks = (args.pitch + plan.tile_k() - 1) / plan.tile_k();
    uint32* global_absmax = args.row_absmax + position.first_row + threadIdx.x;
    if (threadIdx.x < position.rows) atomicMax(global_absmax, row_absmax[threadIdx.x]);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        uint32* arrivals = &args.panel_counters[position.panel].x;
        atomicAdd(arrivals, 1u);
        const long long start = nanoseconds();
        do {
            asm volatile("ld.acquire.gpu.u32 %0, [%1];"
                         : "=r"(arrived_blocks)
                         : "l"(arrivals)
                         : "memory");
        } while (arrived_blocks < panel_blocks && nanoseconds() - start < kAbsmaxTimeout);
    }
    __syncthreads();
    if (arrived_blocks < panel_blocks) {
        PackTile<plan> tile;
#pragma unroll 1
        for (int k0 = 0; k0 < args.k; k0 += plan.tile_k()) {
            tile.load(args, position.base, position.row0, k0);
            update_absmax<plan>(tile, row_absmax);
        }
    } else if (threadIdx.x < position.rows) {
        // Other blocks wrote it during this launch: not from the first-level cache.
        row_absmax[threadIdx.x] = __ldcg(global_absmax);
    }
}

// The last block of a strip to have agreed leaves zeros for the next launch. One warp.
template <PackPlan plan>
__device__ __forceinline__ void reset_panel(const PackArguments& args,
                                            const PackPosition<plan>& position) {
    const int lane = threadIdx.x % kWarp;
    uint32 before = 0;
    if (lane == 0) before = atomicAdd(&args.panel_counters[position.panel].y, 1u);
    before = __shfl_sync(0xffffffffu, before, 0);
    if (before + 1 < (args.pitch + plan.tile_k() - 1) / plan.tile_k()) return;
    for (int i = lane; i < position.rows; i += kWarp) args.row_absmax[position.first_row + i] = 0;
    if (lane == 0) args.panel_counters[position.panel] = {0, 0};
}

// How many k make 16 bytes of a plane, and which ones: in tf32's planes slots 0 to 3 of eight hold
// the even k, 4 to 7 the odd (sm90_fragments.cuh).
template <PackPlan plan>
struct PlaneVector {
    static constexpr int kElements = plan.operand == Operand::tf32 ? 4 : 8;
    static constexpr int kGroupK =
        2 * kElements;  // k of an instruction, of which all terms are side by side

    // Where k of a line is, its first term.
    static __device__ __forceinline__ int offset(int k) {
        return k / kGroupK * kGroupK * plan.terms + k % kGroupK;
    }

    static __device__ __forceinline__ int k_of(int vector, int slot) {
        return plan.operand == Operand::tf32 ? vector / 2 * 8 + vector % 2 + 2 * slot
                                             : 8 * vector + slot;
    }
};

// Terms of one chunk of one complex part, into the plane of that part. `stays` says that they are
// soon read, and not after all others.
template <PackPlan plan, bool keep_in_l2 = false>
__device__ __forceinline__ void write_terms(const float (&x)[PlaneVector<plan>::kElements],
                                            void* planes, int64 at) {
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
    constexpr int kElementBytes = plan.operand == Operand::tf32 ? 4 : 2;
#pragma unroll
    for (int t = 0; t < plan.terms; ++t) {
        char* to =
            static_cast<char*>(planes) + (at + t * PlaneVector<plan>::kGroupK) * kElementBytes;
        const uint4 words_of_term = make_uint4(words[0][t], words[1][t], words[2][t], words[3][t]);
        if constexpr (keep_in_l2) {
            __stcg(reinterpret_cast<uint4*>(to), words_of_term);
        } else {
            __stcs(reinterpret_cast<uint4*>(to), words_of_term);
        }
    }
}

// Reads a tile into shared memory and, where lines are scaled, finds their largest magnitudes.
template <PackPlan plan>
__device__ __forceinline__ void load_to_shared(const PackArguments& args,
                                               const PackPosition<plan>& position, float2* tile,
                                               uint32* row_absmax) {
    PackTile<plan> loaded;
    loaded.load(args, position.base, position.row0, position.k0);
#pragma unroll
    for (int i = 0; i < PackTile<plan>::kLoads; ++i)
#pragma unroll
        for (int v = 0; v < plan.vector; ++v) {
            const int strided = loaded.strided + i * PackTile<plan>::kStridedStep,
                      contiguous = loaded.contiguous + v;
            tile[plan.k_major ? shared_offset<plan>(strided, contiguous)
                              : shared_offset<plan>(contiguous, strided)] = loaded.x[i][v];
        }
    if constexpr (plan.scaled) {
        if (threadIdx.x < plan.rows) {
            const bool known = !args.exchange_absmax && threadIdx.x < position.rows;
            row_absmax[threadIdx.x] =
                known ? __ldcg(args.row_absmax + position.first_row + threadIdx.x) : 0;
        }
        if (args.exchange_absmax) {
            __syncthreads();
            update_absmax<plan>(loaded, row_absmax);
        }
    }
}

// Packs one tile of a source that has the launch's blocks from `first` on; `tile` is memory for it,
// `found` for its lines.
template <PackPlan plan>
__device__ __forceinline__ void pack_planes(const PackArguments& args, uint32 first, float2* tile,
                                            uint32* row_absmax) {
    load_to_shared<plan>(args, PackPosition<plan>(args, first), tile, row_absmax);
    __syncthreads();
    if (plan.scaled && args.exchange_absmax) {
        exchange_row_absmax<plan>(args, PackPosition<plan>(args, first), row_absmax);
        __syncthreads();
    }
    const PackPosition<plan> position(args, first);
    const int64 plane = int64(args.rows) * args.pitch * plan.terms;
    constexpr int kElements = PlaneVector<plan>::kElements, kVectors = plan.tile_k() / kElements;
#pragma unroll
    for (int i = 0; i < plan.rows * kVectors / kPackThreads; ++i) {
        const int row = threadIdx.x / kVectors + i * (kPackThreads / kVectors);
        const int vector = threadIdx.x % kVectors, k = position.k0 + vector * kElements;
        if (row >= position.rows || k >= args.pitch) continue;
        float scale = 1.0f;
        if constexpr (plan.scaled) {
            const int exponent = scale_exponent(row_absmax[row]);
            scale = power_of_two(exponent);
            if (k == 0) args.descale[position.first_row + row] = split_power_of_two(-exponent);
        }
        const float imaginary_scale = args.conjugate ? -scale : scale;
        float re[kElements], im[kElements];
#pragma unroll
        for (int e = 0; e < kElements; ++e) {
            const float2 x = tile[shared_offset<plan>(row, PlaneVector<plan>::k_of(vector, e))];
            re[e] = plan.scaled ? x.x * scale : x.x;
            im[e] = x.y * imaginary_scale;
        }
        const int64 at = position.batch * 2 * plane +
                         int64(position.row0 + row) * args.pitch * plan.terms +
                         PlaneVector<plan>::offset(k);
        write_terms<plan>(re, args.planes, at);
        write_terms<plan>(im, args.planes, at + plane);
    }
    if constexpr (plan.scaled) {
        if (args.exchange_absmax && threadIdx.x < kWarp) reset_panel<plan>(args, position);
    }
}
