// The dynamic tile scheduler of the tile ring: groups of all blocks fetch tiles from one atomic
// counter, because some multiprocessors have slower access to memory and equal shares would wait
// for them. `run_dynamic` serves groups of one warp, `run_relayed` groups that pass buffers on to
// each other.
#pragma once
#include "tile_ring.cuh"

template <int Warps, int Buffers, bool WideCopies, TileLayout layout>
struct ScheduledTileRing : TileRing<Warps, Buffers, WideCopies, false, layout, layout> {
    using Base = TileRing<Warps, Buffers, WideCopies, false, layout, layout>;
    using Base::barriers, Base::buffer, Base::wait_stored, Base::group, Base::load_tile,
        Base::store_tile, Base::wait_tile;
    static constexpr bool kTma = Base::kTmaLoads && Base::kTmaStores;
    static constexpr bool kDynamic = kTma && Warps == 1;

    // `compute(buffer)` for tiles of a group of one warp. The first tiles are static; the next
    // index is fetched long before it is needed.
    template <typename Compute>
    __device__ __forceinline__ void run_dynamic(int first, int groups, int tiles,
                                                uint32* tile_counter, Compute compute) const {
        static_assert(kDynamic, "one lane of the warp issues all copies");
        constexpr int kPrefetch = Buffers == 2 ? 1 : Buffers;
        const int static_tiles = groups * kPrefetch;
        auto fetch = [&] {
            return group.thread == 0 ? static_tiles + static_cast<int>(atomicAdd(tile_counter, 1u))
                                     : 0;
        };
        int tile_of_buffer[Buffers], fetched = fetch();
        auto load_fetched = [&](int b) {
            const int tile = fetched;
            load_tile(tile, tiles, b);
            if (tile < tiles) fetched = fetch();
            return tile;
        };
#pragma unroll
        for (int i = 0; i < kPrefetch; ++i) {
            tile_of_buffer[i] = first + i * groups;
            load_tile(tile_of_buffer[i], tiles, i);
        }
        int b = 0, phase = 0;
        for (bool started = false;; started = true) {
            if constexpr (Buffers == 2) {
                wait_stored();
                tile_of_buffer[1] = load_fetched(b ^ 1);
            }
            const int tile = __shfl_sync(0xffffffffu, tile_of_buffer[0], 0);
            if (tile >= tiles) break;
#pragma unroll
            for (int i = 1; i < Buffers; ++i) tile_of_buffer[i - 1] = tile_of_buffer[i];
            wait_tile(b, phase);
            compute(buffer(b));
            fence_proxy_async_shared();
            if (Buffers > 2 && started) {
                wait_stored();
                tile_of_buffer[Buffers > 2 ? Buffers - 2 : 0] =
                    load_fetched(b == 0 ? Buffers - 1 : b - 1);
            }
            group.sync();
            store_tile(tile, b);
            if constexpr (Buffers == 1) {
                wait_stored();
                tile_of_buffer[0] = load_fetched(0);
            }
            if (++b == Buffers) {
                b = 0;
                phase ^= 1;
            }
        }
        if (group.thread == 0) {
            tma_store_wait_read<0>();
            // Every warp fetches one index beyond the last tile. The warp that fetched the last
            // index resets the counter.
            const int dynamic_tiles = tiles > static_tiles ? tiles - static_tiles : 0;
            if (fetched - static_tiles == dynamic_tiles + groups - 1) *tile_counter = 0;
        }
    }

    // Assigns a tile to a buffer and loads it. An index beyond the last tile ends the loop of the
    // group that waits for the buffer.
    __device__ __forceinline__ void assign(int tile, int tiles, int b,
                                           volatile int* tile_of_buffer) const {
        tile_of_buffer[b] = tile;
        if (tile < tiles) {
            load_tile(tile, tiles, b);
        } else {
            mbarrier_arrive(barriers + 8 * b);
        }
    }

    // `compute(buffer, refill)` for tiles of this group, where the groups of a block take its
    // buffers in turn. The first tiles are static. For each tile a group fetches another index, and
    // loads that tile into the buffer that it has stored, possibly for another group. `compute`
    // calls `refill`, which does so, at a point where the last store has long been read. The tile
    // indices of a buffer only grow.
    template <int Groups, typename Compute>
    __device__ __forceinline__ void run_relayed(int tiles, uint32* tile_counter,
                                                volatile int* tile_of_buffer,
                                                Compute compute) const {
        static_assert(kTma && Buffers > Groups, "bulk copies load the tiles of other groups");
        const int static_tiles = gridDim.x * Buffers;
        if (group.index == 0 && group.thread == 0)
            for (int b = 0; b < Buffers; ++b)
                assign(b * gridDim.x + blockIdx.x, tiles, b, tile_of_buffer);
        int b = group.index, phase = 0, stored_buffer = -1, reassigned = 0;
        auto refill = [&] {
            if (stored_buffer < 0 || group.thread != 0) return;
            tma_store_wait_read<0>();
            assign(reassigned, tiles, stored_buffer, tile_of_buffer);
            // As many indices are fetched as there are tiles, so the last one is fetched last.
            if (reassigned == static_tiles + tiles - 1) *tile_counter = 0;
        };
        for (;;) {
            wait_tile(b, phase);
            const int tile = tile_of_buffer[b];
            if (tile >= tiles) break;
            int fetched = 0;
            if (group.thread == 0) fetched = static_tiles + atomicAdd(tile_counter, 1u);
            compute(buffer(b), refill);
            fence_proxy_async_shared();
            group.sync();
            store_tile(tile, b);
            stored_buffer = b;
            reassigned = fetched;
            b += Groups;
            if (b >= Buffers) {
                b -= Buffers;
                phase ^= 1;
            }
        }
        group.sync();  // all threads have read that there is no further tile
        refill();
        // The group that waits for this buffer next has to end, too.
        if (group.thread == 0) assign(tiles, tiles, b, tile_of_buffer);
    }
};
