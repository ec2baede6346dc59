// The packing kernel of the wgmma family: rounds, splits and scales an operand and stores it as
// k-major planes of real and imaginary parts, which the product then reads by TMA. One launch packs
// one operand or two.
//
// A block packs a tile of up to 4096 complex numbers; the blocks of a panel cover the same rows. A
// precision that scales needs the row absmax before it rounds the first element of a row: the
// blocks of a panel keep their tiles in shared memory until all of them have contributed to it, so
// the source is read once. Panels of fewer rows have fewer blocks that wait for each other; up to
// eight blocks are a cluster. Where the blocks of a panel would not all run at once,
// absmax_kernel.cuh has found the row absmax in a launch before.
#pragma once
#include "device/clock.cuh"
#include "device/cluster.cuh"
#include "device/dependent_launch.cuh"
#include "pack_tile.cuh"

// Nanoseconds: long beside the microseconds that blocks wait where all of a panel's run.
constexpr long long kAbsmaxTimeout = 1000000;

// The tile that this block packs, of a source whose blocks begin at number `first` of the launch.
template <PackPlan plan>
struct PackPosition {
    int panel, k0, row0, rows;
    int64 batch, base, first_row;

    __device__ __forceinline__ PackPosition(const PackArguments& args, uint32 first) {
        // Read again each time, so that nothing derived from it occupies registers during the
        // exchange.
        const uint32 block = block_index() - first;
        const int panels_per_matrix = (args.rows + plan.rows - 1) / plan.rows;
        const int panel_blocks =
            plan.cluster > 1 ? plan.cluster : (args.pitch + plan.tile_k() - 1) / plan.tile_k();
        panel = block / panel_blocks;
        k0 = block % panel_blocks * plan.tile_k();
        batch = panel / panels_per_matrix;
        row0 = panel % panels_per_matrix * plan.rows;
        rows = min(plan.rows, args.rows - row0);
        base = batch * args.batch_stride;
        first_row = batch * args.rows + row0;
    }
};

// Whether a panel has other blocks, with which this one exchanges the row absmax.
template <PackPlan plan>
__device__ __forceinline__ bool exchanges_absmax(const PackArguments& args) {
    return plan.scaled && plan.cluster == 1 && args.exchange_absmax && args.pitch > plan.tile_k();
}

// Exchanges the row absmax of a panel among its blocks, through atomics in global memory:
// `row_absmax` holds that of the tile before and that of the panel after. Waiting is for speed
// only: after kAbsmaxTimeout a block reads the panel itself, so that it never depends on blocks
// that do not run.
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
            update_absmax<plan>(tile, row_absmax, component_absmax_bits);
        }
    } else if (threadIdx.x < position.rows) {
        // Other blocks wrote it during this launch, so the load bypasses L1.
        row_absmax[threadIdx.x] = __ldcg(global_absmax);
    }
}

// Finds the row absmax of a panel from those of the tiles, which each block of a cluster has in its
// shared memory. All threads call it. Other blocks read `row_absmax` until the `cluster_wait` that
// must follow.
template <PackPlan plan>
__device__ __forceinline__ void exchange_in_cluster(const uint32* row_absmax,
                                                    uint32* panel_absmax) {
    cluster_arrive();
    cluster_wait();
    if (threadIdx.x < plan.rows) {
        uint32 largest = 0;
#pragma unroll
        for (int rank = 0; rank < plan.cluster; ++rank)
            largest =
                max(largest, load_cluster_32(map_shared_rank(row_absmax + threadIdx.x, rank)));
        panel_absmax[threadIdx.x] = largest;
    }
    __syncwarp();
    cluster_arrive_relaxed();  // every absmax that was loaded is part of a maximum
}

// The last block of a panel to have read the row absmax resets it and the counters for the next
// launch. One warp.
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

// A vector of 16 bytes of a plane and the k that it holds. In planes of tf32, slots 0 to 3 of eight
// hold the even k and slots 4 to 7 the odd, which is the order of sm90_fragments.cuh.
template <PackPlan plan>
struct PlaneVector {
    static constexpr int kElements = 16 / bytes_of(plan.operand);
    // The k of one MMA, whose terms lie side by side.
    static constexpr int kGroupK = 2 * kElements;

    // Offset of the first term of k in a row.
    static __device__ __forceinline__ int offset(int k) {
        return k / kGroupK * kGroupK * plan.terms + k % kGroupK;
    }

    // The k in slot `slot` of vector number `vector` of a row.
    static __device__ __forceinline__ int k_of(int vector, int slot) {
        return plan.operand == Operand::tf32 ? vector / 2 * 8 + vector % 2 + 2 * slot
                                             : kElements * vector + slot;
    }
};

// Splits the elements of one vector, of one complex part, and stores its terms in the plane of that
// part. `keep_in_l2`: the planes are read soon; else they leave L2 first. `finite`: all elements
// are finite.
template <PackPlan plan, bool keep_in_l2 = false, bool finite = false>
__device__ __forceinline__ void write_terms(const float (&x)[PlaneVector<plan>::kElements],
                                            void* planes, int64 at) {
    constexpr int kNumbers = kNumbersPerRegister<plan.operand>;
    uint32 words[4][plan.terms];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        split<plan.operand, plan.terms, plan.roundings[0], plan.roundings[1], finite>(
            x + kNumbers * i, words[i]);
        if constexpr (plan.operand == Operand::tf32) {
            // Tensor cores ignore these bits, but toggling bits take power, which limits large
            // products.
            words[i][plan.terms - 1] &= kTf32KeptMask;
        }
    }
#pragma unroll
    for (int t = 0; t < plan.terms; ++t) {
        char* to = static_cast<char*>(planes) +
                   (at + t * PlaneVector<plan>::kGroupK) * bytes_of(plan.operand);
        const uint4 words_of_term = make_uint4(words[0][t], words[1][t], words[2][t], words[3][t]);
        if constexpr (keep_in_l2) {
            __stcg(reinterpret_cast<uint4*>(to), words_of_term);
        } else {
            __stcs(reinterpret_cast<uint4*>(to), words_of_term);
        }
    }
}

// Loads a tile into shared memory and, where rows are scaled, sets `row_absmax` to that of the
// tile, of all its numbers, or to what the absmax kernel has found. Returns whether the numbers of
// this thread are finite, as far as is known.
template <PackPlan plan>
__device__ __forceinline__ bool load_to_shared(const PackArguments& args,
                                               const PackPosition<plan>& position, float2* tile,
                                               uint32* row_absmax) {
    PackTile<plan> loaded;
    loaded.load(args, position.base, position.row0, position.k0);
    if constexpr (plan.scaled) {  // while the numbers are on their way
        if (threadIdx.x < plan.rows) {
            const bool known = !args.exchange_absmax && threadIdx.x < position.rows;
            row_absmax[threadIdx.x] =
                known ? __ldcg(args.row_absmax + position.first_row + threadIdx.x) : 0;
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < PackTile<plan>::kLoads; ++i)
#pragma unroll
        for (int v = 0; v < plan.vector; ++v) {
            const int strided = loaded.strided + i * PackTile<plan>::kStridedStep,
                      contiguous = loaded.contiguous + v;
            tile[plan.k_major ? shared_offset<plan>(strided, contiguous)
                              : shared_offset<plan>(contiguous, strided)] = loaded.x[i][v];
        }
    if (!plan.scaled || !args.exchange_absmax) return false;
    return update_absmax<plan>(loaded, row_absmax, component_abs_bits) < kInfinityBits;
}

// Returns whether all numbers of a tile are finite, given whether this thread's are. Where some are
// not, and the absmax kernel did not run, finds `row_absmax` of the finite numbers alone. All
// threads call it, which synchronizes them: after it the tile is in shared memory.
template <PackPlan plan>
__device__ __forceinline__ bool find_finite_absmax(const PackArguments& args, const float2* tile,
                                                     uint32* row_absmax, bool finite) {
    if (__syncthreads_and(finite)) return true;
    if (!args.exchange_absmax) return false;
    if (threadIdx.x < plan.rows) {
        uint32 largest = 0;
        for (int k = 0; k < plan.tile_k(); ++k)
            largest = max(largest,
                          component_absmax_bits(tile[shared_offset<plan>(threadIdx.x, k)]));
        row_absmax[threadIdx.x] = largest;
    }
    __syncthreads();
    return false;
}

// Converts a tile in shared memory and stores its planes. `finite`: all of its numbers are.
template <PackPlan plan, bool finite>
__device__ __forceinline__ void store_planes(const PackArguments& args,
                                             const PackPosition<plan>& position,
                                             const float2* tile, const uint32* row_absmax) {
    const int64 plane = int64(args.rows) * args.pitch * plan.terms;
    constexpr int kElements = PlaneVector<plan>::kElements, kVectors = plan.tile_k() / kElements;
    constexpr int kRowsAtOnce = kPackThreads / kVectors;
#pragma unroll
    for (int i = 0; i < plan.rows; i += kRowsAtOnce) {
        const int row = threadIdx.x / kVectors + i;
        const int vector = threadIdx.x % kVectors, k = position.k0 + vector * kElements;
        if (row >= position.rows || k >= args.pitch) continue;
        float scale = 1.0f;
        if constexpr (plan.scaled) {
            const int exponent = scale_exponent<plan.operand>(row_absmax[row]);
            scale = power_of_two(exponent);
            if (k == 0) args.descale[position.first_row + row] = split_power_of_two(-exponent);
        }
        const float imaginary_scale = args.conjugate ? -scale : scale;
        float re[kElements], im[kElements];
#pragma unroll
        for (int e = 0; e < kElements; ++e) {
            int from = PlaneVector<plan>::k_of(vector, e);
            if constexpr (plan.exchanges_k) from ^= position.batch & 1;
            const float2 x = tile[shared_offset<plan>(row, from)];
            re[e] = plan.scaled ? x.x * scale : x.x;
            im[e] = x.y * imaginary_scale;
        }
        const int64 at = position.batch * 2 * plane +
                         int64(position.row0 + row) * args.pitch * plan.terms +
                         PlaneVector<plan>::offset(k);
        write_terms<plan, false, finite>(re, args.planes, at);
        write_terms<plan, false, finite>(im, args.planes, at + plane);
    }
}

// Packs one tile of a source whose blocks begin at number `first` of the launch. `tile` and
// `row_absmax` are shared memory.
template <PackPlan plan>
__device__ __forceinline__ void pack_planes(const PackArguments& args, uint32 first, float2* tile,
                                            uint32* row_absmax) {
    griddepcontrol_launch_dependents();
    bool finite =
        load_to_shared<plan>(args, PackPosition<plan>(args, first), tile, row_absmax);
    if constexpr (plan.scaled) {
        finite = find_finite_absmax<plan>(args, tile, row_absmax, finite);
    } else {
        __syncthreads();
    }
    if (exchanges_absmax<plan>(args)) {
        exchange_row_absmax<plan>(args, PackPosition<plan>(args, first), row_absmax);
        __syncthreads();
    }
    if constexpr (plan.cluster > 1) {
        static_assert(2 * plan.rows <= kMaxPackRows,
                      "the absmax of tile and panel lie side by side");
        exchange_in_cluster<plan>(row_absmax, row_absmax + plan.rows);
        row_absmax += plan.rows;
        __syncthreads();
    }
    const PackPosition<plan> position(args, first);
    if (finite) {
        store_planes<plan, true>(args, position, tile, row_absmax);
    } else {
        store_planes<plan, false>(args, position, tile, row_absmax);
    }
    if constexpr (plan.scaled) {
        if (exchanges_absmax<plan>(args) && threadIdx.x < kWarp) reset_panel<plan>(args, position);
        if constexpr (plan.cluster > 1) cluster_wait();  // others read this block's shared memory
    }
}
