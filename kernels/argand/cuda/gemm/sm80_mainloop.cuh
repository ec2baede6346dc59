// The mainloop of the mma.sync family: the ring of stages that cp.async fills ahead of the MMAs,
// the loop over the k-tiles of a block, and promotion.
#pragma once
#include "sm80_scales.cuh"
#include "sm80_warp_mma.cuh"

// Where a lane's fragments begin in the first stage, and in the k of a stage.
template <MmaPlan plan>
struct LaneOperands {
    int group_k;  // k before that of the lane's group of warps
    uint32 a, b;  // addresses
    bool above;   // all of its warp lies above the diagonal of one tile

    // They are opaque, as each pass would compute them again otherwise.
    __device__ __forceinline__ LaneOperands(const Lane<plan>& lane, const float2* stages)
        : group_k(lane.k_group * (plan.block_k / plan.warps_k)),
          a(opaque(shared_address(stages) +
                   element_bytes<plan.a_k_major, plan.a_pitch()>(lane.a_row, group_k + lane.k))),
          b(opaque(shared_address(stages + plan.b_place()) +
                   element_bytes<plan.b_k_major, plan.b_pitch()>(lane.b_column,
                                                                 group_k + lane.k))),
          above(plan.one_tile && lane.above_diagonal()) {}
};

// The mainloop of one tile: it leaves accumulators of the block's k, before descaling, alpha and
// beta.
// Members are numbers, not the structures that they come from: ptxas then keeps fewer registers.
template <MmaPlan plan>
class Mainloop {
    using Size = Stride<plan>;
    using ACopies = TileCopies<plan, plan.block_m, plan.a_k_major>;
    using BCopies = TileCopies<plan, plan.block_n, plan.b_k_major>;

    Size all_k, first_k;  // of the matrix; before the block's slice
    int num_k_tiles, first_k_tile;
    ACopies a_copies;
    BCopies b_copies;

    // The offset of a stage in the ring, in bytes.
    __device__ __forceinline__ static uint32 stage_offset(int stage) {
        return stage * plan.stage_elements() * sizeof(float2);
    }

    // How much k of a k-tile lies inside the matrix.
    __device__ __forceinline__ int k_left(int k_tile) const {
        const Size k = first_k + Size(k_tile) * plan.block_k;
        return static_cast<int>(min(all_k - k, Size(plan.block_k)));
    }
    // How much of k is left to multiply from a k-tile on: a constant where stages hold all of it.
    __device__ __forceinline__ Size multiplied_k(int k_tile) const {
        if constexpr (plan.whole_k > 0) return plan.whole_k - Size(k_tile) * plan.block_k;
        return all_k - Size(first_k_tile + k_tile) * plan.block_k;
    }

    // Begins to load a k-tile. After the last one nothing is loaded, but an empty group is
    // committed, because `cp_async_wait` counts groups.
    __device__ __forceinline__ void load(int k_tile, int stage) {
        if (k_tile < num_k_tiles) {
            const int left = k_left(k_tile);
            const uint32 offset = stage_offset(stage);
            a_copies.fill(offset, left, k_tile);
            if constexpr (!plan.one_tile) b_copies.fill(offset, left, k_tile);
        }
        cp_async_commit();
    }

   public:
    // `stages` is where the ring begins in shared memory.
    __device__ __forceinline__ Mainloop(const GemmArguments& args, const Tile<plan>& tile,
                                        const Sizes<plan>& sizes, const KTiles<plan>& k_tiles,
                                        const float2* stages)
        : all_k(sizes.k),
          first_k(k_tiles.first_k()),
          num_k_tiles(k_tiles.count),
          first_k_tile(k_tiles.first),
          a_copies(of_batch(args.a, tile.batch, args.a_stride_batch), args.a_stride_m,
                   args.a_stride_k, tile.m0, k_tiles.first_k(), sizes.m, stages),
          b_copies(of_batch(args.b, tile.batch, args.b_stride_batch), args.b_stride_n,
                   args.b_stride_k, tile.n0, k_tiles.first_k(), sizes.n,
                   stages + plan.b_place()) {}

    // Begins to load the first k-tiles. `again`: for the second computation of a tile whose sums
    // were not finite, which is rare, so it takes the least code.
    template <bool again = false>
    __device__ __forceinline__ void load_first() {
        // Small products wait for instructions too, and one copy of them is fetched faster.
        constexpr int kUnroll = again || plan.skips_outside() ? 1 : plan.stages;
#pragma unroll kUnroll
        for (int stage = 0; stage < plan.stages_at_once(); ++stage) load(stage, stage);
    }

    // Multiplies the k-tiles into `fp32` where accumulators are promoted, else into `mma`; copies
    // of the first k-tiles are in flight already. `moderate` takes operands to be less than 2^115.
    template <bool moderate>
    __device__ __forceinline__ void run(const LaneOperands<plan>& lane, const Scales<plan>& scales,
                                        float b_sign, Accumulators<plan>& mma,
                                        Accumulators<plan>& fp32) {
        mma.clear();
        if constexpr (plan.promotes()) fp32.clear();
        int read = 0, filled = plan.stages - 1, k_tile = 0;
        auto multiply_stage = [&](uint32 stage, Size left, auto between) {
            if (plan.one_tile && lane.above) {
                for (int part = 0; part < plan.block_k / kMmaK<plan.operand>; ++part) between(part);
                return;
            }
            multiply_k_tile<plan, moderate>(mma, lane.a + stage, lane.b + stage, lane.group_k,
                                            left, scales.a_scale, scales.b_scale, b_sign,
                                            between);
        };
        // Tensor cores truncate when they accumulate, so without promotion the error of a split
        // precision would grow with k. Promotion every `promotion_interval` keeps it at that of one
        // interval.
        auto promote = [&] {
            if constexpr (plan.promotes()) {
                constexpr int kPromotionTiles = plan.promoted_k() / plan.block_k;
                if ((k_tile + 1) % kPromotionTiles == 0 || k_tile + 1 == num_k_tiles) {
                    if constexpr (plan.small_apart()) {
                        fp32.promote_whole(mma, b_sign, k_tile < kPromotionTiles);
                    } else {
                        fp32.promote(mma, b_sign);
                    }
                }
            }
        };
        if constexpr (plan.copies_between) {
            // Between the MMAs of a k-tile a warp issues copies of a later one, into the stage that
            // was read last.
            constexpr int kParts = plan.block_k / kMmaK<plan.operand>;
            for (; k_tile + plan.stages - 1 < num_k_tiles; ++k_tile) {
                cp_async_wait<plan.stages - 2>();
                __syncthreads();
                const int left = k_left(k_tile + plan.stages - 1);
                const uint32 next = stage_offset(filled);
                multiply_stage(stage_offset(read), plan.block_k, [&](int part) {
                    a_copies.template fill_part<kParts>(next, left, part);
                    if constexpr (!plan.one_tile)
                        b_copies.template fill_part<kParts>(next, left, part);
                });
                cp_async_commit();
                promote();
                filled = read;
                read = read + 1 == plan.stages ? 0 : read + 1;
            }
        }
        // The second computation of a tile is rare and takes the least code.
        constexpr bool kAgain = plan.splits_by_products() && !moderate;
        constexpr int kUnrolled = plan.whole_k > 0 && !kAgain ? plan.stages_at_once() : 1;
#pragma unroll kUnrolled
        for (; k_tile < num_k_tiles; ++k_tile) {
            if constexpr (plan.whole_k == 0 || !kAgain) {  // else all stages have been filled
                cp_async_wait<plan.stages_at_once() - 1>();
                // The stage is visible to all warps, and all have left the one that is filled next.
                __syncthreads();
            }
            if constexpr (plan.whole_k > 0 || plan.copies_between) {
                cp_async_commit();  // an empty group, as in `load`
            } else {
                load(k_tile + plan.stages - 1, filled);
            }
            filled = read;
            const uint32 stage = stage_offset(read);
            read = read + 1 == plan.stages ? 0 : read + 1;
            multiply_stage(stage, multiplied_k(k_tile), [](int) {});
            promote();
        }
        if constexpr (!plan.promotes()) mma.join(b_sign);
    }
};
