// The same for 7 qubits, with a role for each pair of warpgroups: two copy tiles and split them into
// planes, two multiply and write results, so that neither waits for the other's work.
#pragma once
#include "device/barrier.cuh"
#include "sm90_kernel.cuh"

template <Operand operand, int Terms, int Width, bool Inside, int Stages, int Buffers>
struct RolesGate : WgmmaGate<operand, Terms, Width, Inside, Stages> {
    using Base = WgmmaGate<operand, Terms, Width, Inside, Stages>;
    using typename Base::Mover;
    using Base::kPlanes;
    using Base::kRowTiles;
    using Base::kScaled;
    using Base::kTileBytes;
    static constexpr int kRole = Base::kThreads;
    static constexpr int kSharedBytes = Stages * kTileBytes + Buffers * static_cast<int>(kPlanes);
    static constexpr int kSplitRegisters = 64, kMultiplyRegisters = 192;
    static_assert(Width == 7, "the registers are those of two and two warpgroups");

    struct Shared {
        unsigned long long full[Buffers], empty[Buffers];
        uint32 largest[2][kRowTiles];
        int exponents[Buffers];
    };

    __device__ __forceinline__ static void split(const GateArguments& args, Shared& shared, uint32 ring,
                                                 uint32 first_planes) {
        Mover mover(args);
        mover.load_first(ring);
        uint32 own_plane = 0;
#pragma unroll
        for (int bit = 0; bit < Mover::kThreadBits; ++bit) {
            if (threadIdx.x >> bit & 1) own_plane += args.thread_plane[bit];
        }
        uint32 stage = ring, buffer = 0, phase = 1, parity = 0;
        for (uint32 tile = blockIdx.x; tile < args.tiles; tile += gridDim.x) {
            opaque(mover.mask);
            wait_copies<Stages - 1>();
            float4 x[8];
#pragma unroll
            for (int i = 0; i < 8; ++i) x[i] = load_shared_16(mover.chunk(stage, i));
            int exponent = 0;
            if constexpr (kScaled) {
                const uint32 found = largest_of_warp(x);
                if (threadIdx.x % kWarp == 0) shared.largest[parity][threadIdx.x / kWarp] = found;
                asm volatile("bar.sync 1, %0;" ::"n"(kRole) : "memory");
                exponent = scale_exponent(largest_of(shared.largest[parity]));
                parity ^= 1;
            }
            barrier_wait(shared_address(&shared.empty[buffer]), phase);
            Base::write_planes(args, first_planes + buffer * kPlanes + own_plane, x,
                               power_of_two(exponent));
            if (threadIdx.x == 0) shared.exponents[buffer] = exponent;
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            barrier_arrive(shared_address(&shared.full[buffer]));
            mover.load(tile + Stages * gridDim.x, stage);
            stage = next_stage<kTileBytes, Stages>(stage, ring);
            if (++buffer == Buffers) {
                buffer = 0;
                phase ^= 1;
            }
        }
    }

    __device__ __forceinline__ void multiply_tiles(const GateArguments& args, Shared& shared,
                                                   uint32 first_planes) {
        const uint32 thread = threadIdx.x - kRole, lane = thread % kWarp, row_tile = thread / kWarp;
        this->load(args, lane, row_tile);
        char* target = args.state + combine_offsets<Mover::kThreadBits>(args.result_offset, thread);
        uint32 buffer = 0, phase = 0;
        for (uint32 tile = blockIdx.x; tile < args.tiles; tile += gridDim.x) {
            barrier_wait(shared_address(&shared.full[buffer]), phase);
            const int exponent = shared.exponents[buffer];
            float re[16], im[16];
            settle(re);
            settle(im);
            wgmma_fence();
            this->multiply(first_planes + buffer * kPlanes, re, im);
            wgmma_commit();
            wgmma_wait<0>();
            settle(re);
            settle(im);
            if (lane == 0) barrier_arrive(shared_address(&shared.empty[buffer]));
            const int power = kScaled ? -exponent - exponent_of_matrix(args) : 0;
            char* place = target + tile_offset(args, tile);
            each_result<Inside, 4>(re, im, half_powers(power), [&](int number, float4 chunk) {
                put_chunk(args, place + combine_offsets<3>(args.register_offset, number), chunk);
            });
            if (++buffer == Buffers) {
                buffer = 0;
                phase ^= 1;
            }
        }
    }

    __device__ __forceinline__ void run(const GateArguments& args) {
        extern __shared__ __align__(1024) unsigned char memory[];
        __shared__ Shared shared;
        const uint32 ring = shared_address(memory), first_planes = ring + Stages * kTileBytes;
        if (threadIdx.x == 0) {
            for (int i = 0; i < Buffers; ++i) {
                barrier_init(shared_address(&shared.full[i]), kRole);
                barrier_init(shared_address(&shared.empty[i]), kRowTiles);
            }
            barrier_init_fence();
        }
        __syncthreads();
        if (threadIdx.x < kRole) {
            release_registers<kSplitRegisters>();
            split(args, shared, ring, first_planes);
        } else {
            claim_registers<kMultiplyRegisters>();
            multiply_tiles(args, shared, first_planes);
        }
    }
};
