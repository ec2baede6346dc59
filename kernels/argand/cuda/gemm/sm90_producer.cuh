// The producer thread of the wgmma family: it runs the tile scheduler, publishes work items, and
// fills the ring of stages by TMA, ahead of the consumer warpgroups. Each stage waits for its
// `empty` mbarrier; TMA completes its `full` mbarrier.
#pragma once
#include "device/dependent_launch.cuh"
#include "sm90_fused_pack.cuh"
#include "sm90_ring.cuh"
#include "sm90_throttle.cuh"

// Loads the planes of an operand of one stage, from `k` on, as one box or one for each MMA.
template <WgmmaPlan plan, int plane_bytes>
__device__ __forceinline__ void load_planes(uint32 target, const TensorMap& map, uint32 mbarrier,
                                            int k, int row, int batch) {
#pragma unroll
    for (int i = 0; i < plan.boxes(); ++i) {
        tma_load(target + i * plan.planes() * plane_bytes, map, mbarrier,
                 (k + i * plan.mmas_per_box() * plan.mma_k()) * plan.terms, row, 0, batch);
    }
}

// Loads the tile of an interleaved X of odd pitch: for each swizzled column of the tile the odd
// lines, then the even ones. Odd lines begin in the middle of 16 bytes and lie one element further
// along, so they take one column more. `k` and `row` are even, so a line has the parity that it has
// in X.
template <WgmmaPlan plan>
__device__ __forceinline__ void load_lines_by_parity(uint32 target, const TensorMap& even_map,
                                                     const TensorMap& odd_map, uint32 mbarrier,
                                                     int k, int row, int batch) {
    constexpr int kColumns = plan.x_line_length() / plan.x_swizzle_elements();
    constexpr int kBytes = plan.x_lines() * kSwizzleBytes;
    const int along = plan.x_k_major ? k : row, line = (plan.x_k_major ? row : k) / 2;
#pragma unroll 2
    for (int i = 0; i < kColumns; ++i) {
        const int from = along + i * plan.x_swizzle_elements();
        tma_load(target + i * kBytes, odd_map, mbarrier, from, line, batch);
        tma_load(target + i * kBytes + kBytes / 2, even_map, mbarrier, from, line, batch);
    }
    tma_load(target + kColumns * kBytes, odd_map, mbarrier, along + plan.x_line_length(), line,
             batch);
}

// The maps of an interleaved X of odd pitch: of the lines that begin at multiples of 16 bytes
// (even) and of the others (odd). With odd batches the first two serve the even products and the
// last two the odd ones, else the first two serve all.
struct LineMaps {
    const TensorMap &even, &odd, &odd_batch_even, &odd_batch_odd;
};

// Loads the X of a stage: planes, or lines of complex64 as one box for each column of 128 bytes.
template <WgmmaPlan plan>
__device__ __forceinline__ void load_x_tile(const Ring<plan>& ring, const TensorMap& x_map,
                                            const LineMaps& maps, int k, int m0, int x_batch) {
    if constexpr (plan.storage == Storage::planar) {
        load_planes<plan, plan.x_plane_bytes()>(ring.x_tile(), x_map, ring.full(), k, m0, x_batch);
    } else if constexpr (plan.odd_pitch) {
        // The maps are selected at each stage: no registers are left to keep their addresses in.
        const bool odd = plan.odd_batches && opaque(x_batch) % 2 != 0;
        load_lines_by_parity<plan>(ring.x_tile(), odd ? maps.odd_batch_even : maps.even,
                                   odd ? maps.odd_batch_odd : maps.odd, ring.full(), k, m0,
                                   plan.odd_batches ? x_batch / 2 : x_batch);
    } else if constexpr (plan.x_k_major) {
#pragma unroll
        for (int i = 0; i < plan.block_k / plan.x_swizzle_elements(); ++i) {
            tma_load(ring.x_tile() + i * plan.block_m() * kSwizzleBytes, x_map, ring.full(),
                     k + i * plan.x_swizzle_elements(), m0, x_batch);
        }
    } else {
#pragma unroll 2
        for (int i = 0; i < plan.block_m() / plan.x_swizzle_elements(); ++i) {
            tma_load(ring.x_tile() + i * plan.block_k * kSwizzleBytes, x_map, ring.full(),
                     m0 + i * plan.x_swizzle_elements(), k, x_batch);
        }
    }
}

// Fills the stages of one work item after another. One thread.
template <WgmmaPlan plan>
__device__ __forceinline__ void produce(const TensorMap& x_map, const TensorMap& y_map,
                                        const LineMaps& maps, const WgmmaArguments& args,
                                        uint32 base) {
    Ring<plan> ring(base, 1);
    WgmmaWork work;
    // Only data-parallel tiles are throttled.
    const bool may_wait = plan.cluster == 1 && args.throttle_interval > 0;
    const uint32 throttled = may_wait ? args.data_parallel_tiles / gridDim.x : 0;
    bool waits = true;
    // A kernel that begins early does so while the packing kernel before it still runs. So this
    // thread waits for its end before it loads planes, and where both operands are packed before it
    // uses counters. An X in place is the caller's, so its first tile is loaded before that wait.
    bool packing = true;
    for (uint32 work_index = 0;; ++work_index) {
        const bool more = schedule_work<plan>(args, work_index, work);
        publish_work(ring.work_slot(work_index), work_index, work, more);
        if (!more) break;
        if (plan.storage == Storage::planar && packing) {
            griddepcontrol_wait();
            packing = false;
        }
        const WgmmaTile& tile = work.tile;
        const int x_batch = args.x_batched ? tile.batch : 0;
        const int y_batch = args.y_batched ? tile.batch : 0;
        const uint32 panel = y_batch * Panels<plan>(args).per_product + tile.n0 / plan.block_n;
        int packed_k_block = -1;  // the last k-block that is known to be packed
        if constexpr (plan.fused_pack) {
            publish_producer_position(ring.producer_position(),
                                      work_index * Panels<plan>(args).k_blocks +
                                          tile.first_k_tile * plan.block_k / kPackBlockK);
        }
        for (int k_tile = 0; k_tile < tile.num_k_tiles; ++k_tile) {
            const int k = (tile.first_k_tile + k_tile) * plan.block_k;
            if (work_index < throttled)
                waits = throttle_producer(args, work_index * tile.num_k_tiles + k_tile, waits);
            mbarrier_wait(ring.empty(), ring.parity);
            mbarrier_arrive_expect_tx(ring.full(), plan.stage_bytes());
            // Rows of a triangle in planes are panels of Y, too.
            constexpr bool kPacksX = plan.fused_pack && plan.conjugate_y;
            if constexpr (!kPacksX) load_x_tile<plan>(ring, x_map, maps, k, tile.m0, x_batch);
            if constexpr (plan.fused_pack) {
                if (k / kPackBlockK != packed_k_block) {
                    packed_k_block = k / kPackBlockK;
                    publish_producer_position(
                        ring.producer_position(),
                        work_index * Panels<plan>(args).k_blocks + packed_k_block);
                    wait_for_packed<plan>(args, panel, packed_k_block);
                    if constexpr (kPacksX)
                        wait_for_packed<plan>(
                            args, panel + (tile.m0 - tile.n0) / plan.block_n, packed_k_block);
                }
            }
            if constexpr (kPacksX) load_x_tile<plan>(ring, x_map, maps, k, tile.m0, x_batch);
            if (plan.storage != Storage::planar && packing) {
                griddepcontrol_wait();
                packing = false;
            }
            load_planes<plan, plan.y_plane_bytes()>(ring.y_tile(), y_map, ring.full(), k, tile.n0,
                                                    y_batch);
            ring.advance();
        }
    }
    if constexpr (plan.fused_pack)
        publish_producer_position(ring.producer_position(), kProducerDone);
    if (throttled > 0) reset_throttle(args);
}
