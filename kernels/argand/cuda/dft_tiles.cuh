// Tiles of transforms on their way: global to shared memory, and back, while others are worked on.
//
// A group of warps has `buffers` tiles in shared memory and takes tile after tile. Arrays on 16 bytes are
// `wide`: the copy engine takes tiles without gaps, else threads copy 16 bytes; others go one by one.
#pragma once
#include "device/bulk_copy.cuh"
#include "device/tensor_copy.cuh"
#include "dft_group.cuh"

// `Whole` tiles have all of their lines, one after the other in memory.
template <int Warps, int Buffers, bool Wide, bool Whole, Lines taken, Lines given>
struct Ring {
    static constexpr int kBytes = taken.bytes() > given.bytes() ? taken.bytes() : given.bytes();
    // A tile without gaps is one request of the copy engine. It takes lines one by one, which costs
    // more than copying 16 bytes a thread.
    static constexpr bool kEngineLoads = kHasEngine && Wide && taken.dense();
    static constexpr bool kEngineStores = kHasEngine && Wide && given.dense();
    static constexpr bool kShares = kEngineLoads && kEngineStores && Warps == 1;
    static constexpr int kElements = Wide ? 2 : 1;  // of a thread's copy
    static_assert(!Wide || taken.dense() || taken.width % 2 == 0, "lines of whole 16 bytes");
    static_assert(!Wide || given.dense() || given.width % 2 == 0, "lines of whole 16 bytes");

    Group<Warps> group;
    Array source, target;
    float2* memory;   // of this group
    uint32 barriers;

    __device__ __forceinline__ float2* buffer(int b) const { return memory + b * (kBytes / 8); }

    __device__ __forceinline__ void start() const {
        if constexpr (kEngineLoads) {
            if (group.thread == 0) {
                for (int b = 0; b < Buffers; ++b) barrier_init(barriers + 8 * b, 1);
                barrier_init_fence();
            }
        }
    }

    // How many of a tile's lines there are.
    template <Lines lines>
    __device__ __forceinline__ int valid(const Array& array, int64 tile) const {
        if constexpr (Whole) return lines.count;
        const int64 left = array.lines - tile * lines.count;
        return left < lines.count ? static_cast<int>(left) : lines.count;
    }

    // `move(at memory, at shared memory, elements)` for the pieces of a tile that a thread moves: of
    // `kElements` each, but for an odd element at the end of lines without gaps.
    template <Lines lines, typename Move>
    __device__ __forceinline__ void pieces(const Array& array, int64 tile, float2* place,
                                           Move move) const {
        float2* const memory_at = array.first + tile * array.tile_stride;
        const int count = valid<lines>(array, tile);
        if constexpr (Wide && lines.dense()) {
            const int elements = count * lines.width, even = elements & ~1;
            for (int i = 2 * group.thread; i < even; i += 2 * group.kThreads)
                move(memory_at + i, place + i, 2);
            if (elements != even && group.thread == 0) move(memory_at + even, place + even, 1);
        } else if (Whole || count == lines.count) {
            lines_of<lines, true>(array, memory_at, place, lines.count, move);
        } else {
            lines_of<lines, false>(array, memory_at, place, count, move);
        }
    }

    // Threads' own offsets are added once, so that those of each turn are known when it is compiled.
    template <Lines lines, bool Known, typename Move>
    __device__ __forceinline__ void lines_of(const Array& array, float2* memory_at, float2* place,
                                             int count, Move move) const {
        constexpr int kPieces = lines.width / kElements, kThreads = Group<Warps>::kThreads;
        constexpr int kTurns = (lines.count * kPieces + kThreads - 1) / kThreads;
        constexpr bool kExact = lines.count * kPieces % kThreads == 0;
        const int64 stride = Whole ? lines.width : array.line_stride;
        const int thread = Group<Warps>::here().thread;
        const int own_line = thread / kPieces, own = thread % kPieces * kElements;
        if constexpr (kThreads % kPieces == 0) {
            constexpr int kStep = kThreads / kPieces;
            float2* const from = memory_at + own_line * stride + own;
            float2* const to = place + own_line * lines.pitch + own;
#pragma unroll(Known && kTurns <= 32 ? kTurns : 2)
            for (int turn = 0; turn < kTurns; ++turn)
                if ((Known && kExact) || own_line + turn * kStep < count)
                    move(from + turn * kStep * stride, to + turn * kStep * lines.pitch, kElements);
        } else {
#pragma unroll(Known && kTurns <= 32 ? kTurns : 2)
            for (int turn = 0; turn < kTurns; ++turn) {
                const int i = thread + turn * kThreads;
                const int line = i / kPieces, k = i % kPieces * kElements;
                if ((Known && kExact) || line < count)
                    move(memory_at + line * stride + k, place + line * lines.pitch + k, kElements);
            }
        }
    }

    __device__ __forceinline__ void request(int64 tile, int64 tiles, int b) const {
        float2* const place = buffer(b);
        if constexpr (kEngineLoads) {
            if (tile >= tiles || group.thread != 0) return;
            const float2* const from = source.first + tile * source.tile_stride;
            const uint32 barrier = barriers + 8 * b;
            // An odd number of elements leaves one at the end that the engine cannot take.
            const int elements = valid<taken>(source, tile) * taken.width, even = elements & ~1;
            if (elements != even) place[even] = from[even];
            barrier_expect(barrier, even * 8);
            if (even) copy_bulk(shared_address(place), from, even * 8, barrier);
        } else {
            if (tile < tiles) {
                pieces<taken>(source, tile, place, [](float2* from, float2* to, int elements) {
                    if (elements == 2) {
                        copy_async<16>(to, from, 16);
                    } else {
                        copy_async<8>(to, from, 8);
                    }
                });
            }
            commit_copies();  // one group a request, so that they can be counted
        }
    }

    __device__ __forceinline__ void wait(int b, int parity) const {
        if constexpr (kEngineLoads) {
            barrier_wait(barriers + 8 * b, parity);
        } else {
            wait_copies<(Buffers > 2 ? Buffers - 2 : Buffers - 1)>();
            group.sync();
        }
    }

    // Returns when the results stored last have been read from shared memory.
    __device__ __forceinline__ void drained() const {
        if (kEngineStores && group.thread == 0) wait_stores_read<0>();
        // One thread asks the engine for both; else all have to know.
        if constexpr (!(kEngineLoads && kEngineStores)) group.sync();
    }

    __device__ __forceinline__ void store(int64 tile, int b) const {
        float2* const place = buffer(b);
        if constexpr (kEngineStores) {
            if (group.thread == 0) {
                float2* const to = target.first + tile * target.tile_stride;
                const int elements = valid<given>(target, tile) * given.width, even = elements & ~1;
                if (elements != even) to[even] = place[even];
                if (even) store_bulk(to, shared_address(place), even * 8);
                commit_stores();
            }
        } else {
            pieces<given>(target, tile, place, [](float2* to, float2* from, int elements) {
                if (elements == 2)
                    *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(from);
                else
                    *to = *from;
            });
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
            if constexpr (kEngineLoads || kEngineStores) copy_engine_fence();
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
        // Shared memory has to stay until the copy engine has read it.
        if (kEngineStores && group.thread == 0) wait_stores_read<0>();
    }

    // The same of a lone warp, with tiles from a counter of all: some multiprocessors are slower at memory
    // than others. The first few are dealt out, and the next number is asked for long before it is needed.
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

    // The first tiles of a block, by one thread: as early as can be.
    __device__ __forceinline__ void deal(int tiles, volatile int* numbers) const {
        for (int b = 0; b < Buffers; ++b) place(b * gridDim.x + blockIdx.x, tiles, b, numbers);
    }

    // `work(buffer, between)` for tiles of this group, where `Groups` take a block's buffers in turn, after
    // `deal`. For each tile that it has done a group draws another one's number and has it brought to the
    // buffer that it had, maybe for another group: by `between`, which is called where what was stored last
    // has long been read. `numbers` say which tile a buffer has; they only grow.
    template <int Groups, typename Work>
    __device__ __forceinline__ void relay(int tiles, uint32* counter, volatile int* numbers,
                                          Work work) const {
        static_assert(kEngineLoads && kEngineStores && Buffers > Groups, "others' tiles come by engine");
        const int dealt = gridDim.x * Buffers;
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
