// The ring of stages of samples, which runs on from one tile to the next of those that share it.
#pragma once
#include "samples.cuh"

// Stages of every `Step`-th tile from `tile` on, copied by threads 0 to Threads - 1.
template <Samples samples, int Times, int Polarizations, int Stages, bool Aligned, int Threads,
          int Step = 1>
struct SampleRing {
    using Here = Stage<samples, Times>;
    uint32 base;
    int thread, result, last;
    int tile, polarization = 0, chunk = 0;  // what is copied next
    uint32 stage = 0;

    __device__ __forceinline__ SampleRing(uint32 base, int thread, int result, int tile, int last)
        : base(base), thread(thread), result(result), last(last), tile(tile) {}

    // Begins to copy one more stage, if there is one, as a group of its own.
    __device__ __forceinline__ void next(const BeamPowerArguments& args) {
        if (tile < last) {
            const TimeTile there(args, tile);
            const int64 batch = int64(result) * Polarizations + polarization;
            const int antenna = chunk * kDepth<samples>;
            const int64 offset =
                batch * args.stride_batch + antenna * args.stride_antenna + there.first;
            load_stage<samples, Times, Aligned, Threads>(
                base + stage * Here::kBytes,
                static_cast<const unsigned char*>(args.samples) + offset * Here::kItem,
                args.stride_antenna * Here::kItem, args.antennas - antenna, there.valid, thread);
            advance(args);
        }
        cp_async_commit();
        stage = stage + 1 == Stages ? 0 : stage + 1;
    }

    __device__ __forceinline__ void advance(const BeamPowerArguments& args) {
        if (++chunk < args.chunks) return;
        chunk = 0;
        if (++polarization < Polarizations) return;
        polarization = 0;
        tile += Step;
    }
};
