// Tiles from one counter for all groups of all blocks: some multiprocessors are slower at memory than
// others, and equal shares would wait for them.
#pragma once
#include "tile_ring.cuh"

template <int Warps, int Buffers, bool WideCopies, TileLayout layout>
struct ScheduledTileRing : TileRing<Warps, Buffers, WideCopies, false, layout, layout> {
    using Base = TileRing<Warps, Buffers, WideCopies, false, layout, layout>;
    using Base::barriers, Base::buffer, Base::wait_stored, Base::group, Base::load_tile,
        Base::store_tile, Base::wait_tile;
    static constexpr bool kTma = Base::kTmaLoads && Base::kTmaStores;
    static constexpr bool kDynamic = kTma && Warps == 1;

    // `work(buffer)` for tiles of a lone warp. The first few are dealt out, and the next number is asked for long before it is needed.
    template <typename Compute>
    __device__ __forceinline__ void run_dynamic(int first, int groups, int tiles,
                                                uint32* tile_counter, Compute compute) const {
        static_assert(kDynamic, "a warp's first lane asks the engine for all");
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
            copy_engine_fence();
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
            wait_stores_read<0>();
            // Every warp draws one number that is too large; who has the last one leaves the counter zero.
            const int dynamic_tiles = tiles > static_tiles ? tiles - static_tiles : 0;
            if (fetched - static_tiles == dynamic_tiles + groups - 1) *tile_counter = 0;
        }
    }

    // Says which tile a buffer has, and has it brought; one that is too large is the last.
    __device__ __forceinline__ void assign(int tile, int tiles, int b,
                                           volatile int* tile_of_buffer) const {
        tile_of_buffer[b] = tile;
        if (tile < tiles) {
            load_tile(tile, tiles, b);
        } else {
            barrier_arrive(barriers + 8 * b);
        }
    }

    // `work(buffer, between)` for tiles of this group, where `Groups` take a block's buffers in turn. The
    // first tiles are dealt out; for each that it has done a group draws another one's number and has it
    // brought to the buffer that it had, maybe for another group: by `between`, which is called where what
    // was stored last has long been read. `numbers` say which tile a buffer has; they only grow.
    template <int Groups, typename Compute>
    __device__ __forceinline__ void run_relayed(int tiles, uint32* tile_counter,
                                                volatile int* tile_of_buffer,
                                                Compute compute) const {
        static_assert(kTma && Buffers > Groups, "others' tiles come by engine");
        const int static_tiles = gridDim.x * Buffers;
        if (group.index == 0 && group.thread == 0)
            for (int b = 0; b < Buffers; ++b)
                assign(b * gridDim.x + blockIdx.x, tiles, b, tile_of_buffer);
        int b = group.index, phase = 0, stored_buffer = -1, reassigned = 0;
        auto refill = [&] {
            if (stored_buffer < 0 || group.thread != 0) return;
            wait_stores_read<0>();
            assign(reassigned, tiles, stored_buffer, tile_of_buffer);
            // As many numbers are drawn as there are tiles: who has the last one is the last to draw.
            if (reassigned == static_tiles + tiles - 1) *tile_counter = 0;
        };
        for (;;) {
            wait_tile(b, phase);
            const int tile = tile_of_buffer[b];
            if (tile >= tiles) break;
            int fetched = 0;
            if (group.thread == 0) fetched = static_tiles + atomicAdd(tile_counter, 1u);
            compute(buffer(b), refill);
            copy_engine_fence();
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
        group.sync();  // all know that it was the last
        refill();
        // Who waits for the buffer that had none has to know, too.
        if (group.thread == 0) assign(tiles, tiles, b, tile_of_buffer);
    }
};
