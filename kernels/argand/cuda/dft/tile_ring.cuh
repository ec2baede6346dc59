// Tiles of transforms on their way: global to shared memory, and back, while others are worked on.
//
// A group of warps has `buffers` tiles in shared memory and takes tile after tile. Arrays on 16 bytes are
// `wide`: the copy engine takes tiles without gaps, else threads copy 16 bytes; others go one by one.
#pragma once
#include "device/bulk_copy.cuh"
#include "device/tensor_copy.cuh"
#include "tile_group.cuh"

// `Whole` tiles have all of their lines, one after the other in memory.
template <int Warps, int Buffers, bool Wide, bool Whole, Lines taken, Lines given>
struct Ring {
    static constexpr int kBytes = taken.bytes() > given.bytes() ? taken.bytes() : given.bytes();
    // A tile without gaps is one request of the copy engine. It takes lines one by one, which costs
    // more than copying 16 bytes a thread.
    static constexpr bool kEngineLoads = kHasEngine && Wide && taken.dense();
    static constexpr bool kEngineStores = kHasEngine && Wide && given.dense();
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
};
