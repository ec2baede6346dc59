// The butterfly of N = 2^m numbers that carry twiddles: X_k = sum over n of t^n W_N^(n k) x_n, of
// fused multiply-adds alone.
//
// By decimation in time a level adds a half O to a half E: E_k + w_k O_k and E_k - w_k O_k, where
// w_k = t^(N / 2h) W_2h^k for halves of h numbers. The sum p takes four fused multiply-adds, the
// difference two, as 2 E - p. So the twiddles t^n cost no products of their own (six operations and
// then four additions a pair otherwise), and since w_(k + h/2) = -i w_k only N / 2 are kept.
//
// Rounding: of |E|^2 + |O|^2 = 1 and a unit roundoff u, p is off by at most u (|E| + |O| + |p|) and
// 2 E - p by as much and u |2 E - p|, together at most 4.5 u, or 3.2 u of the level's norm 2^(1/2);
// products by a twiddle and the two sums of a level apart may be off by as much
// (`transform_bound` in workflow/accuracy/bounds.py).
#pragma once
#include "dft/radix.cuh"

// The first of a level's twiddles, of halves of 2^level numbers, among the N / 2.
constexpr int first_twiddle(int level) { return level ? 1 << (level - 1) : 0; }

constexpr int reversed_bits(int n, int bits) {
    return bits ? (n & 1) << (bits - 1) | reversed_bits(n >> 1, bits - 1) : 0;
}

// Twiddles in registers, and those of a plain transform, t = 1, at compile time.
template <int N>
struct KeptTwiddles {
    const float2 (&kept)[N / 2];
    static constexpr bool is_one(int) { return false; }
    __device__ __forceinline__ float2 operator()(int level, int k) const {
        return kept[first_twiddle(level) + k];
    }
};

template <int N>
struct PlainTwiddles {
    static constexpr bool is_one(int k) { return k == 0; }
    __device__ __forceinline__ float2 operator()(int level, int k) const {
        constexpr Roots<N> kRoots{};
        const int m = k * (N >> (level + 1));
        return {kRoots.re[m], kRoots.im[m]};
    }
};

// Transforms N numbers in registers, a power of two, by levels of radix 2, whose twiddles are part
// of fused multiply-adds: `twiddles(level, k)`.
template <int N, typename Twiddles>
__device__ __forceinline__ void twiddled_butterfly(float2 (&x)[N], const Twiddles& twiddles) {
    constexpr int kLevels = log2_of(N);
    static_assert(1 << kLevels == N, "a power of two");
    float2 z[N];
#pragma unroll
    for (int n = 0; n < N; ++n) z[n] = x[reversed_bits(n, kLevels)];
#pragma unroll
    for (int level = 0; level < kLevels; ++level) {
        const int half = 1 << level;
#pragma unroll
        for (int i = 0; i < N / 2; ++i) {
            const int k = i % half, at = i / half * 2 * half + k;
            const bool turned = 2 * k >= half && half > 1;  // by -i
            const int kept = turned ? k - half / 2 : k;
            const float2 e = z[at], o = z[at + half];
            const float2 b = turned ? float2{o.y, -o.x} : o;
            if (Twiddles::is_one(kept)) {
                z[at] = {e.x + b.x, e.y + b.y};
                z[at + half] = {e.x - b.x, e.y - b.y};
                continue;
            }
            const float2 w = twiddles(level, kept);
            const float2 p = {fmaf(w.x, b.x, fmaf(-w.y, b.y, e.x)),
                              fmaf(w.x, b.y, fmaf(w.y, b.x, e.y))};
            z[at] = p;
            z[at + half] = {fmaf(2.0f, e.x, -p.x), fmaf(2.0f, e.y, -p.y)};
        }
    }
#pragma unroll
    for (int n = 0; n < N; ++n) x[n] = z[n];
}
