// Products of residues on Hopper's tensor cores (sm_90a): s8 wgmma, a persistent grid over the
// tiles of all planes. One producer thread fills a ring of stages by TMA; two consumer warpgroups
// multiply, each warpgroup_rows of a tile, and reduce accumulators to residues in the epilogue.
//
// `wgmma_s8(d, rows descriptor, columns descriptor)` is generated (runtime/compile/wgmma.py).
#pragma once
#include "device/shared.cuh"
#include "device/tma.cuh"
#include "device/warpgroup.cuh"
#include "product_plan.cuh"

constexpr int kConsumers = 2;

// A tile and its k-tiles, as the producer hands them to the consumers with the tile's first stage:
// the divisions that find them would delay the consumers.
struct alignas(16) TileSlot {
    ResidueTile tile;
    int k_tiles;
};

// The position of a producer or a consumer in the ring: tiles of A and B, mbarriers, tile slots.
template <ResiduePlan plan>
struct StageRing {
    uint32 base;
    int stage = 0;
    uint32 parity;

    __device__ __forceinline__ StageRing(uint32 base, uint32 parity) : base(base), parity(parity) {}
    __device__ __forceinline__ uint32 a_tile() const { return base + stage * plan.stage_bytes(); }
    __device__ __forceinline__ uint32 b_tile() const { return a_tile() + plan.a_bytes(); }
    __device__ __forceinline__ uint32 full() const {
        return base + plan.stages * plan.stage_bytes() + 8 * stage;
    }
    __device__ __forceinline__ uint32 empty() const { return full() + 8 * plan.stages; }
    __device__ __forceinline__ uint32 tile_slot() const {
        return base + plan.stages * (plan.stage_bytes() + 16) + stage * int(sizeof(TileSlot));
    }
    __device__ __forceinline__ void advance() {
        if (++stage == plan.stages) {
            stage = 0;
            parity ^= 1;
        }
    }
};

__device__ __forceinline__ void store_slot(uint32 address, const TileSlot& x) {
    store_shared_16(address, x.tile.batch, x.tile.plane, x.tile.slice, x.tile.m0);
    asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(address + 16), "r"(x.tile.n0),
                 "r"(x.k_tiles)
                 : "memory");
}

// The slot as the warp's first lane reads it, which is the lane that releases the stage.
__device__ __forceinline__ TileSlot load_slot(uint32 address, int lane) {
    TileSlot x{};
    if (lane == 0) {
        asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x.tile.batch), "=r"(x.tile.plane), "=r"(x.tile.slice), "=r"(x.tile.m0)
                     : "r"(address)
                     : "memory");
        asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];"
                     : "=r"(x.tile.n0), "=r"(x.k_tiles)
                     : "r"(address + 16)
                     : "memory");
    }
    const auto first = [](int value) { return __shfl_sync(0xffffffffu, value, 0); };
    return {{first(x.tile.batch), first(x.tile.plane), first(x.tile.slice), first(x.tile.m0),
             first(x.tile.n0)},
            first(x.k_tiles)};
}

// The producer thread: fills the stages of the tiles of its CTA by TMA, one tile after another.
template <ResiduePlan plan>
__device__ __forceinline__ void produce_stages(const TensorMap& a_map, const TensorMap& b_map,
                                               const ResidueArguments& args, uint32 base) {
    StageRing<plan> ring(base, 1);
    for (uint32 index = blockIdx.x; index < args.tiles; index += gridDim.x) {
        const ResidueTile tile = residue_tile_at<plan>(args, index);
        const int a_plane = int(a_plane_of(args, tile)), b_plane = int(b_plane_of(args, tile));
        const int first = tile.slice * args.k_tiles_per_slice;
        const int k_tiles = k_tiles_of(args, tile.slice), end = first + k_tiles;
        for (int k_tile = first; k_tile < end; ++k_tile) {
            mbarrier_wait(ring.empty(), ring.parity);
            if (k_tile == first) store_slot(ring.tile_slot(), {tile, k_tiles});
            mbarrier_arrive_expect_tx(ring.full(), plan.stage_bytes());
            tma_load(ring.a_tile(), a_map, ring.full(), k_tile * kBlockK, tile.m0, a_plane);
            tma_load(ring.b_tile(), b_map, ring.full(), k_tile * kBlockK, tile.n0, b_plane);
            ring.advance();
        }
    }
}

// The accumulators of a consumer warpgroup: slabs of 64 rows, in named arrays, because registers
// cannot be indexed.
template <ResiduePlan plan>
struct Slabs {
    static constexpr bool kTwo = plan.warpgroup_rows == 128;
    int first[plan.block_n / 2], second[kTwo ? plan.block_n / 2 : 1];

    template <typename Visit>
    __device__ __forceinline__ void each(const Visit& visit) {
        visit(first, 0);
        if constexpr (kTwo) visit(second, 1);
    }
};

// Issues the MMAs of a k-tile by the low words of the matrix descriptors of its A and B, which
// alone hold addresses.
template <ResiduePlan plan>
__device__ __forceinline__ void multiply_k_tile(Slabs<plan>& accumulators, uint32 a, uint32 b) {
    constexpr uint64 kHigh = make_matrix_descriptor<kBlockK>(0) >> 32 << 32;
    wgmma_fence();
#pragma unroll
    for (int mma_index = 0; mma_index < kBlockK / 32; ++mma_index) {
        accumulators.each([&](auto& slab, int number) {
            wgmma_s8(slab, kHigh | a + 2 * mma_index + number * (64 * kBlockK >> 4),
                     kHigh | b + 2 * mma_index);
        });
    }
    wgmma_commit();
}

// Adds the products of `k_tiles` k-tiles to the accumulators of a consumer warpgroup, and releases
// their stages.
template <ResiduePlan plan>
__device__ __forceinline__ void add_products(Slabs<plan>& accumulators, StageRing<plan>& ring,
                                             int k_tiles, int consumer, int lane) {
    uint32 previous = 0;  // the `empty` mbarrier of the last stage, whose MMAs still run
#pragma unroll 1
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
        mbarrier_wait(ring.full(), ring.parity);
        const uint32 a = uint32(make_matrix_descriptor<kBlockK>(
            ring.a_tile() + consumer * plan.warpgroup_rows * kBlockK));
        const uint32 b = uint32(make_matrix_descriptor<kBlockK>(ring.b_tile()));
        multiply_k_tile<plan>(accumulators, a, b);
        wgmma_wait<1>();
        if (k_tile > 0 && lane == 0) mbarrier_arrive(previous);
        previous = ring.empty();
        ring.advance();
    }
    wgmma_wait<0>();
    if (lane == 0) mbarrier_arrive(previous);
    accumulators.each([](auto& slab, int) { wgmma_fence_operand(slab); });
}

// A consumer warpgroup: runs the mainloop of its rows of each tile, then the epilogue, which
// reduces and stores residues.
template <ResiduePlan plan>
__device__ __forceinline__ void consume_stages(const ResidueArguments& args, uint32 base,
                                               int consumer) {
    const int warp = threadIdx.x / kWarp % 4, lane = threadIdx.x % kWarp;
    Slabs<plan> accumulators;
    StageRing<plan> ring(base, 0);
    for (uint32 index = blockIdx.x; index < args.tiles; index += gridDim.x) {
        accumulators.each([](auto& slab, int) { set_bias(slab); });
        mbarrier_wait(ring.full(), ring.parity);
        const TileSlot slot = load_slot(ring.tile_slot(), lane);
        const ResidueTile& tile = slot.tile;
        const ReduceModulus modulus = modulus_of(args.first_plane + tile.plane);
        for (int rest = slot.k_tiles;;) {
            add_products<plan>(accumulators, ring, min(rest, kReducedTiles), consumer, lane);
            rest -= kReducedTiles;
            if (rest <= 0) break;
            accumulators.each([&](auto& slab, int) { reduce_accumulators(slab, modulus); });
        }
        const int row = tile.m0 + consumer * plan.warpgroup_rows + warp * 16;
        accumulators.each([&](auto& slab, int number) {
            store_residues<plan.adds>(args, modulus, slab, tile, row + 64 * number, tile.n0);
        });
    }
}

// The kernel: initialises mbarriers and gives each warpgroup its role.
template <ResiduePlan plan>
__device__ __forceinline__ void residue_product_wgmma(const TensorMap& a_map,
                                                      const TensorMap& b_map,
                                                      const ResidueArguments& args) {
    extern __shared__ unsigned char memory[];
    const uint32 base = swizzle_start(memory);
    if (threadIdx.x == 0) {
        StageRing<plan> ring(base, 0);
        for (int i = 0; i < plan.stages; ++i) {
            mbarrier_init(ring.full(), 1);
            mbarrier_init(ring.empty(), 4 * kConsumers);  // one arrival a warp
            ring.advance();
        }
        mbarrier_init_fence();
        prefetch_tensor_map(a_map);
        prefetch_tensor_map(b_map);
    }
    __syncthreads();
    const int role = warpgroup_role();
    if (role == kConsumers) {
        warpgroup_reg_dealloc<24>();
        if (threadIdx.x % kWarpgroupThreads == 0) produce_stages<plan>(a_map, b_map, args, base);
    } else {
        warpgroup_reg_alloc<240>();
        consume_stages<plan>(args, base, role);
    }
}
