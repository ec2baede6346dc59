// The ring of stages of samples, which runs on from one tile to the next of those that share it.
#pragma once
#include "samples.cuh"

// Stages of every `TileStride`-th tile from `tile` on, copied by threads 0 to Threads - 1. Aligned
// copies move 16 bytes, others one sample. A thread copies the same samples of antennas that are
// kRows apart, so from stage to stage its addresses move by one stride.
template <Samples samples, int Times, int Polarizations, int Stages, bool Aligned, int Threads,
          int TileStride = 1>
struct SampleRing {
    using Here = Stage<samples, Times>;
    static constexpr int kCopy = Aligned ? 16 : Here::kItem;
    static constexpr int kCopies = Times * Here::kItem / kCopy;  // of an antenna
    static constexpr int kRows = Threads / kCopies;
    static constexpr int kPasses = kRows < kDepth<samples> ? kDepth<samples> / kRows : 1;
    static_assert(Threads % kCopies == 0, "all copies of a thread are of the same samples");
    uint32 base;
    int row, at;  // the thread's first antenna of a stage, and the byte within the tile
    int result, last;
    int tile, polarization = 0, chunk = 0;  // what is copied next
    uint32 stage = 0;
    const unsigned char* from = nullptr;  // the thread's first copy of that
    int valid_bytes = 0;                  // of a copy, within the tile

    __device__ __forceinline__ SampleRing(const BeamPowerArguments& args, uint32 base, int thread,
                                          int result, int tile, int last)
        : base(base), row(thread / kCopies), at(thread % kCopies * kCopy), result(result),
          last(last), tile(tile) {
        begin_product(args);
    }

    // Begins to copy one more stage, if there is one, as a group of its own. Antennas are counted
    // in the last stage of a product alone, which takes as many instructions as the copies.
    __device__ __forceinline__ void next(const BeamPowerArguments& args) {
        if (tile < last) {
            const int64 step = args.stride_antenna * (kRows * Here::kItem);
            const uint32 to = base + stage * Here::kBytes + row * Here::kPitch + at;
            const int left = args.antennas - chunk * kDepth<samples>;
            if (kRows > kDepth<samples> || left < kDepth<samples>) {
#pragma unroll 1
                for (int pass = 0; pass < kPasses; ++pass) {
                    const int antenna = row + pass * kRows;
                    if (antenna < kDepth<samples>)
                        copy_samples<kCopy>(to + pass * kRows * Here::kPitch, from + pass * step,
                                            antenna < left ? valid_bytes : 0);
                }
                from += kDepth<samples> * Here::kItem * args.stride_antenna;
            } else {
#pragma unroll
                for (int pass = 0; pass < kPasses; ++pass) {
                    copy_samples<kCopy>(to + pass * kRows * Here::kPitch, from, valid_bytes);
                    from += step;
                }
            }
            if (++chunk == args.chunks) advance(args);
        }
        cp_async_commit();
        stage = stage + 1 == Stages ? 0 : stage + 1;
    }

    // Addresses for the first stage of a product: of the tile, or of its second polarization.
    __device__ __forceinline__ void begin_product(const BeamPowerArguments& args) {
        if (tile >= last) return;
        const TimeTile here(args, tile);
        const int64 batch = int64(result) * Polarizations + polarization;
        const int64 sample = batch * args.stride_batch + row * args.stride_antenna + here.first;
        from = static_cast<const unsigned char*>(args.samples) + sample * Here::kItem + at;
        valid_bytes = min(max(here.valid * Here::kItem - at, 0), kCopy);
    }

    __device__ __forceinline__ void advance(const BeamPowerArguments& args) {
        chunk = 0;
        if (++polarization == Polarizations) {
            polarization = 0;
            tile += TileStride;
        }
        begin_product(args);
    }
};
