// Sums over a tile's k, in the registers of a warpgroup.
//
// `wgmma<sign>(accumulators, row registers, column descriptor, keep)` is generated for the plan's
// format and width (argand/wgmma_plan.py).
#pragma once
#include "device/warpgroup.cuh"
#include "gemm_wgmma_rows.cuh"

// Two warpgroups issue their products in turns, by named barriers 1 and 2.
__device__ __forceinline__ void wait_turn(int warpgroup) {
    asm volatile("bar.sync %0, 256;" ::"r"(1 + warpgroup) : "memory");
}

__device__ __forceinline__ void give_turn(int warpgroup) {
    asm volatile("bar.arrive %0, 256;" ::"r"(2 - warpgroup) : "memory");
}

// What both ways of summing share: where a stage's column operand begins, by instruction and plane.
template <WgmmaPlan plan>
struct ColumnTile {
    static constexpr uint64 kPlane = plan.y_plane_bytes() >> 4;
    static constexpr uint64 kStep = plan.step() * plan.line_bytes() / plan.depth >> 4;
    uint64 first;

    __device__ __forceinline__ explicit ColumnTile(uint32 address)
        : first(describe_tile<plan.line_bytes()>(address)) {}
    __device__ __forceinline__ uint64 at(int step, int term, int part) const {
        return first + step * kStep + (2 * term + part) * kPlane;
    }
};

template <int Count>
__device__ __forceinline__ void add(float (&total)[Count], const float (&slice)[Count]) {
#pragma unroll
    for (int i = 0; i < Count; ++i) total[i] += slice[i];
}

template <int Count>
__device__ __forceinline__ void clear(float (&x)[Count]) {
#pragma unroll
    for (int i = 0; i < Count; ++i) x[i] = 0.0f;
}

// One warpgroup's sums over a tile, real and imaginary part at once.
template <WgmmaPlan plan>
struct JointSums {
    static constexpr int kSteps = plan.depth / plan.step();
    static constexpr int kGroups = kSteps > 1 ? 2 : 1;  // sets of fragments: one read, one multiplied
    static constexpr int kTogether = kSteps / kGroups;
    float re[plan.block_n / 2], im[plan.block_n / 2];

    __device__ __forceinline__ void run(Ring<plan>& ring, const RowReader<plan>& reader, int steps,
                                        int lane, int warpgroup) {
        clear(re);
        clear(im);
        RowFragment<plan> fragments[kGroups][kTogether];
        uint32 previous = 0;  // the barrier of the stage before, still being multiplied
#pragma unroll 1
        for (int step = 0; step < steps; ++step) {
            barrier_wait(ring.full(), ring.parity);
            const ColumnTile<plan> y(ring.columns());
#pragma unroll
            for (int group = 0; group < kGroups; ++group) {
                // This set's last products are over; with two sets so are, from the second set on,
                // all of the stage before.
                wgmma_wait<kGroups - 1>();
                if (group == kGroups - 1 && step > 0 && lane == 0) barrier_arrive(previous);
#pragma unroll
                for (int i = 0; i < kTogether; ++i) {
                    read_fragment<plan>(reader, ring.rows(), (group * kTogether + i) * plan.step(),
                                        fragments[group][i]);
                }
                wgmma_fence();
#pragma unroll
                for (int i = 0; i < kTogether; ++i) {
                    multiply(fragments[group][i], y, group * kTogether + i);
                }
                wgmma_commit();
            }
            previous = ring.empty();
            ring.advance();
        }
        wgmma_wait<0>();
        if (steps > 0 && lane == 0) barrier_arrive(previous);
        settle(re);
        settle(im);
    }

    __device__ __forceinline__ void multiply(const RowFragment<plan>& x, const ColumnTile<plan>& y,
                                             int step) {
#pragma unroll
        for (int p = 0; p < plan.products; ++p) {
            const int s = plan.product_x[p], t = plan.product_y[p];
            wgmma<1>(re, x.re[s], y.at(step, t, 0), 1);
            wgmma<1>(im, x.re[s], y.at(step, t, 1), 1);
            wgmma<-1>(re, x.im[s], y.at(step, t, 1), 1);
            wgmma<1>(im, x.im[s], y.at(step, t, 0), 1);
        }
    }
};

// The same with promotion: after every stage sums move into fp32 registers. Tensor cores truncate when
// they accumulate, and an error that each step adds to would grow with k. The real and then the imaginary
// part of a stage are summed in the same registers, so that tiles can be wide; while one warpgroup adds,
// the other multiplies.
template <WgmmaPlan plan>
struct AlternateSums {
    static constexpr int kSteps = plan.depth / plan.step();
    float re[plan.block_n / 2], im[plan.block_n / 2];

    __device__ __forceinline__ void run(Ring<plan>& ring, const RowReader<plan>& reader, int steps,
                                        int lane, int warpgroup) {
        float slice[plan.block_n / 2];
        clear(re);
        clear(im);
        clear(slice);
        for (; steps > 0; --steps) {
            barrier_wait(ring.full(), ring.parity);
            const ColumnTile<plan> y(ring.columns());
            RowFragment<plan> x[kSteps];
#pragma unroll
            for (int i = 0; i < kSteps; ++i) {
                read_fragment<plan>(reader, ring.rows(), i * plan.step(), x[i]);
            }
            multiply<0>(slice, x, y, warpgroup);
            add(re, slice);
            multiply<1>(slice, x, y, warpgroup);
            if (lane == 0) barrier_arrive(ring.empty());
            add(im, slice);
            ring.advance();
        }
    }

    template <int part>
    static __device__ __forceinline__ void multiply(float (&slice)[plan.block_n / 2],
                                                    const RowFragment<plan> (&x)[kSteps],
                                                    const ColumnTile<plan>& y, int warpgroup) {
        if constexpr (plan.warpgroups == 2) wait_turn(warpgroup);
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < kSteps; ++i)
#pragma unroll
            for (int p = 0; p < plan.products; ++p) {
                const int s = plan.product_x[p], t = plan.product_y[p];
                wgmma<1>(slice, x[i].re[s], y.at(i, t, part), i + p > 0);
                wgmma<part ? 1 : -1>(slice, x[i].im[s], y.at(i, t, 1 - part), 1);
            }
        wgmma_commit();
        if constexpr (plan.warpgroups == 2) give_turn(warpgroup);
        wgmma_wait<0>();
        settle(slice);
    }
};
