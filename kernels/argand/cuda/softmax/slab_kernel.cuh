// The slab kernel: rows without gaps between them, of any length and from any address. A team, a
// warp or a block, works on slabs of as many whole rows as its threads hold. A slab moves between
// global and shared memory in accesses of 16 bytes or in one bulk copy, wherever its rows begin;
// threads read and write single elements of their row in shared memory. So a row's remainder costs
// bytes, not instructions.
//
// Teams are persistent and synchronize with no other team. Each has a ring of stages: the next slab
// is copied while one is computed, and results overwrite the slab in its stage.
#pragma once
#include "device/tma.cuh"
#include "device/tma_bulk.cuh"
#include "row.cuh"

constexpr int kChunk = 16;  // bytes of an access, and alignment of bulk copies

template <RowPlan plan>
constexpr int kTeamThreads = plan.row_threads > kWarp ? plan.row_threads : kWarp;

template <RowPlan plan>
struct SlabStorage {
    alignas(8) unsigned long long full[plan.bulk ? plan.block_threads / kTeamThreads<plan> : 1]
                                      [plan.bulk ? plan.slab_stages : 1];
    ComputeType<plan> warp_maxima[kWarp];  // of a block
    AccumulatorType<plan> warp_sums[kWarp];
};

template <RowPlan plan>
class SlabKernel {
    using In = Element<plan.input>;
    using Out = Element<plan.output>;
    using R = ComputeType<plan>;
    static constexpr int kThreads = kTeamThreads<plan>;
    static constexpr int kRows = kThreads / plan.row_threads;
    static constexpr int kStages = plan.slab_stages;
    static constexpr int kTeams = plan.block_threads / kThreads;
    static constexpr int kElementBytes =
        plan.operation != Operation::logsumexp && sizeof(Out) > sizeof(In) ? sizeof(Out)
                                                                           : sizeof(In);
    // A slab may begin and end within a chunk.
    static constexpr int kStageBytes = kThreads * plan.values_per_thread * kElementBytes + kChunk;
    static_assert(plan.resident && plan.vector_width == 1 && !plan.unaligned_rows,
                  "a thread's values are single elements of a row");
    static_assert(kTeams == 1 || kThreads == kWarp, "a team is a warp or the block");

    const SoftmaxArguments& args;
    SlabStorage<plan>& storage;
    char* const stages;  // of this team
    const int columns, team, rank;
    const int64 num_slabs, slab_step;

    __device__ __forceinline__ static void sync() {
        if constexpr (kThreads == kWarp) {
            __syncwarp();
        } else {
            __syncthreads();
        }
    }

    // Rows of a slab; the last one has fewer.
    __device__ __forceinline__ int rows_of(int64 slab) const {
        const int64 left = args.rows - slab * kRows;
        return left < kRows ? static_cast<int>(left) : kRows;
    }
    // Where a slab lies in an array, from the chunk in which it begins: bytes [begin, end).
    template <typename T>
    struct Place {
        T* chunks;
        int begin, end;
    };
    template <typename Byte, typename Array>
    __device__ __forceinline__ Place<Byte> place_of(Array* array, int64 slab) const {
        auto* first = reinterpret_cast<Byte*>(array + slab * kRows * columns);
        const int begin =
            static_cast<int>(reinterpret_cast<unsigned long long>(first)) & (kChunk - 1);
        return {first - begin, begin,
                begin + rows_of(slab) * columns * static_cast<int>(sizeof(Array))};
    }
    __device__ __forceinline__ char* stage(int index) const { return stages + index * kStageBytes; }

    // Starts to copy a slab to a stage that has been read, once the results there are stored. Whole
    // chunks are copied, with what they hold of other rows but with nothing from outside the array
    // of x: what is left of the first and of the last slab is loaded by elements.
    __device__ __forceinline__ void load(int64 slab, int index) const {
        if constexpr (plan.bulk) {
            if (rank == 0) tma_store_wait_read<0>();
        }
        if (slab < num_slabs) {
            const auto from = place_of<const char>(static_cast<const In*>(args.x), slab);
            char* to = stage(index);
            const int begin = from.chunks < args.x ? kChunk : 0;
            int end = (from.end + kChunk - 1) & -kChunk;
            if (from.chunks + end > args.x_end) end -= kChunk;
            if (begin > from.begin || end < from.end) {
                sync();  // after thread 0 has waited
#pragma unroll 1
                for (int at = from.begin + rank * static_cast<int>(sizeof(In)); at < from.end;
                     at += kThreads * static_cast<int>(sizeof(In))) {
                    if (at < begin || at >= end)
                        *reinterpret_cast<In*>(to + at) =
                            *reinterpret_cast<const In*>(from.chunks + at);
                }
            }
            if constexpr (plan.bulk) {
                if (rank == 0) {
                    const uint32 full = shared_address(&storage.full[team][index]);
                    if (begin < end) {
                        mbarrier_arrive_expect_tx(full, end - begin);
                        bulk_load(shared_address(to + begin), from.chunks + begin, end - begin,
                                  full);
                    } else {
                        mbarrier_arrive(full);
                    }
                }
            } else {
                const uint32 target = shared_address(to);
                for (int at = begin + rank * kChunk; at < end; at += kThreads * kChunk)
                    cp_async_16(target + at, from.chunks + at);
            }
        }
        if constexpr (!plan.bulk) cp_async_commit();  // a group a slab, be it empty
    }

    // Returns when the oldest slab that is being copied has arrived, and when all threads have
    // read the stage before it.
    __device__ __forceinline__ void wait(int index, uint32 phase) const {
        if constexpr (plan.bulk) {
            mbarrier_wait(shared_address(&storage.full[team][index]), phase);
        } else {
            cp_async_wait<kStages - 2>();
        }
        sync();
    }

    // Copies the results of a slab from its stage. Elements of chunks that it shares with
    // neighbouring slabs are stored one by one.
    __device__ __forceinline__ void store(int64 slab, int index) const {
        const auto to = place_of<char>(static_cast<Out*>(args.out), slab);
        const char* from = stage(index);
        const int begin = (to.begin + kChunk - 1) & -kChunk, end = to.end & -kChunk;
        if constexpr (plan.bulk) {
            fence_proxy_async_shared();
            sync();
            if (rank == 0) {
                if (begin < end)
                    bulk_store(to.chunks + begin, shared_address(from + begin), end - begin);
                tma_store_commit();
            }
        } else {
            sync();
            for (int at = begin + rank * kChunk; at < end; at += kThreads * kChunk)
                *reinterpret_cast<uint4*>(to.chunks + at) =
                    *reinterpret_cast<const uint4*>(from + at);
        }
        const int offset = rank * static_cast<int>(sizeof(Out));
        const int head = to.begin + offset, tail = max(begin, end) + offset;
        if (head < min(begin, to.end))
            *reinterpret_cast<Out*>(to.chunks + head) = *reinterpret_cast<const Out*>(from + head);
        if (tail < to.end)
            *reinterpret_cast<Out*>(to.chunks + tail) = *reinterpret_cast<const Out*>(from + tail);
    }

    // Element `offset` of a slab in a stage, where it lies as in an array within a chunk.
    template <typename T>
    __device__ __forceinline__ static T* element(char* stage, T* slab, int offset) {
        const auto address = reinterpret_cast<unsigned long long>(slab);
        return reinterpret_cast<T*>(stage + (static_cast<int>(address) & (kChunk - 1))) + offset;
    }

    // Whether value i of a thread, whose first is element `first`, lies in its row: only the last
    // may not.
    __device__ __forceinline__ bool in_row(int first, int i) const {
        return i + 1 < plan.values_per_thread || first + i * plan.row_threads < columns;
    }

    // Loads a thread's values of its row, every `row_threads`-th one; those beyond the row become
    // -inf.
    __device__ __forceinline__ void load_fragment(const In* from, int first,
                                                  Fragment<plan>& fragment) const {
#pragma unroll
        for (int i = 0; i < plan.values_per_thread; ++i) {
            if (in_row(first, i)) {
                fragment.set(i, from[i * plan.row_threads]);
            } else {
                fragment.set_minus_infinity(i);
            }
        }
    }

    // Writes the results of a thread's values where the slab's elements were.
    __device__ __forceinline__ void write_results(Out* to, int first,
                                                  const Fragment<plan>& fragment,
                                                  const Epilogue<plan>& epilogue) const {
#pragma unroll
        for (int i = 0; i < plan.values_per_thread; ++i) {
            if (in_row(first, i)) {
                const R result = epilogue.apply(fragment.value(i), R(1), args);
                if constexpr (plan.is_16bit(plan.output)) {
                    to[i * plan.row_threads] = to_half<plan.output>(result);
                } else {
                    to[i * plan.row_threads] = static_cast<Out>(result);
                }
            }
        }
    }

    // The slab in a stage: reads it, and leaves the results in its place.
    __device__ __forceinline__ void compute(int64 slab, int index) const {
        const int row = rank / plan.row_threads, first = rank % plan.row_threads;
        const int64 begin = slab * kRows * columns;
        char* at = stage(index);
        // Threads of rows beyond the last one compute what is never stored.
        const int offset = row * columns + first;
        Fragment<plan> fragment;
        load_fragment(element(at, static_cast<const In*>(args.x) + begin, offset), first, fragment);
        const R thread_max = round_and_max<plan>(fragment);
        const R maximum = block_reduce<plan>(thread_max, MaxOp{}, storage.warp_maxima);
        const ExponentialsOf<plan> exponentials(finite_maximum(maximum), args);
        AccumulatorType<plan> sum{};
        accumulate_exponentials<plan>(fragment, columns, sum, exponentials, args);
        sum =
            block_reduce<plan>(with_rounding_correction<plan>(sum, thread_max, exponentials, args),
                               SumOp{}, storage.warp_sums);
        const Epilogue<plan> epilogue(maximum, sum, args);
        if constexpr (plan.operation == Operation::logsumexp) {
            if (first == 0 && row < rows_of(slab)) {
                epilogue.write_logsumexp(static_cast<Out*>(args.out) +
                                         (slab * kRows + row) * args.out_stride);
            }
        } else {
            // All threads have read the slab; in a block the reductions show it.
            if constexpr (kThreads == kWarp) sync();
            write_results(element(at, static_cast<Out*>(args.out) + begin, offset), first, fragment,
                          epilogue);
            store(slab, index);
        }
    }

 public:
    __device__ __forceinline__ SlabKernel(const SoftmaxArguments& args, SlabStorage<plan>& storage,
                                          char* shared)
        : args(args),
          storage(storage),
          stages(shared + static_cast<int>(threadIdx.x) / kThreads * kStages * kStageBytes),
          columns(static_cast<int>(args.columns)),
          team(static_cast<int>(threadIdx.x) / kThreads),
          rank(static_cast<int>(threadIdx.x) % kThreads),
          num_slabs((args.rows + kRows - 1) / kRows),
          slab_step(static_cast<int64>(gridDim.x) * kTeams) {}

    // The kernel: warps, or the block, work on slab after slab through a ring of stages.
    __device__ __forceinline__ void run() const {
        if constexpr (plan.bulk) {
            if (rank == 0) {
                for (int i = 0; i < kStages; ++i)
                    mbarrier_init(shared_address(&storage.full[team][i]), 1);
                mbarrier_init_fence();
            }
            sync();
        }
        int64 slab = static_cast<int64>(blockIdx.x) * kTeams + team;
        for (int i = 0; i + 1 < kStages; ++i) load(slab + i * slab_step, i);
        int index = 0, free = kStages - 1;
        uint32 phase = 0;
        for (; slab < num_slabs; slab += slab_step) {
            wait(index, phase);
            load(slab + (kStages - 1) * slab_step, free);
            compute(slab, index);
            free = index;
            if (++index == kStages) {
                index = 0;
                phase ^= 1;
            }
        }
        if constexpr (plan.bulk) {
            if (rank == 0) tma_store_wait_read<0>();  // shared memory is read until then
        }
    }
};

template <RowPlan plan>
__device__ __forceinline__ void softmax_slab_rows(const SoftmaxArguments& args) {
    extern __shared__ __align__(128) char shared[];
    __shared__ SlabStorage<plan> storage;
    SlabKernel<plan>(args, storage, shared).run();
}
