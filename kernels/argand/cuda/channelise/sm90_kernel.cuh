// Critically sampled filter banks by specialised warps (sm_90a), in fp32.
//
// Filter warps, a thread a column, keep the samples of T frames and the coefficients in registers for
// all spectra of a block: each sample is loaded and converted once, from a few frames that are copied
// to shared memory ahead. Groups of transform warps take batches of spectra from a ring in shared
// memory in turn, run the stages of R1 and R2 and write the result. So copies, sums and transforms of
// different spectra overlap without a barrier for all.
#pragma once
#include "device/mbarrier.cuh"
#include "device/warpgroup.cuh"
#include "kernel.cuh"

// How warps are specialised. `plan.threads` are those of a transform group.
struct Specialization {
    int turn;    // spectra of whole windows of taps and whole batches
    int depth;   // frames of a filter warp in shared memory
    int slots;   // batches of the ring
    int groups;  // of transform warps
    int filter_registers;
    int transform_registers;
    bool arrive_per_lane;  // each lane arrives at mbarriers, not one of a warp
};

template <bool Value>
struct Constant {
    static constexpr bool value = Value;
};

template <ChannelisePlan plan, Specialization roles, Component Of>
struct SpecializedKernel {
    using Whole = ChanneliseKernel<plan, Of>;
    using Item = typename Whole::Item;
    using Samples = Unit<Of>;
    using Stages = TransformStages<plan>;
    static constexpr int M = plan.points, T = plan.taps, B = plan.batch;
    static constexpr int R0 = plan.radices[0], R1 = plan.radices[1], R2 = plan.radices[2];
    static constexpr int P = plan.columns(), kTurn = roles.turn, kWarp = 32;
    static constexpr int kThreads = P + roles.groups * plan.threads;
    static constexpr int kSharedBytes =
        roles.slots * plan.group_bytes() + roles.depth * M * Samples::kBytes;
    static_assert(plan.phases == 1 && plan.frames == 1 && !plan.real && plan.groups == 1, "banks");
    static_assert(kTurn % T == 0 && kTurn % B == 0, "a turn has whole windows and whole batches");
    static_assert(kTurn % roles.depth == 0 && roles.depth > 1, "a turn has whole rings of frames");
    static_assert(P % 128 == 0 && plan.threads % 128 == 0, "roles are whole warpgroups");
    static_assert(P * roles.filter_registers +
                          roles.groups * plan.threads * roles.transform_registers <=
                      kThreads * (65536 / kThreads / 8 * 8),
                  "setmaxnreg must not claim more registers than the block has");

    // The ring of batches, and what says that one is full or empty.
    struct Ring {
        float2* tiles;
        uint32 full, empty;  // mbarriers, of 8 bytes each
        int slot = 0;
        uint32 parity = 0;

        __device__ __forceinline__ float2* tile() const {
            return tiles + slot * (plan.group_bytes() / 8);
        }
        __device__ __forceinline__ uint32 is_full() const { return full + slot * 8; }
        __device__ __forceinline__ uint32 is_empty() const { return empty + slot * 8; }

        __device__ __forceinline__ void advance(int by) {
            slot += by;
            if (slot >= roles.slots) {
                slot -= roles.slots;
                parity ^= 1;
            }
        }
    };

    // Arrives for a warp, after what its lanes have read or written. One lane arrives after
    // __syncwarp; compute-sanitizer does not follow that order, so for it every lane arrives.
    static constexpr int kArrivals = roles.arrive_per_lane ? kWarp : 1;
    static __device__ __forceinline__ void arrive(uint32 mbarrier) {
        if constexpr (!roles.arrive_per_lane) __syncwarp();
        if (roles.arrive_per_lane || threadIdx.x % kWarp == 0) mbarrier_arrive(mbarrier);
    }

    // The samples of a warp's columns, frame by frame: a ring in shared memory that no other warp reads.
    // Copies of 16 bytes need frames at multiples of 16 bytes.
    struct Frames {
        static constexpr int kRun = kWarp * Samples::kBytes;  // bytes of 32 columns of a residue
        static constexpr int kBytes = R0 * kRun, kCopies = kBytes / 16;
        const unsigned char* from;  // of the lane's first copy of the next frame
        const unsigned char* own;   // the lane's sample of the first residue, in the first slot
        uint32 to;                  // the lane's first copy there
        int left;                   // frames that the lane is to copy

        __device__ __forceinline__ Frames(const Item& item, unsigned char* ring, int warp, int lane)
            : from(item.x + warp * kRun + place(lane)),
              own(ring + warp * (roles.depth * kBytes) + lane * Samples::kBytes),
              to(shared_address(ring + warp * (roles.depth * kBytes) + lane * 16)),
              left(lane < kCopies ? item.frames() : 0) {}

        // Where a copy lies in a frame, from the warp's first column.
        static __device__ __forceinline__ int place(int copy) {
            return copy / (kRun / 16) * (P * Samples::kBytes) + copy % (kRun / 16) * 16;
        }

        // Begins to copy the next frame to a slot, if there is one, as a group of its own.
        __device__ __forceinline__ void next(int slot) {
#pragma unroll
            for (int copy = 0; copy < kCopies; copy += kWarp) {
                const uint32 at = to + slot * kBytes + copy * 16;
                if constexpr (kCopies >= kWarp) {  // zeros beyond the last frame
                    cp_async_16(at, from + place(copy), left > 0 ? 16 : 0);
                } else {
                    cp_async_16_if(left, at, from + place(copy));
                }
            }
            from += M * Samples::kBytes;
            --left;
            cp_async_commit();
        }

        // Waits for the frame in a slot, loads it, and begins to copy another one to the slot before,
        // which all lanes have read.
        __device__ __forceinline__ void load(int slot, float2 (&x)[R0]) {
            cp_async_wait<roles.depth - 2>();
            __syncwarp();
#pragma unroll
            for (int i = 0; i < R0; ++i)
                x[i] = Samples::value(*reinterpret_cast<const typename Samples::Raw*>(
                    own + slot * kBytes + i * kRun));
            next((slot + roles.depth - 1) % roles.depth);
        }
    };

    static __device__ __forceinline__ void filter(const ChanneliseArguments& args,
                                                  const Item& item, unsigned char* frames_ring,
                                                  Ring ring) {
        const int column = threadIdx.x;
        float h[T][R0];
        float2 twiddles[R0 > 1 ? R0 - 1 : 1];
        Frames frames(item, frames_ring, column / kWarp, column % kWarp);
#pragma unroll
        for (int f = 0; f < roles.depth - 1; ++f) frames.next(f);
#pragma unroll
        for (int t = 0; t < T; ++t)
#pragma unroll
            for (int i = 0; i < R0; ++i)
                h[t][i] = __ldg(args.coefficients + column + i * P + t * M);
#pragma unroll
        for (int k = 1; k < R0; ++k) twiddles[k - 1] = __ldg(args.twiddles + (k - 1) * P + column);

        float2 x[T][R0];  // by the frame modulo T
#pragma unroll
        for (int f = 0; f < T - 1; ++f) frames.load(f % roles.depth, x[f]);
        float2* line = nullptr;
        // The spectra of a turn; `whole` says that there are all of them.
        const auto turn = [&](auto whole, int left) {
#pragma unroll
            for (int s = 0; s < kTurn; ++s) {
                if (!whole.value && s >= left) break;
                frames.load((s + T - 1) % roles.depth, x[(s + T - 1) % T]);
                float2 z[R0];
#pragma unroll
                for (int i = 0; i < R0; ++i) {
                    z[i] = {h[0][i] * x[s % T][i].x, h[0][i] * x[s % T][i].y};
#pragma unroll
                    for (int t = 1; t < T; ++t) {
                        z[i].x = fmaf(h[t][i], x[(s + t) % T][i].x, z[i].x);
                        z[i].y = fmaf(h[t][i], x[(s + t) % T][i].y, z[i].y);
                    }
                }
                if constexpr (R0 > 1) butterfly<R0>(z);
                if (s % B == 0) {
                    mbarrier_wait(ring.is_empty(), ring.parity ^ 1);
                    line = ring.tile() + column + column / R2 * (plan.group_pitch() - R2);
                }
                float2* const to = line + s % B * plan.spectrum_pitch();
                to[0] = z[0];
#pragma unroll
                for (int k = 1; k < R0; ++k)
                    to[k * plan.line_pitch()] = complex_product(z[k], twiddles[k - 1]);
                if (s % B == B - 1 || (!whole.value && s + 1 == left)) {
                    arrive(ring.is_full());
                    ring.advance(1);
                }
            }
        };
        int left = item.left;
#pragma unroll 1
        for (; left >= kTurn; left -= kTurn) turn(Constant<true>(), left);
        if (left > 0) turn(Constant<false>(), left);
        cp_async_wait<0>();
    }

    // Every `roles.groups`-th batch.
    static __device__ __forceinline__ void transform(const ChanneliseArguments& args, Item item,
                                                     Ring ring, int group, int thread) {
        ring.advance(group);
        item.left -= group * B;
        item.out += static_cast<int64>(group) * B * M;
#pragma unroll 1
        while (item.left > 0) {
            mbarrier_wait(ring.is_full(), ring.parity);
            if constexpr (R1 > 1) {
                Stages::middle_stage(args.twiddles, ring.tile(), thread);
                asm volatile("bar.sync %0, %1;" ::"r"(1 + group), "n"(plan.threads) : "memory");
            }
            Whole::last_stage(item, ring.tile(), thread);
            arrive(ring.is_empty());
            ring.advance(roles.groups);
            item.left -= roles.groups * B;
            item.out += static_cast<int64>(roles.groups) * B * M;
        }
    }

    static __device__ __forceinline__ void run(const ChanneliseArguments& args) {
        extern __shared__ __align__(128) unsigned char shared[];
        __shared__ __align__(8) uint64 barriers[2 * roles.slots];
        const uint32 full = shared_address(barriers);
        if (threadIdx.x == 0) {
            for (int i = 0; i < roles.slots; ++i) {
                mbarrier_init(full + i * 8, P / kWarp * kArrivals);
                mbarrier_init(full + (roles.slots + i) * 8, plan.threads / kWarp * kArrivals);
            }
            mbarrier_init_fence();
        }
        __syncthreads();
        const Ring ring = {reinterpret_cast<float2*>(shared), full, full + roles.slots * 8};
        unsigned char* const frames = shared + roles.slots * plan.group_bytes();
        const Item item = Whole::item_of(args, 0);
        if (item.left <= 0) return;
        // The shuffle makes the role warp-uniform for the compiler: setmaxnreg needs whole
        // warpgroups on one branch.
        const int role = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / P, 0);
        if (role == 0) {
            warpgroup_reg_alloc<roles.filter_registers>();
            filter(args, item, frames, ring);
        } else {
            warpgroup_reg_dealloc<roles.transform_registers>();
            const int thread = threadIdx.x - P;
            transform(args, item, ring, __shfl_sync(~0u, thread / plan.threads, 0),
                      thread % plan.threads);
        }
    }
};
