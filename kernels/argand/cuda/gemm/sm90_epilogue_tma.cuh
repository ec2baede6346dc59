// The TMA epilogue: a consumer warp writes boxes of 16 x 16 complex64 to shared memory, and TMA
// stores them while the next box is filled or the next tile multiplied. With an overlapped epilogue
// the second half of the columns waits in registers and is stored during the next tile's mainloop
// (sm90_mainloop.cuh).
#pragma once
#include "device/shared.cuh"
#include "sm90_epilogue.cuh"

// Stores a result where columns of a box are lines: eight lanes with neighbouring rows write half
// of a line of 128 bytes.
__device__ __forceinline__ void store_transposed(uint32 box, int row, int column, float2 x) {
    const int chunk = row / 2 ^ (column & 7);
    store_shared_8(box + column * kSwizzleBytes + chunk * 16 + row % 2 * 8, x);
}

// Makes a box on the diagonal Hermitian: what is above it comes from the mirror image of the box,
// and the diagonal is real. Both are swizzled alike.
__device__ __forceinline__ void mirror_within(uint32 box, uint32 image, int lane) {
    constexpr int kElements = kStoreBoxSide * kStoreBoxSide;
    __syncwarp();
#pragma unroll
    for (int i = lane; i < kElements; i += kWarp) {
        const int row = i / kStoreBoxSide, column = i % kStoreBoxSide;
        const uint32 at = row * kSwizzleBytes + ((column / 2 ^ (row & 7)) << 4) + column % 2 * 8;
        if (column < row) continue;
        const float2 x = load_shared_8_unordered(image + at);
        store_shared_8(box + at, {x.x, column == row ? 0.0f : x.y});
    }
}

// Writes a lane's results of its two rows and of its two columns of half j of a box, and where the
// box is mirrored their mirror images to `image`.
template <WgmmaPlan plan>
__device__ __forceinline__ void write_to_box(uint32 box, uint32 image, const int (&rows)[2],
                                             int j, int lane, const float2 (&z)[2][2]) {
    if constexpr (plan.mirror) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float2 x = z[i / 2][i % 2];
            store_transposed(image, rows[i / 2], 8 * j + 2 * (lane % 4) + i % 2, {x.x, -x.y});
        }
    }
    if constexpr (plan.out_m_major && !plan.adjacent_rows()) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            store_transposed(box, rows[i / 2], 8 * j + 2 * (lane % 4) + i % 2, z[i / 2][i % 2]);
        return;
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        // Two neighbours along the contiguous axis: rows (m-major) of one column, or columns of row
        // i.
        const int line = plan.out_m_major ? 8 * j + 2 * (lane % 4) + i : rows[i];
        const int chunk = plan.out_m_major ? lane / 4 : 4 * j + lane % 4;
        const float2 first = z[plan.out_m_major ? 0 : i][plan.out_m_major ? i : 0];
        const float2 second = z[plan.out_m_major ? 1 : i][plan.out_m_major ? i : 1];
        store_shared_16(box + line * kSwizzleBytes + ((chunk ^ (line & 7)) << 4),
                        float4{first.x, first.y, second.x, second.y});
    }
}

// Boxes of a tile along n.
template <WgmmaPlan plan>
constexpr int kStoreBoxes = plan.block_n / kStoreBoxSide;

// Stores boxes `first_box` to `end_box` of a tile, for the 16 rows of a warp; the accumulators
// given begin with those of `from_box`. `boxes` are the warp's two boxes in shared memory.
template <WgmmaPlan plan, int first_box, int end_box, int from_box, int kCount>
__device__ __forceinline__ void tma_store_rows(const WgmmaArguments& args, const TensorMap& out_map,
                                               const WgmmaTile& tile, int row0, int lane,
                                               uint32 boxes, const float (&re)[kCount],
                                               const float (&im)[kCount]) {
    // With an overlapped epilogue MMAs are in flight, so there are predicates and no branches
    // (ptxas C7520). The shuffle makes the branch warp-uniform for the compiler.
    if (plan.overlapped_stages == 0 && __shfl_sync(~0u, int(row0 >= args.m), 0)) return;
    const int product = int(stored_product(args, tile));
    const int rows[2] = {fragment_row<plan>(lane, 0), fragment_row<plan>(lane, 1)};
    const int64 c_row0 = int64(tile.batch) * args.c_stride_batch + row0 * args.c_stride_m;
    const ColumnDescales<plan> descales(args, tile, lane);
    float2 x_descale[2] = {};
    if constexpr (plan.descales_rows()) {
#pragma unroll
        for (int h = 0; h < 2; ++h) x_descale[h] = row_descale<plan>(args, tile, row0 + rows[h]);
    }
#pragma unroll
    for (int box = first_box; box < end_box; ++box) {
        const int column0 = tile.n0 + box * kStoreBoxSide;
        if (plan.mirror && column0 > row0) break;  // above the diagonal
        const uint32 target = plan.mirror ? boxes : boxes + box % 2 * kStoreBoxBytes;
        // TMA has read the box whose place this one takes: the one before the last. Beside a mirror
        // image there is one place, and of an odd number of boxes the last one lay where the first
        // one of the next tile goes.
        if (plan.mirror || (kStoreBoxes<plan> % 2 == 1 && box == 0)) {
            tma_store_wait_read<0>();
        } else {
            tma_store_wait_read<1>();
        }
        __syncwarp();
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            float2 z[2][2], c[2][2];
            if constexpr (plan.epilogue == Epilogue::combine) {  // what all four results need
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int row = min(rows[i / 2], args.m - 1 - row0);
                    const int column = min(column0 + 8 * j + 2 * (lane % 4) + i % 2, args.n - 1);
                    c[i / 2][i % 2] = load_or_zero<CacheAllLevels>(
                        args.c + c_row0 + row * args.c_stride_m + column * args.c_stride_n,
                        adds_c(args));
                }
            }
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const float2 y_descale =
                    descales.at(box * kStoreBoxSide + 8 * j, 2 * (lane % 4) + e);
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const int at = 4 * (2 * (box - from_box) + j) + 2 * h + e;
                    const float2 x = descale<plan>({re[at], im[at]}, x_descale[h], y_descale);
                    z[h][e] = epilogue_result<plan>(args, x, c[h][e]);
                }
            }
            write_to_box<plan>(target, boxes + kStoreBoxBytes, rows, j, lane, z);
        }
        if (plan.mirror && column0 == row0) mirror_within(target, boxes + kStoreBoxBytes, lane);
        fence_proxy_async_shared();
        __syncwarp();
        tma_store(out_map, target, plan.out_m_major ? row0 : column0,
                  plan.out_m_major ? column0 : row0, product,
                  lane == 0 && row0 < args.m && column0 < args.n);
        if constexpr (plan.mirror)
            tma_store(out_map, boxes + kStoreBoxBytes, row0, column0, product,
                      lane == 0 && row0 < args.m && column0 < row0);
        tma_store_commit();
    }
}

// Stores boxes of a tile.
template <WgmmaPlan plan, int first_box, int end_box, int from_box, int kCount>
__device__ __forceinline__ void tma_store_boxes(const WgmmaArguments& args,
                                                const TensorMap& out_map, const WgmmaTile& tile,
                                                uint32 base, const float (&re)[kCount],
                                                const float (&im)[kCount]) {
    const int thread = thread_index(), warp = thread / kWarp;
    const uint32 boxes =
        opaque(base) + plan.stages * plan.stage_bytes() + warp * 2 * kStoreBoxBytes;
    const int row0 = tile.m0 + warp * 16, lane = thread % kWarp;
    tma_store_rows<plan, first_box, end_box, from_box>(args, out_map, tile, row0, lane, boxes, re,
                                                       im);
}

// The second half of the columns of a tile, which is stored during the mainloop of the next tile.
template <WgmmaPlan plan>
struct DeferredColumns {
    static constexpr int kRegisters = plan.block_n / 4, kFirstBox = kStoreBoxes<plan> / 2;
    WgmmaTile tile;
    float re[kRegisters], im[kRegisters];

    // An empty tile: all of its rows lie outside Z. It has register values of its own, so that the
    // accumulators' registers are free during the mainloop.
    __device__ __forceinline__ void clear_tile(const WgmmaArguments& args) {
        tile = {0, 0, args.m, 0, 0, 0};
#pragma unroll
        for (int i = 0; i < kRegisters; ++i) re[i] = im[i] = 0.0f;
    }

    // Multiplies all accumulators of a tile by alpha, which is real, and keeps the second half of
    // them.
    __device__ __forceinline__ void defer(const WgmmaArguments& args, const WgmmaTile& source,
                                          float (&all_re)[2 * kRegisters],
                                          float (&all_im)[2 * kRegisters]) {
        tile = {int(stored_product(args, source)), 0, source.m0, source.n0, 0, 0};
        const float scale = args.alpha_re, flipped = args.conjugate_result ? -scale : scale;
#pragma unroll
        for (int i = 0; i < kRegisters; ++i) {
            all_re[i] *= scale;
            all_im[i] *= flipped;
            re[i] = all_re[kRegisters + i] * scale;
            im[i] = all_im[kRegisters + i] * flipped;
        }
    }
};

// Stores the deferred columns: part i of `parts`.
template <WgmmaPlan plan>
struct StoreDeferred {
    const WgmmaArguments& args;
    const TensorMap& out_map;
    const DeferredColumns<plan>& deferred;
    uint32 base;
    template <int i, int parts>
    __device__ __forceinline__ void run() const {
        constexpr int kFirst = DeferredColumns<plan>::kFirstBox;
        constexpr int kBegin = kFirst + kFirst * i / parts;
        constexpr int kEnd = kFirst + kFirst * (i + 1) / parts;
        tma_store_boxes<plan, kBegin, kEnd, kFirst>(args, out_map, deferred.tile, base, deferred.re,
                                                    deferred.im);
    }
};
