// The plan and the arguments of a kernel of the wgmma family (sm_90a). argand/gemm/sm90/source.py
// generates the plan as a template argument, so every tile size and layout is a compile-time
// constant; argand/gemm/sm90/launch.py fills the arguments.
//
// The family computes Z = X Y^T of complex matrices. X (m by k) is the row operand: it reaches the
// tensor cores through registers and is read interleaved or from planes. Y (n by k) is the column
// operand: the tensor cores read it from shared memory, so it comes in planes of real and imaginary
// parts, rounded, split into terms and k-major. The host chooses which of A and B is X; C^T = B^T
// A^T exchanges them.
#pragma once
#include "device/rounding.cuh"
#include "device/tma.cuh"
#include "device/warpgroup.cuh"

constexpr int kWgmmaM = 64;         // m of one wgmma instruction
constexpr int kSwizzleBytes = 128;  // a row of an interleaved X tile in shared memory
constexpr int kStoreBoxSide = 16;   // rows and columns of a TMA store box of complex64
constexpr int kStoreBoxBytes = kStoreBoxSide * kSwizzleBytes;
// Rasterization: tiles run column by column in groups of these tile rows, because the tiles of a
// wave then share X rows and Y rows in L2. Groups of 8 to 32 rows take as long as each other
// (docs/experiments/2026-11-22-kernels-gemm-mainloop.md). A result of few tile columns runs row by
// row.
constexpr int kRasterGroupM = 16, kFewTileColumns = 4;

// Tile rows of a raster group, for a result of `columns` tile columns.
__device__ __forceinline__ uint32 raster_group_m(uint32 columns) {
    return columns <= kFewTileColumns ? 1 : kRasterGroupM;
}

// How X lies in global memory.
enum class Storage {
    fp32,   // interleaved complex64, rounded and split in registers
    half,   // interleaved pairs in the 16-bit operand format
    planar  // planes as Y has them
};

// Operation of the epilogue on a result x, and its store. Each kernel has the code of one epilogue:
// the most general takes the compiler as long as all else, and its instructions would not be in the
// instruction cache when a tile ends.
enum class Epilogue {
    combine,  // alpha x + beta C, at any strides or by TMA
    descale,  // descaled alone, at any strides or by TMA
    // Descaled alone and stored directly where columns are contiguous and every row begins at a
    // vector of two; where some begin within one; where rows are contiguous.
    descale_rows,
    descale_shifted_rows,
    descale_columns
};

struct WgmmaPlan {
    Operand operand;
    int terms;  // terms of one number: 1, or 2 for split precisions
    Rounding roundings[2];
    int products;      // pairs of terms that are multiplied, small terms first
    int product_x[3];  // the term of X in each of them
    int product_y[3];  // the term of Y
    Storage storage;
    bool x_k_major;     // an interleaved X is k-major, else m-major
    bool scaled;        // rows of X and Y were scaled by powers of two; the epilogue descales. Rows
                        // of an interleaved X are scaled in each stage, and promotion descales
    bool half_output;   // Z is stored as pairs in the 16-bit operand format, else as complex64
    bool tma_epilogue;  // Z is stored through shared memory by TMA
    bool out_m_major;   // a Z that TMA stores is m-major, else n-major
    bool fused_pack;    // Y comes interleaved and k-major; idle producer warps pack it
    int m_warpgroups;              // consumer warpgroups of kWgmmaM rows of the tile each
    int block_n, block_k, stages;  // block_k is one k-tile, which is one stage of the ring
    int spill_interval;            // k-tiles between two spills of the same accumulators
    int spill_columns;             // columns whose accumulators spill at once
    int overlapped_stages;         // k-tiles whose MMAs overlap the last epilogue; 0: none do
    Epilogue epilogue = Epilogue::combine;
    bool triangle = false;     // tiles of the lower triangle alone, in the order of triangle.cuh
    bool conjugate_y = false;  // Z = X Y^H: the planes of Y are those of X
    bool power = false;        // Z is stored as squared magnitudes, fp32
    // Interleaved fp32 pairs whose lines are an odd number of elements apart. TMA needs addresses
    // and strides of 16 bytes, so it reads the even lines by one map and the odd ones by another,
    // which begins one element early. In the tile odd lines come first, one element further along.
    bool odd_pitch = false;
    // Matrices of an X of odd pitch are an odd number of elements apart, too, so in every second
    // one it is the even lines that begin within 16 bytes. Odd and even lines change places there
    // in the tile: readers exchange rows of a k-major X, and packing exchanges the k of Y beside an
    // m-major one.
    bool odd_batches = false;
    // Results below the diagonal of a triangle are stored above it, too, conjugated, and the
    // diagonal is real.
    bool mirror = false;
    // The two consumer warpgroups multiply all k of a tile in turn, so that one stores its rows
    // while the other multiplies. The ring must hold the k of a tile: else the second warpgroup
    // would wait for the turn of the first, and the first for stages that the second has not read.
    bool ping_pong = false;
    // Columns that a tile has in common with the next, so that each stores whole sectors of L2
    // only, where rows begin anywhere in one (sm90_epilogue_direct.cuh).
    int shared_columns = 0;
    // Warpgroups that share the k of the same 64 rows, 1 or 2 (sm90_k_warpgroups.cuh).
    int k_warpgroups = 1;
    // Blocks of a cluster, each of which computes a slice of the k of the same tile.
    int cluster = 1;

    constexpr int consumers() const { return m_warpgroups * k_warpgroups; }
    constexpr int block_m() const { return kWgmmaM * m_warpgroups; }
    constexpr int tile_stride_n() const { return block_n - shared_columns; }
    constexpr int threads() const { return kWarpgroupThreads * (consumers() + 1); }
    // Threads and warps that hold a tile at its end: of those that share k the first warpgroup's.
    constexpr int tile_threads() const { return kWarpgroupThreads * m_warpgroups; }
    constexpr int tile_warps() const { return tile_threads() / kWarp; }
    // K-tiles between the spill of one group of columns and that of the next group.
    constexpr int spill_group_interval() const {
        return spill_interval / (block_n / spill_columns);
    }
    constexpr int mma_k() const { return 32 / bytes_of(operand); }
    static constexpr int planes() { return 2; }  // one of real and one of imaginary parts
    // Planes are k-major. A row of them holds, for each MMA along k, the terms side by side, 32
    // bytes each. A TMA box spans the k of the stage where a swizzle of 128 bytes holds that much,
    // else the k of one MMA, so a box is of CuTe's Layout_K_SW128_Atom or Layout_K_SW64_Atom.
    static constexpr int term_bytes() { return 32; }
    constexpr int mma_k_bytes() const { return terms * term_bytes(); }
    constexpr int mmas_per_stage() const { return block_k / mma_k(); }
    constexpr int mmas_per_box() const {
        return mmas_per_stage() * mma_k_bytes() > kSwizzleBytes ? 1 : mmas_per_stage();
    }
    constexpr int boxes() const { return mmas_per_stage() / mmas_per_box(); }
    // Terms of a planar X that go through registers. Where a stage has several boxes, registers
    // hold the first term only; wgmma reads the second from shared memory.
    constexpr int register_terms() const { return boxes() > 1 ? 1 : terms; }
    // Bytes of a row of a box, which are also the width of its swizzle.
    constexpr int box_row_bytes() const { return mmas_per_box() * mma_k_bytes(); }
    // Bytes of one complex number of X, all terms.
    constexpr int x_element_bytes() const {
        return storage == Storage::half   ? 4
               : storage == Storage::fp32 ? 8
                                          : 2 * mma_k_bytes() / mma_k();
    }
    constexpr bool scales_stages() const { return scaled && storage == Storage::fp32; }
    constexpr bool descales_rows() const { return scaled && !scales_stages(); }
    // Complex numbers of an interleaved X in one swizzled row of 128 bytes, along k where X is
    // k-major (CuTe's Layout_K_SW128_Atom), along m where it is m-major (Layout_MN_SW128_Atom).
    constexpr int x_swizzle_elements() const { return kSwizzleBytes / x_element_bytes(); }
    // Whether a tile of X holds its odd rows before its even ones. In a tile of an m-major X of odd
    // pitch it is the k that lie so.
    constexpr bool rows_by_parity() const { return odd_pitch && x_k_major; }
    // Where stages are scaled: whether the absmax of the next one is found while the last MMAs of a
    // stage run, and whether what was loaded for that is kept. It takes registers.
    constexpr bool finds_absmax_ahead() const { return block_n <= (rows_by_parity() ? 104 : 112); }
    constexpr bool keeps_next_stage() const { return block_n <= 96; }
    // Lines of a tile of an interleaved X, and its length along them.
    constexpr int x_lines() const { return x_k_major ? block_m() : block_k; }
    constexpr int x_line_length() const { return x_k_major ? block_k : block_m(); }
    // Odd lines, one element further, have another column of 128 bytes.
    constexpr int x_stage_bytes() const {
        return block_m() * block_k * x_element_bytes() +
               (odd_pitch ? x_lines() / 2 * kSwizzleBytes : 0);
    }
    constexpr int x_plane_bytes() const { return block_m() * box_row_bytes(); }
    constexpr int y_plane_bytes() const { return block_n * box_row_bytes(); }
    // Whether the two rows of a lane are adjacent rows of the tile: an m-major X and an odd and an
    // even row are read so, and an m-major Z is stored so. Fragments that wgmma reads partly from
    // shared memory keep its row order.
    constexpr bool adjacent_rows() const {
        return (storage != Storage::planar && (!x_k_major || odd_pitch)) ||
               (tma_epilogue && out_m_major && register_terms() == terms);
    }
    // Two TMA store boxes for each warp of a tile: one is stored while the other is filled.
    constexpr int epilogue_bytes() const {
        return tma_epilogue ? tile_warps() * 2 * kStoreBoxBytes : 0;
    }
    // Bytes in which the second warpgroup along k leaves its accumulators for the first.
    constexpr int exchange_bytes() const { return (k_warpgroups - 1) * 8 * kWgmmaM * block_n; }
    // The equal parts, of whole eights of columns, in which a cluster stores a tile. A block stores
    // one part. Where the eights do not divide by the number of blocks there are fewer parts than
    // blocks, and the last blocks store none.
    constexpr int parts() const {
        int found = cluster;
        while (block_n / 8 % found) --found;
        return found;
    }
    // Bytes in which a block of a cluster receives its part of the tile from all blocks.
    constexpr int parts_bytes() const {
        return cluster > 1 ? 8 * block_m() * block_n / parts() * cluster : 0;
    }
    constexpr int stage_bytes() const {
        return x_stage_bytes() + boxes() * planes() * y_plane_bytes();
    }
    // Registers of a thread after setmaxnreg. Their sum must not exceed what the block was launched
    // with: setmaxnreg.inc would wait for ever.
    constexpr int producer_registers() const { return fused_pack ? 56 : 24; }
    constexpr int consumer_registers() const { return fused_pack ? 224 : 240; }
};

// Arguments of a launch. Strides count complex numbers. Counts fit 32 bits; strides and
// addresses have 64.
struct WgmmaArguments {
    const float2* c;
    void* out;
    float2* spill;            // accumulators that spilled (sm90_accumulator_spill.cuh)
    const float2* x_descale;  // (batch, m): two powers of two that descale a row of Z
    const float2* y_descale;  // (batch, n): the same of a column
    float2* partials;         // (partial tiles, block_n / 2, tile_threads())
    uint32* partials_ready;   // (blocks, consumer warps): lanes that stored a partial; zero between
                              // launches
    // Fused packing (sm90_fused_pack.cuh): its source, its planes, and counters of packed units by
    // panel and k-block, then of blocks whose producer is done. The counters are zero between
    // launches.
    const float2* y_source;
    void* y_planes;
    uint32* packed_counts;
    // CTA throttle (sm90_throttle.cuh): arrivals, and blocks whose producer is done. Zero between
    // launches.
    uint32* throttle;
    int m, n, k;
    int batches;
    int x_batched, y_batched;  // 0 where all products of the batch share the operand
    // Split-K: k is cut into `split_k_slices` slices of `k_tiles_per_slice` k-tiles, each stored as
    // a product of its own; splitk_reduce.cuh adds them.
    int split_k_slices, k_tiles_per_slice;
    // Tile scheduler (sm90_scheduler.cuh): `data_parallel_tiles` whole tiles from `first_tile` on,
    // then `stream_k_tiles` tiles that are split along k. Each block takes `k_tiles_per_block`
    // k-tiles of the latter, or of the tile of its cluster. Every `aligned_period`-th block ends
    // where a tile ends and stores no partial tile.
    uint32 first_tile, data_parallel_tiles, stream_k_tiles;
    int k_tiles_per_block, aligned_period;
    int throttle_interval, maximum_lead;  // k-tiles; an interval of 0: no throttle
    int y_pitch, pack_conjugate;          // k of a row of planes; whether packing conjugates
    int pack_rows, panels_per_wave;       // rows of a unit; panels that one wave of tiles reads
    int pack_maximum_lead;                // k-blocks that packing may be ahead of its producer
    // The kernel before only packs operands of this call, so the entry (argand/gemm/sm90/source.py)
    // does not wait for its end.
    int begins_early;
    int64 y_stride_n, y_stride_batch;
    int64 c_stride_m, c_stride_n, c_stride_batch;
    int64 out_stride_m, out_stride_n, out_stride_batch;
    int64 spill_stride_m, spill_stride_n, spill_stride_batch;
    float alpha_re, alpha_im, beta_re, beta_im;
    int conjugate_result;  // for a conjugated X: conj(X) Y = conj(X conj(Y))
    int store_pairs_m;     // rows 2 i and 2 i + 1 of a column may be stored as one vector
    int store_pairs_n;     // columns 2 j and 2 j + 1 of a row may be
    int spill_pairs_n;     // the same of `spill`
};

// The producer publishes work in slots of shared memory: twelve words, a full and an empty mbarrier
// each (sm90_scheduler.cuh).
constexpr int kWorkSlots = 4, kWorkSlotBytes = 64;
