// The ring kernel: a warp-specialized persistent softmax for long rows, sm_90. One or more blocks
// share a row, each a slice of its columns. Two rings of slices in shared memory keep several rows
// in flight: load stages, filled by bulk copies, and epilogue stages, which wait for the row's sum.
// Warps synchronize by mbarriers of single rows, so roles may work on different rows:
//
//     producer warp   issues bulk copies of the slice of row after row (arrives at `full`)
//     reduce warps    load a fragment of the slice (`empty`), reduce it relative to the warp's
//                     maximum, store exponentials or values to an epilogue stage (`partials_full`)
//     publish warp    combines the partials of the reduce warps, for this block or for all blocks
//     gather warp     where blocks share rows: waits for the partials of all of them
//                     (`statistics_full`; else the publish warp arrives there)
//     epilogue warps  write the results of fragments (`slot_empty`); a role of their own, so that
//                     stores to busy memory do not delay the reduce warps
//
// Only bulk copies write load stages. Stores of threads there would need a proxy fence before the
// next copy, and such a fence waits for all memory operations of the thread.
#pragma once
#include "device/tma_bulk.cuh"
#include "ring_storage.cuh"
#include "row_slice.cuh"

constexpr int kCopyBytes = 2048;  // of one bulk copy

template <RowPlan plan>
class RingKernel {
    using In = Element<plan.input>;
    using E = ExponentialsOf<plan>;
    static constexpr int kReduceWarps = RingStorage<plan>::kReduceWarps;
    static constexpr int kServiceWarps =
        plan.blocks_per_row > 1 ? 3 : 2;  // producer, publish, gather
    static constexpr int kEpilogueWarps = plan.block_threads / kWarp - kReduceWarps - kServiceWarps;
    static_assert(kEpilogueWarps > 0 && kReduceWarps % kEpilogueWarps == 0,
                  "an epilogue warp writes fragments of whole warps");
    static constexpr int kVectorsAtOnce = 4;  // loaded before the first is written
    static_assert(!plan.compute_fp64, "partials have an fp32 maximum");
    static_assert(kReduceWarps <= kWarp, "a lane of the publish warp has a warp's partial");

    static constexpr int kArrivalsPerWarp = plan.arrive_per_lane ? kWarp : 1;

    const SoftmaxArguments& args;
    RingStorage<plan>& storage;
    const RowSlice<plan> slice;
    const int load_stages, epilogue_stages;
    const int64 row_step;
    const int num_rows;

    // Arrives for the whole warp, after all of its lanes. One lane arrives after __syncwarp;
    // compute-sanitizer does not follow that order, so for it every lane arrives.
    __device__ __forceinline__ static void arrive(unsigned long long& barrier) {
        if constexpr (!plan.arrive_per_lane) __syncwarp();
        if (plan.arrive_per_lane || threadIdx.x % kWarp == 0)
            mbarrier_arrive(shared_address(&barrier));
    }

    // The producer thread: fills the load stages with the slice of row after row.
    __device__ __forceinline__ void produce() const {
        PipelineState stage{0, 0};
        const In* row = slice.first_row();
        for (int iteration = 0; iteration < num_rows;
             ++iteration, row += row_step * args.x_stride, stage.advance(load_stages)) {
            const uint32 barrier = shared_address(&storage.full[stage.index]);
            if (iteration >= load_stages) {
                mbarrier_wait(shared_address(&storage.empty[stage.index]), stage.phase ^ 1);
            }
            const auto from = slice.view(row, slice.misalignment_of(row), 0);
            const typename RowSlice<plan>::CopyRange copied(from, args);
            const int bytes = (copied.end - copied.begin) * static_cast<int>(sizeof(In));
            if (bytes <= 0) {
                mbarrier_arrive(barrier);
                continue;
            }
            mbarrier_arrive_expect_tx(barrier, bytes);
            const uint32 target = shared_address(slice.buffer(stage.index) + copied.begin);
            const auto* source = reinterpret_cast<const char*>(from.base + copied.begin);
            for (int done = 0; done < bytes; done += kCopyBytes) {
                bulk_load(target + done, source + done, min(kCopyBytes, bytes - done), barrier);
            }
        }
    }

    // Loads a thread's fragment, and releases the load stage to the producer.
    __device__ __forceinline__ void load_fragment(const In* row, const RowView<const In>& from,
                                                  const PipelineState& stage,
                                                  Fragment<plan>& fragment) const {
        const In* staged =
            slice.buffer(stage.index) + static_cast<int>(threadIdx.x) * plan.vector_width;
        mbarrier_wait(shared_address(&storage.full[stage.index]), stage.phase);
#pragma unroll
        for (int i = 0; i < plan.vectors_per_thread(); ++i)
            slice.load_vector(from, i, staged, fragment);
        arrive(storage.empty[stage.index]);
        if constexpr (plan.partial_vectors()) slice.mask_slice(row, fragment);
    }

    // Reduces the warp's fragment, and stores it with the warp's partial to an epilogue stage.
    __device__ __forceinline__ void reduce_row(const RowView<const In>& from, int iteration,
                                               const PipelineState& slot,
                                               typename RowSlice<plan>::Pending* pending,
                                               Fragment<plan>& fragment) const {
        const float thread_max = round_and_max<plan>(fragment);
        const float maximum = warp_reduce<kWarp>(thread_max, MaxOp{});
        const E exponentials(finite_maximum(maximum), args);
        AccumulatorType<plan> sum{};
        accumulate_exponentials<plan>(fragment, from.end, sum, exponentials, args);
        sum = warp_reduce<kWarp>(
            with_rounding_correction<plan>(sum, thread_max, exponentials, args), SumOp{});
        if (iteration >= epilogue_stages) {
            mbarrier_wait(shared_address(&storage.slot_empty[slot.index]), slot.phase ^ 1);
        }
        slice.store_pending(from, fragment, pending);
        if (threadIdx.x % kWarp == 0) {
            storage.warp_maxima[slot.index][threadIdx.x / kWarp] = maximum;
            storage.warp_sums[slot.index][threadIdx.x / kWarp] = sum;
        }
        arrive(storage.partials_full[slot.index]);
    }

    // The reduce warps: row after row from load stages to epilogue stages.
    __device__ __forceinline__ void reduce() const {
        PipelineState stage{0, 0}, slot{0, 0};
        const int thread_offset = static_cast<int>(threadIdx.x) * plan.vector_width;
        const In* row = slice.first_row();
        for (int iteration = 0; iteration < num_rows;
             ++iteration, row += row_step * args.x_stride) {
            const auto from = slice.view(row, slice.misalignment_of(row), thread_offset);
            Fragment<plan> fragment;
            load_fragment(row, from, stage, fragment);
            reduce_row(from, iteration, slot,
                       slice.pending_buffer(load_stages, slot.index) + thread_offset, fragment);
            stage.advance(load_stages);
            slot.advance(epilogue_stages);
        }
    }

    // Writes the results of one thread's fragment of a reduce warp.
    __device__ __forceinline__ void write_fragment(Element<plan.output>* row, int misalignment,
                                                   int slot, int warp, int first_value,
                                                   const Epilogue<plan>& epilogue) const {
        const float rescale = storage.rescales[slot][warp];
        const auto* pending = slice.pending_buffer(load_stages, slot) + first_value;
        const auto to = slice.view(row, misalignment, first_value);
#pragma unroll
        for (int first = 0; first < plan.vectors_per_thread(); first += kVectorsAtOnce) {
            Fragment<plan> fragment;
#pragma unroll
            for (int i = first; i < first + kVectorsAtOnce && i < plan.vectors_per_thread(); ++i) {
                slice.load_pending(to, i, pending, fragment);
            }
#pragma unroll
            for (int i = first; i < first + kVectorsAtOnce && i < plan.vectors_per_thread(); ++i) {
                write_vector<plan>(
                    to, i, [&](int v) { return epilogue.apply(fragment.value(v), rescale, args); });
            }
        }
    }

    // The epilogue warps: write the results of row after row once its statistics are known.
    __device__ __forceinline__ void run_epilogue() const {
        PipelineState slot{0, 0};
        const In* row = slice.first_row();
        auto* out = static_cast<Element<plan.output>*>(args.out) + slice.group * args.out_stride;
        for (int iteration = 0; iteration < num_rows; ++iteration, slot.advance(epilogue_stages)) {
            mbarrier_wait(shared_address(&storage.statistics_full[slot.index]), slot.phase);
            const Epilogue<plan> epilogue = storage.epilogue(slot.index);
            if constexpr (plan.operation == Operation::logsumexp) {
                if (slice.rank == 0 && threadIdx.x == plan.row_threads)
                    epilogue.write_logsumexp(out);
            } else {
                const int misalignment = slice.misalignment_of(row), lane = threadIdx.x % kWarp;
#pragma unroll 1
                for (int warp = threadIdx.x / kWarp - kReduceWarps; warp < kReduceWarps;
                     warp += kEpilogueWarps) {
                    write_fragment(out, misalignment, slot.index, warp,
                                   (warp * kWarp + lane) * plan.vector_width, epilogue);
                }
            }
            arrive(storage.slot_empty[slot.index]);
            row += row_step * args.x_stride;
            out += row_step * args.out_stride;
        }
    }

    // Makes the row's statistics visible to the epilogue warps. Called by a whole warp.
    __device__ __forceinline__ void publish_statistics(int slot, const RowPartial& partial) const {
        const int lane = threadIdx.x % kWarp;
        const Epilogue<plan> epilogue(partial.maximum,
                                      static_cast<AccumulatorType<plan>>(partial.sum), args);
        if constexpr (plan.keeps_exponentials()) {
            if (lane < kReduceWarps) {
                storage.rescales[slot][lane] = static_cast<float>(
                    rescale_factor(epilogue.exponentials, storage.warp_maxima[slot][lane], args));
            }
        }
        if (lane == 0) storage.epilogue(slot) = epilogue;
        arrive(storage.statistics_full[slot]);
    }

    // Combines the partials of the reduce warps of row after row: `publish(iteration, slot,
    // partial)`.
    template <typename Publish>
    __device__ __forceinline__ void combine_warps(Publish publish) const {
        const int lane = threadIdx.x % kWarp;
        PipelineState slot{0, 0};
        for (int iteration = 0; iteration < num_rows; ++iteration, slot.advance(epilogue_stages)) {
            mbarrier_wait(shared_address(&storage.partials_full[slot.index]), slot.phase);
            RowPartial partials[1] = {empty_partial()};
            if (lane < kReduceWarps) {
                partials[0].maximum = storage.warp_maxima[slot.index][lane];
                partials[0].sum = storage.warp_sums[slot.index][lane];
            }
            publish(iteration, slot.index, combine_partials<plan>(partials, args));
        }
    }

 public:
    __device__ __forceinline__ RingKernel(const SoftmaxArguments& args, RingStorage<plan>& storage,
                                          char* shared)
        : args(args),
          storage(storage),
          slice(args, shared),
          load_stages(static_cast<int>(args.load_stages)),
          epilogue_stages(static_cast<int>(args.epilogue_stages)),
          row_step(gridDim.x / plan.blocks_per_row),
          num_rows(static_cast<int>((args.rows - 1 - slice.group) / row_step + 1)) {}

    // The kernel: mbarriers and roles of the warps.
    __device__ __forceinline__ void run() const {
        if (threadIdx.x == 0) {
            for (int i = 0; i < kMaxLoadStages; ++i) {
                mbarrier_init(shared_address(&storage.full[i]), 1);
                mbarrier_init(shared_address(&storage.empty[i]), kReduceWarps * kArrivalsPerWarp);
            }
            for (int i = 0; i < kMaxEpilogueStages; ++i) {
                mbarrier_init(shared_address(&storage.partials_full[i]),
                             kReduceWarps * kArrivalsPerWarp);
                mbarrier_init(shared_address(&storage.statistics_full[i]), kArrivalsPerWarp);
                mbarrier_init(shared_address(&storage.slot_empty[i]),
                             kEpilogueWarps * kArrivalsPerWarp);
            }
            mbarrier_init_fence();
        }
        __syncthreads();
        const int warp = threadIdx.x / kWarp;
        if (warp < kReduceWarps) {
            reduce();
        } else if (warp < kReduceWarps + kEpilogueWarps) {
            run_epilogue();
        } else if (warp == kReduceWarps + kEpilogueWarps) {
            if (threadIdx.x % kWarp == 0) produce();
            __syncwarp();
        } else if constexpr (plan.blocks_per_row == 1) {
            if (warp == kReduceWarps + kEpilogueWarps + 1) {
                combine_warps([&](int, int slot, const RowPartial& partial) {
                    publish_statistics(slot, partial);
                });
            }
        } else {
            Exchange<plan> exchange(args, slice.group, slice.rank);
            if (warp == kReduceWarps + kEpilogueWarps + 1) {
                combine_warps([&](int iteration, int, const RowPartial& partial) {
                    if (threadIdx.x % kWarp == 0) exchange.publish(iteration, partial);
                });
            } else {
                PipelineState slot{0, 0};
                for (int iteration = 0; iteration < num_rows;
                     ++iteration, slot.advance(epilogue_stages)) {
                    mbarrier_wait(shared_address(&storage.partials_full[slot.index]), slot.phase);
                    publish_statistics(slot.index, exchange.gather(iteration, args));
                }
                exchange.finish();
            }
        }
    }
};

template <RowPlan plan>
__device__ __forceinline__ void softmax_ring_rows(const SoftmaxArguments& args) {
    extern __shared__ __align__(128) char shared[];
    __shared__ RingStorage<plan> storage;
    RingKernel<plan>(args, storage, shared).run();
}
