// Tiles of transforms on their way: global to shared memory, and back, while others are worked on.
//
// A group of warps has `buffers` tiles of its own in shared memory and takes tile after tile. With
// `bulk` one warp asks the copy engine (sm_90, arrays on 16 bytes); else every thread copies elements.
#pragma once
#include "device/barrier.cuh"
#include "device/tensor_copy.cuh"
#include "dft_plan.cuh"

__device__ __forceinline__ void bulk_load(uint32 target, const void* source, uint32 bytes,
                                          uint32 barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
            target),
        "l"(source), "r"(bytes), "r"(barrier)
        : "memory");
}

__device__ __forceinline__ void bulk_store(void* target, uint32 source, uint32 bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(target),
                 "r"(source), "r"(bytes)
                 : "memory");
}

// The warps of a block that work on one tile at a time.
template <int Warps>
struct Group {
    static constexpr int kThreads = Warps * kWarp;
    int index = threadIdx.x / kThreads;
    int thread = threadIdx.x % kThreads;
    int warp = thread / kWarp;
    int lane = threadIdx.x % kWarp;

    __device__ __forceinline__ void sync() const {
        if constexpr (Warps == 1) {
            __syncwarp();
        } else {
            asm volatile("bar.sync %0, %1;" ::"r"(1 + index), "n"(kThreads) : "memory");
        }
    }
};

// `line_stride` and `tile_stride` are of the array in memory, `lines` how many it has in all.
struct Array {
    float2* first;
    int64 tile_stride;
    int64 line_stride;
    int64 lines;
};

template <int Warps, int Buffers, bool Bulk, Lines taken, Lines given>
struct Ring {
    static constexpr int kBytes = taken.bytes() > given.bytes() ? taken.bytes() : given.bytes();

    Group<Warps> group;
    Array source, target;
    float2* memory;   // of this group
    uint32 barriers;

    __device__ __forceinline__ float2* buffer(int b) const { return memory + b * (kBytes / 8); }

    __device__ __forceinline__ void start() const {
        if constexpr (Bulk) {
            if (group.thread == 0) {
                for (int b = 0; b < Buffers; ++b) barrier_init(barriers + 8 * b, 1);
                barrier_init_fence();
            }
        }
    }

    // How many of a tile's lines there are.
    template <Lines lines>
    __device__ __forceinline__ int valid(const Array& array, int64 tile) const {
        const int64 left = array.lines - tile * lines.count;
        return left < lines.count ? static_cast<int>(left) : lines.count;
    }

    __device__ __forceinline__ void request(int64 tile, int64 tiles, int b) const {
        float2* const place = buffer(b);
        if constexpr (Bulk) {
            if (tile >= tiles || group.warp != 0) return;
            const float2* from = source.first + tile * source.tile_stride;
            const int count = valid<taken>(source, tile);
            const uint32 barrier = barriers + 8 * b;
            if constexpr (taken.pitch == taken.width) {
                if (group.lane == 0) {
                    // An odd number of elements at the end leaves one that the engine cannot take.
                    const int elements = count * taken.width, even = elements & ~1;
                    if (elements != even) place[even] = from[even];
                    barrier_expect(barrier, even * 8);
                    if (even) bulk_load(shared_address(place), from, even * 8, barrier);
                }
            } else {
                if (group.lane == 0) barrier_expect(barrier, count * taken.width * 8);
                __syncwarp();
                for (int i = group.lane; i < count; i += kWarp)
                    bulk_load(shared_address(place + i * taken.pitch), from + i * source.line_stride,
                              taken.width * 8, barrier);
            }
        } else {
            if (tile < tiles) {
                const float2* from = source.first + tile * source.tile_stride;
                const int elements = valid<taken>(source, tile) * taken.width;
                for (int i = group.thread; i < elements; i += group.kThreads) {
                    const int line = i / taken.width, k = i % taken.width;
                    copy_async<8>(place + line * taken.pitch + k, from + line * source.line_stride + k,
                                  8);
                }
            }
            commit_copies();  // one group a request, so that they can be counted
        }
    }

    __device__ __forceinline__ void wait(int b, int parity) const {
        if constexpr (Bulk) {
            barrier_wait(barriers + 8 * b, parity);
        } else {
            wait_copies<(Buffers > 2 ? Buffers - 2 : Buffers - 1)>();
            group.sync();
        }
    }

    // Returns when the results stored last have been read from shared memory.
    __device__ __forceinline__ void drained() const {
        if constexpr (Bulk) {
            if (group.warp == 0) {
                wait_stores_read<0>();
                __syncwarp();
            }
        } else {
            group.sync();
        }
    }

    __device__ __forceinline__ void store(int64 tile, int b) const {
        const float2* const place = buffer(b);
        float2* to = target.first + tile * target.tile_stride;
        const int count = valid<given>(target, tile);
        if constexpr (Bulk) {
            if (group.warp != 0) return;
            if constexpr (given.pitch == given.width) {
                if (group.lane == 0) {
                    const int elements = count * given.width, even = elements & ~1;
                    if (elements != even) to[even] = place[even];
                    if (even) bulk_store(to, shared_address(place), even * 8);
                }
            } else {
                for (int i = group.lane; i < count; i += kWarp)
                    bulk_store(to + i * target.line_stride, shared_address(place + i * given.pitch),
                               given.width * 8);
            }
            commit_stores();
        } else {
            for (int i = group.thread; i < count * given.width; i += group.kThreads) {
                const int line = i / given.width, k = i % given.width;
                to[line * target.line_stride + k] = place[line * given.pitch + k];
            }
        }
    }

    // `work(buffer)` for every tile of this group; `groups` are those of all blocks together.
    template <typename Work>
    __device__ __forceinline__ void run(int64 first, int64 groups, int64 tiles, Work work) const {
        constexpr int kAhead = Buffers == 2 ? 1 : Buffers;
        for (int b = 0; b < kAhead; ++b) request(first + b * groups, tiles, b);
        int b = 0, parity = 0;
        for (int64 tile = first; tile < tiles; tile += groups) {
            if constexpr (Buffers == 2) {
                drained();
                request(tile + groups, tiles, b ^ 1);
            }
            wait(b, parity);
            work(buffer(b));
            if constexpr (Bulk) copy_engine_fence();
            if constexpr (Buffers > 2) {
                // The buffer stored last time is free by now.
                if (tile != first) {
                    drained();
                    request(tile + (Buffers - 1) * groups, tiles, b == 0 ? Buffers - 1 : b - 1);
                }
            }
            group.sync();
            store(tile, b);
            if constexpr (Buffers == 1) {
                drained();
                request(tile + groups, tiles, 0);
            }
            if (++b == Buffers) {
                b = 0;
                parity ^= 1;
            }
        }
        if constexpr (Bulk) {
            // Shared memory has to stay until the copy engine has read it.
            if (group.warp == 0) wait_stores_read<0>();
        }
    }
};
