// Products of residues by mma.sync (sm_80 and newer): a CTA of eight warps computes a tile of one
// plane, each warp 32 x 64 of it, and stores its residues.
//
// Shared memory is a ring of stages, each a k-tile of 128 bytes of the rows of A, then of B; their
// chunks of 16 bytes are exchanged so that ldmatrix has no bank conflicts. cp.async fills a stage
// `stages - 1` k-tiles ahead, into the one that all warps have read when a k-tile begins: one
// barrier a k-tile.
#pragma once
#include "device/cp_async.cuh"
#include "device/ldmatrix.cuh"
#include "product_plan.cuh"

constexpr int kChunks = kBlockK / 16, kWarpRows = 32, kWarpColumns = 64;

__device__ __forceinline__ void mma_s8(int (&d)[4], const uint32 (&a)[4], uint32 b0, uint32 b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ uint32 chunk_address(uint32 tile, int row, int chunk) {
    return tile + row * kBlockK + (chunk ^ row % kChunks) * 16;
}

// Copies rows of a plane from byte `k` on; rows from `end` on become zeros.
template <int rows, int threads>
__device__ __forceinline__ void copy_rows(unsigned char* tile, const signed char* plane, int first,
                                          int end, int64 pitch, int k) {
#pragma unroll
    for (int i = 0; i < rows * kChunks / threads; ++i) {
        const int index = threadIdx.x + i * threads, row = index / kChunks, chunk = index % kChunks;
        const bool valid = first + row < end;
        cp_async<16>(tile + row * kBlockK + (chunk ^ row % kChunks) * 16,
                     plane + (valid ? first + row : 0) * pitch + k + chunk * 16, valid ? 16 : 0);
    }
}

// The MMAs of a k-tile of a warp: 32 rows from `row0` on by 64 columns from `column0` on.
__device__ __forceinline__ void multiply_k_tile(int (&accumulators)[2][kWarpColumns / 2],
                                                uint32 a_tile, uint32 b_tile, int row0,
                                                int column0, int lane) {
#pragma unroll
    for (int mma_index = 0; mma_index < kBlockK / 32; ++mma_index) {
        uint32 rows[2][4];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            load_matrices(rows[i], chunk_address(a_tile, row0 + 16 * i + lane % 16,
                                                 2 * mma_index + lane / 16));
        }
#pragma unroll
        for (int pair = 0; pair < kWarpColumns / 16; ++pair) {
            uint32 columns[4];
            load_matrices(columns,
                          chunk_address(b_tile, column0 + 16 * pair + lane % 8 + lane / 16 * 8,
                                        2 * mma_index + lane / 8 % 2));
#pragma unroll
            for (int i = 0; i < 2; ++i) {
#pragma unroll
                for (int j = 0; j < 2; ++j) {
                    mma_s8(reinterpret_cast<int(&)[4]>(accumulators[i][8 * pair + 4 * j]),
                           rows[i], columns[2 * j], columns[2 * j + 1]);
                }
            }
        }
    }
}

// The kernel: a CTA multiplies one tile of one plane through a ring of stages that cp.async fills,
// and reduces its accumulators to residues at the end.
template <ResiduePlan plan>
__device__ __forceinline__ void residue_product_mma(const ResidueArguments& args) {
    constexpr int kWarpsM = plan.block_m / kWarpRows, kWarpsN = plan.block_n / kWarpColumns;
    constexpr int kThreads = kWarp * kWarpsM * kWarpsN;
    extern __shared__ __align__(128) unsigned char stages[];
    const ResidueTile tile = residue_tile_at<plan>(args, blockIdx.x);
    const int64 pitch = int64(args.num_k_tiles) * kBlockK;
    const int first_k = tile.slice * args.k_tiles_per_slice * kBlockK;
    const int k_tiles = k_tiles_of(args, tile.slice);
    const signed char* a = args.a + first_k + a_plane_of(args, tile) * args.a_plane;
    const signed char* b = args.b + first_k + b_plane_of(args, tile) * args.b_plane;
    const auto copy_stage = [&](int k_tile) {
        if (k_tile < k_tiles) {
            unsigned char* stage = stages + k_tile % plan.stages * plan.stage_bytes();
            copy_rows<plan.block_m, kThreads>(stage, a, tile.m0, args.m, pitch, k_tile * kBlockK);
            copy_rows<plan.block_n, kThreads>(stage + plan.a_bytes(), b, tile.n0, args.n, pitch,
                                              k_tile * kBlockK);
        }
        cp_async_commit();
    };
    const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    const int row0 = warp % kWarpsM * kWarpRows, column0 = warp / kWarpsM * kWarpColumns;
    const ReduceModulus modulus = modulus_of(args.first_plane + tile.plane);
    int accumulators[2][kWarpColumns / 2];
#pragma unroll
    for (int i = 0; i < 2; ++i) set_bias(accumulators[i]);
#pragma unroll
    for (int i = 0; i < plan.stages - 1; ++i) copy_stage(i);
#pragma unroll 1
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
        cp_async_wait<plan.stages - 2>();
        __syncthreads();
        copy_stage(k_tile + plan.stages - 1);
        const uint32 a_tile =
            shared_address(stages + k_tile % plan.stages * plan.stage_bytes());
        const uint32 b_tile = a_tile + plan.a_bytes();
        multiply_k_tile(accumulators, a_tile, b_tile, row0, column0, lane);
        if (k_tile % kReducedTiles == kReducedTiles - 1) {
#pragma unroll
            for (int i = 0; i < 2; ++i) reduce_accumulators(accumulators[i], modulus);
        }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        store_residues<plan.adds>(args, modulus, accumulators[i], tile, tile.m0 + row0 + 16 * i,
                                  tile.n0 + column0);
    }
}
