// The mainloop of split precisions: promotion after every k-tile, because tensor cores truncate
// when they accumulate, and a truncation bias that every MMA adds to would grow with k. The fp32
// accumulators then go through the accumulator spill (sm90_accumulator_spill.cuh).
#pragma once
#include "sm90_accumulator_spill.cuh"
#include "sm90_mainloop.cuh"
#include "sm90_scaled_stage.cuh"

// The real and then the imaginary part of a k-tile is summed in the same MMA accumulator and
// promoted, which takes three sets of registers in place of four, so that tiles can be wider. While
// one warpgroup promotes, the other multiplies (ping-pong).
template <WgmmaPlan plan>
struct PromotedMainloop {
    static constexpr int kMmas = plan.mmas_per_stage();
    float re[plan.block_n / 2], im[plan.block_n / 2];
    float descale[2];  // of the lane's two rows, where stages are scaled

    // Whether a k-tile is the first and the last one of a tile, whose MMAs are one turn of the
    // ping-pong plan.
    struct Turn {
        bool begins, ends;
    };

    // Promotion: adds tensor-core sums into fp32 registers.
    __device__ __forceinline__ void promote(float (&accumulator)[plan.block_n / 2],
                                            const float (&mma_accumulator)[plan.block_n / 2]) {
#pragma unroll
        for (int i = 0; i < plan.block_n / 2; ++i) {
            if constexpr (plan.scales_stages()) {
                accumulator[i] = fmaf(mma_accumulator[i], descale[i / 2 % 2], accumulator[i]);
            } else {
                accumulator[i] += mma_accumulator[i];
            }
        }
    }

    // Multiplies the k-tiles of a work item into `re` and `im`, promoting after each; a last k-tile
    // that k ends in has only the MMAs within k.
    __device__ __forceinline__ void run(const WgmmaArguments& args, uint32 work_slot,
                                        Ring<plan>& ring, const XTileReader<plan>& reader,
                                        int num_k_tiles, int lane, int warpgroup) {
        float mma_accumulator[plan.block_n / 2];
        clear(re);
        clear(im);
        clear(mma_accumulator);
        const AccumulatorSpill<plan> spill(args, work_slot, num_k_tiles);
        if constexpr (plan.scales_stages()) {
            run_scaled(args, spill, mma_accumulator, ring, reader, num_k_tiles, lane, warpgroup);
            return;
        }
        const bool full = plan.boxes() == 1 || num_k_tiles == 0 ||
                          mmas_of_last_k_tile<plan>(args, work_slot) == kMmas;
        // Accumulators spill between the real and the imaginary part, where the other warpgroup's
        // MMAs leave the most time.
        for (int left = num_k_tiles; left > !full;) {
            mbarrier_wait(ring.full(), ring.parity);
            const Turn turn{left == num_k_tiles, left == 1};
            multiply_and_promote<kMmas>(mma_accumulator, ring, 0, reader, lane, warpgroup, turn,
                                        [&] { spill.after_k_tile(args, --left, re, im); });
            if (lane == 0) mbarrier_arrive(ring.empty());
            promote(im, mma_accumulator);
            ring.template advance<plan.k_warpgroups>();
        }
        if constexpr (plan.boxes() > 1) {
            if (full) return;
            mbarrier_wait(ring.full(), ring.parity);
            // Computed again: no register is left to keep it in.
            const int last = mmas_of_last_k_tile<plan>(args, work_slot);
#pragma unroll 1
            for (int i = 0; i < last; ++i) {
                const Turn turn{num_k_tiles == 1 && i == 0, i == last - 1};
                multiply_and_promote<1>(mma_accumulator, ring, i, reader, lane, warpgroup, turn,
                                        [] {});
                promote(im, mma_accumulator);
            }
            if (lane == 0) mbarrier_arrive(ring.empty());
            ring.template advance<plan.k_warpgroups>();
        }
    }

    // The mainloop of stages that are scaled. Where registers suffice, the next stage is loaded and
    // its absmax is found while the last MMAs of a stage run, which hides the latency of both.
    // Where they hold no more than the absmax, the stage is loaded again.
    __device__ __forceinline__ void run_scaled(const WgmmaArguments& args,
                                               const AccumulatorSpill<plan>& spill,
                                               float (&mma_accumulator)[plan.block_n / 2],
                                               Ring<plan>& ring, const XTileReader<plan>& reader,
                                               int num_k_tiles, int lane, int warpgroup) {
        constexpr bool kAhead = plan.finds_absmax_ahead();
        ScaledStage<plan> stage;
        auto load = [&](const Ring<plan>& from) {
            mbarrier_wait(from.full(), from.parity);
            stage.load(reader, from.x_tile());
            stage.find_absmax();
        };
        if (kAhead && num_k_tiles > 0) load(ring);
        for (int left = num_k_tiles; left > 0;) {
            const XDescriptors<plan> x_descriptors(0);  // none of X is read from shared memory
            const YDescriptors<plan> y(ring.y_tile());
            XFragment<plan> x[kMmas];
            if constexpr (!kAhead) {
                load(ring);
            } else if constexpr (!plan.keeps_next_stage()) {
                stage.load(reader, ring.x_tile());
            }
            const Turn turn{left == num_k_tiles, left == 1};
            stage.convert(x, descale);
            multiply<0>(mma_accumulator, x, x_descriptors, y, warpgroup, turn);
            promote(re, mma_accumulator);
            spill.after_k_tile(args, --left, re, im);
            multiply<1>(mma_accumulator, x, x_descriptors, y, warpgroup, turn, [&] {
                Ring<plan> next = ring;
                next.template advance<plan.k_warpgroups>();
                if (kAhead && left > 0) load(next);
            });
            if (lane == 0) mbarrier_arrive(ring.empty());
            promote(im, mma_accumulator);
            ring.template advance<plan.k_warpgroups>();
        }
    }

    // Multiplies `mmas` MMAs along k of a stage, from `first` on, and promotes the real part. The
    // caller promotes the imaginary part, after it has released the stage.
    template <int mmas, typename Spill>
    __device__ __forceinline__ void multiply_and_promote(float (&mma_accumulator)[plan.block_n / 2],
                                                         const Ring<plan>& ring, int first,
                                                         const XTileReader<plan>& reader, int lane,
                                                         int warpgroup, const Turn& turn,
                                                         const Spill& spill) {
        const YDescriptors<plan> y(ring.y_tile() + first * plan.planes() * plan.y_plane_bytes());
        const uint32 x_tile = ring.x_tile() + first * plan.planes() * plan.x_plane_bytes();
        // The shuffle makes the value warp-uniform for the compiler: descriptors must be in uniform
        // registers.
        const uint32 x_own = x_tile + warpgroup * kWgmmaM * plan.box_row_bytes();
        const XDescriptors<plan> x_descriptors(
            plan.register_terms() < plan.terms ? __shfl_sync(~0u, x_own, 0) : x_own);
        XFragment<plan> x[mmas];
        load_fragments<plan>(reader, x_tile, 0, x);
        multiply<0>(mma_accumulator, x, x_descriptors, y, warpgroup, turn);
        promote(re, mma_accumulator);
        spill();
        multiply<1>(mma_accumulator, x, x_descriptors, y, warpgroup, turn);
    }

    // The products of one component with the conjugate of Y: re = xr yr + xi yi,
    // im = xi yr - xr yi.
    template <int component>
    static __device__ __forceinline__ void multiply_conjugate(
        float (&mma_accumulator)[plan.block_n / 2], const XFragment<plan>& x,
        const XDescriptors<plan>& x_descriptors, const YDescriptors<plan>& y, int i, int s, int t,
        int keep) {
        if (s < plan.register_terms()) {
            wgmma_pair<component ? -1 : 1>(mma_accumulator, component ? x.im[s] : x.re[s],
                                           y.at(i, t, 0), keep, component ? x.re[s] : x.im[s],
                                           y.at(i, t, 1));
        } else {
            wgmma_pair<component ? -1 : 1>(mma_accumulator, x_descriptors.at(i, s, component),
                                           y.at(i, t, 0), keep,
                                           x_descriptors.at(i, s, 1 - component), y.at(i, t, 1));
        }
    }

    struct Nothing {
        __device__ __forceinline__ void operator()() const {}
    };

    // Computes one complex part of the k-tile in the MMA accumulator. The products of small terms
    // come first for all MMAs, because truncation then happens at a smaller magnitude. `meanwhile`
    // is called while they run.
    template <int component, int mmas, typename Meanwhile = Nothing>
    static __device__ __forceinline__ void multiply(float (&mma_accumulator)[plan.block_n / 2],
                                                    const XFragment<plan> (&x)[mmas],
                                                    const XDescriptors<plan>& x_descriptors,
                                                    const YDescriptors<plan>& y, int warpgroup,
                                                    const Turn& turn,
                                                    const Meanwhile& meanwhile = {}) {
        if constexpr (plan.m_warpgroups == 2) {
            if (!plan.ping_pong || (component == 0 && turn.begins)) ping_pong_wait(warpgroup);
        }
        wgmma_fence();
#pragma unroll
        for (int p = 0; p < plan.products; ++p)
#pragma unroll
            for (int i = 0; i < mmas; ++i) {
                const int s = plan.product_x[p], t = plan.product_y[p];
                if constexpr (plan.conjugate_y) {
                    multiply_conjugate<component>(mma_accumulator, x[i], x_descriptors, y, i, s, t,
                                                  i + p > 0);
                } else if (s < plan.register_terms()) {
                    wgmma_pair<component ? 1 : -1>(mma_accumulator, x[i].re[s],
                                                   y.at(i, t, component), i + p > 0, x[i].im[s],
                                                   y.at(i, t, 1 - component));
                } else {
                    wgmma_pair<component ? 1 : -1>(mma_accumulator, x_descriptors.at(i, s, 0),
                                                   y.at(i, t, component), i + p > 0,
                                                   x_descriptors.at(i, s, 1),
                                                   y.at(i, t, 1 - component));
                }
            }
        wgmma_commit();
        if constexpr (plan.m_warpgroups == 2) {
            if (!plan.ping_pong || (component == 1 && turn.ends)) ping_pong_arrive(warpgroup);
        }
        meanwhile();
        wgmma_wait<0>();
        wgmma_fence_operand(mma_accumulator);
    }
};
