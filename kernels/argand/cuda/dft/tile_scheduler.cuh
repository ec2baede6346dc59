// Tiles from one counter for all groups of all blocks: some multiprocessors are slower at memory than
// others, and equal shares would wait for them.
#pragma once
#include "tile_ring.cuh"

template <int Warps, int Buffers, bool Wide, Lines lines>
struct CountedRing : Ring<Warps, Buffers, Wide, false, lines, lines> {
    using Base = Ring<Warps, Buffers, Wide, false, lines, lines>;
    using Base::barriers, Base::buffer, Base::drained, Base::group, Base::request, Base::store, Base::wait;
    static constexpr bool kByEngine = Base::kEngineLoads && Base::kEngineStores;
    static constexpr bool kShares = kByEngine && Warps == 1;

    // `work(buffer)` for tiles of a lone warp. The first few are dealt out, and the next number is asked for long before it is needed.
    template <typename Work>
    __device__ __forceinline__ void share(int first, int groups, int tiles, uint32* counter,
                                          Work work) const {
        static_assert(kShares, "a warp's first lane asks the engine for all");
        constexpr int kAhead = Buffers == 2 ? 1 : Buffers;
        const int dealt = groups * kAhead;
        auto draw = [&] {
            return group.thread == 0 ? dealt + static_cast<int>(atomicAdd(counter, 1u)) : 0;
        };
        int numbers[Buffers], drawn = draw();
        auto take = [&](int b) {
            const int tile = drawn;
            request(tile, tiles, b);
            if (tile < tiles) drawn = draw();
            return tile;
        };
#pragma unroll
        for (int i = 0; i < kAhead; ++i) {
            numbers[i] = first + i * groups;
            request(numbers[i], tiles, i);
        }
        int b = 0, parity = 0;
        for (bool begun = false;; begun = true) {
            if constexpr (Buffers == 2) {
                drained();
                numbers[1] = take(b ^ 1);
            }
            const int tile = __shfl_sync(0xffffffffu, numbers[0], 0);
            if (tile >= tiles) break;
#pragma unroll
            for (int i = 1; i < Buffers; ++i) numbers[i - 1] = numbers[i];
            wait(b, parity);
            work(buffer(b));
            copy_engine_fence();
            if (Buffers > 2 && begun) {
                drained();
                numbers[Buffers > 2 ? Buffers - 2 : 0] = take(b == 0 ? Buffers - 1 : b - 1);
            }
            group.sync();
            store(tile, b);
            if constexpr (Buffers == 1) {
                drained();
                numbers[0] = take(0);
            }
            if (++b == Buffers) {
                b = 0;
                parity ^= 1;
            }
        }
        if (group.thread == 0) {
            wait_stores_read<0>();
            // Every warp draws one number that is too large; who has the last one leaves the counter zero.
            const int right = tiles > dealt ? tiles - dealt : 0;
            if (drawn - dealt == right + groups - 1) *counter = 0;
        }
    }

    // Says which tile a buffer has, and has it brought; one that is too large is the last.
    __device__ __forceinline__ void place(int tile, int tiles, int b, volatile int* numbers) const {
        numbers[b] = tile;
        if (tile < tiles) {
            request(tile, tiles, b);
        } else {
            barrier_arrive(barriers + 8 * b);
        }
    }

    // `work(buffer, between)` for tiles of this group, where `Groups` take a block's buffers in turn. The
    // first tiles are dealt out; for each that it has done a group draws another one's number and has it
    // brought to the buffer that it had, maybe for another group: by `between`, which is called where what
    // was stored last has long been read. `numbers` say which tile a buffer has; they only grow.
    template <int Groups, typename Work>
    __device__ __forceinline__ void relay(int tiles, uint32* counter, volatile int* numbers,
                                          Work work) const {
        static_assert(kByEngine && Buffers > Groups, "others' tiles come by engine");
        const int dealt = gridDim.x * Buffers;
        if (group.index == 0 && group.thread == 0)
            for (int b = 0; b < Buffers; ++b) place(b * gridDim.x + blockIdx.x, tiles, b, numbers);
        int b = group.index, parity = 0, stored = -1, owed = 0;
        auto pay = [&] {
            if (stored < 0 || group.thread != 0) return;
            wait_stores_read<0>();
            place(owed, tiles, stored, numbers);
            // As many numbers are drawn as there are tiles: who has the last one is the last to draw.
            if (owed == dealt + tiles - 1) *counter = 0;
        };
        for (;;) {
            wait(b, parity);
            const int tile = numbers[b];
            if (tile >= tiles) break;
            int drawn = 0;
            if (group.thread == 0) drawn = dealt + atomicAdd(counter, 1u);
            work(buffer(b), pay);
            copy_engine_fence();
            group.sync();
            store(tile, b);
            stored = b;
            owed = drawn;
            b += Groups;
            if (b >= Buffers) {
                b -= Buffers;
                parity ^= 1;
            }
        }
        group.sync();  // all know that it was the last
        pay();
        // Who waits for the buffer that had none has to know, too.
        if (group.thread == 0) place(tiles, tiles, b, numbers);
    }
};
