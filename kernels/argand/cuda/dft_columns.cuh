// Convolutions of 16 or 44 lines of another length: lines are transformed by folded products in their
// place, sixteen by a warp, and then columns by lanes, in registers: there, times the spectrum, and back.
#pragma once
#include "dft_fused.cuh"

// The transform of four numbers.
__device__ __forceinline__ void transform_4(float2& a, float2& b, float2& c, float2& d) {
    const float2 e = {a.x + c.x, a.y + c.y}, f = {a.x - c.x, a.y - c.y};
    const float2 g = {b.x + d.x, b.y + d.y}, h = {b.x - d.x, b.y - d.y};
    a = {e.x + g.x, e.y + g.y};
    b = {f.x + h.y, f.y - h.x};
    c = {e.x - g.x, e.y - g.y};
    d = {f.x - h.y, f.y + h.x};
}

// z W_16^m for what W_16^(n k), n and k below 4, can be.
__device__ __forceinline__ float2 turned_16(float2 z, int m) {
    constexpr float kHalf = 0.70710678118654752f, kCos = 0.92387953251128676f,
                    kSin = 0.38268343236508977f;
    switch (m) {
        case 0: return z;
        case 1: return {kCos * z.x + kSin * z.y, kCos * z.y - kSin * z.x};
        case 2: return {kHalf * (z.x + z.y), kHalf * (z.y - z.x)};
        case 3: return {kSin * z.x + kCos * z.y, kSin * z.y - kCos * z.x};
        case 4: return {z.y, -z.x};
        case 6: return {kHalf * (z.y - z.x), -kHalf * (z.x + z.y)};
        default: return {-kCos * z.x - kSin * z.y, kSin * z.x - kCos * z.y};  // 9
    }
}

// The transform of a column, n = 4 n1 + n2, k = k1 + 4 k2.
__device__ __forceinline__ void transform_column(float2 (&z)[16]) {
#pragma unroll
    for (int n = 0; n < 4; ++n) {
        transform_4(z[n], z[4 + n], z[8 + n], z[12 + n]);
#pragma unroll
        for (int k = 1; k < 4; ++k) z[4 * k + n] = turned_16(z[4 * k + n], n * k);
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) transform_4(z[4 * k], z[4 * k + 1], z[4 * k + 2], z[4 * k + 3]);
    // Number k1 + 4 k2 stands at 4 k1 + k2.
#pragma unroll
    for (int k = 0; k < 4; ++k)
#pragma unroll
        for (int n = k + 1; n < 4; ++n) {
            const float2 kept = z[4 * k + n];
            z[4 * k + n] = z[4 * n + k];
            z[4 * n + k] = kept;
        }
}

// Folded, as lines are, but by fp32's own products.
__device__ __forceinline__ void transform_11(float2 (&x)[11]) {
    constexpr float kCos[6] = {1.0f, 0.84125353283118117f, 0.41541501300188643f,
                               -0.14231483827328514f, -0.65486073394528506f, -0.95949297361449739f};
    constexpr float kSin[6] = {0.0f, 0.54064081745559758f, 0.90963199535451837f,
                               0.98982144188093273f, 0.75574957435425829f, 0.28173255684142970f};
    float2 even[5], odd[5];
    float2 total = x[0];
#pragma unroll
    for (int k = 1; k <= 5; ++k) {
        even[k - 1] = {x[k].x + x[11 - k].x, x[k].y + x[11 - k].y};
        odd[k - 1] = {x[k].x - x[11 - k].x, x[k].y - x[11 - k].y};
        total = {total.x + even[k - 1].x, total.y + even[k - 1].y};
    }
#pragma unroll
    for (int n = 1; n <= 5; ++n) {
        float2 p = x[0], q = {0.0f, 0.0f};
#pragma unroll
        for (int k = 1; k <= 5; ++k) {
            const int m = n * k % 11;
            const float c = kCos[m <= 5 ? m : 11 - m], s = m <= 5 ? kSin[m] : -kSin[11 - m];
            p = {fmaf(even[k - 1].x, c, p.x), fmaf(even[k - 1].y, c, p.y)};
            q = {fmaf(odd[k - 1].x, s, q.x), fmaf(odd[k - 1].y, s, q.y)};
        }
        x[n] = {p.x + q.y, p.y - q.x};
        x[11 - n] = {p.x - q.y, p.y + q.x};
    }
    x[0] = total;
}

// Of two dimensions: n modulo 4 and modulo 11, and so stand the results.
__device__ __forceinline__ void transform_column(float2 (&z)[44]) {
    auto at = [](int line, int k) { return (33 * line + 12 * k) % 44; };
#pragma unroll
    for (int line = 0; line < 4; ++line) {
        float2 x[11];
#pragma unroll
        for (int k = 0; k < 11; ++k) x[k] = z[at(line, k)];
        transform_11(x);
#pragma unroll
        for (int k = 0; k < 11; ++k) z[at(line, k)] = x[k];
    }
#pragma unroll
    for (int k = 0; k < 11; ++k) transform_4(z[at(0, k)], z[at(1, k)], z[at(2, k)], z[at(3, k)]);
}

// A warp's sixteen of a tile's lines, each in its place. Of lines beyond the last one nothing is
// written.
template <Fold fold, int Count, int Pitch, int Warps>
__device__ __forceinline__ void transform_lines(float2* tile, const uint4* table, float scale,
                                                float unit, float factor) {
    const auto group = Group<Warps>::here();
    const int first = 16 * group.warp + group.lane / 4;
    float2* line[2];
#pragma unroll
    for (int row = 0; row < 2; ++row)
        line[row] = tile + (Count % 16 ? min(first + 8 * row, Count - 1) : first + 8 * row) * Pitch;
    FoldedSums<fold, 1> sums;
    const float scales[1][2] = {{scale, scale}};
    folded_product<fold, 1, true>(
        sums, [&](int, int row, int k) { return line[row][k]; }, table, scales);
    float2 start[2];
#pragma unroll
    for (int row = 0; row < 2; ++row) {
        const float2 x = line[row][0];
        start[row] = {x.x * scale * unit, x.y * scale * unit};
    }
    __syncwarp();  // all has been read: results take its place
#pragma unroll
    for (int row = 0; row < 2; ++row) {
        if (Count % 16 && first + 8 * row >= Count) continue;
        folded_results<fold, 1>(sums, 0, row, 0, start[row], unit, factor, 1.0f,
                                [&](auto place, float2 value, bool valid) {
                                    if (valid) line[row][place.k] = value;
                                });
    }
    group.sync();
}

// Of every column the transform times the spectrum, conjugated, and its transform; gives the first
// number of the first column's transform to thread 0. `spectrum` has lines as the tile has.
template <int Count, int Width, int Pitch, int Warps>
__device__ __forceinline__ float2 convolve_columns(float2* tile, const float2* spectrum) {
    const auto group = Group<Warps>::here();
    float2 first = {0.0f, 0.0f};
#pragma unroll 1
    for (int column = group.thread; column < Width; column += group.kThreads) {
        float2 z[Count];
#pragma unroll
        for (int i = 0; i < Count; ++i) z[i] = tile[i * Pitch + column];
        transform_column(z);
        if (column == 0) first = z[0];
#pragma unroll
        for (int i = 0; i < Count; ++i) {
            const float2 b = __ldg(spectrum + i * Width + column);
            z[i] = {z[i].x * b.x - z[i].y * b.y, -(z[i].x * b.y + z[i].y * b.x)};
        }
        transform_column(z);
#pragma unroll
        for (int i = 0; i < Count; ++i) tile[i * Pitch + column] = z[i];
    }
    group.sync();
    return first;
}
