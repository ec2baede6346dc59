// Slices of rows: which part of a row a block has, and its way through shared memory.
#pragma once
#include "row.cuh"

template <SoftmaxPlan plan>
struct Slices {
    using In = Element<plan.input>;

    const SoftmaxArguments& args;
    char* shared;
    const int team, rank, stage_bytes;
    const int start, left;  // of a row: where this block's slice begins, and how much there is from there

    __device__ __forceinline__ Slices(const SoftmaxArguments& args, char* shared)
        : args(args),
          shared(shared),
          team(blockIdx.x / plan.cluster),
          rank(blockIdx.x % plan.cluster),
          stage_bytes((static_cast<int>(args.slice) * static_cast<int>(sizeof(In)) + 127) / 128 * 128),
          start(rank * static_cast<int>(args.slice)),
          left(static_cast<int>(args.columns) - start) {}

    __device__ __forceinline__ const In* first_row() const {
        return static_cast<const In*>(args.x) + team * args.x_stride;
    }
    // Elements between a line's boundary and a row's begin.
    __device__ __forceinline__ static int phase_of(const In* row) {
        if constexpr (!plan.cut()) return 0;
        return static_cast<int>(reinterpret_cast<unsigned long long>(row) / sizeof(In)) &
               (plan.line() - 1);
    }
    // The block's slice of a row from one of its elements on.
    template <typename T>
    __device__ __forceinline__ Window<T> window(T* row, int phase, int skipped) const {
        const int length = static_cast<int>(args.slice);
        return {row + (start - phase + skipped), (rank == 0 ? phase : 0) - skipped,
                min(length, left + phase) - skipped};
    }
    // One of the slices in shared memory: the stages, then those that wait for their sums.
    __device__ __forceinline__ In* place_of(int index) const {
        return reinterpret_cast<In*>(shared + index * stage_bytes);
    }
    // What the copy engine brings of a slice: whole pieces of 16 bytes. What a neighbour has of them
    // comes along, if it is x's at all; else the threads read what is theirs.
    struct Copied {
        int begin, end;
        bool all;

        __device__ __forceinline__ Copied(const Window<const In>& from, const SoftmaxArguments& args)
            : begin(0), end(from.end), all(true) {
            if constexpr (plan.cut()) {
                begin = max(from.begin, 0) / plan.grain() * plan.grain();
                end = (end + plan.grain() - 1) / plan.grain() * plan.grain();
                if (begin < from.begin && from.base + begin < args.x) {
                    begin += plan.grain();
                    all = false;
                }
                if (end > from.end && from.base + end > args.x_end) {
                    end -= plan.grain();
                    all = false;
                }
            }
        }
    };

    // What is not there becomes nothing: a compiler that sees it undefined keeps what was there before.
    template <typename T>
    __device__ __forceinline__ static void take_access(const Window<T>& row, int access,
                                                       const In* slice, Part<plan>& part) {
        if (touched<plan>(row, access)) {
            part.take(access * plan.vector, slice + place<plan>(access));
        } else {
#pragma unroll
            for (int e = 0; e < plan.vector; ++e) part.put_nothing(access * plan.vector + e);
        }
    }

    // Seldom anything: rows mostly begin and end in other slices or between accesses.
    __device__ __forceinline__ void trim_slice(const In* row, Part<plan>& part) const {
        const auto whole_slice = window(row, phase_of(row), 0);
        if (whole_slice.begin % plan.grain() == 0 && whole_slice.end % plan.grain() == 0) return;
        const int mine = static_cast<int>(threadIdx.x) * plan.vector;
        const auto from = window(row, phase_of(row), mine);
        const Copied copied(whole_slice, args);
        if (!copied.all) {
#pragma unroll
            for (int i = 0; i < plan.accesses(); ++i) {
                const int offset = place<plan>(i), at = offset + mine;
                if (at >= copied.begin && at < copied.end) continue;
#pragma unroll
                for (int e = 0; e < plan.vector; ++e) {
                    if (offset + e >= from.begin && offset + e < from.end) {
                        part.put(i * plan.vector + e, from.base[offset + e]);
                    }
                }
            }
        }
        trim<plan>(from, part);
    }

    __device__ __forceinline__ void keep(const Window<const In>& from, const Part<plan>& part,
                                         In* waiting) const {
        constexpr int kWords = plan.vector / (plan.packed() ? 2 : 1);
        using Words = Pack<typename WordOf<plan.packed(), float>::type, kWords>;
        static_assert(sizeof(Words) == plan.vector * sizeof(In), "what waits takes x's places");
        if constexpr (plan.operation == Operation::logsumexp) return;
#pragma unroll
        for (int i = 0; i < plan.accesses(); ++i) {
            if (!touched<plan>(from, i)) continue;
            Words words;
#pragma unroll
            for (int w = 0; w < kWords; ++w) words.at[w] = part.word[i * kWords + w];
            *reinterpret_cast<Words*>(waiting + place<plan>(i)) = words;
        }
    }
};
