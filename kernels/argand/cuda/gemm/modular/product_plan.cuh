// Plan and arguments of the kernels that multiply residues, and the order of their tiles. A plane
// is a real product modulo one p: C+ = A+ B+ or C- = A- B-. Every kernel computes tiles of
// block_m x block_n of all planes, sums exactly in s32, and stores residues as int8.
// argand/gemm/modular/product_plan.py generates the plan as a template argument.
#pragma once
#include "moduli.cuh"

struct ResiduePlan {
    int warpgroup_rows;  // wgmma: of a consumer warpgroup, 64 or 128
    int block_m, block_n, stages;
    // k-tiles of columns of B that stay in shared memory, and for how many tiles; 0: none does.
    int resident_tiles, stack_tiles;
    // Whether residues are added to those of an earlier part of k.
    bool adds;

    constexpr int a_bytes() const { return block_m * 128; }
    constexpr int b_bytes() const { return block_n * 128; }
    constexpr int stage_bytes() const { return (block_m + block_n) * 128; }
};

constexpr int kBlockK = 128;  // k of a stage, in bytes of a row
// Accumulators begin at this bias, which keeps sums positive. It lies away from carries into high
// bits, because accumulators that toggle fewer bits take less power.
constexpr uint32 kSumBias = 0x40180000u;
// K-tiles after which sums are reduced modulo p and go on: 65536 products of two residues of at
// most 125 stay within the bias.
constexpr int kReducedTiles = 65536 / kBlockK;
constexpr int kRasterRows = 2048;  // rows of C that are rasterized together

struct ResidueArguments {
    const signed char *a, *b;  // planes of A and B; wgmma reads them by tensor maps
    signed char* residues;     // (split_k_slices, batches, planes, m, n)
    int64 slice_bytes;         // of a slice's residues
    int64 a_plane, b_plane;    // bytes from plane to plane
    int m, n;                  // n is a multiple of kColumnBlock
    int num_k_tiles;           // of a line
    int k_tiles_per_slice;     // of a split-K slice; the last one may have fewer
    int split_k_slices;
    int planes;                // of one product: two for each modulus, or a group of them
    int first_plane;           // of the product, where they are a group
    int a_batched, b_batched;  // 0 where all products of the batch share the operand
    uint32 tiles_m, tiles_n;
    uint32 tiles;  // of all slices of all planes of all products
};

struct ResidueTile {
    int batch, plane, slice, m0, n0;
};

// The modulus of a plane. `kReduceModuli` is generated.
__device__ __forceinline__ const ReduceModulus& modulus_of(int plane) {
    return kReduceModuli[plane / 2];
}

// The planes of A and of B that a tile multiplies.
__device__ __forceinline__ int64 a_plane_of(const ResidueArguments& args,
                                            const ResidueTile& tile) {
    return (args.a_batched ? int64(tile.batch) * args.planes : 0) + tile.plane;
}
__device__ __forceinline__ int64 b_plane_of(const ResidueArguments& args,
                                            const ResidueTile& tile) {
    return (args.b_batched ? int64(tile.batch) * args.planes : 0) + tile.plane;
}

// The k-tiles of a slice.
__device__ __forceinline__ int k_tiles_of(const ResidueArguments& args, int slice) {
    return min(args.k_tiles_per_slice, args.num_k_tiles - slice * args.k_tiles_per_slice);
}

// Tile number `index`: slice after slice, plane after plane, in groups of rows, whose tiles run
// column by column, the columns of every other group backwards, so that tiles in flight share rows
// of A and B in L2.
template <ResiduePlan plan>
__device__ __forceinline__ ResidueTile residue_tile_at(const ResidueArguments& args,
                                                       uint32 index) {
    constexpr uint32 kGroup = kRasterRows / plan.block_m;
    const uint32 plane_tiles = args.tiles_m * args.tiles_n;
    const uint32 tile = index % plane_tiles, slice = index / plane_tiles;
    const uint32 plane = slice / args.split_k_slices;
    const uint32 group = tile / (kGroup * args.tiles_n), in_group = tile % (kGroup * args.tiles_n);
    const uint32 height = min(args.tiles_m - group * kGroup, kGroup);
    uint32 column = in_group / height;
    const uint32 row = group * kGroup + in_group % height;
    if (group % 2) column = args.tiles_n - 1 - column;
    return {int(plane / args.planes), int(plane % args.planes), int(slice % args.split_k_slices),
            int(row) * plan.block_m, int(column) * plan.block_n};
}

template <int count>
__device__ __forceinline__ void set_bias(int (&accumulators)[count]) {
#pragma unroll
    for (int i = 0; i < count; ++i) accumulators[i] = int(kSumBias);
}

// Reduces accumulators modulo p, so that further products can be added.
template <int count>
__device__ __forceinline__ void reduce_accumulators(int (&accumulators)[count],
                                                    const ReduceModulus& modulus) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
        accumulators[i] =
            int(kSumBias) + (int(residue_of(uint32(accumulators[i]), modulus) << 24) >> 24);
    }
}

// Stores the residues of 16 rows of a warp, whose accumulators lie as those of m16n8 MMAs do: lane
// l holds columns 2 (l % 4) and the next of each 8, of rows l / 4 and l / 4 + 8. B is stored so
// that they become 16 neighbouring bytes of every 64. With `adds` the residues that lie there are
// added.
template <bool adds, int registers>
__device__ __forceinline__ void store_residues(const ResidueArguments& args,
                                               const ReduceModulus& modulus,
                                               const int (&accumulators)[registers],
                                               const ResidueTile& tile, int row, int column) {
    const int lane = threadIdx.x % kWarp;
    row += lane / 4;
    const int64 first = (int64(tile.batch) * args.planes + tile.plane) * args.m;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        if (row + 8 * half >= args.m) continue;
        signed char* target = args.residues + tile.slice * args.slice_bytes +
                              (first + row + 8 * half) * args.n + lane % 4 * 16;
#pragma unroll
        for (int group = 0; group < registers / 32; ++group) {
            const int at = column + 64 * group;
            uint32 words[4] = {};
            if constexpr (adds) {
                if (at < args.n) {
                    const uint4 before = *reinterpret_cast<const uint4*>(target + at);
                    words[0] = before.x, words[1] = before.y;
                    words[2] = before.z, words[3] = before.w;
                }
            }
#pragma unroll
            for (int w = 0; w < 4; ++w) {
                const int i = 32 * group + 8 * w + 2 * half;
                const auto residue = [&](int value, int byte) {
                    if constexpr (adds) value += int(words[w] << 24 - 8 * byte) >> 24;
                    return residue_of(uint32(value), modulus);
                };
                words[w] = pack_bytes(residue(accumulators[i], 0), residue(accumulators[i + 1], 1),
                                      residue(accumulators[i + 4], 2),
                                      residue(accumulators[i + 5], 3));
            }
            if (at < args.n) {
                *reinterpret_cast<uint4*>(target + at) = {words[0], words[1], words[2], words[3]};
            }
        }
    }
}
