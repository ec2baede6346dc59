// Complex matrix products on Hopper's tensor cores (sm_90a), one family for every precision.
//
// One warpgroup's first thread feeds a ring of shared-memory stages through the copy engine; the
// others multiply, 64 rows each. The row operand goes through registers: interleaved, where it is
// rounded and split there, or in planes; the column operand's planes are read by the tensor cores
// from shared memory, each for the real and for the imaginary part of Z: re = xr yr - xi yi, im =
// xr yi + xi yr, the sign being a flag of the instruction.
#pragma once
#include "sm90_producer.cuh"
#include "sm90_epilogue_direct.cuh"
#include "sm90_epilogue_tma.cuh"
#include "sm90_partials.cuh"
#include "sm90_promoted_mainloop.cuh"

template <bool condition, typename Then, typename Else>
struct Conditional {
    using Type = Then;
};
template <typename Then, typename Else>
struct Conditional<false, Then, Else> {
    using Type = Else;
};

// Multiplies what arrives, tile after tile, and stores the results. One warpgroup.
template <WgmmaPlan plan>
__device__ __forceinline__ void consume(const WgmmaArguments& args, const TensorMap& out_map,
                                        uint32 base) {
    // From the thread's number, whenever it is wanted: there is no register to keep it in.
    const int warpgroup = threadIdx.x / kWarpgroupThreads;
    const int warp = threadIdx.x / kWarp % 4, lane = threadIdx.x % kWarp;
    const XTileReader<plan> reader(warpgroup, warp, lane);
    Ring<plan> ring(base, 0);
    if constexpr (plan.terms > 1 && plan.consumer_warpgroups == 2) {
        if (warpgroup == 1) ping_pong_arrive(1);
    }
    typename Conditional<(plan.terms > 1), PromotedMainloop<plan>, JointMainloop<plan>>::Type
        mainloop;
    DeferredColumns<plan> deferred;
    deferred.clear_tile(args);
    for (uint32 work_index = 0;; ++work_index) {
        const int num_k_tiles = wait_for_work(ring.work_slot(work_index), work_index);
        if (num_k_tiles < 0) break;
        if constexpr (plan.overlapped_stages > 0) {
            mainloop.run_overlapped(ring, reader, num_k_tiles, lane,
                                    StoreDeferred<plan>{args, out_map, deferred, base});
        } else {
            mainloop.run(args, ring.work_slot(work_index), ring, reader, num_k_tiles, lane,
                         warpgroup);
        }
        const int thread = thread_index(), warp_index = thread / kWarp;
        const WgmmaWork work = read_work(ring.work_slot(opaque(work_index)));
        // Each for itself: meeting before makes the assembler spill.
        mbarrier_arrive(ring.work_slot(opaque(work_index)) + kWorkEmpty);
        if (work.stores_partial) {
            store_partials<plan>(args, work.tile, thread, mainloop.re, mainloop.im);
            deferred.clear_tile(args);
            continue;
        }
        const WgmmaTile& tile = work.tile;
        if (accumulators_spill<plan>(tile.num_k_tiles)) {
            add_from_memory<plan>(args, accumulator_memory<plan>(args, work), mainloop.re,
                                  mainloop.im);
            // Other threads' results go where a thread's sums were, maybe by the copy engine. (A
            // barrier of the warp makes the assembler spill.)
            if constexpr (plan.tma_epilogue) asm volatile("fence.proxy.async.global;" ::: "memory");
            sync_warpgroup(thread_index() / kWarpgroupThreads);
        }
        reduce_partials<plan>(args, work, thread, mainloop.re, mainloop.im);
        const int row0 = tile.m0 + warp_index * 16;
        if constexpr (plan.overlapped_stages > 0) {
            deferred.defer(args, tile, mainloop.re, mainloop.im);
            tma_store_boxes<plan, 0, kStoreBoxes<plan> / 2, 0>(args, out_map, tile, base,
                                                               mainloop.re, mainloop.im);
        } else if constexpr (plan.tma_epilogue) {
            tma_store_boxes<plan, 0, kStoreBoxes<plan>, 0>(args, out_map, tile, base, mainloop.re,
                                                           mainloop.im);
        } else {
            store_rows<plan>(args, tile, row0, thread % kWarp, mainloop.re, mainloop.im);
        }
    }
    if constexpr (plan.overlapped_stages > 0) {
        StoreDeferred<plan>{args, out_map, deferred, base}.template run<0, 1>();
    }
    // Shared memory must outlive what is still read from it.
    if (plan.tma_epilogue && lane == 0) tma_store_wait_read<0>();
}

template <WgmmaPlan plan>
__device__ __forceinline__ void gemm_wgmma(const TensorMap& x_map, const TensorMap& y_map,
                                           const TensorMap& out_map, const WgmmaArguments& args) {
    static_assert(plan.block_k % plan.mma_k() == 0, "whole instructions");
    static_assert(
        plan.producer_registers() + plan.consumer_warpgroups * plan.consumer_registers() <=
            65536 / plan.threads() / 8 * 8 * (plan.consumer_warpgroups + 1),
        "registers that a block was started with");
    static_assert(plan.register_terms() == plan.terms || !plan.adjacent_rows(),
                  "all terms' rows in one order");
    static_assert(plan.storage == Storage::planar || !plan.x_k_major ||
                      plan.block_k % plan.x_swizzle_elements() == 0,
                  "whole lines of the row operand");
    extern __shared__ unsigned char memory[];
    // The swizzle repeats every 1024 bytes; dynamic shared memory promises 16.
    const uint32 base = (shared_address(memory) + 1023u) & ~1023u;
    if (threadIdx.x == 0) {
        Ring<plan> ring(base, 0);
        for (int i = 0; i < plan.stages; ++i) {
            mbarrier_init(ring.full(), 1);
            mbarrier_init(ring.empty(), 4 * plan.consumer_warpgroups);  // one arrival a warp
            ring.advance();
        }
        for (int i = 0; i < kWorkSlots; ++i) {
            mbarrier_init(ring.work_slot(i) + kWorkFull, 1);
            mbarrier_init(ring.work_slot(i) + kWorkEmpty,
                          kWarpgroupThreads * plan.consumer_warpgroups);
        }
        mbarrier_init_fence();
        if constexpr (plan.fused_pack) publish_producer_position(ring.producer_position(), 0);
        prefetch_tensor_map(x_map);
        prefetch_tensor_map(y_map);
        if constexpr (plan.tma_epilogue) prefetch_tensor_map(out_map);
    }
    __syncthreads();
    // The same in all lanes, and known to be: setmaxnreg needs whole warpgroups on one branch.
    const int role = __shfl_sync(0xffffffffu, int(threadIdx.x / kWarpgroupThreads), 0);
    if (role == plan.consumer_warpgroups) {
        warpgroup_reg_dealloc<plan.producer_registers()>();
        if (threadIdx.x % kWarpgroupThreads == 0) produce<plan>(x_map, y_map, args, base);
        if constexpr (plan.fused_pack) {
            if (threadIdx.x % kWarpgroupThreads < kWarp) {
                reset_pack_counts<plan>(args);
            } else {
                run_fused_pack<plan>(args, Ring<plan>(base, 0).producer_position());
            }
        }
    } else {
        warpgroup_reg_alloc<plan.consumer_registers()>();
        consume<plan>(args, out_map, base);
    }
}
