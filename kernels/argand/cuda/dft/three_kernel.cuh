// Transforms of any length N as cyclic convolutions with a chirp (Bluestein), of a length M = M1 M2 that no
// block's memory holds, in fp32. Number n = M2 n1 + n2 of M stands in line n1 and column n2 of memory
// between three kernels:
//
// - there: columns, of which N are read and the rest are zeros, times the chirp, by butterflies of A and
//   of B numbers, M1 = A B, then the twiddles W_M^(n2 k1);
// - lines: every line there, times the spectrum of the chirp, and back;
// - back: the twiddles and the columns in reverse, times the chirp; N are written.
//
// Number k1 = k_A + A k_B of a column stands in line B k_A + k_B, and lines leave theirs in the order of
// their digits: the spectrum lies so too, and nothing is put in order.
#pragma once
#include "butterfly.cuh"

struct PassesPlan {
    int length;      // N
    int columns[2];  // A, B
    int radices[4];  // of a line, 1 beyond the last
    int width;       // columns of a tile
    int tile_warps;  // of a tile
    int warps;       // of a line
    int groups;      // lines that a block works on at a time

    constexpr ButterflyPlan line() const {
        return {line_length(), false, {radices[0], radices[1], radices[2], radices[3]}, warps, groups};
    }
    constexpr int line_length() const { return radices[0] * radices[1] * radices[2] * radices[3]; }
    constexpr int lines() const { return columns[0] * columns[1]; }
    constexpr int64 size() const { return static_cast<int64>(lines()) * line_length(); }
    constexpr int threads() const { return tile_warps * kWarp; }
    constexpr int tiles() const { return line_length() / width; }
    constexpr int tile_bytes() const { return lines() * width * 8; }
    // Numbers of a butterfly of A that are not zeros.
    constexpr int held() const {
        const int each = columns[1] * line_length();
        return (length + each - 1) / each;
    }
    // Where tables begin: W_M1^(b k_A), then W_M^(n2 k_A), W_M^(n2 A k_B), and those of a line.
    constexpr int bases() const { return lines(); }
    constexpr int steps() const { return bases() + columns[0] * line_length(); }
    constexpr int inner() const { return steps() + columns[1] * line_length(); }
};

// As the launch fills it. Strides count elements.
struct PassesArguments {
    const float2* x;
    float2* out;
    float2* work;  // rows of M
    const float2* twiddles;
    const float2* spectrum;
    const float2* chirp;
    int64 rows;
    int64 x_stride;
    int64 out_stride;
    float unit;  // of the result
};

// A thread of a tile: its column, and every how many-th butterfly of the column it has.
template <PassesPlan plan>
struct InTile {
    static constexpr int kApart = plan.threads() / plan.width;
    static_assert(plan.threads() % plan.width == 0, "a thread has one column");
    int row;
    int n;       // in the tile
    int column;  // of the line
    int first;

    static __device__ __forceinline__ InTile here() {
        const int tile = blockIdx.x % plan.tiles(), n = threadIdx.x % plan.width;
        return {static_cast<int>(blockIdx.x / plan.tiles()), n, tile * plan.width + n,
                static_cast<int>(threadIdx.x / plan.width)};
    }

    // Where number i of the butterfly at `butterfly` of B x A stands.
    static __device__ __forceinline__ bool there(int a, int at) {
        constexpr int kEach = plan.columns[1] * plan.line_length();
        return (a + 1) * kEach <= plan.length || at < plan.length;
    }
};

// z_j W_M^(n2 (k_A + A j)) of one k_A.
template <PassesPlan plan, int B>
__device__ __forceinline__ void twist_column(float2 (&z)[B], const float2* twiddles, int k, int column) {
    const float2 base = __ldg(twiddles + plan.bases() + k * plan.line_length() + column);
    const float2* const steps = twiddles + plan.steps() + column;
    z[0] = complex_product(z[0], base);
#pragma unroll
    for (int j = 1; j < B; ++j)
        z[j] = complex_product(z[j], complex_product(base, __ldg(steps + j * plan.line_length())));
}

template <PassesPlan plan>
__device__ __forceinline__ void dft_passes_there(const PassesArguments& args) {
    constexpr int A = plan.columns[0], B = plan.columns[1], kLine = plan.line_length();
    constexpr int kHeld = plan.held(), kWidth = plan.width;
    extern __shared__ __align__(128) unsigned char shared[];
    float2* const tile = reinterpret_cast<float2*>(shared);
    const auto own = InTile<plan>::here();
    const float2* const x = args.x + own.row * args.x_stride;
#pragma unroll 1
    for (int b = own.first; b < B; b += own.kApart) {
        float2 z[A];
#pragma unroll
        for (int a = 0; a < kHeld; ++a) {
            const int at = (B * a + b) * kLine + own.column;
            z[a] = float2{0.0f, 0.0f};
            if (own.there(a, at)) z[a] = complex_product(x[at], __ldg(args.chirp + at));
        }
        transform<A>(z, kHeld);
        float2* const to = tile + b * kWidth + own.n;
        to[0] = z[0];
#pragma unroll
        for (int k = 1; k < A; ++k)
            to[k * B * kWidth] = complex_product(z[k], __ldg(args.twiddles + k * B + b));
    }
    __syncthreads();
    float2* const work = args.work + own.row * plan.size() + own.column;
#pragma unroll 1
    for (int k = own.first; k < A; k += own.kApart) {
        float2 z[B];
#pragma unroll
        for (int b = 0; b < B; ++b) z[b] = tile[(k * B + b) * kWidth + own.n];
        transform<B>(z);
        twist_column<plan>(z, args.twiddles, k, own.column);
#pragma unroll
        for (int j = 0; j < B; ++j) work[(k * B + j) * kLine] = z[j];
    }
}

template <PassesPlan plan>
__device__ __forceinline__ void dft_passes_lines(const PassesArguments& args) {
    constexpr ButterflyPlan kLine = plan.line();
    using First = Butterflies<kLine, 0>;
    extern __shared__ __align__(128) unsigned char shared[];
    const auto group = Group<kLine.warps>::here();
    float2* const tile = reinterpret_cast<float2*>(shared + group.index * kLine.tile_bytes());
    const float2* const twiddles = args.twiddles + plan.inner();
    const int64 count = args.rows * plan.lines();
    // One line of all rows after the other: they share a part of the spectrum.
    const int64 index = static_cast<int64>(blockIdx.x) * kLine.groups + group.index;
    if (index >= count) return;
    const int64 line = index / args.rows, row = index % args.rows;
    float2* const work = args.work + row * plan.size() + line * kLine.size();
    First::each([&](int at) {
        float2 z[First::kRadix];
#pragma unroll
        for (int i = 0; i < First::kRadix; ++i) z[i] = work[i * First::kStride + at];
        transform<First::kRadix>(z);
        First::twist(z, twiddles, at);
        First::write(z, First::at(tile, at));
    });
    exchanged<kLine, 0>(group);
    convolve<kLine, 1>(tile, twiddles, args.spectrum + line * kLine.size(), nullptr);
    exchanged<kLine, 0>(group);
    First::each([&](int at) {
        float2 z[First::kRadix];
        First::read(z, First::at(tile, at));
        First::twist(z, twiddles, at);
        transform<First::kRadix>(z);
#pragma unroll
        for (int i = 0; i < First::kRadix; ++i) work[i * First::kStride + at] = z[i];
    });
}

// Lines left the conjugate of what is wanted.
template <PassesPlan plan>
__device__ __forceinline__ void dft_passes_back(const PassesArguments& args) {
    constexpr int A = plan.columns[0], B = plan.columns[1], kLine = plan.line_length();
    constexpr int kHeld = plan.held(), kWidth = plan.width;
    extern __shared__ __align__(128) unsigned char shared[];
    float2* const tile = reinterpret_cast<float2*>(shared);
    const auto own = InTile<plan>::here();
    const float2* const work = args.work + own.row * plan.size() + own.column;
#pragma unroll 1
    for (int k = own.first; k < A; k += own.kApart) {
        float2 z[B];
#pragma unroll
        for (int j = 0; j < B; ++j) z[j] = work[(k * B + j) * kLine];
        twist_column<plan>(z, args.twiddles, k, own.column);
        transform<B>(z);
#pragma unroll
        for (int b = 0; b < B; ++b)
            tile[(k * B + b) * kWidth + own.n] =
                complex_product(z[b], __ldg(args.twiddles + k * B + b));
    }
    __syncthreads();
    float2* const out = args.out + own.row * args.out_stride;
#pragma unroll 1
    for (int b = own.first; b < B; b += own.kApart) {
        float2 z[A];
#pragma unroll
        for (int k = 0; k < A; ++k) z[k] = tile[(k * B + b) * kWidth + own.n];
        transform<A>(z);
#pragma unroll
        for (int a = 0; a < kHeld; ++a) {
            const int at = (B * a + b) * kLine + own.column;
            if (!own.there(a, at)) continue;
            out[at] = complex_product({z[a].x * args.unit, -z[a].y * args.unit},
                                      __ldg(args.chirp + at));
        }
    }
}
