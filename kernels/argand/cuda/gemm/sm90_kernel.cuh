// Complex matrix products on Hopper's tensor cores (sm_90a), one persistent kernel for every
// precision. It is launched with at most one block per multiprocessor, on operands that lie in
// place or that pack_kernel.cuh has packed.
//
// A block is one producer warpgroup and one or two consumer warpgroups. The first thread of the
// producer runs the tile scheduler and fills the ring of stages by TMA (sm90_producer.cuh); its
// other warps may pack Y (sm90_fused_pack.cuh). Each consumer warpgroup computes 64 rows of a tile,
// or half of the k of the same 64 rows (sm90_k_warpgroups.cuh): the mainloop with its promotion and
// accumulator spill, the reduction of stream-K partial tiles, the epilogue. A complex product is
// four real ones, re = xr yr - xi yi and im = xr yi + xi yr; the minus is a flag of the wgmma
// instruction.
#pragma once
#include "sm90_cluster_slices.cuh"
#include "sm90_producer.cuh"
#include "sm90_epilogue_direct.cuh"
#include "sm90_epilogue_tma.cuh"
#include "sm90_k_warpgroups.cuh"
#include "sm90_partials.cuh"
#include "sm90_promoted_mainloop.cuh"

// The epilogue of a tile. Where it is overlapped, half of the columns wait in `deferred` for the
// next tile's mainloop.
template <WgmmaPlan plan>
__device__ __forceinline__ void run_epilogue(const WgmmaArguments& args, const TensorMap& out_map,
                                             uint32 base, const WgmmaTile& tile, int row0, int lane,
                                             float (&re)[plan.block_n / 2],
                                             float (&im)[plan.block_n / 2],
                                             DeferredColumns<plan>& deferred) {
    if constexpr (plan.overlapped_stages > 0) {
        deferred.defer(args, tile, re, im);
        tma_store_boxes<plan, 0, kStoreBoxes<plan> / 2, 0>(args, out_map, tile, base, re, im);
    } else if constexpr (plan.tma_epilogue) {
        tma_store_boxes<plan, 0, kStoreBoxes<plan>, 0>(args, out_map, tile, base, re, im);
    } else {
        store_rows<plan>(args, tile, row0, lane, re, im);
    }
}

// A consumer warpgroup: mainloop, reduction and epilogue of one work item after another.
template <WgmmaPlan plan>
__device__ __forceinline__ void consume(const WgmmaArguments& args, const TensorMap& out_map,
                                        uint32 base) {
    // Derived from threadIdx.x again after the mainloop: no registers are left to keep them in.
    const int group = threadIdx.x / kWarpgroupThreads;
    const int warpgroup = plan.k_warpgroups > 1 ? 0 : group;  // of those that share rows
    const int warp = threadIdx.x / kWarp % 4, lane = threadIdx.x % kWarp;
    XTileReader<plan> reader(warpgroup, warp, lane);
    Ring<plan> ring(base, 0);
    uint32 k_tiles_before = 0;
    if constexpr (plan.k_warpgroups > 1) ring.stage = group;
    if constexpr ((plan.terms > 1 && plan.m_warpgroups == 2) || plan.ping_pong) {
        if (warpgroup == 1) ping_pong_arrive(1);
    }
    typename Conditional<(plan.terms > 1), PromotedMainloop<plan>, OneTermMainloop<plan>>::Type
        mainloop;
    DeferredColumns<plan> deferred;
    deferred.clear_tile(args);
    for (uint32 work_index = 0;; ++work_index) {
        const int all_k_tiles = wait_for_work(ring.work_slot(work_index), work_index);
        if (all_k_tiles < 0) break;
        if constexpr (plan.rows_by_parity() && plan.odd_batches) {
            const WgmmaWork next = read_work(ring.work_slot(work_index));
            reader.exchanges_rows = next.tile.batch % 2 != 0;
        }
        int num_k_tiles = all_k_tiles;
        if constexpr (plan.k_warpgroups > 1) {
            num_k_tiles = own_k_tiles(all_k_tiles, k_tiles_before, group);
            k_tiles_before += all_k_tiles;
        }
        if constexpr (plan.overlapped_stages > 0) {
            mainloop.run_overlapped(ring, reader, num_k_tiles, lane,
                                    StoreDeferred<plan>{args, out_map, deferred, base});
        } else {
            mainloop.run(args, ring.work_slot(work_index), ring, reader, num_k_tiles, lane,
                         warpgroup);
        }
        const int thread = thread_index(), warp_index = thread / kWarp;
        const WgmmaWork work = read_work(ring.work_slot(opaque(work_index)));
        // Each thread arrives for itself: with a warp barrier before a single arrival ptxas would
        // spill registers.
        mbarrier_arrive(ring.work_slot(opaque(work_index)) + kWorkEmpty);
        if constexpr (plan.k_warpgroups > 1) {
            add_k_warpgroups<plan>(ring, work_index, thread, mainloop.re, mainloop.im);
            if (thread >= kWarpgroupThreads) continue;
        }
        if (plan.cluster == 1 && work.stores_partial) {
            store_partials<plan>(args, work.tile, thread, mainloop.re, mainloop.im);
            deferred.clear_tile(args);
            continue;
        }
        const WgmmaTile& tile = work.tile;
        if (accumulators_spill<plan>(tile.num_k_tiles)) {
            add_from_memory<plan>(args, accumulator_memory<plan>(args, work), mainloop.re,
                                  mainloop.im);
            // Other threads of the warpgroup store results where this thread's accumulators lay,
            // maybe by TMA, so all of them synchronize. With a warp barrier ptxas would spill
            // registers.
            if constexpr (plan.tma_epilogue) asm volatile("fence.proxy.async.global;" ::: "memory");
            sync_warpgroup(thread_index() / kWarpgroupThreads);
        }
        if constexpr (plan.cluster == 1)
            reduce_partials<plan>(args, work, thread, mainloop.re, mainloop.im);
        if (plan.overlapped_stages == 0 && args.conjugate_result) negate(mainloop.im);
        const int row0 = first_row(tile, warp_index);
        if constexpr (plan.cluster > 1) {
            store_cluster_part<plan>(args, base, tile, row0, thread, mainloop.re, mainloop.im);
            continue;
        }
        run_epilogue<plan>(args, out_map, base, tile, row0, thread % kWarp, mainloop.re,
                           mainloop.im, deferred);
    }
    if constexpr (plan.overlapped_stages > 0) {
        StoreDeferred<plan>{args, out_map, deferred, base}.template run<0, 1>();
    }
    // TMA stores may still read shared memory, which ends with the block.
    if (plan.tma_epilogue && lane == 0) tma_store_wait_read<0>();
}

constexpr int kRegistersPerMultiprocessor = 65536;  // of sm_90 (CUDA C++ Programming Guide)

// The kernel: initializes the mbarriers and gives each warpgroup its role. `out_map` is that of Z
// for a TMA epilogue; an X of odd pitch, which has none, gives the map of its odd lines there. Only
// a plan with odd batches reads the last two maps.
template <WgmmaPlan plan>
__device__ __forceinline__ void gemm_wgmma(const TensorMap& x_map, const TensorMap& y_map,
                                           const TensorMap& out_map, const WgmmaArguments& args,
                                           const TensorMap& odd_batch_even,
                                           const TensorMap& odd_batch_odd) {
    static_assert(!plan.odd_batches || plan.odd_pitch, "odd batches are of an odd pitch");
    static_assert(plan.block_k % plan.mma_k() == 0, "a k-tile must be whole MMAs");
    static_assert(
        plan.producer_registers() + plan.consumers() * plan.consumer_registers() <=
            kRegistersPerMultiprocessor / plan.threads() / 8 * 8 * (plan.consumers() + 1),
        "setmaxnreg must not claim more registers than the block has");
    static_assert(plan.register_terms() == plan.terms || !plan.adjacent_rows(),
                  "all terms need one order of rows");
    static_assert(plan.storage == Storage::planar || !plan.x_k_major ||
                      plan.block_k % plan.x_swizzle_elements() == 0,
                  "a k-tile must be whole swizzled rows of X");
    static_assert(!plan.odd_pitch || (plan.storage == Storage::fp32 && !plan.tma_epilogue &&
                                      plan.block_k % 16 == 0),
                  "lines by parity are of fp32 pairs, eight of each in a k-tile, stored directly");
    extern __shared__ unsigned char memory[];
    const uint32 base = swizzle_start(memory);
    if (threadIdx.x == 0) {
        Ring<plan> ring(base, 0);
        for (int i = 0; i < plan.stages; ++i) {
            mbarrier_init(ring.full(), 1);
            mbarrier_init(ring.empty(), plan.tile_warps());  // those that read a stage
            ring.advance();
        }
        for (int i = 0; i < kWorkSlots; ++i) {
            mbarrier_init(ring.work_slot(i) + kWorkFull, 1);
            mbarrier_init(ring.work_slot(i) + kWorkEmpty,
                          kWarpgroupThreads * plan.consumers());
        }
        if constexpr (plan.k_warpgroups > 1) {
            mbarrier_init(ring.exchange_full(), kWarpgroupThreads);
            mbarrier_init(ring.exchange_empty(), kWarpgroupThreads);
        }
        if constexpr (plan.cluster > 1) ClusterSlices<plan>(base).init();
        mbarrier_init_fence();
        if constexpr (plan.fused_pack) publish_producer_position(ring.producer_position(), 0);
        prefetch_tensor_map(x_map);
        prefetch_tensor_map(y_map);
        if constexpr (plan.tma_epilogue || plan.odd_pitch) prefetch_tensor_map(out_map);
    }
    __syncthreads();
    if constexpr (plan.cluster > 1) {  // its blocks send to each other's shared memory
        cluster_arrive_relaxed();
        cluster_wait();
    }
    const int role = warpgroup_role();
    if (role == plan.consumers()) {
        warpgroup_reg_dealloc<plan.producer_registers()>();
        if (threadIdx.x % kWarpgroupThreads == 0)
            produce<plan>(x_map, y_map, {x_map, out_map, odd_batch_even, odd_batch_odd}, args,
                          base);
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
