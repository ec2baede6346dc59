// Blocks anywhere on the card that share rows tell each other in global memory what they found.
//
// Each block has a place for each of the last kTurns rows. What it writes there carries its turn, so
// that nobody clears a place between rows. Nor is one written again too early: a block that tells of
// turn t has written turn t - lag, so all others have told of that, so they have written, and before
// that heard, turn t - 2 lag.
#pragma once
#include "row.cuh"

constexpr int kMaxEpilogueStages = 4;
constexpr int kExchangeSlots = 2 * kMaxEpilogueStages;

// A block's part of a row: read and written in one access, so it is there whole or not at all.
struct alignas(16) RowPartial {
    float maximum;
    uint32 tag;  // from 1; 0 says that nothing was told yet
    double sum;
};

__device__ __forceinline__ void store_partial(RowPartial* to, const RowPartial& partial) {
    const auto* words = reinterpret_cast<const unsigned long long*>(&partial);
    asm volatile(
        "{\n.reg .b128 all;\nmov.b128 all, {%1, %2};\n"
        "st.relaxed.gpu.global.b128 [%0], all;\n}\n" ::"l"(to),
        "l"(words[0]), "l"(words[1])
        : "memory");
}

__device__ __forceinline__ RowPartial load_partial(const RowPartial* from) {
    RowPartial partial;
    auto* words = reinterpret_cast<unsigned long long*>(&partial);
    asm volatile(
        "{\n.reg .b128 all;\nld.relaxed.gpu.global.b128 all, [%2];\n"
        "mov.b128 {%0, %1}, all;\n}\n"
        : "=l"(words[0]), "=l"(words[1])
        : "l"(from)
        : "memory");
    return partial;
}

// The maximum and the sum of all the parts of a row that the lanes of a warp have, `count` each.
template <SoftmaxPlan plan, int count>
__device__ __forceinline__ RowPartial combine_partials(const RowPartial (&partials)[count],
                                                       const SoftmaxArguments& args) {
    float maximum = partials[0].maximum;
#pragma unroll
    for (int i = 1; i < count; ++i) maximum = max_nan(maximum, partials[i].maximum);
    maximum = warp_reduce<kWarp>(maximum, MaxOp{});
    const ExponentialsOf<plan> all(finite_maximum(maximum), args);
    double sum = 0;
#pragma unroll
    for (int i = 0; i < count; ++i) {
        sum += partials[i].sum * rescale_factor(all, partials[i].maximum, args);
    }
    return {maximum, 0, warp_reduce<kWarp>(sum, SumOp{})};
}

__device__ __forceinline__ RowPartial empty_partial() { return {-infinity(), 0, 0.0}; }

// The places of one team of blocks, in memory that is zero before and after the kernel.
template <SoftmaxPlan plan>
class Exchange {
    struct Storage {
        RowPartial slots[kExchangeSlots][plan.blocks_per_row];
        alignas(16) uint32 finished_blocks;  // blocks that will not read any more
    };
    static constexpr int kSlotsPerLane =
        (plan.blocks_per_row + kWarp - 1) / kWarp;  // places that a lane reads
    Storage& storage;
    const int rank;

 public:
    __device__ __forceinline__ Exchange(const SoftmaxArguments& args, int group, int rank)
        : storage(static_cast<Storage*>(args.exchange)[group]), rank(rank) {}

    __device__ __forceinline__ void publish(uint32 iteration, RowPartial partial) {
        partial.tag = iteration + 1;
        store_partial(&storage.slots[iteration % kExchangeSlots][rank], partial);
    }

    // A warp waits for all parts of a row.
    __device__ __forceinline__ RowPartial gather(uint32 iteration, const SoftmaxArguments& args) {
        const RowPartial* from = storage.slots[iteration % kExchangeSlots];
        const int lane = threadIdx.x % kWarp;
        RowPartial partials[kSlotsPerLane];
#pragma unroll
        for (int i = 0; i < kSlotsPerLane; ++i) partials[i] = empty_partial();
        bool missing;
        do {
            missing = false;
#pragma unroll
            for (int i = 0; i < kSlotsPerLane; ++i) {
                const int block = lane + i * kWarp;
                if (block < plan.blocks_per_row && partials[i].tag != iteration + 1)
                    partials[i] = load_partial(from + block);
            }
#pragma unroll
            for (int i = 0; i < kSlotsPerLane; ++i) {
                missing |=
                    lane + i * kWarp < plan.blocks_per_row && partials[i].tag != iteration + 1;
            }
        } while (missing);
        __syncwarp();
        return combine_partials<plan>(partials, args);
    }

    // The warp that heard of every row. When all blocks' have, nobody reads or tells any more, and
    // the last leaves zeros.
    __device__ __forceinline__ void finish() {
        const int lane = threadIdx.x % kWarp;
        __syncwarp();
        uint32 previously_finished = 0;
        if (lane == 0) {
            asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;"
                         : "=r"(previously_finished)
                         : "l"(&storage.finished_blocks)
                         : "memory");
        }
        __syncwarp();
        if (__shfl_sync(0xffffffffu, previously_finished, 0) != plan.blocks_per_row - 1) return;
        for (int i = lane; i < kExchangeSlots * plan.blocks_per_row; i += kWarp) {
            storage.slots[i / plan.blocks_per_row][i % plan.blocks_per_row] = {};
        }
        if (lane == 0) storage.finished_blocks = 0;
    }
};
