// X fragments of the wgmma family: from swizzled tiles in shared memory to the registers of a
// tensor core. Interleaved elements are rounded and split here; planes arrive converted. The
// mainloops load a fragment for each MMA.
//
// The 16 rows of a warp and the k of an MMA may stand in any order in a fragment, as long as the k
// of Y and the rows that the epilogue stores follow the same order. The orders below make every
// shared-memory load 8 or 16 bytes wide and free of bank conflicts, except where rows are ordered
// for an m-major Z (`adjacent_rows`). In a tile, row i of 128 bytes has its 16-byte chunks
// exchanged by XOR with i % 8 (the TMA swizzle); a row holds 16 complex numbers (fp32) or 32 (16
// bits) along the contiguous axis.
//
// Order of k: slots t and t + 4 of tf32 hold k = 2 t and 2 t + 1, and packing puts the k of Y into
// the same order. The 16-bit formats keep the order of the instruction: k = 2 t, 2 t + 1, 2 t + 8
// and 2 t + 9 for slots 0 to 3 of thread t.
#pragma once
#include "device/ldmatrix.cuh"
#include "sm90_odd_pitch.cuh"

// A fragment of one MMA: by term, complex part, and the four registers that the instruction reads.
template <WgmmaPlan plan>
struct XFragment {
    uint32 re[plan.register_terms()][4];
    uint32 im[plan.register_terms()][4];
};

// Row h of the two in a lane's fragment, 0 or 1, as one of the 16 of a warp.
template <WgmmaPlan plan>
__device__ __forceinline__ int fragment_row(int lane, int h) {
    const int group = lane / 4;
    if constexpr (plan.rows_by_parity()) {
        return group / 2 * 2 + (group & 1) * 8 + h;
    } else if constexpr (plan.adjacent_rows()) {
        return 2 * group + h;
    } else if constexpr (plan.storage == Storage::planar) {
        return group + 8 * h;  // the order in which wgmma reads rows from shared memory
    } else if constexpr (plan.storage == Storage::half) {
        return 2 * (group & 3) + group / 4 + 8 * h;
    } else {
        return group / 2 + 4 * (group & 1) + 8 * h;
    }
}

// The lane with the same columns whose rows follow those of a lane with adjacent rows.
template <WgmmaPlan plan>
__device__ __forceinline__ int lane_of_next_rows(int lane) {
    if constexpr (!plan.rows_by_parity()) return (lane + 4) % kWarp;
    // Groups of four lanes have rows in the order 0, 2, 4, 6, 1, 3, 5, 7 (`fragment_row`).
    return (lane + (lane / 4 == 6 ? 12 : 8)) % kWarp;
}

// Addresses of a lane in an X tile, relative to the tile and to k = 0: k-major, one for each row;
// m-major, one for each of two neighbouring k; planar, the row of the four 8 x 16-byte matrices
// that this lane addresses for ldmatrix.
template <WgmmaPlan plan>
struct XTileReader {
    uint32 at[plan.odd_pitch ? 3 : 2];
    // Whether odd and even rows change places, in every second product of odd batches.
    bool exchanges_rows = false;

    __device__ __forceinline__ XTileReader(int warpgroup, int warp, int lane) {
        const int t = lane % 4, row0 = warpgroup * kWgmmaM + warp * 16;
        if constexpr (plan.odd_pitch) {
            const int first = row0 + fragment_row<plan>(lane, 0);
            set_addresses_by_parity<plan>(first, t, at);
            return;
        }
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            if constexpr (plan.storage == Storage::planar) {
                // Lane r + 8 h addresses row h of the fragments of lanes 4 r to 4 r + 3.
                const int row = row0 + fragment_row<plan>(lane % 8 * 4, lane / 8 % 2);
                // The swizzle exchanges 16-byte chunks by the number of the 128-byte row that holds
                // them.
                const int swizzle =
                    row * plan.box_row_bytes() / kSwizzleBytes % (plan.box_row_bytes() / 16);
                at[i] = row * plan.box_row_bytes() + ((lane / 16 ^ swizzle) << 4);
            } else if constexpr (plan.x_k_major) {
                const int row = row0 + fragment_row<plan>(lane, i);
                const int chunk = plan.storage == Storage::half ? t / 2 : t;
                at[i] = row * kSwizzleBytes + ((chunk ^ (row & 7)) << 4);
                if constexpr (plan.storage == Storage::half) at[i] += 8 * (t & 1);
            } else {
                const int row = row0 + 2 * (lane / 4);
                const int swizzle_row = row / plan.x_swizzle_elements() * plan.block_k + 2 * t + i;
                const int byte = row % plan.x_swizzle_elements() * plan.x_element_bytes();
                at[i] = swizzle_row * kSwizzleBytes + ((byte >> 4 ^ (2 * t + i)) << 4) + byte % 16;
            }
        }
    }
};

// The elements of a fragment before conversion: kCount complex numbers of each row, by k.
template <WgmmaPlan plan>
struct XElements {
    static constexpr int kCount = plan.mma_k() / 4;
    static_assert(kCount <= 4, "the k of an MMA must lie in one swizzled row");
    static constexpr bool kHalf = plan.storage == Storage::half;
    float2 x[kHalf ? 1 : 2][kHalf ? 1 : kCount];
    uint32 halves[kHalf ? 2 : 1][kHalf ? kCount : 1];

    // `tile` is the X tile of the stage; k, within the stage, is the first of the MMA.
    __device__ __forceinline__ void load(const XTileReader<plan>& reader, uint32 tile, int k) {
        if constexpr (plan.x_k_major) {
            const uint32 swizzle_block =
                k / plan.x_swizzle_elements() * plan.block_m() * kSwizzleBytes;
            const int chunk = k % plan.x_swizzle_elements() * plan.x_element_bytes() >> 4;
#pragma unroll
            for (int h = 0; h < 2; ++h)
#pragma unroll
                for (int j = 0; j < kCount / 2; ++j) {
                    if constexpr (kHalf) {
                        const float2 v = load_shared_8_unordered(
                            tile + swizzle_block + (reader.at[h] ^ (chunk + 2 * j) << 4));
                        halves[h][2 * j] = __float_as_uint(v.x);
                        halves[h][2 * j + 1] = __float_as_uint(v.y);
                    } else {
                        const float4 v = load_shared_16_unordered(
                            tile + swizzle_block + (reader.at[h] ^ (chunk + 4 * j) << 4));
                        x[h][2 * j] = {v.x, v.y};
                        x[h][2 * j + 1] = {v.z, v.w};
                    }
                }
        } else {
#pragma unroll
            for (int j = 0; j < kCount; ++j) {
                const uint32 from = tile + reader.at[j % 2] + (k + 8 * (j / 2)) * kSwizzleBytes;
                if constexpr (kHalf) {
                    const float2 v = load_shared_8_unordered(from);
                    halves[0][j] = __float_as_uint(v.x);
                    halves[1][j] = __float_as_uint(v.y);
                } else {
                    const float4 v = load_shared_16_unordered(from);
                    x[0][j] = {v.x, v.y};
                    x[1][j] = {v.z, v.w};
                }
            }
        }
    }
};

// Rounds and splits elements. Register h + 2 j of a fragment is row h, its j-th k.
template <WgmmaPlan plan>
__device__ __forceinline__ void convert_fragment(const XElements<plan>& raw,
                                                 XFragment<plan>& fragment) {
    constexpr bool kByProducts =
        splits_by_products(plan.operand, plan.terms, plan.roundings[0], plan.roundings[1]) &&
        plan.roundings[1] == Rounding::toward_zero;
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            uint32 re[plan.terms], im[plan.terms];
            if constexpr (plan.storage == Storage::half) {
                const uint32 first = raw.halves[h][2 * j], second = raw.halves[h][2 * j + 1];
                re[0] = __byte_perm(first, second, 0x5410);
                im[0] = __byte_perm(first, second, 0x7632);
            } else if constexpr (kByProducts) {
                split_number_to_tf32(raw.x[h][j].x, re);
                split_number_to_tf32(raw.x[h][j].y, im);
            } else {
                constexpr int kNumbers = kNumbersPerRegister<plan.operand>;
                float x[kNumbers], y[kNumbers];
#pragma unroll
                for (int i = 0; i < kNumbers; ++i) {
                    x[i] = raw.x[h][kNumbers * j + i].x;
                    y[i] = raw.x[h][kNumbers * j + i].y;
                }
                // A row that is scaled here is in each result, which are not finite if it is not.
                constexpr bool kFinite = plan.scales_stages();
                split<plan.operand, plan.terms, plan.roundings[0], plan.roundings[1], kFinite>(x,
                                                                                              re);
                split<plan.operand, plan.terms, plan.roundings[0], plan.roundings[1], kFinite>(y,
                                                                                              im);
            }
#pragma unroll
            for (int term = 0; term < plan.terms; ++term) {
                fragment.re[term][h + 2 * j] = re[term];
                fragment.im[term][h + 2 * j] = im[term];
            }
        }
}

template <WgmmaPlan plan>
__device__ __forceinline__ XElements<plan> load_elements(const XTileReader<plan>& reader,
                                                         uint32 tile, int k) {
    XElements<plan> raw;
    if constexpr (plan.odd_pitch) {
        load_by_parity<plan>(reader.at, reader.exchanges_rows, tile, k, raw.x);
    } else {
        raw.load(reader, tile, k);
    }
    return raw;
}

// Loads the fragment of the MMA that begins at k, within the stage.
template <WgmmaPlan plan>
__device__ __forceinline__ void load_fragment(const XTileReader<plan>& reader, uint32 tile, int k,
                                              XFragment<plan>& fragment) {
    if constexpr (plan.storage == Storage::planar) {
#pragma unroll
        for (int term = 0; term < plan.register_terms(); ++term) {
            const int mma = k / plan.mma_k(), box = mma / plan.mmas_per_box();
            const int offset =
                mma % plan.mmas_per_box() * plan.mma_k_bytes() + term * plan.term_bytes();
            const uint32 at =
                tile + box * plan.planes() * plan.x_plane_bytes() + (reader.at[0] ^ offset);
            load_matrices(fragment.re[term], at);
            load_matrices(fragment.im[term], at + plan.x_plane_bytes());
        }
    } else {
        convert_fragment<plan>(load_elements<plan>(reader, tile, k), fragment);
    }
}

// Loads the fragments of `Count` MMAs, of which the first begins at k.
template <WgmmaPlan plan, int Count>
__device__ __forceinline__ void load_fragments(const XTileReader<plan>& reader, uint32 tile, int k,
                                               XFragment<plan> (&fragments)[Count]) {
#pragma unroll
    for (int i = 0; i < Count; ++i)
        load_fragment<plan>(reader, tile, k + i * plan.mma_k(), fragments[i]);
}
