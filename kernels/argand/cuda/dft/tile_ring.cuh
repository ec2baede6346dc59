// The tile ring: a group of warps has several tile buffers in shared memory, and tiles are loaded
// and stored while another one is computed in place. Where arrays are aligned to 16 bytes
// (`WideCopies`), contiguous tiles are bulk copies (TMA) and others cp.async and stores of 16 bytes
// per thread; unaligned arrays are copied element by element.
#pragma once
#include "device/tma_bulk.cuh"
#include "device/tma.cuh"
#include "tile_group.cuh"

// `WholeTiles`: every tile has all of its lines, and they are contiguous in global memory.
template <int Warps, int Buffers, bool WideCopies, bool WholeTiles, TileLayout input,
          TileLayout output>
struct TileRing {
    static constexpr int kBytes = input.bytes() > output.bytes() ? input.bytes() : output.bytes();
    // Only contiguous tiles are bulk copies: one per line would cost more than 16 bytes per thread.
    static constexpr bool kTmaLoads = kHasTma && WideCopies && input.contiguous();
    static constexpr bool kTmaStores = kHasTma && WideCopies && output.contiguous();
    static constexpr int kElementsPerCopy = WideCopies ? 2 : 1;  // of a thread
    static_assert(!WideCopies || input.contiguous() || input.width % 2 == 0,
                  "lines of whole 16 bytes");
    static_assert(!WideCopies || output.contiguous() || output.width % 2 == 0,
                  "lines of whole 16 bytes");

    TileGroup<Warps> group;
    GlobalArray source, target;
    float2* buffers;  // of this group
    uint32 barriers;

    __device__ __forceinline__ float2* buffer(int b) const { return buffers + b * (kBytes / 8); }

    __device__ __forceinline__ void init_barriers() const {
        if constexpr (kTmaLoads) {
            if (group.thread == 0) {
                for (int b = 0; b < Buffers; ++b) mbarrier_init(barriers + 8 * b, 1);
                mbarrier_init_fence();
            }
        }
    }

    // Lines of a tile that lie in the array.
    template <TileLayout layout>
    __device__ __forceinline__ int valid_lines(const GlobalArray& array, int64 tile) const {
        if constexpr (WholeTiles) return layout.lines;
        const int64 left = array.lines - tile * layout.lines;
        return left < layout.lines ? static_cast<int>(left) : layout.lines;
    }

    // `copy(global, shared, elements)` for each copy of this thread, of kElementsPerCopy elements;
    // a contiguous tile with an odd number of elements ends with a single one.
    template <TileLayout layout, typename Copy>
    __device__ __forceinline__ void for_each_copy(const GlobalArray& array, int64 tile,
                                                  float2* shared_tile, Copy copy) const {
        float2* const global_tile = array.base + tile * array.tile_stride;
        const int count = valid_lines<layout>(array, tile);
        if constexpr (WideCopies && layout.contiguous()) {
            const int elements = count * layout.width, even = elements & ~1;
            for (int i = 2 * group.thread; i < even; i += 2 * group.kThreads)
                copy(global_tile + i, shared_tile + i, 2);
            if (elements != even && group.thread == 0)
                copy(global_tile + even, shared_tile + even, 1);
        } else if (WholeTiles || count == layout.lines) {
            copy_lines<layout, true>(array, global_tile, shared_tile, layout.lines, copy);
        } else {
            copy_lines<layout, false>(array, global_tile, shared_tile, count, copy);
        }
    }

    // The thread's own offset is added once, so that the offsets of its copies are compile-time
    // constants.
    template <TileLayout layout, bool KnownCount, typename Copy>
    __device__ __forceinline__ void copy_lines(const GlobalArray& array, float2* global_tile,
                                               float2* shared_tile, int count, Copy copy) const {
        constexpr int kCopiesPerLine = layout.width / kElementsPerCopy,
                      kThreads = TileGroup<Warps>::kThreads;
        constexpr int kCopiesPerThread = (layout.lines * kCopiesPerLine + kThreads - 1) / kThreads;
        constexpr bool kExact = layout.lines * kCopiesPerLine % kThreads == 0;
        const int64 stride = WholeTiles ? layout.width : array.line_stride;
        const int thread = TileGroup<Warps>::current().thread;
        const int thread_line = thread / kCopiesPerLine,
                  thread_column = thread % kCopiesPerLine * kElementsPerCopy;
        if constexpr (kThreads % kCopiesPerLine == 0) {
            constexpr int kLineStep = kThreads / kCopiesPerLine;
            float2* const from = global_tile + thread_line * stride + thread_column;
            float2* const to = shared_tile + thread_line * layout.pitch + thread_column;
#pragma unroll(KnownCount && kCopiesPerThread <= 32 ? kCopiesPerThread : 2)
            for (int i = 0; i < kCopiesPerThread; ++i)
                if ((KnownCount && kExact) || thread_line + i * kLineStep < count)
                    copy(from + i * kLineStep * stride, to + i * kLineStep * layout.pitch,
                         kElementsPerCopy);
        } else {
#pragma unroll(KnownCount && kCopiesPerThread <= 32 ? kCopiesPerThread : 2)
            for (int i = 0; i < kCopiesPerThread; ++i) {
                const int index = thread + i * kThreads;
                const int line = index / kCopiesPerLine,
                          k = index % kCopiesPerLine * kElementsPerCopy;
                if ((KnownCount && kExact) || line < count)
                    copy(global_tile + line * stride + k, shared_tile + line * layout.pitch + k,
                         kElementsPerCopy);
            }
        }
    }

    // Begins to load a tile into buffer b; one beyond the last loads nothing.
    __device__ __forceinline__ void load_tile(int64 tile, int64 tiles, int b) const {
        float2* const shared_tile = buffer(b);
        if constexpr (kTmaLoads) {
            if (tile >= tiles || group.thread != 0) return;
            const float2* const global_tile = source.base + tile * source.tile_stride;
            const uint32 barrier = barriers + 8 * b;
            // Bulk copies are multiples of 16 bytes: an odd last element is copied by the thread.
            const int elements = valid_lines<input>(source, tile) * input.width,
                      even = elements & ~1;
            if (elements != even) shared_tile[even] = global_tile[even];
            mbarrier_arrive_expect_tx(barrier, even * 8);
            if (even) bulk_load(shared_address(shared_tile), global_tile, even * 8, barrier);
        } else {
            if (tile < tiles) {
                for_each_copy<input>(source, tile, shared_tile,
                                     [](float2* from, float2* to, int elements) {
                                         if (elements == 2) {
                                             cp_async<16>(to, from, 16);
                                         } else {
                                             cp_async<8>(to, from, 8);
                                         }
                                     });
            }
            cp_async_commit();  // one group per tile, empty beyond the last, for cp_async_wait
        }
    }

    // Waits until the tile of buffer b is loaded.
    __device__ __forceinline__ void wait_tile(int b, int phase) const {
        if constexpr (kTmaLoads) {
            mbarrier_wait(barriers + 8 * b, phase);
        } else {
            cp_async_wait<(Buffers > 2 ? Buffers - 2 : Buffers - 1)>();
            group.sync();
        }
    }

    // Returns when the last store has read its buffer, so that it can be loaded again.
    __device__ __forceinline__ void wait_stored() const {
        if (kTmaStores && group.thread == 0) tma_store_wait_read<0>();
        // Where one thread issues all copies, the others need not wait for it.
        if constexpr (!(kTmaLoads && kTmaStores)) group.sync();
    }

    // Stores the tile of buffer b; by TMA it returns while the buffer is still read.
    __device__ __forceinline__ void store_tile(int64 tile, int b) const {
        float2* const shared_tile = buffer(b);
        if constexpr (kTmaStores) {
            if (group.thread == 0) {
                float2* const global_tile = target.base + tile * target.tile_stride;
                const int elements = valid_lines<output>(target, tile) * output.width,
                          even = elements & ~1;
                if (elements != even) global_tile[even] = shared_tile[even];
                if (even) bulk_store(global_tile, shared_address(shared_tile), even * 8);
                tma_store_commit();
            }
        } else {
            for_each_copy<output>(
                target, tile, shared_tile, [](float2* to, float2* from, int elements) {
                    if (elements == 2)
                        *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(from);
                    else
                        *to = *from;
                });
        }
    }

    // Static schedule: `compute(buffer)` for every `groups`-th tile from `first` on, where `groups`
    // counts those of all blocks.
    template <typename Compute>
    __device__ __forceinline__ void run(int64 first, int64 groups, int64 tiles,
                                        Compute compute) const {
        constexpr int kPrefetch = Buffers == 2 ? 1 : Buffers;
        for (int b = 0; b < kPrefetch; ++b) load_tile(first + b * groups, tiles, b);
        int b = 0, phase = 0;
        for (int64 tile = first; tile < tiles; tile += groups) {
            if constexpr (Buffers == 2) {
                wait_stored();
                load_tile(tile + groups, tiles, b ^ 1);
            }
            wait_tile(b, phase);
            compute(buffer(b));
            if constexpr (kTmaLoads || kTmaStores) fence_proxy_async_shared();
            if constexpr (Buffers > 2) {
                // The buffer of the previous store is free by now.
                if (tile != first) {
                    wait_stored();
                    load_tile(tile + (Buffers - 1) * groups, tiles, b == 0 ? Buffers - 1 : b - 1);
                }
            }
            group.sync();
            store_tile(tile, b);
            if constexpr (Buffers == 1) {
                wait_stored();
                load_tile(tile + groups, tiles, 0);
            }
            if (++b == Buffers) {
                b = 0;
                phase ^= 1;
            }
        }
        // A block must not exit before bulk stores have read its shared memory.
        if (kTmaStores && group.thread == 0) tma_store_wait_read<0>();
    }
};
