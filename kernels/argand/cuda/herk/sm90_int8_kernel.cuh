// Hermitian products of complex integers of 8 bits on Hopper's tensor cores (sm_90a), exact in s32:
// V = X X^H from planes of real and imaginary parts (planes.cuh).
//
// re = xr yr + xi yi is one accumulator; im = xi yr - xr yi are two, subtracted in the epilogue,
// because s8 MMAs have no flag of a minus and -128 has no negative in s8. Sums stay below 2^31 for
// k up to 65535.
//
// The kernel is persistent. A block takes tiles of 128 x 128 of the lower triangle; each of its two
// consumer warpgroups computes 64 rows, the second after the first, from a ring of stages that one
// producer thread fills by TMA. The mainloops alternate (ping-pong), so the epilogue of one
// warpgroup overlaps the mainloop of the other. It stores a tile and, of a full result, the tile's
// conjugate transpose.
//
// `wgmma_s8(d, rows descriptor, columns descriptor)` is generated (runtime/compile/wgmma.py).
#pragma once
#include "device/complex.cuh"
#include "device/tma.cuh"
#include "device/warpgroup.cuh"
#include "gemm/triangle.cuh"

constexpr int kTile = 128, kHalf = 64, kBlockK = 128, kStages = 4;
constexpr int kConsumers = 2;
constexpr int kXPlaneBytes = kHalf * kBlockK, kYPlaneBytes = kTile * kBlockK;
constexpr int kStageBytes = 2 * (kXPlaneBytes + kYPlaneBytes);
constexpr uint32 kRasterGroupM = 16;  // tile rows that are rasterized together

// Strides count complex numbers. For a triangle `out_stride_n` and `c_stride_n` are the strides of
// its elements.
struct Int8Arguments {
    const void* c;  // null where beta is 0
    void* out;
    int64 c_stride_m, c_stride_n, c_stride_batch;
    int64 out_stride_m, out_stride_n, out_stride_batch;
    double alpha, beta;
    int n, num_k_tiles;
    uint32 tile_rows, tiles;
    int conjugate;  // the result is the conjugate: X^H X of columns
    int pairs;      // two neighbours of a row may be stored as one vector
};

struct Int8Tile {
    int batch, m0, n0;
};

__device__ __forceinline__ Int8Tile int8_tile_at(const Int8Arguments& args, uint32 index) {
    const uint32 triangle_tiles = args.tile_rows * (args.tile_rows + 1) / 2;
    const uint32 batch = index / triangle_tiles;
    const TriangleTile tile =
        triangle_tile_at(index - batch * triangle_tiles, args.tile_rows, kRasterGroupM);
    return {int(batch), int(tile.row) * kTile, int(tile.column) * kTile};
}

// The position of a producer or a consumer in the ring: planes of X and Y, then mbarriers.
struct Int8Ring {
    uint32 base;
    int stage = 0;
    uint32 parity;

    __device__ __forceinline__ Int8Ring(uint32 base, uint32 parity) : base(base), parity(parity) {}
    __device__ __forceinline__ uint32 x_tile() const { return base + stage * kStageBytes; }
    __device__ __forceinline__ uint32 y_tile() const { return x_tile() + 2 * kXPlaneBytes; }
    __device__ __forceinline__ uint32 full() const {
        return base + kStages * kStageBytes + 8 * stage;
    }
    __device__ __forceinline__ uint32 empty() const { return full() + 8 * kStages; }
    __device__ __forceinline__ void advance(int stages = 1) {
        stage += stages;
        parity ^= stage / kStages & 1;
        stage %= kStages;
    }
};

// The producer thread: fills the stages of both halves of each tile by TMA.
__device__ __forceinline__ void produce_int8(const TensorMap& x_map, const TensorMap& y_map,
                                             const Int8Arguments& args, uint32 base) {
    Int8Ring ring(base, 1);
    for (uint32 index = blockIdx.x; index < args.tiles; index += gridDim.x) {
        const Int8Tile tile = int8_tile_at(args, index);
#pragma unroll 1
        for (int m0 = tile.m0; m0 < min(tile.m0 + kTile, args.n); m0 += kHalf) {
#pragma unroll 1
            for (int k_tile = 0; k_tile < args.num_k_tiles; ++k_tile) {
                mbarrier_wait(ring.empty(), ring.parity);
                mbarrier_arrive_expect_tx(ring.full(), kStageBytes);
#pragma unroll
                for (int part = 0; part < 2; ++part) {
                    const int plane = 2 * tile.batch + part, k = k_tile * kBlockK;
                    tma_load(ring.x_tile() + part * kXPlaneBytes, x_map, ring.full(), k, m0, plane);
                    tma_load(ring.y_tile() + part * kYPlaneBytes, y_map, ring.full(), k, tile.n0,
                             plane);
                }
                ring.advance();
            }
        }
    }
}

// The accumulators of a consumer warpgroup, in named arrays, because registers cannot be indexed.
struct Int8Accumulators {
    int re[kTile / 2], xi_yr[kTile / 2], xr_yi[kTile / 2];

    template <typename Visit>
    __device__ __forceinline__ void each(const Visit& visit) {
        visit(re);
        visit(xi_yr);
        visit(xr_yi);
    }
};

// Computes the accumulators of 64 rows of a tile, releases its stages and, as soon as its MMAs are
// issued, signals the other warpgroup.
__device__ __forceinline__ void multiply_int8(Int8Accumulators& accumulators, Int8Ring& ring,
                                              int k_tiles, int lane, int half) {
    // Only the low word of a descriptor holds the address.
    constexpr uint64 kHigh = make_matrix_descriptor<kBlockK>(0) >> 32 << 32;
    accumulators.each([](auto& x) {
#pragma unroll
        for (int i = 0; i < kTile / 2; ++i) x[i] = 0;
    });
    // A warpgroup that waited for stages before its mainloop would see the parity of earlier ones.
    ping_pong_wait(half);
    uint32 previous = 0;  // the `empty` mbarrier of the last stage, whose MMAs still run
#pragma unroll 1
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
        mbarrier_wait(ring.full(), ring.parity);
        const uint32 x = uint32(make_matrix_descriptor<kBlockK>(ring.x_tile()));
        const uint32 y = uint32(make_matrix_descriptor<kBlockK>(ring.y_tile()));
        wgmma_fence();
#pragma unroll
        for (int mma_index = 0; mma_index < kBlockK / 32; ++mma_index) {
            const uint64 xr = kHigh | x + 2 * mma_index, yr = kHigh | y + 2 * mma_index;
            const uint64 xi = kHigh | x + 2 * mma_index + (kXPlaneBytes >> 4);
            const uint64 yi = kHigh | y + 2 * mma_index + (kYPlaneBytes >> 4);
            wgmma_s8(accumulators.re, xr, yr);
            wgmma_s8(accumulators.xi_yr, xi, yr);
            wgmma_s8(accumulators.xr_yi, xr, yi);
            wgmma_s8(accumulators.re, xi, yi);
        }
        wgmma_commit();
        wgmma_wait<1>();
        if (k_tile > 0 && lane == 0) mbarrier_arrive(previous);
        previous = ring.empty();
        ring.advance();
    }
    ping_pong_arrive(half);
    wgmma_wait<0>();
    if (lane == 0) mbarrier_arrive(previous);
    accumulators.each([](auto& x) { wgmma_fence_operand(x); });
}

// Stores the 16 rows of a warp, and with `full` what mirrors them. In each eight columns a lane
// holds columns 2 (lane % 4) and the next, in rows lane / 4 and lane / 4 + 8.
template <typename Real, bool full>
__device__ __forceinline__ void store_int8(const Int8Arguments& args,
                                           const Int8Accumulators& accumulators, int batch,
                                           int row0, int column0, int lane) {
    using Number = Complex<Real>;
    Number* out = static_cast<Number*>(args.out) + batch * args.out_stride_batch;
    const Number* c = static_cast<const Number*>(args.c) + batch * args.c_stride_batch;
    const Real alpha = Real(args.alpha), beta = Real(args.beta);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int row = row0 + lane / 4 + 8 * h;
        if (row >= args.n) continue;
        const int64 first = int64(row) * (row + 1) / 2;  // of a triangle's row
        const int64 out_row = full ? row * args.out_stride_m : first * args.out_stride_n;
        const int64 c_row = full ? row * args.c_stride_m : first * args.c_stride_n;
#pragma unroll
        for (int j = 0; j < kTile / 8; ++j) {
            const int column = column0 + 8 * j + 2 * (lane % 4);
            if (column > row) continue;
            const bool second = column < row;
            Number z[2];
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const int i = 4 * j + 2 * h + e;
                const int im = accumulators.xi_yr[i] - accumulators.xr_yi[i];
                z[e] = {Real(accumulators.re[i]) * alpha, Real(args.conjugate ? -im : im) * alpha};
                if (args.c && column + e <= row) {
                    const Number addend = c[c_row + (column + e) * args.c_stride_n];
                    z[e].x += beta * addend.x;
                    if (column + e < row) z[e].y += beta * addend.y;
                }
            }
            Number* at = out + out_row + column * args.out_stride_n;
            if (sizeof(Real) == 4 && full && args.pairs && second) {
                *reinterpret_cast<float4*>(at) = {float(z[0].x), float(z[0].y), float(z[1].x),
                                                  float(z[1].y)};
            } else {
                at[0] = z[0];
                if (second) at[args.out_stride_n] = z[1];
            }
            if constexpr (full) {
                Number* mirrored = out + column * args.out_stride_m + row * args.out_stride_n;
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    if (column + e < row)
                        mirrored[e * args.out_stride_m] = {z[e].x, -z[e].y};
                }
            }
        }
    }
}

// A consumer warpgroup: computes 64 rows of each tile, in turn with the other one, so that one
// multiplies while the other stores.
template <typename Real, bool full>
__device__ __forceinline__ void consume_int8(const Int8Arguments& args, uint32 base, int half) {
    const int warp = threadIdx.x / kWarp % 4, lane = threadIdx.x % kWarp;
    Int8Ring ring(base, 0);
    Int8Accumulators accumulators;
    if (half == 1) ping_pong_arrive(1);  // the first half begins
    for (uint32 index = blockIdx.x; index < args.tiles; index += gridDim.x) {
        const Int8Tile tile = int8_tile_at(args, index);
        const bool two = tile.m0 + kHalf < args.n;  // else there are no rows of the second half
        if (half == 1) {
            ring.advance(args.num_k_tiles);  // stages of the first half
            if (!two) {
                ping_pong_wait(1);
                ping_pong_arrive(1);
                continue;
            }
        }
        multiply_int8(accumulators, ring, args.num_k_tiles, lane, half);
        store_int8<Real, full>(args, accumulators, tile.batch, tile.m0 + half * kHalf + warp * 16,
                               tile.n0, lane);
        if (half == 0 && two) ring.advance(args.num_k_tiles);
    }
}

// The kernel: initialises mbarriers and gives each warpgroup its role.
template <typename Real, bool full>
__device__ __forceinline__ void herk_int8(const TensorMap& x_map, const TensorMap& y_map,
                                          const Int8Arguments& args) {
    extern __shared__ unsigned char memory[];
    const uint32 base = swizzle_start(memory);
    if (threadIdx.x == 0) {
        Int8Ring ring(base, 0);
        for (int i = 0; i < kStages; ++i) {
            mbarrier_init(ring.full(), 1);
            mbarrier_init(ring.empty(), 4);  // one arrival a warp of one warpgroup
            ring.advance();
        }
        mbarrier_init_fence();
        prefetch_tensor_map(x_map);
        prefetch_tensor_map(y_map);
    }
    __syncthreads();
    const int role = warpgroup_role();
    if (role == kConsumers) {
        warpgroup_reg_dealloc<24>();
        if (threadIdx.x % kWarpgroupThreads == 0) produce_int8(x_map, y_map, args, base);
    } else {
        warpgroup_reg_alloc<240>();
        consume_int8<Real, full>(args, base, role);
    }
}
