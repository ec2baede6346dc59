// What a kernel of the wgmma family is made for, and what it is called with.
//
// The family computes Z = X Y^T of complex matrices: X (rows, k) is the *row operand*, interleaved
// or in planes, which goes to the tensor cores through registers; Y (columns, k) is the *column
// operand*, which a packing pass has rounded, split and laid out in planes, k contiguous. Which of
// A and B is which is the host's choice: C^T = B^T A^T.
#pragma once
#include "device/mma.cuh"
#include "device/tma.cuh"

constexpr int kWarpgroupThreads = 4 * kWarp;
constexpr int kWgmmaM = 64;         // of one wgmma
constexpr int kSwizzleBytes = 128;  // a line of the row operand's tile in shared memory
constexpr int kStoreBoxSide = 16;   // of a box of results, one swizzled line of complex64
constexpr int kStoreBoxBytes = kStoreBoxSide * kSwizzleBytes;
// Tiles of Z that share columns of Y run together this many at a time, so that they meet in L2; one
// where a row has few tiles, so that these run together.
constexpr int kRasterGroupM = 16, kFewTileColumns = 4;

__device__ __forceinline__ uint32 raster_group_m(uint32 columns) {
    return columns <= kFewTileColumns ? 1 : kRasterGroupM;
}

// How the row operand lies in memory.
enum class Storage {
    fp32,   // interleaved pairs of fp32, rounded and split in registers
    half,   // interleaved pairs of 16 bits, already rounded
    planar  // as the column operand: planes of terms, k contiguous
};

struct WgmmaPlan {
    Operand operand;
    int terms;
    Rounding roundings[2];
    int products;
    int product_x[3];
    int product_y[3];
    Storage storage;
    bool x_k_major;     // whether k is X's contiguous axis in memory, else the rows are
    bool scaled;        // operands were scaled by powers of two, results are scaled back
    bool half_output;   // Z is stored as pairs of 16 bits
    bool tma_epilogue;  // Z goes through shared memory and the copy engine
    bool out_m_major;   // then: whether rows are Z's contiguous axis, else columns
    bool fused_pack;    // Y comes interleaved, k contiguous, and is packed while others multiply
    int consumer_warpgroups;  // that multiply, 64 rows each
    int block_n, block_k, stages;
    int spill_interval;     // stages from one move of promoted sums' totals to the next
    int spill_columns;      // that move at once
    int overlapped_stages;  // stages whose products begin while half of the results before leave,
                            // or 0

    constexpr int block_m() const { return kWgmmaM * consumer_warpgroups; }
    constexpr int threads() const { return kWarpgroupThreads * (consumer_warpgroups + 1); }
    // Totals of some columns move after so many stages, then those of the next ones.
    constexpr int spill_group_interval() const {
        return spill_interval / (block_n / spill_columns);
    }
    constexpr int mma_k() const { return operand == Operand::tf32 ? 8 : 16; }
    static constexpr int planes() { return 2; }  // of real and of imaginary parts
    // A line of planes has the terms of a step side by side, 32 bytes each, then those of the next.
    // It comes in boxes that a swizzle can hold: one of the whole stage, or one of each step.
    static constexpr int term_bytes() { return 32; }
    constexpr int mma_k_bytes() const { return terms * term_bytes(); }
    constexpr int mmas_per_stage() const { return block_k / mma_k(); }
    constexpr int mmas_per_box() const {
        return mmas_per_stage() * mma_k_bytes() > kSwizzleBytes ? 1 : mmas_per_stage();
    }
    constexpr int boxes() const { return mmas_per_stage() / mmas_per_box(); }
    // Terms of planes of rows that go through registers. Of many steps there is room for the first
    // ones, which are multiplied twice; tensor cores read the second ones from shared memory.
    constexpr int register_terms() const { return boxes() > 1 ? 1 : terms; }
    constexpr int box_row_bytes() const { return mmas_per_box() * mma_k_bytes(); }  // in one box
    constexpr int x_element_bytes() const {
        return storage == Storage::half   ? 4
               : storage == Storage::fp32 ? 8
                                          : 2 * mma_k_bytes() / mma_k();
    }
    constexpr int x_swizzle_elements() const { return kSwizzleBytes / x_element_bytes(); }
    constexpr int x_stage_bytes() const { return block_m() * block_k * x_element_bytes(); }
    constexpr int x_plane_bytes() const { return block_m() * box_row_bytes(); }
    constexpr int y_plane_bytes() const { return block_n * box_row_bytes(); }
    // Whether a lane's two rows are neighbours: as they are read at once, or as they are stored.
    // Never where tensor cores read second terms from shared memory, in its order.
    constexpr bool adjacent_rows() const {
        return (storage != Storage::planar && !x_k_major) ||
               (tma_epilogue && out_m_major && register_terms() == terms);
    }
    // Each warp has two boxes of 16 x 16 complex64 on their way out.
    constexpr int epilogue_bytes() const {
        return tma_epilogue ? 4 * consumer_warpgroups * 2 * kStoreBoxBytes : 0;
    }
    constexpr int stage_bytes() const {
        return x_stage_bytes() + boxes() * planes() * y_plane_bytes();
    }
    // Registers of a thread, by role. They are shared out anew of those that a block was started
    // with: claiming more than are left would wait for ever.
    constexpr int producer_registers() const { return fused_pack ? 56 : 24; }
    constexpr int consumer_registers() const { return fused_pack ? 224 : 240; }
};

// Strides count complex numbers. Every number fits 32 bits but the addresses.
struct WgmmaArguments {
    const float2* c;
    void* out;
    float2* spill;            // where the sums of a long k wait (sm90_accumulator_spill.cuh)
    const float2* x_descale;  // (batch, rows): what scales a row's results back
    const float2* y_descale;  // (batch, columns)
    float2* partials;         // (pieces that are left, block_n / 2, multiplying threads)
    uint32* partials_ready;   // (blocks, multiplying warps): lanes whose sums lie there; zeros
                              // before, after
    // Where Y is packed on the way (sm90_fused_pack.cuh): where it lies and where its planes go;
    // by strip and 256 k how many units are packed, then the blocks that have loaded all: zeros
    // before, after.
    const float2* y_source;
    void* y_planes;
    uint32* packed_counts;
    // Where blocks keep pace (sm90_throttle.cuh): how often they were at a place, how many are
    // through. Zeros before, after.
    uint32* throttle;
    int m, n, k;
    int batches;
    int x_batched, y_batched;  // 0 where one operand serves the whole batch
    // With `parts` > 1 each product's k is cut into so many parts of `part_steps` stages, whose
    // sums go to out as if they were that many more products.
    int split_k_slices, k_tiles_per_slice;
    // After the whole tiles follow split ones, too few for every block: each block takes `share` of
    // their stages, and sums of pieces meet in `pieces` (sm90_scheduler.cuh); every `period` shares
    // one ends where a tile does. `first_tile` comes before all of them.
    uint32 first_tile, data_parallel_tiles, stream_k_tiles;
    int k_tiles_per_block, aligned_period;
    int throttle_interval, maximum_lead;  // stages; 0 where blocks go as they will
    int y_pitch, conjugate_y;             // of planes; whether Y is conjugated
    int pack_rows, panels_per_wave;       // lines of a unit, strips of a round
    int pack_maximum_lead;                // chunks of 256 k that packing may be ahead of loading
    int64 y_stride_n, y_stride_batch;
    int64 c_stride_m, c_stride_n, c_stride_batch;
    int64 out_stride_m, out_stride_n, out_stride_batch;
    int64 spill_stride_m, spill_stride_n, spill_stride_batch;
    float alpha_re, alpha_im, beta_re, beta_im;
    int conjugate_result;  // X was meant conjugated: conj(X) Y = conj(X conj(Y))
    int store_pairs_m;     // rows 2 i and 2 i + 1 of one column may be stored at once
    int store_pairs_n;     // columns 2 j and 2 j + 1 of one row
    int spill_pairs_n;     // the same of totals
};

// What the loading thread tells the others to work on lies in places that they take in turns:
// twelve words, a barrier for what is told and one for what is done with (sm90_scheduler.cuh).
constexpr int kWorkSlots = 4, kWorkSlotBytes = 64;
