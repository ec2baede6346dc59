// Sums that wait in memory: those of pieces of tiles, and totals of a long k.
//
// A total that is added to again and again is rounded each time, so its error grows with the root of
// how often. Split precisions therefore add up no more than plan.segment stages in registers: quarter
// after quarter of a tile's columns moves its totals to memory and begins anew, and at the tile's end
// what is there comes back. What moves are the upper bits, what they leave stays in the registers: so
// short numbers are added in memory without an error, and the second-level cache does it
// (`red`), for nobody waits. Each element belongs to one thread: results repeat bit for bit.
#pragma once
#include "gemm_wgmma_rows.cuh"
#include "gemm_wgmma_work.cuh"

constexpr uint32 kUpperBits = 0xfffff000u;  // sign, exponent and 11 bits behind the point

template <WgmmaPlan plan>
constexpr int kMultiplying = kWarpgroup * plan.warpgroups;  // threads

// Whether totals of so many stages move to memory.
template <WgmmaPlan plan>
__device__ __forceinline__ bool totals_move(int steps) {
    return plan.terms > 1 && steps > plan.segment;
}

// Where a thread's sums lie: 4 j + 2 h + e of its registers belongs to row h and column 8 j + e.
struct SumsPlace {
    float2* row[2];  // null where there is none
    int64 group, next;
    int columns;  // from the thread's first on

    __device__ __forceinline__ bool has(int j, int h, int e) const {
        return row[h] != nullptr && 8 * j + e < columns;
    }
    __device__ __forceinline__ float2* at(int j, int h, int e) const {
        return row[h] + j * group + e * next;
    }
};

// Of a piece that block `block` leaves; neighbouring threads' are neighbours.
template <WgmmaPlan plan>
__device__ __forceinline__ SumsPlace piece_place(const WgmmaArguments& args, uint32 block,
                                                 int thread) {
    const uint32 piece = block - block / forgotten(args.period);  // shares that end with a tile leave none
    float2* first = args.pieces + int64(piece) * (plan.block_n / 2 * kMultiplying<plan>) + thread;
    constexpr int kNext = kMultiplying<plan>;
    return {{first, first + 2 * kNext}, 4 * kNext, kNext, plan.block_n};
}

template <WgmmaPlan plan>
__device__ __forceinline__ SumsPlace tile_place(const WgmmaArguments& args, const WgmmaTile& tile,
                                                int thread) {
    const int lane = thread % kWarp, column = tile.column + 2 * (lane % 4);
    const int64 product = int64(tile.batch) + int64(tile.part) * args.batches;
    float2* first = args.totals + product * args.totals_batch + column * args.totals_column;
    SumsPlace place{{}, 8 * args.totals_column, args.totals_column, args.columns - column};
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int row = tile.row + thread / kWarp * 16 + fragment_row<plan>(lane, h);
        place.row[h] = row < args.rows ? first + row * args.totals_row : nullptr;
    }
    return place;
}

// Writes x, or adds it to what this thread has written there before.
__device__ __forceinline__ void put(float2* at, float2 x, bool adds) {
    if (adds) {
        asm volatile("red.relaxed.gpu.global.add.v2.f32 [%0], {%1, %2};" ::"l"(at), "f"(x.x), "f"(x.y)
                     : "memory");
    } else {
        __stcg(at, x);
    }
}

// Takes the upper bits from x and returns them.
__device__ __forceinline__ float take_upper(float& x) {
    const float upper = __uint_as_float(__float_as_uint(x) & kUpperBits);
    x -= upper;
    return upper;
}

// Moves the totals of a quarter of the columns.
template <WgmmaPlan plan, int quarter>
__device__ __forceinline__ void move_quarter(const SumsPlace& place, bool adds,
                                             float (&re)[plan.block_n / 2],
                                             float (&im)[plan.block_n / 2]) {
    constexpr int kGroups = plan.block_n / 32;
#pragma unroll
    for (int j = quarter * kGroups; j < (quarter + 1) * kGroups; ++j)
#pragma unroll
        for (int h = 0; h < 2; ++h)
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const int i = 4 * j + 2 * h + e;
                const float2 x = {take_upper(re[i]), take_upper(im[i])};
                if (place.has(j, h, e)) put(place.at(j, h, e), x, adds);
            }
}

// The same of the next quarter, where `left` stages are left of the tile.
template <WgmmaPlan plan>
__device__ __forceinline__ void move_totals(const WgmmaArguments& args, uint32 turn, int left,
                                            float (&re)[plan.block_n / 2],
                                            float (&im)[plan.block_n / 2]) {
    const int thread = this_thread(), move = left / plan.quarter();
    WgmmaWork work{};
    find_work<plan>(args, forgotten(turn), work);
    const int first = (work.tile.steps - 1) / plan.quarter();  // number of the first move, the last is 1
    if (!totals_move<plan>(work.tile.steps)) return;
    const bool adds = move <= first - 4;
    const SumsPlace place = work.left ? piece_place<plan>(args, this_block(), thread)
                                      : tile_place<plan>(args, work.tile, thread);
    if (move % 4 == 0) move_quarter<plan, 0>(place, adds, re, im);
    if (move % 4 == 1) move_quarter<plan, 1>(place, adds, re, im);
    if (move % 4 == 2) move_quarter<plan, 2>(place, adds, re, im);
    if (move % 4 == 3) move_quarter<plan, 3>(place, adds, re, im);
}

// Adds to the sums what lies there; a piece's place is whole.
template <WgmmaPlan plan, bool whole>
__device__ __forceinline__ void add_from(const SumsPlace& place, float (&re)[plan.block_n / 2],
                                         float (&im)[plan.block_n / 2]) {
#pragma unroll
    for (int j = 0; j < plan.block_n / 8; ++j)
#pragma unroll
        for (int h = 0; h < 2; ++h)
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                if (!whole && !place.has(j, h, e)) continue;
                const float2 x = __ldcg(place.at(j, h, e));
                re[4 * j + 2 * h + e] += x.x;
                im[4 * j + 2 * h + e] += x.y;
            }
}

// Leaves a piece's sums to the block that has the tile's end, warp by warp.
template <WgmmaPlan plan>
__device__ __forceinline__ void leave_piece(const WgmmaArguments& args, const WgmmaTile& tile,
                                            int thread, const float (&re)[plan.block_n / 2],
                                            const float (&im)[plan.block_n / 2]) {
    const SumsPlace place = piece_place<plan>(args, this_block(), thread);
    const bool adds = totals_move<plan>(tile.steps);
#pragma unroll
    for (int i = 0; i < plan.block_n / 2; ++i) {
        float2* at = place.at(i / 4, i / 2 % 2, i % 2);
        if constexpr (plan.terms > 1) {
            put(at, {re[i], im[i]}, adds);
        } else {  // one by one: there are no registers to bring two side by side
            __stcg(&at->x, re[i]);
            __stcg(&at->y, im[i]);
        }
    }
    // Each lane vouches for itself: a barrier of the warp here makes the assembler spill the sums.
    uint32* ready = args.ready + this_block() * 4 * plan.warpgroups + thread / kWarp;
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(ready) : "memory");
}

// Adds the sums of a tile's other pieces, which blocks `first` to `end` leave, in this order.
template <WgmmaPlan plan>
__device__ __forceinline__ void add_pieces(const WgmmaArguments& args, const WgmmaWork& work,
                                           int thread, float (&re)[plan.block_n / 2],
                                           float (&im)[plan.block_n / 2]) {
#pragma unroll 1
    for (int block = work.first; block < work.end; ++block) {
        uint32* ready = args.ready + block * 4 * plan.warpgroups + thread / kWarp;
        uint32 there = 0;
        while (there < kWarp) {
            asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(there) : "l"(ready) : "memory");
        }
        add_from<plan, true>(piece_place<plan>(args, block, thread), re, im);
        __syncwarp();
        if (thread % kWarp == 0) *ready = 0;  // for the next launch
    }
}
