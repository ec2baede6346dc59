// Blocks anywhere on the card that share rows tell each other in global memory what they found.
//
// Each block has a place for each of the last kTurns rows. What it writes there carries its turn, so
// that nobody clears a place between rows. Nor is one written again too early: a block that tells of
// turn t has written turn t - lag, so all others have told of that, so they have written, and before
// that heard, turn t - 2 lag.
#pragma once
#include "row.cuh"

constexpr int kMostLag = 4;
constexpr int kTurns = 2 * kMostLag;

// A block's part of a row: read and written in one access, so it is there whole or not at all.
struct alignas(16) Finding {
    float maximum;
    uint32 turn;  // from 1; 0 says that nothing was told yet
    double sum;
};

__device__ __forceinline__ void tell(Finding* to, const Finding& found) {
    const auto* words = reinterpret_cast<const unsigned long long*>(&found);
    asm volatile(
        "{\n.reg .b128 all;\nmov.b128 all, {%1, %2};\n"
        "st.relaxed.gpu.global.b128 [%0], all;\n}\n" ::"l"(to),
        "l"(words[0]), "l"(words[1])
        : "memory");
}

__device__ __forceinline__ Finding told(const Finding* from) {
    Finding found;
    auto* words = reinterpret_cast<unsigned long long*>(&found);
    asm volatile(
        "{\n.reg .b128 all;\nld.relaxed.gpu.global.b128 all, [%2];\n"
        "mov.b128 {%0, %1}, all;\n}\n"
        : "=l"(words[0]), "=l"(words[1])
        : "l"(from)
        : "memory");
    return found;
}

// The maximum and the sum of all the parts of a row that the lanes of a warp have, `count` each.
template <SoftmaxPlan plan, int count>
__device__ __forceinline__ Finding joined(const Finding (&parts)[count],
                                          const SoftmaxArguments& args) {
    float maximum = parts[0].maximum;
#pragma unroll
    for (int i = 1; i < count; ++i) maximum = larger(maximum, parts[i].maximum);
    maximum = over_lanes<kWarp>(maximum, Largest{});
    const ExponentialsOf<plan> all(shift_for(maximum), args);
    double sum = 0;
#pragma unroll
    for (int i = 0; i < count; ++i) {
        sum += parts[i].sum * change_to(all, parts[i].maximum, args);
    }
    return {maximum, 0, over_lanes<kWarp>(sum, Total{})};
}

__device__ __forceinline__ Finding nothing() { return {-infinity(), 0, 0.0}; }

// The places of one team of blocks, in memory that is zero before and after the kernel.
template <SoftmaxPlan plan>
class Exchange {
    struct Memory {
        Finding places[kTurns][plan.cluster];
        alignas(16) uint32 gone;  // blocks that will not read any more
    };
    static constexpr int kEach = (plan.cluster + kWarp - 1) / kWarp;  // places that a lane reads
    Memory& memory;
    const int rank;

   public:
    __device__ __forceinline__ Exchange(const SoftmaxArguments& args, int team, int rank)
        : memory(static_cast<Memory*>(args.places)[team]), rank(rank) {}

    __device__ __forceinline__ void tell_all(uint32 turn, Finding found) {
        found.turn = turn + 1;
        tell(&memory.places[turn % kTurns][rank], found);
    }

    // A warp waits for all parts of a row.
    __device__ __forceinline__ Finding hear(uint32 turn, const SoftmaxArguments& args) {
        const Finding* from = memory.places[turn % kTurns];
        const int lane = threadIdx.x % kWarp;
        Finding parts[kEach];
#pragma unroll
        for (int i = 0; i < kEach; ++i) parts[i] = nothing();
        bool missing;
        do {
            missing = false;
#pragma unroll
            for (int i = 0; i < kEach; ++i) {
                const int block = lane + i * kWarp;
                if (block < plan.cluster && parts[i].turn != turn + 1) parts[i] = told(from + block);
            }
#pragma unroll
            for (int i = 0; i < kEach; ++i) {
                missing |= lane + i * kWarp < plan.cluster && parts[i].turn != turn + 1;
            }
        } while (missing);
        __syncwarp();
        return joined<plan>(parts, args);
    }

    // The warp that heard of every row. When all blocks' have, nobody reads or tells any more, and
    // the last leaves zeros.
    __device__ __forceinline__ void leave() {
        const int lane = threadIdx.x % kWarp;
        __syncwarp();
        uint32 before = 0;
        if (lane == 0) {
            asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;"
                         : "=r"(before)
                         : "l"(&memory.gone)
                         : "memory");
        }
        __syncwarp();
        if (__shfl_sync(0xffffffffu, before, 0) != plan.cluster - 1) return;
        for (int i = lane; i < kTurns * plan.cluster; i += kWarp) {
            memory.places[i / plan.cluster][i % plan.cluster] = {};
        }
        if (lane == 0) memory.gone = 0;
    }
};
