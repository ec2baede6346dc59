// The plan and the arguments of a kernel of the mma.sync family (sm_80 and newer).
// argand/gemm/sm80/source.py generates the plan as a template argument; argand/gemm/sm80/launch.py
// fills the arguments, which fma_kernel.cuh takes too. The kernel computes C = alpha op(A) op(B) +
// beta C on interleaved complex64 operands.
#pragma once
#include "device/conditional.cuh"
#include "device/rounding.cuh"

// Padding of the rows of a tile, whose length is a multiple of 16 complex numbers. The 8-byte loads
// of half a warp (4 rows by 4 k) then fall into sixteen different pairs of banks, whichever of row
// and k is contiguous.
constexpr int kRowPadding = 4;

struct MmaPlan {
    Operand operand;
    int terms;  // terms of one number: 1, or 2 for split precisions
    Rounding roundings[2];
    int products;       // pairs of terms that are multiplied, small terms first
    int product_a[3];   // the term of A in each of them
    int product_b[3];   // the term of B
    bool scaled;        // rows of A and columns of B are scaled by powers of two
    bool finds_absmax;  // a block finds their absmax, in stages that hold all of its k; else a
                        // launch before has found it
    int block_m, block_n, block_k;
    int warps_m, warps_n, warps_k;  // warps_k groups share the k of a stage (sliced K)
    int cluster;                    // blocks of a cluster, each with a slice of k
    int stages;
    int promotion_interval;     // k between promotions into fp32 accumulators; 0: none
    bool a_k_major, b_k_major;  // k is contiguous, else m or n
    int vector;                 // complex numbers of one cp.async
    bool triangle = false;      // tiles of the lower triangle alone, in the order of triangle.cuh
    bool any_strides = false;   // sizes or strides do not fit 32 bits, or no axis is contiguous
    bool mirror = false;        // what is below a triangle's diagonal is stored above it, too
    bool one_tile = false;  // the tile covers a triangle: its columns of B are its rows of A, which
                            // a stage holds once
    int whole_k = 0;  // the k of a block where the stages hold it: all of k, up to whole MMAs, or
                      // where it is cut a slice of whole k-tiles; 0: it is longer
    bool copies_between = false;  // a later k-tile is copied between the MMAs of the present one
    int blocks_per_sm = 1;        // fewest blocks per multiprocessor in __launch_bounds__
    bool grid_split = false;      // k is cut among `grid_slices` clusters, too (sm80_slices.cuh)

    // Stages that are loaded before any is multiplied.
    constexpr int stages_at_once() const {
        return whole_k > 0 ? (whole_k + block_k - 1) / block_k : stages - 1;
    }
    // Whether several warps or blocks hold accumulators of the same elements, over different k.
    constexpr bool sliced() const { return grid_split || warps_k * cluster > 1; }
    constexpr int threads() const { return kWarp * warps_m * warps_n * warps_k; }
    constexpr int warp_m() const { return block_m / warps_m; }
    constexpr int warp_n() const { return block_n / warps_n; }
    // Whether a warp multiplies a triangle of one tile alone. What a lane holds of a row of A is
    // what it holds of that column of B, so a row is read and rounded once.
    constexpr bool one_warp() const { return one_tile && warps_m * warps_n == 1; }
    // Whether a warp has few accumulators, so that it waits for one instruction after the other.
    constexpr bool small_warps() const { return warp_m() * warp_n() <= 256; }
    // Whether products with the imaginary part of B have accumulators of their own, which a
    // promotion or the end of the mainloop joins to the others. Then the sign of a conjugated B
    // takes no instruction of the mainloop, and twice as many MMAs are independent of each other.
    constexpr bool parts_apart() const { return small_warps() && (terms > 1 || warps_k == 1); }
    // Elements of k whose loads from shared memory and MMAs are unrolled into one piece of code.
    constexpr int unrolled_k() const {
        if (operand == Operand::tf32) return 32;
        return terms == 1 && warp_m() * warp_n() <= 512 ? 32 : 16;
    }
    // Operands are split by `split_moderate_to_tf32`: a block whose sums are not all finite
    // computes them again, rounding by integers, which takes any number.
    constexpr bool splits_by_products() const {
        return ::splits_by_products(operand, terms, roundings[0], roundings[1]);
    }
    // Whether groups of warps that share k leave out, by branches, what lies outside the matrix:
    // small products of one term, or of few results a warp, would wait for the zeros. Other plans
    // copy zeros and multiply them, and so does a whole k, whose copies are then without a branch.
    constexpr bool skips_outside() const {
        const bool waits = warps_k > 1 && (terms == 1 || warp_m() * warp_n() < 256);
        return whole_k == 0 && waits;
    }
    // Whether the second half of the last k-tile is left out where k ends before it. One branch
    // decides it: several would part the loads of each MMA from those before.
    constexpr bool skips_half() const { return copies_between && terms > 1 && !sliced(); }
    constexpr bool promotes() const { return promotion_interval > 0; }
    // Whether small products of terms have accumulators of their own, too, where the k of a tile is
    // known and registers suffice. Then nothing but the large products truncates a large sum.
    constexpr bool small_apart() const { return whole_k > 0 && terms > 1 && parts_apart(); }
    // K between promotions in which as many instructions truncate a large sum, with small products
    // apart, as in `promotion_interval` with all of them.
    constexpr int promoted_k() const {
        return small_apart() ? products * promotion_interval : promotion_interval;
    }
    constexpr int a_pitch() const { return (a_k_major ? block_k : block_m) + kRowPadding; }
    constexpr int b_pitch() const { return (b_k_major ? block_k : block_n) + kRowPadding; }
    constexpr int a_tile_elements() const { return a_pitch() * (a_k_major ? block_m : block_k); }
    constexpr int b_tile_elements() const { return b_pitch() * (b_k_major ? block_n : block_k); }
    // Index in a stage at which the columns of B begin.
    constexpr int b_place() const { return one_tile ? 0 : a_tile_elements(); }
    constexpr int stage_elements() const {
        return a_tile_elements() + (one_tile ? 0 : b_tile_elements());
    }
    // Complex numbers from a row of a result to the next one in shared memory.
    constexpr int result_pitch() const { return block_n + 2; }
};

// A size or a stride in complex numbers. A product of 32 bits is one instruction.
template <auto plan>
using Stride = typename Conditional<plan.any_strides, int64, int>::Type;

// The first element of a batch. Without a sign the product is two instructions.
__device__ __forceinline__ const float2* of_batch(const float2* from, int batch, int64 stride) {
    return from + static_cast<int64>(static_cast<uint32>(batch) * static_cast<uint64>(stride));
}
__device__ __forceinline__ const float2* of_batch(const float2* from, int64 batch, int64 stride) {
    return from + batch * stride;
}

// Arguments of a launch; strides count complex numbers. A block waits for each line of 64 bytes of
// them that it reads first, and on sm_90 they begin 16 bytes after such a line: there the first two
// are needed before its first load, m and n of them at once, and the third by its epilogue.
struct GemmArguments {
    const float2* a;
    const float2* b;
    int64 m, k;
    int64 first_batch;
    int store_pairs_n;  // two neighbouring results may be stored as one vector
    int grid_slices;    // clusters that share the k of a tile

    int64 n;
    int64 a_stride_m, a_stride_k, a_stride_batch;
    int64 b_stride_n, b_stride_k, b_stride_batch;
    const float2* c;

    int conjugate_b;       // one of op_a and op_b conjugates
    int conjugate_result;  // op_a conjugates: conj(A) B = conj(A conj(B))
    float alpha_re, alpha_im, beta_re, beta_im;
    float2* out;
    int64 out_stride_m, out_stride_n, out_stride_batch;
    int64 c_stride_m;

    int64 c_stride_n, c_stride_batch;
    const uint32* a_absmax;  // (batch, m): bits of the absmax of each row, for scaling
    const uint32* b_absmax;  // (batch, n): of each column
    int64 a_absmax_stride_batch, b_absmax_stride_batch;
    float4* partials;  // (tiles, grid_slices, cluster, vectors of a part): sums of clusters
    // (tiles, cluster): clusters that stored theirs; zero between launches.
    uint32* arrived;
};
