// The wgmma gate of sm90_kernel.cuh on 7 qubits, warp-specialized: two producer warpgroups copy
// tiles and split them into operand planes, two consumer warpgroups multiply and store results.
// mbarriers of a ring of plane buffers pass tiles from producers to consumers, so that neither
// waits for the other's work. The consumers multiply in turn: one stores results meanwhile.
#pragma once
#include "sm90_kernel.cuh"

// Template parameters are those of `WgmmaGate`, and `Buffers`: buffers of planes in the ring.
template <Operand operand, int Terms, Rounding first, Rounding second, int Width,
          bool TargetsQubit0, int Stages, int Buffers>
struct WarpSpecializedGate
    : WgmmaGate<operand, Terms, first, second, Width, TargetsQubit0, Stages> {
    using Base = WgmmaGate<operand, Terms, first, second, Width, TargetsQubit0, Stages>;
    using Base::kBufferBytes;
    using Base::kMatrixBytes;
    using Base::kRowTiles;
    using Base::kScaled;
    using Base::kTileBytes;
    using typename Base::Pipeline;
    static constexpr int kRoleThreads = Base::kThreads;
    static constexpr int kProducerRegisters = 64, kConsumerRegisters = 192;
    static_assert(Width == 7, "the registers are those of two and two warpgroups");

    struct SharedStorage {
        unsigned long long full[Buffers], empty[Buffers];
        unsigned long long matrix_full[2], matrix_empty[2];  // the rows of each consumer warpgroup
        uint32 warp_maxima[2][kRowTiles];
        int exponents[Buffers];
    };

    // Two producer warpgroups: copy tiles, split them into planes and pass the planes on.
    __device__ __forceinline__ static void produce(const GateArguments& args,
                                                   SharedStorage& storage, uint32 ring,
                                                   uint32 first_planes) {
        Pipeline pipeline(args);
        pipeline.load_prologue(ring);
        // Buffers are empty at first, so the first wait for each passes.
        uint32 stage = ring, buffer = 0, phase = 1, absmax_buffer = 0;
        for (uint32 tile = blockIdx.x; tile < args.tiles; tile += gridDim.x) {
            pipeline.mask = opaque(pipeline.mask);
            cp_async_wait<Stages - 1>();
            float4 x[8];
#pragma unroll
            for (int i = 0; i < 8; ++i) x[i] = load_shared_16(pipeline.chunk(stage, i));
            int exponent = 0;
            if constexpr (kScaled) {
                const uint32 absmax = warp_absmax(x);
                if (threadIdx.x % kWarp == 0)
                    storage.warp_maxima[absmax_buffer][threadIdx.x / kWarp] = absmax;
                asm volatile("bar.sync 3, %0;" ::"n"(kRoleThreads) : "memory");
                exponent =
                    scale_exponent<operand>(block_absmax(storage.warp_maxima[absmax_buffer]));
                absmax_buffer ^= 1;
            }
            // Planes lie over the matrix.
            mbarrier_wait(shared_address(&storage.matrix_empty[0]), 0);
            if ((buffer + 1) * kBufferBytes > kMatrixBytes / 2)
                mbarrier_wait(shared_address(&storage.matrix_empty[1]), 0);
            mbarrier_wait(shared_address(&storage.empty[buffer]), phase);
            // The compiler takes the sum of the thread's offsets out of the loop. Written ahead of
            // it, one register more is spilled at 3xfp16.
            const uint32 planes =
                first_planes + buffer * kBufferBytes + Base::thread_plane_offset(args);
            Base::store_planes(args, planes, x, power_of_two(exponent));
            if (threadIdx.x == 0) storage.exponents[buffer] = exponent;
            fence_proxy_async_shared();
            mbarrier_arrive(shared_address(&storage.full[buffer]));
            pipeline.load(stage);
            stage = next_stage<kTileBytes, Stages>(stage, ring);
            if (++buffer == Buffers) {
                buffer = 0;
                phase ^= 1;
            }
        }
    }

    // A consumer warpgroup: issues the MMAs of its rows of every tile, in turn with the other one,
    // and stores its results.
    __device__ __forceinline__ void consume(const GateArguments& args, SharedStorage& storage,
                                            uint32 first_planes) {
        const uint32 thread = threadIdx.x - kRoleThreads, lane = thread % kWarp,
                     row_tile = thread / kWarp;
        const int warpgroup = warpgroup_role() - kRoleThreads / kWarpgroupThreads;
        if (thread == 0)
            Base::template fetch_matrix<2>(args, first_planes,
                                           shared_address(&storage.matrix_full[0]));
        mbarrier_wait(shared_address(&storage.matrix_full[warpgroup]), 0);
        this->load_fragments(first_planes, lane, row_tile);
        // Each thread arrives for itself, here and below: racecheck sees no order between the lanes
        // of a warp and an arrival that one of them makes for all.
        mbarrier_arrive(shared_address(&storage.matrix_empty[warpgroup]));
        if (warpgroup == 1 && blockIdx.x < args.tiles) ping_pong_arrive(warpgroup);
        char* const results =
            args.state + (args.control_offset |
                          or_offsets<Pipeline::kThreadBits>(args.result_offset, thread));
        TileWalk walk(args);
        uint32 buffer = 0, phase = 0;
        for (uint32 tile = blockIdx.x; tile < args.tiles; tile += gridDim.x) {
            mbarrier_wait(shared_address(&storage.full[buffer]), phase);
            ping_pong_wait(warpgroup);
            const int exponent = storage.exponents[buffer];
            float re[16], im[16];
            wgmma_fence_operand(re);
            wgmma_fence_operand(im);
            wgmma_fence();
            this->mainloop(first_planes + buffer * kBufferBytes, re, im);
            wgmma_commit();
            if (warpgroup == 0 || tile + gridDim.x < args.tiles) ping_pong_arrive(warpgroup);
            wgmma_wait<0>();
            wgmma_fence_operand(re);
            wgmma_fence_operand(im);
            mbarrier_arrive(shared_address(&storage.empty[buffer]));
            const int power = kScaled ? -exponent - matrix_exponent_of(args) : 0;
            char* tile_results = results + walk.offset();
            walk.next(args);
            for_each_result_chunk<TargetsQubit0, 4>(
                re, im, split_power_of_two(power), [&](int number, float4 chunk) {
                    store_chunk(args, tile_results + or_offsets<3>(args.register_offset, number),
                                chunk);
                });
            if (++buffer == Buffers) {
                buffer = 0;
                phase ^= 1;
            }
        }
    }

    // The kernel: initialises mbarriers and gives each warpgroup its role.
    __device__ __forceinline__ void run(const GateArguments& args) {
        extern __shared__ __align__(1024) unsigned char memory[];
        __shared__ SharedStorage storage;
        const uint32 ring = shared_address(memory), first_planes = ring + Stages * kTileBytes;
        if (threadIdx.x == 0) {
            for (int i = 0; i < Buffers; ++i) {
                mbarrier_init(shared_address(&storage.full[i]), kRoleThreads);
                mbarrier_init(shared_address(&storage.empty[i]), kRoleThreads);
            }
            for (int i = 0; i < 2; ++i) {
                mbarrier_init(shared_address(&storage.matrix_full[i]), 1);
                mbarrier_init(shared_address(&storage.matrix_empty[i]), kWarpgroupThreads);
            }
            mbarrier_init_fence();
        }
        __syncthreads();
        if (threadIdx.x < kRoleThreads) {
            warpgroup_reg_dealloc<kProducerRegisters>();
            produce(args, storage, ring, first_planes);
        } else {
            warpgroup_reg_alloc<kConsumerRegisters>();
            consume(args, storage, first_planes);
        }
    }
};
