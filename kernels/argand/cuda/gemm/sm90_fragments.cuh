// The row operand: from swizzled tiles of interleaved complex numbers to a tensor core's registers.
//
// A warp's 16 rows and one instruction's k can stand in any order in the fragment, as long as the
// column operand's k and the stored rows agree. The orders below make every read 8 or 16 bytes wide
// and, but where rows are ordered as they leave (neighbour_rows), free of bank conflicts. In a
// tile, line i (128 bytes) has its 16-byte chunks exchanged by XOR with i % 8; a line holds 16
// (fp32) or 32 (16 bits) complex numbers along the contiguous axis.
//
// k: tf32's slots t and t + 4 hold k = 2 t and 2 t + 1 (packing puts the column operand's k into
// the same order); the 16-bit formats keep the instruction's own order, 2 t, 2 t + 1, 2 t + 8, 2 t
// + 9.
#pragma once
#include "sm90_plan.cuh"

// The registers of one instruction's rows: by term, complex part, and the instruction's four slots.
template <WgmmaPlan plan>
struct XFragment {
    uint32 re[plan.register_terms()][4];
    uint32 im[plan.register_terms()][4];
};

// Which of a warp's 16 rows a lane's fragment row is (half 0 or 1: the lane's first or second).
template <WgmmaPlan plan>
__device__ __forceinline__ int fragment_row(int lane, int half) {
    const int group = lane / 4;
    if constexpr (plan.adjacent_rows()) {
        return 2 * group + half;
    } else if constexpr (plan.storage == Storage::planar) {
        return group + 8 * half;  // as tensor cores read them from shared memory
    } else if constexpr (plan.storage == Storage::half) {
        return 2 * (group & 3) + group / 4 + 8 * half;
    } else {
        return group / 2 + 4 * (group & 1) + 8 * half;
    }
}

// The part of every address that does not change: for each half (k_fast), for each of two
// neighbouring k, or, planar, this lane's line of the four 8 x 16-byte matrices that ldmatrix
// reads.
template <WgmmaPlan plan>
struct XTileReader {
    uint32 at[2];

    __device__ __forceinline__ XTileReader(int warpgroup, int warp, int lane) {
        const int t = lane % 4, row0 = warpgroup * kWgmmaM + warp * 16;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            if constexpr (plan.storage == Storage::planar) {
                // Line 4 r + 8 h of the matrices is the fragment's row r, half h.
                const int row = row0 + fragment_row<plan>(lane % 8 * 4, lane / 8 % 2);
                // The swizzle exchanges chunks by the line's number in 128-byte units.
                const int turn =
                    row * plan.box_row_bytes() / kSwizzleBytes % (plan.box_row_bytes() / 16);
                at[i] = row * plan.box_row_bytes() + ((lane / 16 ^ turn) << 4);
            } else if constexpr (plan.x_k_major) {
                const int row = row0 + fragment_row<plan>(lane, i);
                const int chunk = plan.storage == Storage::half ? t / 2 : t;
                at[i] = row * kSwizzleBytes + ((chunk ^ (row & 7)) << 4);
                if constexpr (plan.storage == Storage::half) at[i] += 8 * (t & 1);
            } else {
                const int row = row0 + 2 * (lane / 4);
                const int line = row / plan.x_swizzle_elements() * plan.block_k + 2 * t + i;
                const int byte = row % plan.x_swizzle_elements() * plan.x_element_bytes();
                at[i] = line * kSwizzleBytes + ((byte >> 4 ^ (2 * t + i)) << 4) + byte % 16;
            }
        }
    }
};

__device__ __forceinline__ float4 load_x_16(uint32 address) {
    float4 x;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                 : "r"(address));
    return x;
}

__device__ __forceinline__ uint2 load_x_8(uint32 address) {
    uint2 x;
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(x.x), "=r"(x.y) : "r"(address));
    return x;
}

__device__ __forceinline__ void ldmatrix_x4(uint32 (&x)[4], uint32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(address)
                 : "memory");
}

// Reads what a lane needs for one instruction: `count` complex numbers of each half, by k.
template <WgmmaPlan plan>
struct XElements {
    static constexpr int kCount = plan.operand == Operand::tf32 ? 2 : 4;
    static constexpr bool kHalf = plan.storage == Storage::half;
    float2 x[kHalf ? 1 : 2][kHalf ? 1 : kCount];
    uint32 halves[kHalf ? 2 : 1][kHalf ? kCount : 1];

    // `tile` is the stage's row operand, k the first of this instruction within the stage.
    __device__ __forceinline__ void load(const XTileReader<plan>& reader, uint32 tile, int k) {
        if constexpr (plan.x_k_major) {
            const uint32 swizzle_block =
                k / plan.x_swizzle_elements() * plan.block_m() * kSwizzleBytes;
            const int chunk = k % plan.x_swizzle_elements() * plan.x_element_bytes() >> 4;
#pragma unroll
            for (int half = 0; half < 2; ++half)
#pragma unroll
                for (int j = 0; j < kCount / 2; ++j) {
                    if constexpr (kHalf) {
                        const uint2 v = load_x_8(tile + swizzle_block +
                                                 (reader.at[half] ^ (chunk + 2 * j) << 4));
                        halves[half][2 * j] = v.x;
                        halves[half][2 * j + 1] = v.y;
                    } else {
                        const float4 v = load_x_16(tile + swizzle_block +
                                                   (reader.at[half] ^ (chunk + 4 * j) << 4));
                        x[half][2 * j] = {v.x, v.y};
                        x[half][2 * j + 1] = {v.z, v.w};
                    }
                }
        } else {
#pragma unroll
            for (int j = 0; j < kCount; ++j) {
                const uint32 from = tile + reader.at[j % 2] + (k + 8 * (j / 2)) * kSwizzleBytes;
                if constexpr (kHalf) {
                    const uint2 v = load_x_8(from);
                    halves[0][j] = v.x;
                    halves[1][j] = v.y;
                } else {
                    const float4 v = load_x_16(from);
                    x[0][j] = {v.x, v.y};
                    x[1][j] = {v.z, v.w};
                }
            }
        }
    }
};

// Rounds and splits. Slot h + 2 j of a fragment is the lane's half h, its j-th k.
template <WgmmaPlan plan>
__device__ __forceinline__ void convert_fragment(const XElements<plan>& raw,
                                                 XFragment<plan>& fragment) {
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            uint32 re[plan.terms], im[plan.terms];
            if constexpr (plan.storage == Storage::half) {
                const uint32 first = raw.halves[half][2 * j], second = raw.halves[half][2 * j + 1];
                re[0] = __byte_perm(first, second, 0x5410);
                im[0] = __byte_perm(first, second, 0x7632);
            } else if constexpr (plan.operand == Operand::tf32) {
                split_to_tf32<plan.terms, plan.roundings[0], plan.roundings[1]>(raw.x[half][j].x,
                                                                                re);
                split_to_tf32<plan.terms, plan.roundings[0], plan.roundings[1]>(raw.x[half][j].y,
                                                                                im);
            } else {
                const float2 first = raw.x[half][2 * j], second = raw.x[half][2 * j + 1];
                split_to_half<plan.operand>(first.x, second.x, re);
                split_to_half<plan.operand>(first.y, second.y, im);
            }
#pragma unroll
            for (int term = 0; term < plan.terms; ++term) {
                fragment.re[term][half + 2 * j] = re[term];
                fragment.im[term][half + 2 * j] = im[term];
            }
        }
}

// The fragment of one instruction, k (within the stage) being its first.
template <WgmmaPlan plan>
__device__ __forceinline__ void load_fragment(const XTileReader<plan>& reader, uint32 tile, int k,
                                              XFragment<plan>& fragment) {
    if constexpr (plan.storage == Storage::planar) {
#pragma unroll
        for (int term = 0; term < plan.register_terms(); ++term) {
            const int mma = k / plan.mma_k(), box = mma / plan.mmas_per_box();
            const int inside =
                mma % plan.mmas_per_box() * plan.mma_k_bytes() + term * plan.term_bytes();
            const uint32 at =
                tile + box * plan.planes() * plan.x_plane_bytes() + (reader.at[0] ^ inside);
            ldmatrix_x4(fragment.re[term], at);
            ldmatrix_x4(fragment.im[term], at + plan.x_plane_bytes());
        }
    } else {
        XElements<plan> raw;
        raw.load(reader, tile, k);
        convert_fragment<plan>(raw, fragment);
    }
}
