// Sums that wait in memory: those of pieces of tiles, and totals of a long k.
//
// A total that is added to again and again is rounded each time, so its error grows with the root of
// how often. Of split precisions totals of some columns at a time therefore move to memory, each every
// plan.segment stages, and begin anew, and at the tile's end they come back. What moves are their upper
// bits, what these leave stays in the registers: so short numbers are added in memory without an error,
// and the second-level cache does it (`red`), for nobody waits. Each element belongs to one thread:
// results repeat bit for bit.
//
// The first and the last stretch between moves have plan.segment / 2 to 3 / 2 plan.segment stages: none
// moves just after the tile has begun, or just before it ends.
#pragma once
#include "gemm_wgmma_rows.cuh"
#include "gemm_wgmma_work.cuh"

constexpr uint32 kUpperBits = 0xfffff000u;  // sign, exponent and 11 bits behind the point

template <WgmmaPlan plan>
constexpr int kMultiplying = kWarpgroup * plan.warpgroups;  // threads

// Whether totals of so many stages move to memory.
template <WgmmaPlan plan>
__device__ __forceinline__ bool totals_move(int steps) {
    return plan.terms > 1 && steps > plan.segment * 3 / 2;
}

// Where a thread's sums lie: 4 j + 2 h + e of its registers belongs to row h and column 8 j + e. It is
// kept while products run, so it is small.
template <WgmmaPlan plan>
struct SumsPlace {
    static constexpr int kNext = kMultiplying<plan>;  // of a piece, whose neighbours belong to neighbours
    float2* first;
    int columns;  // that there are from the thread's first on, at most block_n
    int rows;     // of its two, 0 to 2
    bool piece;

    __device__ __forceinline__ bool has(int j, int h, int e) const {
        return h < rows && 8 * j + e < columns;
    }
    // Whether the tile's first so many columns are all there, in both rows, as the result has them.
    __device__ __forceinline__ bool holds(int count) const {
        return !piece && rows == 2 && columns > count - 8 + 1;
    }
    __device__ __forceinline__ float2* at(const WgmmaArguments& args, int j, int h, int e) const {
        if (piece) return first + (4 * j + 2 * h + e) * kNext;
        constexpr int kSecond = plan.neighbour_rows() ? 1 : 8;
        return first + h * kSecond * args.totals_row + (8 * j + e) * args.totals_column;
    }
};

// Of a piece that block `block` leaves.
template <WgmmaPlan plan>
__device__ __forceinline__ SumsPlace<plan> piece_place(const WgmmaArguments& args, uint32 block,
                                                       int thread) {
    const uint32 piece = block - block / forgotten(args.period);  // shares that end with a tile leave none
    return {args.pieces + int64(piece) * (plan.block_n / 2 * kMultiplying<plan>) + thread, plan.block_n, 2,
            true};
}

template <WgmmaPlan plan>
__device__ __forceinline__ SumsPlace<plan> tile_place(const WgmmaArguments& args,
                                                      const WgmmaTile& tile, int thread) {
    const int lane = thread % kWarp, column = tile.column + 2 * (lane % 4);
    const int row = tile.row + thread / kWarp * 16 + fragment_row<plan>(lane, 0);
    const int second = tile.row + thread / kWarp * 16 + fragment_row<plan>(lane, 1);
    const int64 product = int64(tile.batch) + int64(tile.part) * args.batches;
    return {args.totals + product * args.totals_batch + row * args.totals_row +
                column * args.totals_column,
            args.columns - column, (row < args.rows) + (second < args.rows), false};
}

// Of this block's work number `turn`.
template <WgmmaPlan plan>
__device__ __forceinline__ SumsPlace<plan> find_place(const WgmmaArguments& args, uint32 turn) {
    WgmmaWork work{};
    find_work<plan>(args, forgotten(turn), work);
    const int thread = this_thread();
    return work.left ? piece_place<plan>(args, this_block(), thread)
                     : tile_place<plan>(args, work.tile, thread);
}

// Writes sums, or adds them to what this thread has written there before.
__device__ __forceinline__ void put(float2* at, float2 x, bool adds) {
    if (adds) {
        asm volatile("red.relaxed.gpu.global.add.v2.f32 [%0], {%1, %2};" ::"l"(at), "f"(x.x), "f"(x.y)
                     : "memory");
    } else {
        __stcg(at, x);
    }
}

__device__ __forceinline__ void put(float2* at, float2 x, float2 y, bool adds) {
    if (adds) {
        asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(at), "f"(x.x),
                     "f"(x.y), "f"(y.x), "f"(y.y)
                     : "memory");
    } else {
        __stcg(reinterpret_cast<float4*>(at), float4{x.x, x.y, y.x, y.y});
    }
}

// Reads sums, zeros where there are none; without a branch, so that many reads are on their way at once.
__device__ __forceinline__ float2 get(const float2* at, bool there) {
    float2 x;
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %3, 0;\nmov.b32 %0, 0;\nmov.b32 %1, 0;\n"
                 "@p ld.global.cg.v2.f32 {%0, %1}, [%2];\n}"
                 : "=f"(x.x), "=f"(x.y)
                 : "l"(at), "r"(int(there))
                 : "memory");
    return x;
}

// Takes the upper bits from x and returns them; of an infinity nothing is left.
__device__ __forceinline__ float take_upper(float& x) {
    const float upper = __uint_as_float(__float_as_uint(x) & kUpperBits);
    x = upper == x ? 0.0f : x - upper;
    return upper;
}

// Upper bits of the totals of plan.moved_columns columns: of two neighbours in a row each.
template <WgmmaPlan plan>
struct UpperBits {
    static constexpr int kPairs = plan.moved_columns / 4, kGroups = plan.block_n / plan.moved_columns;
    float2 x[kPairs], y[kPairs];

    // Takes those of group number `group`, found by halves. Registers have no addresses, so each group
    // has code of its own: to pass by all of it would take longer than to move what it takes.
    template <int first = 0, int end = kGroups>
    __device__ __forceinline__ void take(int group, float (&re)[plan.block_n / 2],
                                         float (&im)[plan.block_n / 2]) {
        constexpr int kMiddle = (first + end) / 2;
        if constexpr (end - first == 1) {
#pragma unroll
            for (int i = 0; i < kPairs; ++i) {
                const int at = 2 * (first * kPairs + i);
                x[i] = {take_upper(re[at]), take_upper(im[at])};
                y[i] = {take_upper(re[at + 1]), take_upper(im[at + 1])};
            }
        } else if (group < kMiddle) {
            take<first, kMiddle>(group, re, im);
        } else {
            take<kMiddle, end>(group, re, im);
        }
    }

    // Moves them to where those of column `first` and the next ones are.
    __device__ __forceinline__ void move(const WgmmaArguments& args, const SumsPlace<plan>& place,
                                         int first, bool adds) const {
        if (args.totals_pairs && place.holds(first + plan.moved_columns)) {
            // Nearly always. One branch for all of them: branches of their own would take longer.
            float2* rows[2] = {place.at(args, first / 8, 0, 0), place.at(args, first / 8, 1, 0)};
            if (adds) {
#pragma unroll
                for (int i = 0; i < kPairs; ++i) put(rows[i % 2] + i / 2 * 8, x[i], y[i], true);
            } else {
#pragma unroll
                for (int i = 0; i < kPairs; ++i) put(rows[i % 2] + i / 2 * 8, x[i], y[i], false);
            }
            return;
        }
#pragma unroll
        for (int i = 0; i < kPairs; ++i) {
            const int j = first / 8 + i / 2, h = i % 2;
            if (place.has(j, h, 0)) put(place.at(args, j, h, 0), x[i], adds);
            if (place.has(j, h, 1)) put(place.at(args, j, h, 1), y[i], adds);
        }
    }
};

// Where a tile's totals move to and when, in three registers.
template <WgmmaPlan plan>
struct Moves {
    static constexpr int kGroups = UpperBits<plan>::kGroups;
    static_assert(plan.block_n % plan.moved_columns == 0, "every column moves");
    static_assert(plan.segment >= kGroups, "a move after a stage or more");
    float2* first;
    uint32 packed;  // from bit 11 on how many moves there are; the last is number 1

    // Of work number `turn`, of so many stages.
    __device__ __forceinline__ Moves(const WgmmaArguments& args, uint32 turn, int steps) {
        packed = 0;
        if (!totals_move<plan>(steps)) return;
        const SumsPlace<plan> place = find_place<plan>(args, turn);
        first = place.first;
        packed = max(0, min(place.columns, plan.block_n)) | place.rows << 8 | place.piece << 10 |
                 max(kGroups, (steps - 1 - plan.segment) / plan.move_every()) << 11;
    }

    // After each stage, where `left` are left.
    __device__ __forceinline__ void after(const WgmmaArguments& args, int left,
                                          float (&re)[plan.block_n / 2],
                                          float (&im)[plan.block_n / 2]) const {
        const int from_end = left - plan.segment / 2, move = from_end / plan.move_every();
        if (packed == 0 || from_end <= 0 || from_end % plan.move_every() != 0) return;
        const uint32 now = forgotten(packed);
        const int moves = now >> 11;
        if (move > moves) return;
        const SumsPlace<plan> place{first, int(now & 255), int(now >> 8 & 3), (now >> 10 & 1) != 0};
        const bool adds = move <= moves - kGroups;
        UpperBits<plan> upper;
        upper.take(move % kGroups, re, im);
        upper.move(args, place, move % kGroups * plan.moved_columns, adds);
    }
};

// Adds to the sums what lies there; a piece's place is whole.
template <WgmmaPlan plan, bool whole>
__device__ __forceinline__ void add_from(const WgmmaArguments& args, const SumsPlace<plan>& place,
                                         float (&re)[plan.block_n / 2],
                                         float (&im)[plan.block_n / 2]) {
#pragma unroll
    for (int first = 0; first < plan.block_n; first += 32) {
        if (first >= place.columns) break;
#pragma unroll
        for (int i = first / 2; i < min(first + 32, plan.block_n) / 2; ++i) {
            const int j = i / 4, h = i / 2 % 2, e = i % 2;
            const float2 x = get(place.at(args, j, h, e), whole || place.has(j, h, e));
            re[i] += x.x;
            im[i] += x.y;
        }
    }
}

// Leaves a piece's sums to the block that has the tile's end, warp by warp.
template <WgmmaPlan plan>
__device__ __forceinline__ void leave_piece(const WgmmaArguments& args, const WgmmaTile& tile,
                                            int thread, const float (&re)[plan.block_n / 2],
                                            const float (&im)[plan.block_n / 2]) {
    const SumsPlace<plan> place = piece_place<plan>(args, this_block(), thread);
    const bool adds = totals_move<plan>(tile.steps);
#pragma unroll
    for (int i = 0; i < plan.block_n / 2; ++i) {
        float2* at = place.at(args, i / 4, i / 2 % 2, i % 2);
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
        add_from<plan, true>(args, piece_place<plan>(args, block, thread), re, im);
        __syncwarp();
        if (thread % kWarp == 0) *ready = 0;  // for the next launch
    }
}
