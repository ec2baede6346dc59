// The residues of split-K slices, added modulo p into those of the first slice.
#pragma once
#include "product_plan.cuh"

struct SliceArguments {
    signed char* residues;  // (split_k_slices, planes of all products, plane_bytes)
    int64 slice_bytes, plane_bytes;
    int split_k_slices, planes;  // planes of one product
};

// A thread adds 16 residues of each slice.
__device__ __forceinline__ void add_slices(const SliceArguments& args) {
    const int64 at = (int64(blockIdx.x) * blockDim.x + threadIdx.x) * 16;
    if (at >= args.slice_bytes) return;
    const ReduceModulus& modulus = modulus_of(int(at / args.plane_bytes % args.planes));
    int sums[16];
    set_bias(sums);
#pragma unroll 4
    for (int slice = 0; slice < args.split_k_slices; ++slice) {
        const uint4 words =
            *reinterpret_cast<const uint4*>(args.residues + slice * args.slice_bytes + at);
        const uint32 four[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
        for (int i = 0; i < 16; ++i) sums[i] += int(four[i / 4] << 24 - i % 4 * 8) >> 24;
    }
    uint32 found[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        found[i] = pack_bytes(residue_of(uint32(sums[4 * i]), modulus),
                              residue_of(uint32(sums[4 * i + 1]), modulus),
                              residue_of(uint32(sums[4 * i + 2]), modulus),
                              residue_of(uint32(sums[4 * i + 3]), modulus));
    }
    *reinterpret_cast<uint4*>(args.residues + at) = {found[0], found[1], found[2], found[3]};
}
