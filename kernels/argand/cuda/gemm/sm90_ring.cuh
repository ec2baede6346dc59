// Shared memory of a block of the wgmma family.
#pragma once
#include "sm90_plan.cuh"

// Where the stages, their barriers and what else is in shared memory lie.
template <WgmmaPlan plan>
struct Ring {
    uint32 base;  // stages, each the row operand's tile and the column operand's planes
    int stage = 0;
    uint32 parity;

    __device__ __forceinline__ Ring(uint32 base, uint32 parity) : base(base), parity(parity) {}
    __device__ __forceinline__ uint32 full() const {
        return base + plan.stages * plan.stage_bytes() + plan.epilogue_bytes() + 8 * stage;
    }
    __device__ __forceinline__ uint32 empty() const { return full() + 8 * plan.stages; }
    // Where the producer_position thread leaves how far it is.
    __device__ __forceinline__ uint32 producer_position() const {
        return base + plan.stages * (plan.stage_bytes() + 16) + plan.epilogue_bytes();
    }
    // Where work number `work_index` is work_slot.
    __device__ __forceinline__ uint32 work_slot(uint32 work_index) const {
        return producer_position() + (plan.fused_pack ? 16 : 0) +
               work_index % kWorkSlots * kWorkSlotBytes;
    }
    __device__ __forceinline__ uint32 x_tile() const { return base + stage * plan.stage_bytes(); }
    __device__ __forceinline__ uint32 y_tile() const { return x_tile() + plan.x_stage_bytes(); }
    __device__ __forceinline__ void advance() {
        if (++stage == plan.stages) {
            stage = 0;
            parity ^= 1;
        }
    }
};
