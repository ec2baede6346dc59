// Dynamic shared memory of a block of the wgmma family: the ring of stages, the store boxes of the
// epilogue, two mbarriers a stage and the work slots. `shared_bytes` of argand/gemm/sm90/plan.py is
// all of it. The producer fills stages and arrives on `full`; consumer warps read them and arrive
// on `empty`.
#pragma once
#include "sm90_plan.cuh"

// The position of a producer or a consumer in the ring, and the addresses that follow from it.
template <WgmmaPlan plan>
struct Ring {
    uint32 base;  // of the stages; a stage is the X tile, then the Y tile
    int stage = 0;
    uint32 parity;  // of the mbarrier phase to wait for

    constexpr Ring(uint32 base, uint32 parity) : base(base), parity(parity) {}
    // The accumulators that one warpgroup along k leaves for another.
    constexpr uint32 exchange() const {
        return base + plan.stages * plan.stage_bytes() + plan.epilogue_bytes();
    }
    // The parts of the tile that the blocks of a cluster send to this one.
    constexpr uint32 parts() const { return exchange() + plan.exchange_bytes(); }
    constexpr uint32 mbarriers() const { return parts() + plan.parts_bytes(); }
    constexpr uint32 full() const { return mbarriers() + 8 * stage; }
    constexpr uint32 empty() const { return full() + 8 * plan.stages; }
    // The word in which the producer publishes its position, with fused packing.
    constexpr uint32 producer_position() const { return mbarriers() + 16 * plan.stages; }
    // The mbarriers of `exchange`, in the place of that word where warpgroups share k.
    constexpr uint32 exchange_full() const { return producer_position(); }
    constexpr uint32 exchange_empty() const { return exchange_full() + 8; }
    // The mbarrier of `parts`.
    constexpr uint32 parts_full() const { return producer_position() + 16; }
    // The slot of this block's work item `work_index`.
    constexpr uint32 work_slot(uint32 work_index) const {
        constexpr int kMore = plan.fused_pack || plan.k_warpgroups > 1 || plan.cluster > 1;
        return producer_position() + 16 * kMore + 16 * (plan.cluster > 1) +
               work_index % kWorkSlots * kWorkSlotBytes;
    }
    constexpr uint32 x_tile() const { return base + stage * plan.stage_bytes(); }
    constexpr uint32 y_tile() const { return x_tile() + plan.x_stage_bytes(); }
    // Advances to the next stage, or by one stage for each warpgroup that takes stages in turn.
    template <int stages = 1>
    __device__ __forceinline__ void advance() {
        static_assert(plan.stages % stages == 0, "a stage is always the same warpgroup's");
        stage += stages;
        if (stage >= plan.stages) {
            stage -= plan.stages;
            parity ^= 1;
        }
    }
};
