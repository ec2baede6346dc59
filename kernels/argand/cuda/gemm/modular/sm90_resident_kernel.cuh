// Products of residues of short lines on Hopper (sm_90a): s8 wgmma, a persistent grid over stacks.
// A stack is stack_tiles tiles of one column; its columns of B stay in shared memory, whole along
// k, while rows of A stream through a ring of stages. So both consumer warpgroups take whole tiles,
// in turn: one reduces and stores its tile while the other one multiplies, and B is read once a
// stack.
#pragma once
#include "sm90_kernel.cuh"

// The tiles of a stack: rows first_row and on, one column.
struct Stack {
    ResidueTile first;
    int rows;
};

template <ResiduePlan plan>
__device__ __forceinline__ uint32 stacks_of_plane(const ResidueArguments& args) {
    return (args.tiles_m + plan.stack_tiles - 1) / plan.stack_tiles * args.tiles_n;
}

// Stack number `index`: plane after plane; neighbours share rows of A.
template <ResiduePlan plan>
__device__ __forceinline__ Stack stack_at(const ResidueArguments& args, uint32 index) {
    const uint32 plane_stacks = stacks_of_plane<plan>(args);
    const uint32 plane = index / plane_stacks, stack = index % plane_stacks;
    const uint32 row = stack / args.tiles_n * plan.stack_tiles, column = stack % args.tiles_n;
    return {{int(plane / args.planes), int(plane % args.planes), 0, int(row) * plan.block_m,
             int(column) * plan.block_n},
            int(min(args.tiles_m - row, uint32(plan.stack_tiles)))};
}

// The ring of stages of A, then the k-tiles of B, then the mbarriers of both.
template <ResiduePlan plan>
struct ResidentRing {
    uint32 base;
    int stage = 0;
    uint32 parity;

    __device__ __forceinline__ ResidentRing(uint32 base, uint32 parity)
        : base(base), parity(parity) {}
    __device__ __forceinline__ uint32 a_tile() const { return base + stage * plan.a_bytes(); }
    __device__ __forceinline__ uint32 b_tile(int k_tile) const {
        return base + plan.stages * plan.a_bytes() + k_tile * plan.b_bytes();
    }
    __device__ __forceinline__ uint32 full() const {
        return b_tile(plan.resident_tiles) + 8 * stage;
    }
    __device__ __forceinline__ uint32 empty() const { return full() + 8 * plan.stages; }
    __device__ __forceinline__ uint32 b_full(int k_tile) const {
        return b_tile(plan.resident_tiles) + 16 * plan.stages + 8 * k_tile;
    }
    __device__ __forceinline__ uint32 b_empty(int k_tile) const {
        return b_full(k_tile) + 8 * plan.resident_tiles;
    }
    __device__ __forceinline__ void advance(int by) {
        for (stage += by; stage >= plan.stages; stage -= plan.stages) parity ^= 1;
    }
};

// The producer thread: loads the tile of B of a stack once and streams the tiles of A through the
// ring.
template <ResiduePlan plan>
__device__ __forceinline__ void produce_stacks(const TensorMap& a_map, const TensorMap& b_map,
                                               const ResidueArguments& args, uint32 base,
                                               uint32 stacks) {
    ResidentRing<plan> ring(base, 1);
    uint32 b_parity = 1;
    for (uint32 index = blockIdx.x; index < stacks; index += gridDim.x) {
        const Stack stack = stack_at<plan>(args, index);
        const ResidueTile& tile = stack.first;
        const int a_plane = int(a_plane_of(args, tile)), b_plane = int(b_plane_of(args, tile));
        for (int row = 0; row < stack.rows; ++row) {
            for (int k_tile = 0; k_tile < args.num_k_tiles; ++k_tile) {
                if (row == 0) {
                    mbarrier_wait(ring.b_empty(k_tile), b_parity);
                    mbarrier_arrive_expect_tx(ring.b_full(k_tile), plan.b_bytes());
                    tma_load(ring.b_tile(k_tile), b_map, ring.b_full(k_tile), k_tile * kBlockK,
                             tile.n0, b_plane);
                }
                mbarrier_wait(ring.empty(), ring.parity);
                mbarrier_arrive_expect_tx(ring.full(), plan.a_bytes());
                tma_load(ring.a_tile(), a_map, ring.full(), k_tile * kBlockK,
                         tile.m0 + row * plan.block_m, a_plane);
                ring.advance(1);
            }
        }
        b_parity ^= 1;
    }
}

// Adds the products of a tile to the accumulators of a consumer warpgroup, releases stages of A,
// and with the consumer's last tile of a stack those of B. `turn` begins the other one's MMAs.
template <ResiduePlan plan, typename Turn>
__device__ __forceinline__ void add_resident_products(Slabs<plan>& accumulators,
                                                      ResidentRing<plan>& ring, int k_tiles,
                                                      uint32 b_parity, bool releases, int lane,
                                                      const Turn& turn) {
    uint32 previous = 0;  // the `empty` mbarrier of the last stage, whose MMAs still run
#pragma unroll 1
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
        mbarrier_wait(ring.b_full(k_tile), b_parity);
        mbarrier_wait(ring.full(), ring.parity);
        const uint32 a = uint32(make_matrix_descriptor<kBlockK>(ring.a_tile()));
        const uint32 b = uint32(make_matrix_descriptor<kBlockK>(ring.b_tile(k_tile)));
        multiply_k_tile<plan>(accumulators, a, b);
        if (k_tile + 1 == k_tiles) turn();
        wgmma_wait<1>();
        if (k_tile > 0 && lane == 0) {
            mbarrier_arrive(previous);
            if (releases) mbarrier_arrive(ring.b_empty(k_tile - 1));
        }
        previous = ring.empty();
        ring.advance(1);
    }
    wgmma_wait<0>();
    if (lane == 0) {
        mbarrier_arrive(previous);
        if (releases) mbarrier_arrive(ring.b_empty(k_tiles - 1));
    }
    accumulators.each([](auto& slab, int) { wgmma_fence_operand(slab); });
}

// A consumer warpgroup: computes every other tile of a stack, so that one multiplies while the
// other stores residues.
template <ResiduePlan plan>
__device__ __forceinline__ void consume_stacks(const ResidueArguments& args, uint32 base,
                                               uint32 stacks, int consumer) {
    const int warp = threadIdx.x / kWarp % 4, lane = threadIdx.x % kWarp;
    Slabs<plan> accumulators;
    ResidentRing<plan> ring(base, 0);
    uint32 b_parity = 0;
    bool first = true;  // whether no tile was multiplied yet
    int is_others = consumer;  // 1 where the next tile is the other consumer's
    for (uint32 index = blockIdx.x; index < stacks; index += gridDim.x) {
        const Stack stack = stack_at<plan>(args, index);
        const ReduceModulus modulus = modulus_of(args.first_plane + stack.first.plane);
        const bool last_stack = index + gridDim.x >= stacks;
        if (stack.rows == 1 && is_others) {
            // All tiles of B are released by both.
            for (int k_tile = 0; k_tile < args.num_k_tiles; ++k_tile) {
                mbarrier_wait(ring.b_full(k_tile), b_parity);
                if (lane == 0) mbarrier_arrive(ring.b_empty(k_tile));
            }
        }
        for (int row = 0; row < stack.rows; ++row, is_others ^= 1) {
            const bool begins = first;
            first = false;
            if (is_others) {
                ring.advance(args.num_k_tiles);
                continue;
            }
            accumulators.each([](auto& slab, int) { set_bias(slab); });
            if (!begins) ping_pong_wait(consumer);
            const bool ends = last_stack && row + 1 == stack.rows;
            add_resident_products<plan>(accumulators, ring, args.num_k_tiles, b_parity,
                                        row + 2 >= stack.rows, lane, [&] {
                                            if (!ends) ping_pong_arrive(consumer);
                                        });
            ResidueTile tile = stack.first;
            tile.m0 += row * plan.block_m;
            accumulators.each([&](auto& slab, int number) {
                store_residues<plan.adds>(args, modulus, slab, tile,
                                          tile.m0 + warp * 16 + 64 * number, tile.n0);
            });
        }
        b_parity ^= 1;
    }
}

// The kernel: initialises mbarriers and gives each warpgroup its role.
template <ResiduePlan plan>
__device__ __forceinline__ void residue_product_resident(const TensorMap& a_map,
                                                         const TensorMap& b_map,
                                                         const ResidueArguments& args) {
    extern __shared__ unsigned char memory[];
    const uint32 base = swizzle_start(memory);
    if (threadIdx.x == 0) {
        ResidentRing<plan> ring(base, 0);
        for (int i = 0; i < plan.stages; ++i) {
            mbarrier_init(ring.full(), 1);
            mbarrier_init(ring.empty(), 4);  // one arrival a warp of the tile's consumer
            ring.advance(1);
        }
        for (int k_tile = 0; k_tile < plan.resident_tiles; ++k_tile) {
            mbarrier_init(ring.b_full(k_tile), 1);
            mbarrier_init(ring.b_empty(k_tile), 4 * kConsumers);
        }
        mbarrier_init_fence();
        prefetch_tensor_map(a_map);
        prefetch_tensor_map(b_map);
    }
    __syncthreads();
    const uint32 plane_tiles = args.tiles_m * args.tiles_n;
    const uint32 stacks = args.tiles / plane_tiles * stacks_of_plane<plan>(args);
    const int role = warpgroup_role();
    if (role == kConsumers) {
        warpgroup_reg_dealloc<24>();
        if (threadIdx.x % kWarpgroupThreads == 0) {
            produce_stacks<plan>(a_map, b_map, args, base, stacks);
        }
    } else {
        warpgroup_reg_alloc<240>();
        consume_stacks<plan>(args, base, stacks, role);
    }
}
