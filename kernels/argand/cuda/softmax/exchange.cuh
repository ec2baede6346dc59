// Exchange of partial maxima and sums in global memory between blocks that share rows, on any
// multiprocessors: a block publishes its partial of a row, then gathers those of all blocks. Only
// the ring kernel uses it; blocks of a cluster use distributed shared memory (reduce.cuh).
//
// Each block has one slot for each of the last kExchangeSlots rows. A partial carries the row's
// tag, so that slots need not be cleared between rows. No slot is overwritten too early: a block
// that publishes row t has written row t - epilogue_stages, so all others have published that row,
// which they do only after they have gathered and written row t - 2 epilogue_stages.
#pragma once
#include "row.cuh"

constexpr int kMaxEpilogueStages = 6;
constexpr int kExchangeSlots = 2 * kMaxEpilogueStages;

// A block's partial of a row. One access of 16 bytes reads or writes it, so it is never torn.
struct alignas(16) RowPartial {
    float maximum;
    uint32 tag;  // iteration + 1; 0 before the first
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

// Maximum and sum of a row, of partials that the lanes of a warp hold, `count` each.
template <RowPlan plan, int count>
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

// The slots of one group of blocks that share rows. The workspace is zero before and after the
// kernel.
template <RowPlan plan>
class Exchange {
    struct Storage {
        RowPartial slots[kExchangeSlots][plan.blocks_per_row];
        alignas(16) uint32 finished_blocks;  // that gathered their last row
    };
    static constexpr int kSlotsPerLane = (plan.blocks_per_row + kWarp - 1) / kWarp;
    Storage& storage;
    const int rank;

 public:
    __device__ __forceinline__ Exchange(const SoftmaxArguments& args, int group, int rank)
        : storage(static_cast<Storage*>(args.exchange)[group]), rank(rank) {}

    __device__ __forceinline__ void publish(uint32 iteration, RowPartial partial) {
        partial.tag = iteration + 1;
        store_partial(&storage.slots[iteration % kExchangeSlots][rank], partial);
    }

    // Called by a whole warp. Returns when all blocks have published the row.
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

    // Called by the gather warp after the last row. The last block of the group clears the
    // workspace: by then no block reads or publishes any more.
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
