// The three-kernel plan: transforms of any length N as cyclic convolutions with a chirp
// (Bluestein), of a length M = M1 M2 that exceeds a block's shared memory, in fp32. A workspace in
// global memory holds number n = M2 n1 + n2 in line n1 and column n2 between three kernels:
//
//     forward_columns  multiplies the input by the chirp, pads it with zeros, transforms columns
//                      by butterflies of A and of B numbers, M1 = A B, and applies W_M^(n2 k1)
//     convolve_lines   transforms each line, multiplies it by the spectrum of the chirp, and
//                      transforms it back (`convolve` of butterfly.cuh)
//     inverse_columns  runs twiddles and columns in reverse, multiplies by the chirp, and writes
//                      N results
//
// Number k1 = k_A + A k_B of a column stands in line B k_A + k_B, and a line's numbers in the order
// of their digits. The spectrum has the same order, so nothing is reordered.
#pragma once
#include "butterfly.cuh"

struct ThreeKernelPlan {
    int length;             // N
    int column_radices[2];  // A, B
    int line_radices[4];    // of a line's stages; 1 beyond the last
    int tile_width;         // columns of a tile, which a block of the column kernels computes
    int tile_warps;         // of such a block
    int line_warps;         // of a line
    int line_groups;        // lines of a block of the line kernel

    constexpr ButterflyPlan line_plan() const {
        return {line_length(),
                false,
                {line_radices[0], line_radices[1], line_radices[2], line_radices[3]},
                line_warps,
                line_groups};
    }
    constexpr int line_length() const {
        return line_radices[0] * line_radices[1] * line_radices[2] * line_radices[3];
    }
    constexpr int lines() const { return column_radices[0] * column_radices[1]; }
    constexpr int64 size() const { return static_cast<int64>(lines()) * line_length(); }
    constexpr int threads() const { return tile_warps * kWarp; }
    constexpr int num_tiles() const { return line_length() / tile_width; }
    constexpr int tile_bytes() const { return lines() * tile_width * 8; }
    // Inputs of a butterfly of A that are not padding.
    constexpr int inputs_per_butterfly() const {
        const int apart = column_radices[1] * line_length();
        return (length + apart - 1) / apart;
    }
    // Offsets of the tables: W_M1^(b k_A), then W_M^(n2 k_A), W_M^(n2 A k_B), and those of a line.
    constexpr int base_twiddles() const { return lines(); }
    constexpr int step_twiddles() const {
        return base_twiddles() + column_radices[0] * line_length();
    }
    constexpr int line_twiddles() const {
        return step_twiddles() + column_radices[1] * line_length();
    }
};

// argand/dft/multi_kernel_launch.py fills it in; ARGUMENTS of argand/dft/three_kernel.py lists the
// same members. Strides count elements.
struct ThreeKernelArguments {
    const float2* x;
    float2* out;
    float2* workspace;  // rows of M
    const float2* twiddles;
    const float2* spectrum;
    const float2* chirp;
    int64 rows;
    int64 x_stride;
    int64 out_stride;
    float scale;  // of results
};

// A thread of a column kernel: its row, its column, and its first butterfly of the column.
template <ThreeKernelPlan plan>
struct TileThread {
    static constexpr int kButterflyStride = plan.threads() / plan.tile_width;
    static_assert(plan.threads() % plan.tile_width == 0, "a thread has one column");
    int row;
    int tile_column;  // column in the tile
    int column;       // column in the line
    int first_butterfly;

    static __device__ __forceinline__ TileThread current() {
        const int tile = blockIdx.x % plan.num_tiles(), n = threadIdx.x % plan.tile_width;
        return {static_cast<int>(blockIdx.x / plan.num_tiles()), n, tile * plan.tile_width + n,
                static_cast<int>(threadIdx.x / plan.tile_width)};
    }

    // Whether number a of a butterfly is not padding; number 0 has index `first` of the transform.
    static __device__ __forceinline__ bool in_range(int a, int first) {
        constexpr int kEach = plan.column_radices[1] * plan.line_length();
        return (a + 1) * kEach <= plan.length || a * kEach + first < plan.length;
    }
};

// z_j W_M^(n2 (k_A + A j)) for one k_A, from tables of W_M^(n2 k_A) and W_M^(n2 A j).
template <ThreeKernelPlan plan, int B>
__device__ __forceinline__ void apply_column_twiddles(float2 (&z)[B], const float2* twiddles, int k,
                                                      int column) {
    const float2 base = __ldg(twiddles + plan.base_twiddles() + k * plan.line_length() + column);
    const float2* const steps = twiddles + plan.step_twiddles() + column;
    z[0] = complex_product(z[0], base);
#pragma unroll
    for (int j = 1; j < B; ++j)
        z[j] = complex_product(z[j], complex_product(base, __ldg(steps + j * plan.line_length())));
}

// The first kernel: multiplies by the chirp, transforms columns, multiplies by the twiddles between
// columns and lines, and writes to the workspace.
template <ThreeKernelPlan plan>
__device__ __forceinline__ void dft_three_kernel_forward_columns(const ThreeKernelArguments& args) {
    constexpr int A = plan.column_radices[0], B = plan.column_radices[1],
                  kLine = plan.line_length();
    constexpr int kInputsPerButterfly = plan.inputs_per_butterfly(), kWidth = plan.tile_width;
    extern __shared__ __align__(128) unsigned char shared[];
    float2* const tile = reinterpret_cast<float2*>(shared);
    const auto thread = TileThread<plan>::current();
    const float2* const x = args.x + thread.row * args.x_stride;
#pragma unroll 1
    for (int b = thread.first_butterfly; b < B; b += thread.kButterflyStride) {
        float2 z[A];
        const int first = b * kLine + thread.column;
        const float2 *const from = x + first, *const chirp = args.chirp + first;
#pragma unroll
        for (int a = 0; a < kInputsPerButterfly; ++a) {
            const int at = a * B * kLine;
            z[a] = float2{0.0f, 0.0f};
            if (thread.in_range(a, first)) z[a] = complex_product(from[at], __ldg(chirp + at));
        }
        butterfly<A>(z, kInputsPerButterfly);
        float2* const to = tile + b * kWidth + thread.tile_column;
        const float2* const twiddles = args.twiddles + b;
        to[0] = z[0];
#pragma unroll
        for (int k = 1; k < A; ++k)
            to[k * B * kWidth] = complex_product(z[k], __ldg(twiddles + k * B));
    }
    __syncthreads();
    float2* const workspace = args.workspace + thread.row * plan.size() + thread.column;
#pragma unroll 1
    for (int k = thread.first_butterfly; k < A; k += thread.kButterflyStride) {
        float2 z[B];
#pragma unroll
        for (int b = 0; b < B; ++b) z[b] = tile[(k * B + b) * kWidth + thread.tile_column];
        butterfly<B>(z);
        apply_column_twiddles<plan>(z, args.twiddles, k, thread.column);
#pragma unroll
        for (int j = 0; j < B; ++j) workspace[(k * B + j) * kLine] = z[j];
    }
}

// The second kernel: transforms lines, multiplies them by the spectrum of the chirp and transforms
// them back, in the workspace.
template <ThreeKernelPlan plan>
__device__ __forceinline__ void dft_three_kernel_convolve_lines(const ThreeKernelArguments& args) {
    constexpr ButterflyPlan kLine = plan.line_plan();
    using First = StageButterflies<kLine, 0>;
    extern __shared__ __align__(128) unsigned char shared[];
    const auto group = TileGroup<kLine.warps>::current();
    float2* const tile = reinterpret_cast<float2*>(shared + group.index * kLine.tile_bytes());
    const float2* const twiddles = args.twiddles + plan.line_twiddles();
    const int64 count = args.rows * plan.lines();
    // The same line of all rows is computed at a time: its part of the spectrum stays in L2.
    const int64 index = static_cast<int64>(blockIdx.x) * kLine.groups + group.index;
    if (index >= count) return;
    const int64 line = index / args.rows, row = index % args.rows;
    float2* const workspace = args.workspace + row * plan.size() + line * kLine.size();
    First::for_each([&](int at) {
        float2 z[First::kRadix];
        // All loads have one address: of workspace[i * First::kStride + at] each would have its
        // own, in as many registers again as its number.
        const float2* const from = workspace + at;
#pragma unroll
        for (int i = 0; i < First::kRadix; ++i) z[i] = from[i * First::kStride];
        butterfly<First::kRadix>(z);
        First::apply_twiddles(z, twiddles, at);
        First::store(z, First::address(tile, at));
    });
    stage_barrier<kLine, 0>(group);
    convolve<kLine, 1>(tile, twiddles, args.spectrum + line * kLine.size(), nullptr);
    stage_barrier<kLine, 0>(group);
    First::for_each([&](int at) {
        float2 z[First::kRadix];
        First::load(z, First::address(tile, at));
        First::apply_twiddles(z, twiddles, at);
        butterfly<First::kRadix>(z);
        float2* const to = workspace + at;
#pragma unroll
        for (int i = 0; i < First::kRadix; ++i) to[i * First::kStride] = z[i];
    });
}

// The line kernel left its results conjugated, so this input is.
template <ThreeKernelPlan plan>
__device__ __forceinline__ void dft_three_kernel_inverse_columns(const ThreeKernelArguments& args) {
    constexpr int A = plan.column_radices[0], B = plan.column_radices[1],
                  kLine = plan.line_length();
    constexpr int kInputsPerButterfly = plan.inputs_per_butterfly(), kWidth = plan.tile_width;
    extern __shared__ __align__(128) unsigned char shared[];
    float2* const tile = reinterpret_cast<float2*>(shared);
    const auto thread = TileThread<plan>::current();
    const float2* const workspace = args.workspace + thread.row * plan.size() + thread.column;
#pragma unroll 1
    for (int k = thread.first_butterfly; k < A; k += thread.kButterflyStride) {
        float2 z[B];
#pragma unroll
        for (int j = 0; j < B; ++j) z[j] = workspace[(k * B + j) * kLine];
        apply_column_twiddles<plan>(z, args.twiddles, k, thread.column);
        butterfly<B>(z);
        float2* const to = tile + k * B * kWidth + thread.tile_column;
        const float2* const twiddles = args.twiddles + k * B;
#pragma unroll
        for (int b = 0; b < B; ++b) to[b * kWidth] = complex_product(z[b], __ldg(twiddles + b));
    }
    __syncthreads();
    float2* const out = args.out + thread.row * args.out_stride;
#pragma unroll 1
    for (int b = thread.first_butterfly; b < B; b += thread.kButterflyStride) {
        float2 z[A];
#pragma unroll
        for (int k = 0; k < A; ++k) z[k] = tile[(k * B + b) * kWidth + thread.tile_column];
        butterfly<A>(z);
        const int first = b * kLine + thread.column;
        float2* const to = out + first;
        const float2* const chirp = args.chirp + first;
#pragma unroll
        for (int a = 0; a < kInputsPerButterfly; ++a) {
            const int at = a * B * kLine;
            if (!thread.in_range(a, first)) continue;
            to[at] = complex_product({z[a].x * args.scale, -z[a].y * args.scale},
                                     __ldg(chirp + at));
        }
    }
}
