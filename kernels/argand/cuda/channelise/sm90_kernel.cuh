// Critically sampled filter banks by specialised warps (sm_90a), in fp32.
//
// Filter warps, a thread per column, keep the samples of T frames and the coefficients in registers
// for all spectra of a block: each sample is loaded and converted once, from a few frames that are
// copied to shared memory ahead. Groups of transform warps take batches of spectra from a ring in
// shared memory in turn, run the stages of R1 and R2 and write the result. So copies, sums and
// transforms of different spectra overlap without a barrier for all.
//
// Columns of a long transform are divided among the blocks of a cluster. Each batch is transformed
// by one block, the next batch by the next one: filter warps of all blocks write to its ring.
#pragma once
#include "device/cp_async.cuh"
#include "device/warpgroup.cuh"
#include "kernel.cuh"
#include "sm90_ring.cuh"
#include "twiddled_butterfly.cuh"

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
    using Ring = BatchRing<plan, roles>;
    using Line = BatchLine<roles.cluster>;
    static constexpr int M = plan.points, T = plan.taps, B = plan.batch;
    static constexpr int R0 = plan.radices[0], R1 = plan.radices[1], R2 = plan.radices[2];
    static constexpr int P = plan.columns(), kTurn = roles.turn, kWarp = 32;
    static constexpr int C = roles.cluster, kColumns = P / C;  // of a block
    static constexpr int kThreads = kColumns + roles.groups * plan.threads;
    static constexpr int kSharedBytes =
        roles.slots * plan.group_bytes() + roles.depth * (M / C) * Samples::kBytes;
    static_assert(plan.phases == 1 && plan.frames == 1 && !plan.real && plan.groups == 1, "banks");
    static_assert(kTurn % T == 0 && kTurn % B == 0, "a turn has whole windows and whole batches");
    static_assert(kTurn % roles.depth == 0 && roles.depth > 1, "a turn has whole rings of frames");
    static_assert(P % C == 0 && kColumns % 128 == 0 && plan.threads % 128 == 0,
                  "roles are whole warpgroups");
    static_assert(kColumns * roles.filter_registers +
                          roles.groups * plan.threads * roles.transform_registers <=
                      kThreads * (65536 / kThreads / 8 * 8),
                  "setmaxnreg must not claim more registers than the block has");

    // The samples of a warp's columns, frame by frame: a ring in shared memory that no other warp
    // reads. Copies of 16 bytes need frames at multiples of 16 bytes.
    struct Frames {
        static constexpr int kRun = kWarp * Samples::kBytes;  // bytes of 32 columns of a residue
        static constexpr int kBytes = R0 * kRun, kCopies = kBytes / 16;
        const unsigned char* from;  // of the lane's first copy of the next frame
        const unsigned char* own;   // the lane's sample of the first residue, in the first slot
        uint32 to;                  // the lane's first copy there
        int left;                   // frames that the lane is to copy

        __device__ __forceinline__ Frames(const Item& item, unsigned char* ring, int first,
                                          int warp, int lane)
            : from(item.x + first * Samples::kBytes + warp * kRun + place(lane)),
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
                    cp_async<16>(at, from + place(copy), left > 0 ? 16 : 0);
                } else {
                    cp_async_16_if(left, at, from + place(copy));
                }
            }
            from += M * Samples::kBytes;
            --left;
            cp_async_commit();
        }

        // Waits for the frame in a slot, loads it, and begins to copy another one to the slot
        // before, which all lanes have read.
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

    // A filter thread: for spectrum after spectrum it sums the taps of its column, computes the
    // first stage of the transform and writes to the ring.
    static __device__ __forceinline__ void filter(const ChanneliseArguments& args,
                                                  const Item& item, unsigned char* frames_ring,
                                                  Ring ring) {
        const int rank = C == 1 ? 0 : cluster_rank(), first = rank * kColumns;
        const int column = first + threadIdx.x;
        float h[T][R0];
        float2 twiddles[R0 > 1 ? R0 - 1 : 1];
        Frames frames(item, frames_ring, first, threadIdx.x / kWarp, threadIdx.x % kWarp);
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
        const int place = column + column / R2 * (plan.group_pitch() - R2);  // in a line
        Line line;
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
                    z[i] = conjugated<Of>(z[i]);
                }
                if constexpr (R0 > 1) butterfly<R0>(z);
                if (s % B == 0) {
                    mbarrier_wait(ring.is_empty(), ring.parity ^ 1);
                    line = Line(ring, rank, place);
                }
                line.store(s % B * plan.spectrum_pitch(), z[0]);
#pragma unroll
                for (int k = 1; k < R0; ++k)
                    line.store(s % B * plan.spectrum_pitch() + k * plan.line_pitch(),
                               complex_product(z[k], twiddles[k - 1]));
                if (s % B == B - 1 || (!whole.value && s + 1 == left)) {
                    ring.fill(rank);
                    ring.advance_rank();
                }
            }
        };
        int left = item.left;
#pragma unroll 1
        for (; left >= kTurn; left -= kTurn) turn(Constant<true>(), left);
        if (left > 0) turn(Constant<false>(), left);
        cp_async_wait<0>();
    }

    // Stages of a transform group where the last radix is a power of two and a thread has the same
    // numbers of each line and the same channels of each spectrum: twiddles of the last stage stay
    // in registers, and the stage of R1 has none.
    static constexpr bool kKeepsTwiddles = R1 > 1 && (R2 & (R2 - 1)) == 0 &&
                                   plan.threads % (R0 * R1) == 0 && plan.threads % R2 == 0;

    // The numbers of a thread in the last stage's first spectrum: channel `channel` of spectrum
    // `spectrum` of a batch.
    static __device__ __forceinline__ int channel(int thread) { return thread % (R0 * R1); }
    static __device__ __forceinline__ int spectrum(int thread) { return thread / (R0 * R1); }

    static __device__ __forceinline__ void middle_stage(float2* tile, int thread) {
        // 30 additions and products fewer of 32 numbers; of 16 only 6, and more registers.
        constexpr bool kFused = R1 == 32;
        constexpr int kCount = B * R0 * R2, kLines = plan.threads / R2;
        float2* const own = tile + thread / R2 * plan.line_pitch() + thread % R2;
#pragma unroll
        for (int index = 0; index < kCount; index += plan.threads) {
            if (index + plan.threads > kCount && index + thread >= kCount) break;
            float2* const at = own + index / plan.threads * kLines * plan.line_pitch();
            float2 z[R1];
#pragma unroll
            for (int n = 0; n < R1; ++n) z[n] = at[n * plan.group_pitch()];
            if constexpr (kFused) {
                twiddled_butterfly(z, PlainTwiddles<R1>{});
            } else {
                butterfly<R1>(z);
            }
#pragma unroll
            for (int k = 0; k < R1; ++k) at[k * plan.group_pitch()] = z[k];
        }
    }

    // `out` is the thread's first channel of the batch's first spectrum, `left` the spectra there
    // are.
    static __device__ __forceinline__ void last_stage(float2* out, int left, const float2* tile,
                                                      const float2 (&twiddles)[R2 / 2],
                                                      int thread) {
        constexpr int kCount = B * R0 * R1, kSpectra = plan.threads / (R0 * R1);
        const float2* const own = tile + Stages::place_of(channel(thread)) +
                                  spectrum(thread) * plan.spectrum_pitch();
#pragma unroll
        for (int index = 0; index < kCount; index += plan.threads) {
            const int b = index / plan.threads * kSpectra;
            if (b + spectrum(thread) >= left) break;
            float2 z[R2];
#pragma unroll
            for (int n = 0; n < R2; ++n) z[n] = own[b * plan.spectrum_pitch() + n];
            twiddled_butterfly(z, KeptTwiddles<R2>{twiddles});
#pragma unroll
            for (int n = 0; n < R2; ++n) __stcs(out + b * M + n * (R0 * R1), z[n]);
        }
    }

    // Every `roles.groups`-th batch of those of the block.
    static __device__ __forceinline__ void transform(const ChanneliseArguments& args, Item item,
                                                     Ring ring, int group, int thread) {
        ring.advance(group);
        const int before = (group * C + ring.rank) * B;
        item.left -= before;
        item.out += static_cast<int64>(before) * M;
        float2 twiddles[R2 / 2];
        float2* out = item.out + spectrum(thread) * M + channel(thread);
        if constexpr (kKeepsTwiddles) {
            const float2* const table = args.twiddles + plan.second_table();
#pragma unroll
            for (int i = 0; i < R2 / 2; ++i)
                twiddles[i] = __ldg(table + i * R1 + channel(thread) / R0);
        }
#pragma unroll 1
        while (item.left > 0) {
            const int valid = item.valid();
            ring.wait_full(valid * (M * 8), thread);
            if constexpr (kKeepsTwiddles) {
                middle_stage(ring.tile(), thread);
                sync_group(group);
                last_stage(out, valid, ring.tile(), twiddles, thread);
            } else {
                if constexpr (R1 > 1) {
                    Stages::middle_stage(args.twiddles, ring.tile(), thread);
                    sync_group(group);
                }
                Whole::last_stage(item, ring.tile(), thread);
                item.out += static_cast<int64>(roles.groups) * C * B * M;
            }
            ring.release();
            ring.advance(roles.groups);
            item.left -= roles.groups * C * B;
            out += static_cast<int64>(roles.groups) * C * B * M;
        }
    }

    static __device__ __forceinline__ void sync_group(int group) {
        asm volatile("bar.sync %0, %1;" ::"r"(1 + group), "n"(plan.threads) : "memory");
    }

    static __device__ __forceinline__ void meet() {
        if constexpr (C == 1) {
            __syncthreads();
        } else {
            cluster_arrive();
            cluster_wait();
        }
    }

    static __device__ __forceinline__ void run(const ChanneliseArguments& args) {
        extern __shared__ __align__(128) unsigned char shared[];
        __shared__ __align__(8) uint64 barriers[(1 + C) * roles.slots];
        const uint32 full = shared_address(barriers), empty = full + roles.slots * 8;
        if (threadIdx.x == 0) {
            for (int i = 0; i < roles.slots; ++i)
                mbarrier_init(full + i * 8, kColumns / kWarp * Ring::kArrivals + (C > 1));
            for (int i = 0; i < C * roles.slots; ++i)
                mbarrier_init(empty + i * 8, plan.threads / kWarp * Ring::kArrivals);
            mbarrier_init_fence();
        }
        meet();
        Ring ring = {reinterpret_cast<float2*>(shared), full, empty, 0};
        unsigned char* const frames = shared + roles.slots * plan.group_bytes();
        const Item item = Whole::item_of(args, blockIdx.x / C);
        if (item.left <= 0) return;  // so do all blocks of the cluster
        // The shuffle makes the role warp-uniform for the compiler: setmaxnreg needs whole
        // warpgroups on one branch.
        const int role = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / kColumns, 0);
        if (role == 0) {
            warpgroup_reg_alloc<roles.filter_registers>();
            filter(args, item, frames, ring);
        } else {
            warpgroup_reg_dealloc<roles.transform_registers>();
            const int thread = threadIdx.x - kColumns;
            if constexpr (C > 1) ring.rank = cluster_rank();
            transform(args, item, ring, __shfl_sync(~0u, thread / plan.threads, 0),
                      thread % plan.threads);
        }
        if constexpr (C > 1) meet();  // no block ends while others write to it
    }
};
