// Rows of a softmax that wait in shared memory: several on their way in, then, as exponentials or as
// they came, some of which the sum is not known yet.
//
// Blocks stay and take row after row. One or more of them share a row, each a slice of its columns.
// Warps meet at barriers of single rows alone, so that they need not be at the same one:
//
//     loader      the copy engine brings the block's slice of row after row (`full`)
//     summers     each warp takes its part (`empty`), sums it about its own maximum, and leaves its
//                 exponentials, or the values as they came, where the row waits for its sum (`told`)
//     teller      joins what the warps found, for the row itself or for the other blocks
//     listener    waits for what the other blocks found (`heard`)
//     writers     each warp writes what some of the summers left (`gone`): memory that is busy with
//                 results holds up nobody else
//
// The copy engine alone writes where it copies to: what threads write there would have to be fenced
// before the next copy, and such a fence waits for all that the thread has under way.
#pragma once
#include "device/bulk_copy.cuh"
#include "ring_storage.cuh"
#include "row_slice.cuh"

constexpr int kPiece = 2048;  // bytes that the copy engine is asked for at a time

template <SoftmaxPlan plan>
class Ring {
    using In = Element<plan.input>;
    using E = ExponentialsOf<plan>;
    static constexpr int kWarps = RingBoards<plan>::kWarps;
    static constexpr int kServants = plan.cluster > 1 ? 3 : 2;  // loader, teller, listener
    static constexpr int kWriters = plan.block_threads / kWarp - kWarps - kServants;
    static_assert(kWriters > 0 && kWarps % kWriters == 0, "a writer has the parts of whole warps");
    static constexpr int kGroup = 4;  // accesses whose values are read together
    static_assert(!plan.wide && plan.held == Held::exact, "parts have an fp32 maximum and no scale");
    static_assert(kWarps <= kWarp, "a lane of the teller has a warp's part");

    static constexpr int kArrivals = plan.watched ? kWarp : 1;  // of a warp

    const SoftmaxArguments& args;
    RingBoards<plan>& boards;
    const Slices<plan> slices;
    const int stages, lag;
    const int64 step;
    const int turns;

    // All that a warp has read and written is done. One lane says so for it: the lanes before have
    // met. compute-sanitizer does not see that they have, unless each of them arrives.
    __device__ __forceinline__ static void arrive(unsigned long long& barrier) {
        if constexpr (!plan.watched) __syncwarp();
        if (plan.watched || threadIdx.x % kWarp == 0) barrier_arrive(shared_address(&barrier));
    }

    __device__ __forceinline__ void load() const {
        Place stage{0, 0};
        const In* row = slices.first_row();
        for (int turn = 0; turn < turns;
             ++turn, row += step * args.x_stride, stage.next(stages)) {
            const uint32 barrier = shared_address(&boards.full[stage.index]);
            if (turn >= stages) {
                barrier_wait(shared_address(&boards.empty[stage.index]), stage.parity ^ 1);
            }
            const auto from = slices.window(row, slices.phase_of(row), 0);
            const typename Slices<plan>::Copied copied(from, args);
            const int bytes = (copied.end - copied.begin) * static_cast<int>(sizeof(In));
            if (bytes <= 0) {
                barrier_arrive(barrier);
                continue;
            }
            barrier_expect(barrier, bytes);
            const uint32 target = shared_address(slices.place_of(stage.index) + copied.begin);
            const auto* source = reinterpret_cast<const char*>(from.base + copied.begin);
            for (int done = 0; done < bytes; done += kPiece) {
                copy_bulk(target + done, source + done, min(kPiece, bytes - done), barrier);
            }
        }
    }

    // A thread's values, and leave for the copy engine to bring others in their place.
    __device__ __forceinline__ void take(const In* row, const Window<const In>& from,
                                         const Place& stage, Part<plan>& part) const {
        const In* staged = slices.place_of(stage.index) + static_cast<int>(threadIdx.x) * plan.vector;
        barrier_wait(shared_address(&boards.full[stage.index]), stage.parity);
#pragma unroll
        for (int i = 0; i < plan.accesses(); ++i) slices.take_access(from, i, staged, part);
        arrive(boards.empty[stage.index]);
        if constexpr (plan.cut()) slices.trim_slice(row, part);
    }

    // The warp's part of a row; exponentials take the values' places where they do in `plan`.
    __device__ __forceinline__ void sum(const Window<const In>& from, int turn, const Place& board,
                                        In* waiting, Part<plan>& part) const {
        const float largest = largest_of<plan>(part);
        const float maximum = over_lanes<kWarp>(largest, Largest{});
        const E exponentials(shift_for(maximum), args);
        Sum<plan> total{};
        add_all<plan>(part, from.end, total, exponentials, args);
        total = over_lanes<kWarp>(corrected<plan>(total, largest, exponentials, args), Total{});
        if (turn >= lag) {
            barrier_wait(shared_address(&boards.gone[board.index]), board.parity ^ 1);
        }
        slices.keep(from, part, waiting);
        if (threadIdx.x % kWarp == 0) {
            boards.maxima[board.index][threadIdx.x / kWarp] = maximum;
            boards.sums[board.index][threadIdx.x / kWarp] = total;
        }
        arrive(boards.told[board.index]);
    }

    __device__ __forceinline__ void sum_all() const {
        Place stage{0, 0}, board{0, 0};
        const int mine = static_cast<int>(threadIdx.x) * plan.vector;
        const In* row = slices.first_row();
        for (int turn = 0; turn < turns; ++turn, row += step * args.x_stride) {
            const auto from = slices.window(row, slices.phase_of(row), mine);
            Part<plan> part;
            take(row, from, stage, part);
            sum(from, turn, board, slices.place_of(stages + board.index) + mine, part);
            stage.next(stages);
            board.next(lag);
        }
    }

    // What the summer left whose warp and first value these are.
    __device__ __forceinline__ void write_part(Element<plan.output>* row, int phase, int board, int warp,
                                               int first_value,
                                               const Outcome<plan>& outcome) const {
        const float change = boards.changes[board][warp];
        const In* waiting = slices.place_of(stages + board) + first_value;
        const auto to = slices.window(row, phase, first_value);
#pragma unroll
        for (int first = 0; first < plan.accesses(); first += kGroup) {
            Part<plan> part;
#pragma unroll
            for (int i = first; i < first + kGroup && i < plan.accesses(); ++i) {
                slices.take_access(to, i, waiting, part);
            }
#pragma unroll
            for (int i = first; i < first + kGroup && i < plan.accesses(); ++i) {
                write_access<plan>(
                    to, i, [&](int v) { return outcome.of(part.at(v), change, args); });
            }
        }
    }

    __device__ __forceinline__ void write_all() const {
        Place board{0, 0};
        const In* row = slices.first_row();
        auto* out = static_cast<Element<plan.output>*>(args.out) + slices.team * args.out_stride;
        for (int turn = 0; turn < turns; ++turn, board.next(lag)) {
            barrier_wait(shared_address(&boards.heard[board.index]), board.parity);
            const Outcome<plan> outcome = boards.outcome(board.index);
            if constexpr (plan.operation == Operation::logsumexp) {
                if (slices.rank == 0 && threadIdx.x == plan.row_threads) outcome.put_total(out);
            } else {
                const int phase = slices.phase_of(row), lane = threadIdx.x % kWarp;
#pragma unroll 1
                for (int warp = threadIdx.x / kWarp - kWarps; warp < kWarps; warp += kWriters) {
                    write_part(out, phase, board.index, warp, (warp * kWarp + lane) * plan.vector,
                               outcome);
                }
            }
            arrive(boards.gone[board.index]);
            row += step * args.x_stride;
            out += step * args.out_stride;
        }
    }

    // The row's maximum and sum, by all lanes of a warp.
    __device__ __forceinline__ void answer(int board, const Finding& found) const {
        const int lane = threadIdx.x % kWarp;
        const Outcome<plan> outcome(found.maximum, static_cast<Sum<plan>>(found.sum), args);
        if constexpr (plan.replaces()) {
            if (lane < kWarps) {
                boards.changes[board][lane] = static_cast<float>(
                    change_to(outcome.exponentials, boards.maxima[board][lane], args));
            }
        }
        if (lane == 0) boards.outcome(board) = outcome;
        arrive(boards.heard[board]);
    }

    template <typename Tell>
    __device__ __forceinline__ void join_warps(Tell tell_others) const {
        const int lane = threadIdx.x % kWarp;
        Place board{0, 0};
        for (int turn = 0; turn < turns; ++turn, board.next(lag)) {
            barrier_wait(shared_address(&boards.told[board.index]), board.parity);
            Finding parts[1] = {nothing()};
            if (lane < kWarps) {
                parts[0].maximum = boards.maxima[board.index][lane];
                parts[0].sum = boards.sums[board.index][lane];
            }
            tell_others(turn, board.index, joined<plan>(parts, args));
        }
    }

   public:
    __device__ __forceinline__ Ring(const SoftmaxArguments& args, RingBoards<plan>& boards,
                                    char* shared)
        : args(args),
          boards(boards),
          slices(args, shared),
          stages(static_cast<int>(args.stages)),
          lag(static_cast<int>(args.lag)),
          step(gridDim.x / plan.cluster),
          turns(static_cast<int>((args.rows - 1 - slices.team) / step + 1)) {}

    __device__ __forceinline__ void run() const {
        if (threadIdx.x == 0) {
            for (int i = 0; i < kMostStages; ++i) {
                barrier_init(shared_address(&boards.full[i]), 1);
                barrier_init(shared_address(&boards.empty[i]), kWarps * kArrivals);
            }
            for (int i = 0; i < kMostLag; ++i) {
                barrier_init(shared_address(&boards.told[i]), kWarps * kArrivals);
                barrier_init(shared_address(&boards.heard[i]), kArrivals);
                barrier_init(shared_address(&boards.gone[i]), kWriters * kArrivals);
            }
            barrier_init_fence();
        }
        __syncthreads();
        const int warp = threadIdx.x / kWarp;
        if (warp < kWarps) {
            sum_all();
        } else if (warp < kWarps + kWriters) {
            write_all();
        } else if (warp == kWarps + kWriters) {
            if (threadIdx.x % kWarp == 0) load();
            __syncwarp();
        } else if constexpr (plan.cluster == 1) {
            if (warp == kWarps + kWriters + 1) {
                join_warps([&](int, int board, const Finding& found) { answer(board, found); });
            }
        } else {
            Exchange<plan> exchange(args, slices.team, slices.rank);
            if (warp == kWarps + kWriters + 1) {
                join_warps([&](int turn, int, const Finding& found) {
                    if (threadIdx.x % kWarp == 0) exchange.tell_all(turn, found);
                });
            } else {
                Place board{0, 0};
                for (int turn = 0; turn < turns; ++turn, board.next(lag)) {
                    barrier_wait(shared_address(&boards.told[board.index]), board.parity);
                    answer(board.index, exchange.hear(turn, args));
                }
                exchange.leave();
            }
        }
    }
};

template <SoftmaxPlan plan>
__device__ __forceinline__ void ring_rows(const SoftmaxArguments& args) {
    extern __shared__ __align__(128) char shared[];
    __shared__ RingBoards<plan> boards;
    Ring<plan>(args, boards, shared).run();
}
