// Sums over a tile's k, in the registers of a warpgroup.
//
// `wgmma<sign>(accumulators, row registers, column descriptor, keep)` is generated for the plan's
// format and width (argand/wgmma_plan.py).
#pragma once
#include "device/warpgroup.cuh"
#include "sm90_fragments.cuh"
#include "sm90_ring.cuh"

// Two warpgroups issue their products in turns, by named barriers 1 and 2.
__device__ __forceinline__ void wait_turn(int warpgroup) {
    asm volatile("bar.sync %0, 256;" ::"r"(1 + warpgroup) : "memory");
}

__device__ __forceinline__ void give_turn(int warpgroup) {
    asm volatile("bar.arrive %0, 256;" ::"r"(2 - warpgroup) : "memory");
}

// The threads of a warpgroup meet, by barrier 3 or 4.
__device__ __forceinline__ void sync_warpgroup(int warpgroup) {
    asm volatile("bar.sync %0, 128;" ::"r"(3 + warpgroup) : "memory");
}

// Where an operand's planes of a stage begin, by instruction, term and complex part.
template <WgmmaPlan plan, int plane_bytes>
struct PlanesTile {
    // Half of a description holds the address: words are added in fewer instructions.
    static constexpr uint64 kNowhere = make_matrix_descriptor<plan.box_row_bytes()>(0);
    uint32 first;

    __device__ __forceinline__ explicit PlanesTile(uint32 address)
        : first(static_cast<uint32>(make_matrix_descriptor<plan.box_row_bytes()>(address))) {}
    __device__ __forceinline__ uint64 at(int step, int term, int part) const {
        const int box = step / plan.mmas_per_box(), inside = step % plan.mmas_per_box();
        const int byte = (box * plan.planes() + part) * plane_bytes + inside * plan.mma_k_bytes() +
                         term * plan.term_bytes();
        return kNowhere >> 32 << 32 | first + (byte >> 4);
    }
};

template <WgmmaPlan plan>
using ColumnTile = PlanesTile<plan, plan.y_plane_bytes()>;
template <WgmmaPlan plan>
using RowTile = PlanesTile<plan, plan.x_plane_bytes()>;

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
    static constexpr int kSteps = plan.mmas_per_stage();
    // Fragments are read and multiplied in groups; behind a head there are registers for small
    // ones.
    static constexpr int kGroups = kSteps == 1 ? 1 : plan.overlapped_stages > 0 ? kSteps : 2;
    static constexpr int kSets = kGroups > 1 ? 2 : 1;  // one is read while one is multiplied
    static constexpr int kTogether = kSteps / kGroups;
    static constexpr int kHalf = plan.block_n / 4;  // registers of a part's first or second columns
    float re[plan.block_n / 2], im[plan.block_n / 2];

    __device__ __forceinline__ void run(const WgmmaArguments&, uint32, Ring<plan>& ring,
                                        const RowReader<plan>& reader, int steps, int lane, int) {
        clear(re);
        clear(im);
        sum<kAllColumns>(ring, reader, steps, lane);
    }

    // The same of at least plan.overlapped_stages stages while the second columns of the results
    // before are still in the registers: `leave` sends off the i-th of kParts parts of them. The
    // first stages' products are taken by halves of the columns, so that those of the first run
    // while the second leave.
    template <typename Leave>
    __device__ __forceinline__ void run_behind(Ring<plan>& ring, const RowReader<plan>& reader,
                                               int steps, int lane, const Leave& leave) {
        begin<0>(ring, reader, leave);
        clear(half<1>(re));
        clear(half<1>(im));
        sum<1>(ring, reader, plan.overlapped_stages, lane);
        sum<kAllColumns>(ring, reader, steps - plan.overlapped_stages, lane);
    }

    static constexpr int kBegun = kSteps > 1 ? 2 : 1;  // instructions' k of a part
    static constexpr int kParts = plan.overlapped_stages * kSteps / kBegun;
    static constexpr int kAllColumns = 2;

    template <int which>
    static __device__ __forceinline__ float (&half(float (&x)[plan.block_n / 2]))
        [kHalf] { return reinterpret_cast<float (&)[kHalf]>(x[which * kHalf]); }

    // The first columns' products of the stages that are there, which stay there for the second's.
    template <int part, typename Leave>
    __device__
    __forceinline__ void begin(Ring<plan> ring, const RowReader<plan>& reader, const Leave& leave) {
        RowFragment<plan> x[kBegun];
        constexpr int kOfStage = kSteps / kBegun, first = part % kOfStage * kBegun;
        if (part % kOfStage == 0) mbarrier_wait(ring.full(), ring.parity);
        const ColumnTile<plan> y(ring.y_tile());
#pragma unroll
        for (int i = 0; i < kBegun; ++i) {
            read_fragment<plan>(reader, ring.x_tile(), (first + i) * plan.mma_k(), x[i]);
        }
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < kBegun; ++i) multiply<0>(x[i], y, first + i, part + i > 0);
        wgmma_commit();
        leave.template part<part, kParts>();
        wgmma_wait<0>();
        wgmma_fence_operand(half<0>(re));
        wgmma_fence_operand(half<0>(im));
        if constexpr (part + 1 < kParts) {
            if ((part + 1) % kOfStage == 0) ring.advance();
            begin<part + 1>(ring, reader, leave);
        }
    }

    template <int columns>
    __device__ __forceinline__ void sum(Ring<plan>& ring, const RowReader<plan>& reader, int steps,
                                        int lane) {
        RowFragment<plan> fragments[kSets][kTogether];
        uint32 previous = 0;  // the barrier of the stage before, still being multiplied
#pragma unroll 1
        for (int step = 0; step < steps; ++step) {
            mbarrier_wait(ring.full(), ring.parity);
            const ColumnTile<plan> y(ring.y_tile());
#pragma unroll
            for (int group = 0; group < kGroups; ++group) {
                // This set's last products are over; with two sets so are, from the second set on,
                // all of the stage before.
                wgmma_wait<kSets - 1>();
                if (group == kSets - 1 && step > 0 && lane == 0) mbarrier_arrive(previous);
#pragma unroll
                for (int i = 0; i < kTogether; ++i) {
                    read_fragment<plan>(reader, ring.x_tile(),
                                        (group * kTogether + i) * plan.mma_k(),
                                        fragments[group % kSets][i]);
                }
                wgmma_fence();
#pragma unroll
                for (int i = 0; i < kTogether; ++i) {
                    multiply<columns>(fragments[group % kSets][i], y, group * kTogether + i, 1);
                }
                wgmma_commit();
            }
            previous = ring.empty();
            ring.advance();
        }
        wgmma_wait<0>();
        if (steps > 0 && lane == 0) mbarrier_arrive(previous);
        wgmma_fence_operand(re);
        wgmma_fence_operand(im);
    }

    // The products of the first (0), the second (1) or all columns, added to what was there to
    // `keep`.
    template <int columns>
    __device__ __forceinline__ void multiply(const RowFragment<plan>& x, const ColumnTile<plan>& y,
                                             int step, int keep) {
#pragma unroll
        for (int p = 0; p < plan.products; ++p) {
            const int s = plan.product_x[p], t = plan.product_y[p];
            // With a head always by halves: instructions of two widths do not share registers.
            if constexpr (columns == kAllColumns && plan.overlapped_stages > 0) {
                constexpr uint64 first = plan.y_plane_bytes() / 2 >> 4;
                wgmma<1>(half<0>(re), x.re[s], y.at(step, t, 0), 1);
                wgmma<1>(half<1>(re), x.re[s], y.at(step, t, 0) + first, 1);
                wgmma<1>(half<0>(im), x.re[s], y.at(step, t, 1), 1);
                wgmma<1>(half<1>(im), x.re[s], y.at(step, t, 1) + first, 1);
                wgmma<-1>(half<0>(re), x.im[s], y.at(step, t, 1), 1);
                wgmma<-1>(half<1>(re), x.im[s], y.at(step, t, 1) + first, 1);
                wgmma<1>(half<0>(im), x.im[s], y.at(step, t, 0), 1);
                wgmma<1>(half<1>(im), x.im[s], y.at(step, t, 0) + first, 1);
            } else if constexpr (columns == kAllColumns) {
                wgmma<1>(re, x.re[s], y.at(step, t, 0), 1);
                wgmma<1>(im, x.re[s], y.at(step, t, 1), 1);
                wgmma<-1>(re, x.im[s], y.at(step, t, 1), 1);
                wgmma<1>(im, x.im[s], y.at(step, t, 0), 1);
            } else {
                constexpr uint64 first = columns * (plan.y_plane_bytes() / 2 >> 4);
                wgmma<1>(half<columns>(re), x.re[s], y.at(step, t, 0) + first, keep);
                wgmma<1>(half<columns>(im), x.re[s], y.at(step, t, 1) + first, keep);
                wgmma<-1>(half<columns>(re), x.im[s], y.at(step, t, 1) + first, 1);
                wgmma<1>(half<columns>(im), x.im[s], y.at(step, t, 0) + first, 1);
            }
        }
    }
};
