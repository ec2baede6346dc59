// The mainloop of one-term precisions, and what both mainloops share: matrix descriptors and
// the last k-tile's MMAs. A consumer warpgroup runs it on the stages that the producer fills, for
// one tile; the epilogue follows.
//
// `wgmma<sign>(accumulators, X registers, Y descriptor, keep)` of one-term precisions, and
// `wgmma_pair` of the others, are generated for the format and width of the plan by
// argand/runtime/compile/wgmma.py.
#pragma once
#include "device/warpgroup.cuh"
#include "sm90_fragments.cuh"
#include "sm90_ring.cuh"

// Matrix descriptors of the planes of an operand in a stage, by MMA along k, term and complex part.
template <WgmmaPlan plan, int plane_bytes>
struct PlaneDescriptors {
    // Only the low word of a descriptor holds the address, so offsets are added to that word alone.
    static constexpr uint64 kNullDescriptor = make_matrix_descriptor<plan.box_row_bytes()>(0);
    uint32 first;

    __device__ __forceinline__ explicit PlaneDescriptors(uint32 address)
        : first(static_cast<uint32>(make_matrix_descriptor<plan.box_row_bytes()>(address))) {}
    __device__ __forceinline__ uint64 at(int mma, int term, int component) const {
        const int box = mma / plan.mmas_per_box(), inside = mma % plan.mmas_per_box();
        const int byte = (box * plan.planes() + component) * plane_bytes +
                         inside * plan.mma_k_bytes() + term * plan.term_bytes();
        return kNullDescriptor >> 32 << 32 | first + (byte >> 4);
    }
};

template <WgmmaPlan plan>
using YDescriptors = PlaneDescriptors<plan, plan.y_plane_bytes()>;
template <WgmmaPlan plan>
using XDescriptors = PlaneDescriptors<plan, plan.x_plane_bytes()>;

template <int Count>
__device__ __forceinline__ void clear(float (&x)[Count]) {
#pragma unroll
    for (int i = 0; i < Count; ++i) x[i] = 0.0f;
}

template <int Count>
__device__ __forceinline__ void negate(float (&x)[Count]) {
#pragma unroll
    for (int i = 0; i < Count; ++i) x[i] = -x[i];
}

// MMAs along k of the last k-tile of a work item that lie within k.
template <WgmmaPlan plan>
__device__ __forceinline__ int mmas_of_last_k_tile(const WgmmaArguments& args, uint32 work_slot) {
    const WgmmaTile tile = read_work(work_slot).tile;
    const int k = args.k - (tile.first_k_tile + tile.num_k_tiles - 1) * plan.block_k;
    return min(plan.mmas_per_stage(), (k + plan.mma_k() - 1) / plan.mma_k());
}

// The mainloop without promotion: the MMAs accumulate real and imaginary parts in registers over
// all of k. The X fragments of one group of MMAs are loaded while the MMAs of the group before run.
template <WgmmaPlan plan>
struct OneTermMainloop {
    static constexpr int kMmas = plan.mmas_per_stage();
    // Groups of MMAs a stage. An overlapped epilogue leaves registers for one fragment at a time.
    static constexpr int kGroups = kMmas == 1 ? 1 : plan.overlapped_stages > 0 ? kMmas : 2;
    // Double buffering of fragments: those of one group are loaded while another multiplies.
    static constexpr int kBuffers = kGroups > 1 ? 2 : 1;
    static constexpr int kMmasPerGroup = kMmas / kGroups;
    // Parts of the MMAs that overlap an epilogue, and MMAs along k of each.
    static constexpr int kMmasPerPart = kMmas > 1 ? 2 : 1;
    static constexpr int kParts = plan.overlapped_stages * kMmas / kMmasPerPart;
    // The first (0) or the second (1) half of the columns, or all of them, as a template argument.
    static constexpr int kAllColumns = 2;
    // Accumulator registers of one half of the columns, of one complex part.
    static constexpr int kHalfRegisters = plan.block_n / 4;
    using HalfColumns = float[kHalfRegisters];
    float re[plan.block_n / 2], im[plan.block_n / 2];

    // Multiplies the k-tiles of a work item into `re` and `im`.
    __device__ __forceinline__ void run(const WgmmaArguments& args, uint32 work_slot,
                                        Ring<plan>& ring, const XTileReader<plan>& reader,
                                        int num_k_tiles, int lane, int warpgroup) {
        clear(re);
        clear(im);
        if constexpr (plan.ping_pong) {
            // MMAs beyond k run too, of zeros: the other warpgroup stores meanwhile.
            accumulate<kAllColumns>(ring, reader, num_k_tiles, lane, warpgroup);
            return;
        }
        if (num_k_tiles == 0) return;
        const int last = mmas_of_last_k_tile<plan>(args, work_slot);
        const bool full = last == kMmas;
        accumulate<kAllColumns>(ring, reader, num_k_tiles - !full, lane);
        if (full) return;
        // A k that ends within the last k-tile leaves out the MMAs beyond it.
        mbarrier_wait(ring.full(), ring.parity);
        const YDescriptors<plan> y(ring.y_tile());
#pragma unroll 1
        for (int mma = 0; mma < last; ++mma) {
            XFragment<plan> x;
            load_fragment<plan>(reader, ring.x_tile(), mma * plan.mma_k(), x);
            wgmma_fence();
            issue_mmas<kAllColumns>(x, y, mma, 1);
            wgmma_commit();
            wgmma_wait<0>();
        }
        if (lane == 0) mbarrier_arrive(ring.empty());
        ring.advance();
        wgmma_fence_operand(re);
        wgmma_fence_operand(im);
    }

    // Multiplies a tile with an overlapped epilogue: the second half of the last tile's columns
    // still waits in registers. The first `overlapped_stages` k-tiles run for the first half of the
    // columns only, and after each part of their MMAs is issued, `store_part` stores one of kParts
    // parts of what waits. Then these k-tiles run again for the second half, and the rest for all
    // columns.
    // `num_k_tiles` is at least `overlapped_stages`.
    template <typename StorePart>
    __device__ __forceinline__ void run_overlapped(Ring<plan>& ring,
                                                   const XTileReader<plan>& reader, int num_k_tiles,
                                                   int lane, const StorePart& store_part) {
        overlap_part<0>(ring, reader, store_part);
        clear(columns_of<1>(re));
        clear(columns_of<1>(im));
        accumulate<1>(ring, reader, plan.overlapped_stages, lane);
        accumulate<kAllColumns>(ring, reader, num_k_tiles - plan.overlapped_stages, lane);
    }

    template <int which>
    static __device__ __forceinline__ HalfColumns& columns_of(float (&x)[plan.block_n / 2]) {
        return reinterpret_cast<HalfColumns&>(x[which * kHalfRegisters]);
    }

    // Issues one part of the MMAs of the first half of the columns, stores a part of the last tile
    // meanwhile, and goes on to the next part. The stages are not released, because the second half
    // of the columns reads them again.
    template <int part, typename StorePart>
    __device__ __forceinline__ void overlap_part(Ring<plan> ring, const XTileReader<plan>& reader,
                                                 const StorePart& store_part) {
        XFragment<plan> x[kMmasPerPart];
        constexpr int kPartsPerStage = kMmas / kMmasPerPart,
                      first = part % kPartsPerStage * kMmasPerPart;
        if (part % kPartsPerStage == 0) mbarrier_wait(ring.full(), ring.parity);
        const YDescriptors<plan> y(ring.y_tile());
#pragma unroll
        for (int i = 0; i < kMmasPerPart; ++i) {
            load_fragment<plan>(reader, ring.x_tile(), (first + i) * plan.mma_k(), x[i]);
        }
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < kMmasPerPart; ++i) issue_mmas<0>(x[i], y, first + i, part + i > 0);
        wgmma_commit();
        store_part.template run<part, kParts>();
        wgmma_wait<0>();
        wgmma_fence_operand(columns_of<0>(re));
        wgmma_fence_operand(columns_of<0>(im));
        if constexpr (part + 1 < kParts) {
            if ((part + 1) % kPartsPerStage == 0) ring.advance();
            overlap_part<part + 1>(ring, reader, store_part);
        }
    }

    // Runs `num_k_tiles` k-tiles for the first (0), the second (1) or all columns, and releases
    // their stages.
    template <int columns>
    __device__ __forceinline__ void accumulate(Ring<plan>& ring, const XTileReader<plan>& reader,
                                               int num_k_tiles, int lane, int warpgroup = 0) {
        XFragment<plan> fragments[kBuffers][kMmasPerGroup];
        uint32 previous = 0;  // the `empty` mbarrier of the last k-tile, whose MMAs still run
#pragma unroll 1
        for (int k_tile = 0; k_tile < num_k_tiles; ++k_tile) {
            mbarrier_wait(ring.full(), ring.parity);
            const YDescriptors<plan> y(ring.y_tile());
#pragma unroll
            for (int group = 0; group < kGroups; ++group) {
                // The MMAs that read this buffer are complete. With two buffers, from the second
                // group on so are all MMAs of the k-tile before.
                wgmma_wait<kBuffers - 1>();
                if (group == kBuffers - 1 && k_tile > 0 && lane == 0) mbarrier_arrive(previous);
#pragma unroll
                for (int i = 0; i < kMmasPerGroup; ++i) {
                    load_fragment<plan>(reader, ring.x_tile(),
                                        (group * kMmasPerGroup + i) * plan.mma_k(),
                                        fragments[group % kBuffers][i]);
                }
                if (plan.ping_pong && group == 0 && k_tile == 0) ping_pong_wait(warpgroup);
                wgmma_fence();
#pragma unroll
                for (int i = 0; i < kMmasPerGroup; ++i) {
                    issue_mmas<columns>(fragments[group % kBuffers][i], y,
                                        group * kMmasPerGroup + i, 1);
                }
                wgmma_commit();
            }
            if (plan.ping_pong && k_tile == num_k_tiles - 1) ping_pong_arrive(warpgroup);
            previous = ring.empty();
            ring.advance();
        }
        wgmma_wait<0>();
        if (num_k_tiles > 0 && lane == 0) mbarrier_arrive(previous);
        wgmma_fence_operand(re);
        wgmma_fence_operand(im);
    }

    // Issues the MMAs of one X fragment for the first (0), the second (1) or all columns: re += xr
    // yr - xi yi, im += xr yi + xi yr. Accumulators are kept where `keep` is 1, else overwritten.
    template <int columns>
    __device__ __forceinline__ void issue_mmas(const XFragment<plan>& x,
                                               const YDescriptors<plan>& y, int mma, int keep) {
        constexpr int kYi = plan.conjugate_y ? -1 : 1;  // the sign of yi
#pragma unroll
        for (int p = 0; p < plan.products; ++p) {
            const int s = plan.product_x[p], t = plan.product_y[p];
            // Beside an overlapped epilogue all MMAs have half of the columns: instructions of two
            // widths cannot share registers (ptxas C7511).
            if constexpr (columns == kAllColumns && plan.overlapped_stages > 0) {
                constexpr uint64 second = plan.y_plane_bytes() / 2 >> 4;
                wgmma<1>(columns_of<0>(re), x.re[s], y.at(mma, t, 0), 1);
                wgmma<1>(columns_of<1>(re), x.re[s], y.at(mma, t, 0) + second, 1);
                wgmma<kYi>(columns_of<0>(im), x.re[s], y.at(mma, t, 1), 1);
                wgmma<kYi>(columns_of<1>(im), x.re[s], y.at(mma, t, 1) + second, 1);
                wgmma<-kYi>(columns_of<0>(re), x.im[s], y.at(mma, t, 1), 1);
                wgmma<-kYi>(columns_of<1>(re), x.im[s], y.at(mma, t, 1) + second, 1);
                wgmma<1>(columns_of<0>(im), x.im[s], y.at(mma, t, 0), 1);
                wgmma<1>(columns_of<1>(im), x.im[s], y.at(mma, t, 0) + second, 1);
            } else if constexpr (columns == kAllColumns) {
                wgmma<1>(re, x.re[s], y.at(mma, t, 0), 1);
                wgmma<kYi>(im, x.re[s], y.at(mma, t, 1), 1);
                wgmma<-kYi>(re, x.im[s], y.at(mma, t, 1), 1);
                wgmma<1>(im, x.im[s], y.at(mma, t, 0), 1);
            } else {
                constexpr uint64 first = columns * (plan.y_plane_bytes() / 2 >> 4);
                wgmma<1>(columns_of<columns>(re), x.re[s], y.at(mma, t, 0) + first, keep);
                wgmma<kYi>(columns_of<columns>(im), x.re[s], y.at(mma, t, 1) + first, keep);
                wgmma<-kYi>(columns_of<columns>(re), x.im[s], y.at(mma, t, 1) + first, 1);
                wgmma<1>(columns_of<columns>(im), x.im[s], y.at(mma, t, 0) + first, 1);
            }
        }
    }
};
