// The two-pass plan: transforms of a length N = N1 N2 in fp32 that exceeds a block's shared memory
// and whose prime factors have butterflies here. With n = N2 n1 + n2 and k = k1 + N1 k2 a workspace
// in global memory holds number k1 of column n2 in line k1 between two kernels:
//
//     transform_columns  transforms columns, N1 = A B numbers, and applies W_N^(n2 k1)
//     transform_lines    transforms lines, N2 = C D numbers, and writes them as columns of X
//
// A block has a tile of columns, or of lines, in shared memory. Its first stage is butterflies in
// registers, as numbers arrive. So is the last one, except for a large prime: there a thread sums a
// share of the results, from numbers in shared memory and a table of roots.
#pragma once
#include "radix.cuh"

// One of the kernels: the stages of its numbers, and its tile.
struct PassPlan {
    int first;  // radix of the first stage; 1 for none
    int last;   // of the last one
    int width;  // columns, or lines, of a tile
    int warps;  // of a block
    int pairs;  // X_n and X_(P-n) of a share where the last radix is a large prime P; else 0

    constexpr int length() const { return first * last; }
    constexpr int threads() const { return warps * kWarp; }
    // Threads of the block that have the same column.
    constexpr int rows() const { return threads() / width; }
    constexpr int tiles(int across) const { return (across + width - 1) / width; }
    // Shares of a last stage.
    constexpr int shares() const { return pairs ? (last / 2 + pairs - 1) / pairs : 1; }
    // Butterflies of the first stage whose numbers a thread loads at a time: 8 to 16 numbers.
    constexpr int batch() const { return first < 8 ? 8 / first : 1; }
};

struct TwoPassPlan {
    int length;        // N
    PassPlan columns;  // N1 = A B
    PassPlan lines;    // N2 = C D

    // Elements from line to line of the workspace, where lines begin on 128 bytes.
    constexpr int pitch() const { return (lines.length() + 15) / 16 * 16; }
    constexpr int64 size() const { return static_cast<int64>(columns.length()) * pitch(); }
    // Elements from number to number of a tile's lines: odd, as neighbouring numbers are written
    // side by side.
    constexpr int line_pitch() const { return lines.width + 1; }
    constexpr int column_bytes() const { return columns.length() * columns.width * 8; }
    constexpr int line_bytes() const { return lines.length() * line_pitch() * 8; }
    // Offsets of the tables: W_N1^(b k_A), then W_N^(n2 k_A), W_N^(n2 A k_B), W_N2^(d k_C).
    constexpr int base_twiddles() const { return columns.length(); }
    constexpr int step_twiddles() const {
        return base_twiddles() + columns.first * lines.length();
    }
    constexpr int line_twiddles() const {
        return step_twiddles() + columns.last * lines.length();
    }
};

// argand/dft/multi_kernel_launch.py fills it in; ARGUMENTS of argand/dft/two_pass.py lists the
// same members. Strides count elements.
struct TwoPassArguments {
    const float2* x;
    float2* out;
    float2* workspace;  // rows of plan.size()
    const float2* twiddles;
    const float2* column_roots;  // of B where it is a large prime
    const float2* line_roots;    // of D
    int64 x_stride;
    int64 out_stride;
    float scale;  // of results
    float sign;   // -1 for the inverse, the conjugate of the conjugate's transform
};

__device__ __forceinline__ float2 scaled_sum(float2 z, float factor, float2 sum) {
    return {fmaf(z.x, factor, sum.x), fmaf(z.y, factor, sum.y)};
}

// A share of the folded transform of a prime P, whose numbers lie `kPitch` apart: put(n, X_n) for
// `kPairs` n from share kPairs + 1 on and their P - n, and with the first share for 0. The table
// has a line (cos, sin)(2 pi k n / P) for each k.
template <int kPrime, int kPitch, int kPairs, typename Put>
__device__ __forceinline__ void prime_share(const float2* from, const float2* roots, int share,
                                            Put put) {
    static_assert(kPairs % 2 == 0, "two roots are read at a time");
    constexpr int kHalf = kPrime / 2, kShares = (kHalf + kPairs - 1) / kPairs;
    const float4* const table = reinterpret_cast<const float4*>(roots + share * kPairs);
    const float2 first = from[0];
    float2 total = first, p[kPairs], q[kPairs];
#pragma unroll
    for (int j = 0; j < kPairs; ++j) p[j] = first, q[j] = {0.0f, 0.0f};
#pragma unroll 2
    for (int k = 1; k <= kHalf; ++k) {
        const float2 x = from[k * kPitch], y = from[(kPrime - k) * kPitch];
        const float2 even = {x.x + y.x, x.y + y.y}, odd = {x.x - y.x, x.y - y.y};
        total = {total.x + even.x, total.y + even.y};
#pragma unroll
        for (int j = 0; j < kPairs; j += 2) {
            const float4 root = __ldg(table + ((k - 1) * kShares * kPairs + j) / 2);
            p[j] = scaled_sum(even, root.x, p[j]);
            q[j] = scaled_sum(odd, root.y, q[j]);
            p[j + 1] = scaled_sum(even, root.z, p[j + 1]);
            q[j + 1] = scaled_sum(odd, root.w, q[j + 1]);
        }
    }
    if (share == 0) put(0, total);
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
        const int n = share * kPairs + j + 1;
        if (kHalf % kPairs && n > kHalf) continue;
        put(n, {p[j].x + q[j].y, p[j].y - q[j].x});
        put(kPrime - n, {p[j].x - q[j].y, p[j].y + q[j].x});
    }
}

// The last stage of a tile: its results by put(k, j, X_j), k of the first stage. The numbers of a
// last stage's transform lie `kPitch` apart, and those of a column from `numbers` on.
template <PassPlan pass, int kPitch, typename Put>
__device__ __forceinline__ void last_stage(const float2* numbers, const float2* roots, Put put) {
    constexpr int kRadix = pass.last;
#pragma unroll 1
    for (int item = threadIdx.x / pass.width; item < pass.first * pass.shares();
         item += pass.rows()) {
        const int k = item % pass.first;
        const float2* const from = numbers + k * kRadix * kPitch;
        const auto put_result = [&](int j, float2 z) { put(k, j, z); };
        if constexpr (pass.pairs > 0) {
            prime_share<kRadix, kPitch, pass.pairs>(from, roots, item / pass.first, put_result);
        } else {
            float2 z[kRadix];
#pragma unroll
            for (int i = 0; i < kRadix; ++i) z[i] = from[i * kPitch];
            butterfly<kRadix>(z);
#pragma unroll
            for (int j = 0; j < kRadix; ++j) put_result(j, z[j]);
        }
    }
}

// The first stage of a tile and its twiddles. The thread has `count` butterflies, each `step` after
// the other from `begin` on: load(item, i) returns a number, place(item) where the first one's
// result is stored, `kPitch` from the next one's. Loads of several butterflies are in flight.
template <PassPlan pass, int kPitch, typename Load, typename Place>
__device__ __forceinline__ void first_stage(int begin, int end, int step, const float2* twiddles,
                                            Load load, Place place) {
    constexpr int kRadix = pass.first, kStride = pass.last;
#pragma unroll 1
    for (int item = begin; item < end; item += pass.batch() * step) {
        float2 z[pass.batch()][kRadix];
#pragma unroll
        for (int u = 0; u < pass.batch(); ++u) {
            if (item + u * step >= end) continue;
#pragma unroll
            for (int i = 0; i < kRadix; ++i) z[u][i] = load(item + u * step, i);
        }
#pragma unroll
        for (int u = 0; u < pass.batch(); ++u) {
            if (item + u * step >= end) continue;
            const auto [index, to] = place(item + u * step);
            if constexpr (kRadix > 1) butterfly<kRadix>(z[u]);
            const float2* const from = twiddles + index;
            to[0] = z[u][0];
#pragma unroll
            for (int k = 1; k < kRadix; ++k)
                to[k * kStride * kPitch] =
                    complex_product(z[u][k], __ldg(from + k * kStride));
        }
    }
}

// Address to which a butterfly of the first stage writes, and its index among those of its column.
struct Placed {
    int index;
    float2* to;
};

// The first kernel: transforms columns, multiplies by the twiddles between columns and lines, and
// writes to the workspace.
template <TwoPassPlan plan>
__device__ __forceinline__ void dft_two_pass_transform_columns(const TwoPassArguments& args) {
    constexpr PassPlan kPass = plan.columns;
    constexpr int kLine = plan.lines.length(), kTiles = kPass.tiles(kLine), kWidth = kPass.width;
    static_assert(kPass.threads() % kWidth == 0, "a thread has one column");
    extern __shared__ __align__(128) unsigned char shared[];
    const int row = blockIdx.x / kTiles, first_row = threadIdx.x / kWidth;
    const int column = blockIdx.x % kTiles * kWidth + threadIdx.x % kWidth;
    const bool inside = kLine % kWidth == 0 || column < kLine;
    float2* const numbers = reinterpret_cast<float2*>(shared) + threadIdx.x % kWidth;
    const float2* const x = args.x + row * args.x_stride + column;
    first_stage<kPass, kWidth>(
        first_row, inside ? kPass.last : 0, kPass.rows(), args.twiddles,
        [&](int b, int a) {
            const float2 value = x[(kPass.last * a + b) * kLine];
            return float2{value.x, value.y * args.sign};
        },
        [&](int b) { return Placed{b, numbers + b * kWidth}; });
    __syncthreads();
    if (!inside) return;
    float2* const workspace = args.workspace + row * plan.size() + column;
    const float2* const bases = args.twiddles + plan.base_twiddles() + column;
    const float2* const steps = args.twiddles + plan.step_twiddles() + column;
    last_stage<kPass, kWidth>(numbers, args.column_roots, [&](int k, int j, float2 z) {
        const float2 base = __ldg(bases + k * kLine), step = __ldg(steps + j * kLine);
        workspace[(k + kPass.first * j) * plan.pitch()] =
            complex_product(z, complex_product(base, step));
    });
}

// The second kernel: transforms lines, scales them and writes to the result.
template <TwoPassPlan plan>
__device__ __forceinline__ void dft_two_pass_transform_lines(const TwoPassArguments& args) {
    constexpr PassPlan kPass = plan.lines;
    constexpr int kColumn = plan.columns.length(), kTiles = kPass.tiles(kColumn),
                  kWidth = kPass.width, kPitch = plan.line_pitch(), kLast = kPass.last;
    static_assert(kPass.threads() % kWidth == 0, "a thread has one line at the end");
    extern __shared__ __align__(128) unsigned char shared[];
    float2* const numbers = reinterpret_cast<float2*>(shared);
    const int row = blockIdx.x / kTiles, first = blockIdx.x % kTiles * kWidth;
    const int lines = min(kWidth, kColumn - first);
    const float2* const workspace = args.workspace + row * plan.size() + first * plan.pitch();
    first_stage<kPass, kPitch>(
        threadIdx.x, lines * kLast, kPass.threads(), args.twiddles + plan.line_twiddles(),
        [&](int item, int c) {
            return workspace[item / kLast * plan.pitch() + c * kLast + item % kLast];
        },
        [&](int item) {
            const int d = item % kLast;
            return Placed{d, numbers + d * kPitch + item / kLast};
        });
    __syncthreads();
    const int line = threadIdx.x % kWidth;
    if (line >= lines) return;
    float2* const out = args.out + row * args.out_stride + first + line;
    last_stage<kPass, kPitch>(numbers + line, args.line_roots, [&](int k, int j, float2 z) {
        out[static_cast<int64>(k + kPass.first * j) * kColumn] = {z.x * args.scale,
                                                                  z.y * args.scale * args.sign};
    });
}
