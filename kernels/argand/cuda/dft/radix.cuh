// Butterflies: transforms of N numbers in a thread's registers, X_k = sum_n W_N^(n k) x_n, in fp32.
// The compiler unrolls them and computes their roots of unity. The fp32 kernels (butterfly,
// mixed_radix, two_pass, three_kernel, single_cta, cluster) are made of them.
#pragma once
#include "device/complex.cuh"

// W_N^m = exp(-2 pi i m / N), at compile time.
template <int N>
struct Roots {
    float re[N], im[N];

    constexpr Roots() : re(), im() {
        for (int m = 0; m < N; ++m) {
            // The nearest quarter turn, and Taylor series of the remaining angle, at most an
            // eighth.
            const int quarter = (8 * m + N) / (2 * N);
            const double angle = 1.5707963267948966 * (4 * m - quarter * N) / N;
            double cosine = 0.0, sine = 0.0, term = 1.0;
            for (int i = 0; i < 20; i += 2) {
                cosine += term;
                sine += term * angle / (i + 1);
                term *= -angle * angle / ((i + 1) * (i + 2));
            }
            const double c[4] = {cosine, -sine, -cosine, sine},
                         s[4] = {sine, cosine, -sine, -cosine};
            re[m] = static_cast<float>(c[quarter % 4]);
            im[m] = static_cast<float>(-s[quarter % 4]);
        }
    }
};

// z W_N^m, where m is a constant after unrolling.
template <int N>
__device__ __forceinline__ float2 times_root(float2 z, int m) {
    constexpr Roots<N> kRoots{};
    constexpr float kHalf = 0.70710678118654752f;
    if (8 * m % N == 0) switch (8 * m / N) {
            case 0: return z;
            case 1: return {kHalf * (z.x + z.y), kHalf * (z.y - z.x)};
            case 2: return {z.y, -z.x};
            case 3: return {kHalf * (z.y - z.x), -kHalf * (z.x + z.y)};
            case 4: return {-z.x, -z.y};
            case 5: return {-kHalf * (z.x + z.y), kHalf * (z.x - z.y)};
            case 6: return {-z.y, z.x};
            default: return {kHalf * (z.x - z.y), kHalf * (z.x + z.y)};
        }
    return complex_product(z, {kRoots.re[m], kRoots.im[m]});
}

// First factor A of a butterfly N = A B. A power of two is split near its square root, a power of
// an odd prime after one prime, any other N after the power of its smallest prime. 1 if N is a
// prime.
constexpr int first_factor(int n) {
    int prime = 2, power = 1;
    while (n % prime) ++prime;
    while (n % (power * prime) == 0) power *= prime;
    if (prime == n) return 1;
    if (power < n) return power;
    if (prime > 2) return prime;
    int half = 2;
    while (half * half * 4 <= n) half *= 2;
    return half;
}

// b with a b = 1 modulo n.
constexpr int inverse_modulo(int a, int n) {
    int b = 1;
    while (a * b % n != 1) ++b;
    return b;
}

constexpr int gcd(int a, int b) { return b ? gcd(b, a % b) : a; }

// The butterfly of z, results in natural order. Only the first `num_inputs` numbers are read; the
// others count as zeros and cost no instructions.
template <int N>
__device__ __forceinline__ void butterfly(float2 (&z)[N], int num_inputs = N);

__device__ __forceinline__ void butterfly_2(float2& a, float2& b, int num_inputs) {
    const float2 x = a, y = b;
    a = num_inputs > 1 ? float2{x.x + y.x, x.y + y.y} : x;
    b = num_inputs > 1 ? float2{x.x - y.x, x.y - y.y} : x;
}

__device__ __forceinline__ void butterfly_4(float2& a, float2& b, float2& c, float2& d,
                                            int num_inputs = 4) {
    float2 e = a, f = c, g = b, h = d;
    butterfly_2(e, f, num_inputs > 2 ? 2 : 1);
    butterfly_2(g, h, num_inputs > 3 ? 2 : 1);
    if (num_inputs < 2) {
        b = c = d = a;
        return;
    }
    a = {e.x + g.x, e.y + g.y};
    b = {f.x + h.y, f.y - h.x};
    c = {e.x - g.x, e.y - g.y};
    d = {f.x - h.y, f.y + h.x};
}

// The butterfly of an odd prime, folded: with x_k + x_(N-k) and x_k - x_(N-k).
template <int N>
__device__ __forceinline__ void butterfly_prime(float2 (&x)[N], int num_inputs) {
    constexpr Roots<N> kRoots{};
    constexpr int kHalf = N / 2;
    float2 even[kHalf], odd[kHalf], total = x[0];
#pragma unroll
    for (int k = 1; k <= kHalf; ++k) {
        even[k - 1] = x[k], odd[k - 1] = x[N - k];
        butterfly_2(even[k - 1], odd[k - 1], num_inputs > N - k ? 2 : 1);
        if (k < num_inputs) total = {total.x + even[k - 1].x, total.y + even[k - 1].y};
    }
#pragma unroll
    for (int n = 1; n <= kHalf; ++n) {
        float2 p = x[0], q = {0.0f, 0.0f};
#pragma unroll
        for (int k = 1; k <= kHalf; ++k) {
            if (k >= num_inputs) continue;
            const float c = kRoots.re[n * k % N], s = -kRoots.im[n * k % N];
            p = {fmaf(even[k - 1].x, c, p.x), fmaf(even[k - 1].y, c, p.y)};
            q = k == 1 ? float2{odd[0].x * s, odd[0].y * s}
                       : float2{fmaf(odd[k - 1].x, s, q.x), fmaf(odd[k - 1].y, s, q.y)};
        }
        x[n] = {p.x + q.y, p.y - q.x};
        x[N - n] = {p.x - q.y, p.y + q.x};
    }
    x[0] = total;
}

// Cooley-Tukey: n = B a + b, k = k_a + A k_b, with twiddles W_N^(b k_a).
template <int N, int A>
__device__ __forceinline__ void butterfly_cooley_tukey(float2 (&z)[N], int num_inputs) {
    constexpr int B = N / A;
    float2 middle[A][B];
#pragma unroll
    for (int b = 0; b < B; ++b) {
        float2 column[A];
#pragma unroll
        for (int a = 0; a < A; ++a) column[a] = z[B * a + b];
        if (b < num_inputs) butterfly<A>(column, (num_inputs - b + B - 1) / B);
#pragma unroll
        for (int k = 0; k < A; ++k) middle[k][b] = times_root<N>(column[k], b * k);
    }
#pragma unroll
    for (int k = 0; k < A; ++k) {
        butterfly<B>(middle[k], num_inputs < B ? num_inputs : B);
#pragma unroll
        for (int j = 0; j < B; ++j) z[k + A * j] = middle[k][j];
    }
}

// Good-Thomas, for coprime A and B: n = B a + A b, k by its remainders, without twiddles.
template <int N, int A>
__device__ __forceinline__ void butterfly_good_thomas(float2 (&z)[N]) {
    constexpr int B = N / A, kWeightA = B * inverse_modulo(B % A, A),
                  kWeightB = A * inverse_modulo(A % B, B);
    float2 middle[A][B];
#pragma unroll
    for (int b = 0; b < B; ++b) {
        float2 column[A];
#pragma unroll
        for (int a = 0; a < A; ++a) column[a] = z[(B * a + A * b) % N];
        butterfly<A>(column);
#pragma unroll
        for (int k = 0; k < A; ++k) middle[k][b] = column[k];
    }
#pragma unroll
    for (int k = 0; k < A; ++k) {
        butterfly<B>(middle[k]);
#pragma unroll
        for (int j = 0; j < B; ++j) z[(kWeightA * k + kWeightB * j) % N] = middle[k][j];
    }
}

// Transforms N numbers in registers; those from `num_inputs` on are zero. It does so by a radix of
// its own, by Good and Thomas where factors are coprime, else by Cooley and Tukey.
template <int N>
__device__ __forceinline__ void butterfly(float2 (&z)[N], int num_inputs) {
    constexpr int kFirst = first_factor(N);
    if constexpr (N == 2) {
        butterfly_2(z[0], z[1], num_inputs);
    } else if constexpr (N == 4) {
        butterfly_4(z[0], z[1], z[2], z[3], num_inputs);
    } else if constexpr (kFirst == 1) {
        butterfly_prime<N>(z, num_inputs);
    } else if constexpr (gcd(kFirst, N / kFirst) == 1) {
        if (num_inputs == N) {
            butterfly_good_thomas<N, kFirst>(z);
        } else {
            butterfly_cooley_tukey<N, kFirst>(z, num_inputs);
        }
    } else {
        butterfly_cooley_tukey<N, kFirst>(z, num_inputs);
    }
}
