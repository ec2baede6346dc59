// Complex matrix products on Hopper's tensor cores (sm_90a), one family for every precision.
//
// One warpgroup's first thread feeds a ring of shared-memory stages through the copy engine; the
// others multiply, 64 rows each. The row operand goes through registers: interleaved, where it is
// rounded and split there, or in planes; the column operand's planes are read by the tensor cores from
// shared memory, each for the real and for the imaginary part of Z:
// re = xr yr - xi yi, im = xr yi + xi yr, the sign being a flag of the instruction.
//
// `wgmma<sign>(accumulators, row registers, column descriptor, keep)` is generated for the plan's
// format and width (argand/wgmma_plan.py).
#pragma once
#include "device/warpgroup.cuh"
#include "gemm_wgmma_aside.cuh"
#include "gemm_wgmma_store.cuh"
#include "gemm_wgmma_work.cuh"

template <WgmmaPlan plan>
struct Ring {
    uint32 base;  // stages, each the row operand's tile and the column operand's planes
    int stage = 0;
    uint32 parity;

    __device__ __forceinline__ Ring(uint32 base, uint32 parity) : base(base), parity(parity) {}
    __device__ __forceinline__ uint32 full() const {
        return base + plan.stages * plan.stage_bytes() + plan.staging_bytes() + 8 * stage;
    }
    __device__ __forceinline__ uint32 empty() const { return full() + 8 * plan.stages; }
    // Where the loading thread leaves the turn that it is at.
    __device__ __forceinline__ uint32 turn() const {
        return base + plan.stages * (plan.stage_bytes() + 16) + plan.staging_bytes();
    }
    __device__ __forceinline__ uint32 rows() const { return base + stage * plan.stage_bytes(); }
    __device__ __forceinline__ uint32 columns() const { return rows() + plan.x_bytes(); }
    __device__ __forceinline__ void advance() {
        if (++stage == plan.stages) {
            stage = 0;
            parity ^= 1;
        }
    }
};

// Fills the stages, tile after tile. One thread.
template <WgmmaPlan plan>
__device__ __forceinline__ void produce(const TensorMap& x_map, const TensorMap& y_map,
                                        const WgmmaArguments& args, uint32 base) {
    Ring<plan> ring(base, 1);
    WgmmaWork work;
    for (uint32 turn = 0; find_work<plan>(args, turn, work); ++turn) {
        const WgmmaTile& tile = work.tile;
        const int x_batch = args.x_batched ? tile.batch : 0;
        const int y_batch = args.y_batched ? tile.batch : 0;
        const uint32 strip = y_batch * Strips<plan>(args).a_product + tile.column / plan.block_n;
        int packed = -1;  // the chunk of k that is known to be
        if constexpr (plan.packs) tell_turn(ring.turn(), turn);
        for (int step = 0; step < tile.steps; ++step) {
            const int k = (tile.first_step + step) * plan.depth;
            barrier_wait(ring.empty(), ring.parity);
            barrier_expect(ring.full(), plan.stage_bytes());
            if constexpr (plan.storage == Storage::planar) {
                copy_box(ring.rows(), x_map, ring.full(), k, tile.row, 0, x_batch);
            } else if constexpr (plan.k_fast) {
#pragma unroll
                for (int i = 0; i < plan.depth / plan.x_span(); ++i) {
                    copy_box(ring.rows() + i * plan.block_m() * kSwizzleBytes, x_map, ring.full(),
                             k + i * plan.x_span(), tile.row, x_batch);
                }
            } else {
#pragma unroll 2
                for (int i = 0; i < plan.block_m() / plan.x_span(); ++i) {
                    copy_box(ring.rows() + i * plan.depth * kSwizzleBytes, x_map, ring.full(),
                             tile.row + i * plan.x_span(), k, x_batch);
                }
            }
            if constexpr (plan.packs) {
                if (k / kAsideDepth != packed) {
                    packed = k / kAsideDepth;
                    wait_for_planes<plan>(args, strip, packed);
                }
            }
            copy_box(ring.columns(), y_map, ring.full(), k, tile.column, 0, y_batch);
            ring.advance();
        }
    }
    if constexpr (plan.packs) tell_turn(ring.turn(), kNoMoreTurns);
}

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

template <bool condition, typename Then, typename Else>
struct Choose {
    using Type = Then;
};
template <typename Then, typename Else>
struct Choose<false, Then, Else> {
    using Type = Else;
};

// Multiplies what arrives, tile after tile, and stores the results. One warpgroup.
template <WgmmaPlan plan>
__device__ __forceinline__ void consume(const WgmmaArguments& args, const TensorMap& out_map,
                                        uint32 base) {
    // From the thread's number, whenever it is wanted: there is no register to keep it in.
    const int warpgroup = threadIdx.x / kWarpgroup;
    const int warp = threadIdx.x / kWarp % 4, lane = threadIdx.x % kWarp;
    const RowReader<plan> reader(warpgroup, warp, lane);
    Ring<plan> ring(base, 0);
    if constexpr (plan.terms > 1 && plan.warpgroups == 2) {
        if (warpgroup == 1) give_turn(1);
    }
    WgmmaWork work;
    for (uint32 turn = 0; find_work<plan>(args, turn, work); ++turn) {
        typename Choose<(plan.terms > 1), AlternateSums<plan>, JointSums<plan>>::Type sums;
        sums.run(ring, reader, work.tile.steps, lane, warpgroup);
        const int thread = forgotten(threadIdx.x), last_warp = thread / kWarp;
        find_work<plan>(args, forgotten(turn), work);
        if (work.left) {
            leave_piece<plan>(args, thread, sums.re, sums.im);
            continue;
        }
        add_pieces<plan>(args, work, thread, sums.re, sums.im);
        const WgmmaTile& tile = work.tile;
        const int row0 = tile.row + last_warp * 16;
        if constexpr (plan.staged) {
            const uint32 staging =
                forgotten(base) + plan.stages * plan.stage_bytes() + last_warp * 2 * kStoreBytes;
            stage_rows<plan>(args, out_map, tile, row0, thread % kWarp, staging, sums.re, sums.im);
        } else {
            store_rows<plan>(args, tile, row0, thread % kWarp, sums.re, sums.im);
        }
    }
    // Shared memory must outlive what is still read from it.
    if (plan.staged && lane == 0) wait_stores_read<0>();
}

template <WgmmaPlan plan>
__device__ __forceinline__ void gemm_wgmma(const TensorMap& x_map, const TensorMap& y_map,
                                           const TensorMap& out_map, const WgmmaArguments& args) {
    static_assert(plan.depth % plan.step() == 0, "whole instructions");
    static_assert(plan.loader_registers() + plan.warpgroups * plan.multiplier_registers() <=
                      65536 / plan.threads() / 8 * 8 * (plan.warpgroups + 1),
                  "registers that a block was started with");
    static_assert(plan.storage == Storage::planar || !plan.k_fast || plan.depth % plan.x_span() == 0,
                  "whole lines of the row operand");
    extern __shared__ unsigned char memory[];
    // The swizzle repeats every 1024 bytes; dynamic shared memory promises 16.
    const uint32 base = (shared_address(memory) + 1023u) & ~1023u;
    if (threadIdx.x == 0) {
        Ring<plan> ring(base, 0);
        for (int i = 0; i < plan.stages; ++i) {
            barrier_init(ring.full(), 1);
            barrier_init(ring.empty(), 4 * plan.warpgroups);  // one arrival a warp
            ring.advance();
        }
        barrier_init_fence();
        if constexpr (plan.packs) tell_turn(ring.turn(), 0);
        prefetch_map(x_map);
        prefetch_map(y_map);
        if constexpr (plan.staged) prefetch_map(out_map);
    }
    __syncthreads();
    // The same in all lanes, and known to be: setmaxnreg needs whole warpgroups on one branch.
    const int role = __shfl_sync(0xffffffffu, int(threadIdx.x / kWarpgroup), 0);
    if (role == plan.warpgroups) {
        release_registers<plan.loader_registers()>();
        if (threadIdx.x % kWarpgroup == 0) produce<plan>(x_map, y_map, args, base);
        if constexpr (plan.packs) {
            if (threadIdx.x % kWarpgroup < kWarp) {
                leave_counters<plan>(args);
            } else {
                pack_aside<plan>(args, Ring<plan>(base, 0).turn());
            }
        }
    } else {
        claim_registers<plan.multiplier_registers()>();
        consume<plan>(args, out_map, base);
    }
}
