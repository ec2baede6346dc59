// Rows of a softmax that wait in shared memory: several on their way in, one that is summed, some whose
// sum is not known yet, one that is written.
//
// Blocks stay and take row after row. One or more of them share a row, each a slice of its columns.
// Warps meet at barriers of single stages alone, so that they need not be at the same row:
//
//     loader      the copy engine brings the block's slice of row after row (`full`)
//     summers     each warp sums its part about its own maximum (`told`), and `lag` rows later, when
//                 the row's maximum and sum are there (`heard`), writes it and leaves the stage (`empty`)
//     teller      joins what the warps found, for the row itself or for the other blocks
//     listeners   wait, in turn, for what the other blocks found
#pragma once
#include "device/bulk_copy.cuh"
#include "softmax_exchange.cuh"

constexpr int kListeners = 2;
constexpr int kServants = 2 + kListeners;  // warps that do not sum

template <SoftmaxPlan plan>
struct RingBoards {
    static constexpr int kWarps = plan.row_threads / kWarp;
    alignas(8) unsigned long long full[kMostStages];
    unsigned long long told[kMostStages];
    unsigned long long heard[kMostStages];
    unsigned long long empty[kMostStages];
    double row_sums[kMostStages];
    Sum<plan> sums[kMostStages][kWarps];
    float maxima[kMostStages][kWarps];
    float row_maxima[kMostStages];
};

// The stage of a turn, and the parity of its barriers then.
struct Stage {
    int index;
    uint32 parity;

    __device__ __forceinline__ void next(const SoftmaxArguments& args) {
        if (++index == static_cast<int>(args.stages)) {
            index = 0;
            parity ^= 1;
        }
    }
};

template <SoftmaxPlan plan>
class Ring {
    using In = Element<plan.input>;
    using E = ExponentialsOf<plan>;
    static constexpr int kWarps = RingBoards<plan>::kWarps;
    static_assert(!plan.wide && plan.held == Held::exact, "parts have an fp32 maximum and no scale");
    static_assert(kWarps <= kWarp, "a lane of the teller has a warp's part");

    const SoftmaxArguments& args;
    RingBoards<plan>& boards;
    char* shared;
    const int team, rank, stage_bytes;
    const int64 step;
    const int turns;

    __device__ __forceinline__ Row<plan> row(int turn, int position) const {
        return Row<plan>(args, team + turn * step, position);
    }
    __device__ __forceinline__ In* slice(const Stage& stage) const {
        return reinterpret_cast<In*>(shared + stage.index * stage_bytes) +
               static_cast<int>(threadIdx.x) * plan.vector;
    }

    // Whether the copy engine brings the 16 bytes at `offset`: they are the row's, or at least x's.
    __device__ __forceinline__ bool copied(const Window<const In>& from, int offset) const {
        if constexpr (!plan.cut()) return true;
        const unsigned long long at = reinterpret_cast<unsigned long long>(from.base + offset) & ~15ull;
        return (plan.grain() == plan.vector && whole<plan>(from, offset)) ||
               (at >= reinterpret_cast<unsigned long long>(args.x) &&
                at + 16 <= reinterpret_cast<unsigned long long>(args.x_end));
    }

    __device__ __forceinline__ void load() const {
        Stage stage{0, 0};
        for (int turn = 0; turn < turns; ++turn, stage.next(args)) {
            const uint32 barrier = shared_address(&boards.full[stage.index]);
            if (turn >= args.stages) {
                barrier_wait(shared_address(&boards.empty[stage.index]), stage.parity ^ 1);
            }
            const Row<plan> mine = row(turn, 0);
            const auto from = mine.window(mine.x, rank);
            int begin = 0, end = from.end;
            if constexpr (plan.cut()) {
                // What a 16 bytes' neighbour has of them comes along, if it is x's at all.
                end = (end + plan.grain() - 1) / plan.grain() * plan.grain();
                if (from.base < args.x && from.begin > 0) begin = plan.grain();
                if (end > from.end && from.base + end > args.x_end) end -= plan.grain();
            }
            const int bytes = (end - begin) * static_cast<int>(sizeof(In));
            if (bytes <= 0) {
                barrier_arrive(barrier);
                continue;
            }
            barrier_expect(barrier, bytes);
            copy_bulk(shared_address(shared + stage.index * stage_bytes) + begin * sizeof(In),
                      from.base + begin, bytes, barrier);
        }
    }

    // A thread's values as they came, or their exponentials.
    __device__ __forceinline__ void take(const Window<const In>& from, const In* staged,
                                         Part<plan>& part) const {
#pragma unroll
        for (int i = 0; i < plan.accesses(); ++i) {
            if (touched<plan>(from, place<plan>(i))) {
                part.take(i * plan.vector, staged + place<plan>(i));
            } else {
#pragma unroll
                for (int e = 0; e < plan.vector; ++e) part.put_nothing(i * plan.vector + e);
            }
        }
    }

    // The few that the copy engine could not bring without reading beyond x.
    __device__ __forceinline__ void take_others(const Window<const In>& from, In* staged,
                                                Part<plan>& part) const {
        if constexpr (plan.cut()) {
#pragma unroll
            for (int i = 0; i < plan.accesses(); ++i) {
                const int offset = place<plan>(i);
                if (!touched<plan>(from, offset) || copied(from, offset)) continue;
#pragma unroll
                for (int e = 0; e < plan.vector; ++e) {
                    const int at = offset + e;
                    if (at >= from.begin && at < from.end) {
                        part.put(i * plan.vector + e, from.base[at]);
                        staged[at] = from.base[at];
                    }
                }
            }
        }
    }

    __device__ __forceinline__ void sum(int turn, const Stage& stage) const {
        barrier_wait(shared_address(&boards.full[stage.index]), stage.parity);
        const Row<plan> mine = row(turn, threadIdx.x);
        const auto from = mine.window(mine.x, rank);
        Part<plan> part;
        take(from, slice(stage), part);
        take_others(from, slice(stage), part);
        trim<plan>(from, part);
        const float largest = largest_of<plan>(part);
        const float maximum = over_lanes<kWarp>(largest, Largest{});
        const E exponentials(shift_for(maximum), args);
        Sum<plan> total{};
        add_all<plan>(part, from.end, total, exponentials, args);
        total = over_lanes<kWarp>(corrected<plan>(total, largest, exponentials, args), Total{});
        if (threadIdx.x % kWarp == 0) {
            boards.maxima[stage.index][threadIdx.x / kWarp] = maximum;
            boards.sums[stage.index][threadIdx.x / kWarp] = total;
            barrier_arrive(shared_address(&boards.told[stage.index]));
        }
        if constexpr (plan.replaces()) {
            static_assert(sizeof(In) == sizeof(float), "exponentials take the values' places");
#pragma unroll
            for (int i = 0; i < plan.accesses(); ++i) {
                if (!touched<plan>(from, place<plan>(i))) continue;
                Pack<float, plan.vector> pack;
#pragma unroll
                for (int e = 0; e < plan.vector; ++e) pack.at[e] = part.word[i * plan.vector + e];
                *reinterpret_cast<Pack<float, plan.vector>*>(slice(stage) + place<plan>(i)) = pack;
            }
        }
    }

    __device__ __forceinline__ void write_row(int turn, const Stage& stage) const {
        barrier_wait(shared_address(&boards.heard[stage.index]), stage.parity);
        const Row<plan> mine = row(turn, threadIdx.x);
        RowSum<plan> found;
        found.maximum = boards.row_maxima[stage.index];
        found.sum = static_cast<Sum<plan>>(boards.row_sums[stage.index]);
        if constexpr (plan.replaces()) {
            found.change = change_to(E(shift_for(found.maximum), args),
                                     boards.maxima[stage.index][threadIdx.x / kWarp], args);
        }
        Part<plan> part;
        if constexpr (plan.operation != Operation::logsumexp) {
            take(mine.window(mine.x, rank), slice(stage), part);
        }
        copy_engine_fence();  // which comes after what this thread left there
        __syncwarp();
        if (threadIdx.x % kWarp == 0) barrier_arrive(shared_address(&boards.empty[stage.index]));
        if (plan.operation != Operation::logsumexp || rank == 0) {
            put<plan>(mine, rank, part, found, args);
        }
    }

    __device__ __forceinline__ void sum_and_write() const {
        Stage summed{0, 0}, written{0, 0};
        const int lag = static_cast<int>(args.lag);
        for (int turn = 0; turn < turns + lag; ++turn) {
            if (turn < turns) {
                sum(turn, summed);
                summed.next(args);
            }
            if (turn >= lag) {
                write_row(turn - lag, written);
                written.next(args);
            }
        }
    }

    __device__ __forceinline__ void answer(const Stage& stage, const Finding& found) const {
        if (threadIdx.x % kWarp == 0) {
            boards.row_maxima[stage.index] = found.maximum;
            boards.row_sums[stage.index] = found.sum;
            barrier_arrive(shared_address(&boards.heard[stage.index]));
        }
    }

    template <typename Tell>
    __device__ __forceinline__ void join_warps(Tell tell_others) const {
        const int lane = threadIdx.x % kWarp;
        Stage stage{0, 0};
        for (int turn = 0; turn < turns; ++turn, stage.next(args)) {
            barrier_wait(shared_address(&boards.told[stage.index]), stage.parity);
            Finding parts[1] = {nothing()};
            if (lane < kWarps) {
                parts[0].maximum = boards.maxima[stage.index][lane];
                parts[0].sum = boards.sums[stage.index][lane];
            }
            tell_others(turn, stage, joined<plan>(parts, args));
        }
    }

   public:
    __device__ __forceinline__ Ring(const SoftmaxArguments& args, RingBoards<plan>& boards,
                                    char* shared)
        : args(args),
          boards(boards),
          shared(shared),
          team(blockIdx.x / plan.cluster),
          rank(blockIdx.x % plan.cluster),
          stage_bytes((static_cast<int>(args.slice) * static_cast<int>(sizeof(In)) + 127) / 128 * 128),
          step(gridDim.x / plan.cluster),
          turns(static_cast<int>((args.rows - 1 - team) / step + 1)) {}

    __device__ __forceinline__ void run() const {
        if (threadIdx.x == 0) {
            for (int i = 0; i < kMostStages; ++i) {
                barrier_init(shared_address(&boards.full[i]), 1);
                barrier_init(shared_address(&boards.told[i]), kWarps);
                barrier_init(shared_address(&boards.heard[i]), 1);
                barrier_init(shared_address(&boards.empty[i]), kWarps);
            }
            barrier_init_fence();
        }
        __syncthreads();
        const int warp = threadIdx.x / kWarp;
        const bool first = threadIdx.x % kWarp == 0;
        if (warp < kWarps) {
            sum_and_write();
        } else if (warp == kWarps) {
            if (first) load();
            __syncwarp();
        } else if constexpr (plan.cluster == 1) {
            if (warp == kWarps + 1) {
                join_warps([&](int, const Stage& stage, const Finding& found) {
                    answer(stage, found);
                });
            }
        } else {
            Exchange<plan> exchange(args, team, rank);
            if (warp == kWarps + 1) {
                join_warps([&](int turn, const Stage&, const Finding& found) {
                    if (first) exchange.tell_all(turn, found);
                });
            } else {
                const int mine = warp - kWarps - 2;
                Stage stage{0, 0};
                for (int turn = 0; turn < turns; ++turn, stage.next(args)) {
                    if (turn % kListeners == mine) answer(stage, exchange.hear(turn, args));
                }
            }
        }
        if constexpr (plan.cluster > 1) Exchange<plan>(args, team, rank).leave();
    }
};

template <SoftmaxPlan plan>
__device__ __forceinline__ void ring_rows(const SoftmaxArguments& args) {
    extern __shared__ __align__(128) char shared[];
    __shared__ RingBoards<plan> boards;
    Ring<plan>(args, boards, shared).run();
}
