// Sums over a tile's k with promotion.
#pragma once
#include "sm90_accumulator_spill.cuh"
#include "sm90_mainloop.cuh"

// The same with promotion: after every stage sums move into fp32 registers, and from there to
// memory where k is long (sm90_accumulator_spill.cuh). Tensor cores truncate when they accumulate,
// and an error that each step adds to would grow with k. The real and then the imaginary part of a
// stage are summed in the same registers, so that tiles can be wide; while one warpgroup adds, the
// other multiplies.
template <WgmmaPlan plan>
struct AlternateSums {
    static constexpr int kSteps = plan.mmas_per_stage();
    float re[plan.block_n / 2], im[plan.block_n / 2];

    __device__ __forceinline__ void run(const WgmmaArguments& args, uint32 work_slot,
                                        Ring<plan>& ring, const RowReader<plan>& reader, int steps,
                                        int lane, int warpgroup) {
        float slice[plan.block_n / 2];
        clear(re);
        clear(im);
        clear(slice);
        const AccumulatorSpill<plan> spill(args, work_slot, steps);
        const bool whole =
            plan.boxes() == 1 || steps == 0 || steps_of_last(args, work_slot) == kSteps;
        // Totals move between the parts, where the other warpgroup's turn is longest to come.
        for (int left = steps; left > !whole;) {
            mbarrier_wait(ring.full(), ring.parity);
            promote<kSteps>(slice, ring, 0, reader, lane, warpgroup,
                            [&] { spill.after_k_tile(args, --left, re, im); });
            if (lane == 0) mbarrier_arrive(ring.empty());
            add(im, slice);
            ring.advance();
        }
        if constexpr (plan.boxes() > 1) {
            if (whole) return;
            mbarrier_wait(ring.full(), ring.parity);
            const int last =
                steps_of_last(args, work_slot);  // again: there was no register to keep it in
#pragma unroll 1
            for (int i = 0; i < last; ++i) {
                promote<1>(slice, ring, i, reader, lane, warpgroup, [] {});
                add(im, slice);
            }
            if (lane == 0) mbarrier_arrive(ring.empty());
            ring.advance();
        }
    }

    // How many steps of the last stage of the work in the slot are of the operands' k.
    static __device__ __forceinline__ int steps_of_last(const WgmmaArguments& args,
                                                        uint32 work_slot) {
        const WgmmaTile tile = read_work(work_slot).tile;
        const int k = args.k - (tile.first_k_tile + tile.num_k_tiles - 1) * plan.block_k;
        return min(kSteps, (k + plan.mma_k() - 1) / plan.mma_k());
    }

    // Multiplies so many steps of a stage, from `first` on, and adds the real part. The imaginary
    // one is left to be added, after the last stage that was read is given back.
    template <int steps, typename Between>
    __device__ __forceinline__ void promote(float (&slice)[plan.block_n / 2],
                                            const Ring<plan>& ring, int first,
                                            const RowReader<plan>& reader, int lane, int warpgroup,
                                            const Between& between) {
        const ColumnTile<plan> y(ring.y_tile() + first * plan.planes() * plan.y_plane_bytes());
        const uint32 rows = ring.x_tile() + first * plan.planes() * plan.x_plane_bytes();
        // The same in all lanes, and known to be: descriptions are in uniform registers.
        const uint32 own = rows + warpgroup * kWgmmaM * plan.box_row_bytes();
        const RowTile<plan> described(plan.register_terms() < plan.terms ? __shfl_sync(~0u, own, 0)
                                                                         : own);
        RowFragment<plan> x[steps];
#pragma unroll
        for (int i = 0; i < steps; ++i) read_fragment<plan>(reader, rows, i * plan.mma_k(), x[i]);
        multiply<0>(slice, x, described, y, warpgroup);
        add(re, slice);
        between();
        multiply<1>(slice, x, described, y, warpgroup);
    }

    // The small products of all steps come first: what is added before the large ones is not cut as
    // they are.
    template <int part, int steps>
    static __device__ __forceinline__ void multiply(float (&slice)[plan.block_n / 2],
                                                    const RowFragment<plan> (&x)[steps],
                                                    const RowTile<plan>& described,
                                                    const ColumnTile<plan>& y, int warpgroup) {
        if constexpr (plan.consumer_warpgroups == 2) wait_turn(warpgroup);
        wgmma_fence();
#pragma unroll
        for (int p = 0; p < plan.products; ++p)
#pragma unroll
            for (int i = 0; i < steps; ++i) {
                const int s = plan.product_x[p], t = plan.product_y[p];
                if (s < plan.register_terms()) {
                    wgmma<1>(slice, x[i].re[s], y.at(i, t, part), i + p > 0);
                    wgmma<part ? 1 : -1>(slice, x[i].im[s], y.at(i, t, 1 - part), 1);
                } else {
                    wgmma<1>(slice, described.at(i, s, 0), y.at(i, t, part), i + p > 0);
                    wgmma<part ? 1 : -1>(slice, described.at(i, s, 1), y.at(i, t, 1 - part), 1);
                }
            }
        wgmma_commit();
        if constexpr (plan.consumer_warpgroups == 2) give_turn(warpgroup);
        wgmma_wait<0>();
        wgmma_fence_operand(slice);
    }
};
