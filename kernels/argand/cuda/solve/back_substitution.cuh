// Back substitution, U x = y for a few right sides in one launch. A block solves 64 rows of some
// columns of x. It adds the products of x below as soon as the blocks of those rows have them.
#pragma once
#include "device/complex.cuh"
#include "device/types.cuh"

constexpr int kUpperThreads = 256;
constexpr int kUpperRows = 64;

struct UpperArguments {
    const void* u;  // (n, n), column-major; nothing below the diagonal is read
    void* x;        // (n, columns), column-major: y, in whose place x is written
    uint32* state;  // zeros: blocks that began; row blocks solved of each group of columns
    int64 n, columns;
};

// 1 / z, without squares that leave the range of the type.
template <typename Number>
__device__ __forceinline__ Number reciprocal(Number z) {
    const auto size = fabs(z.x) + fabs(z.y), x = z.x / size, y = z.y / size;
    const auto divisor = (x * x + y * y) * size;
    return {x / divisor, -y / divisor};
}

__device__ __forceinline__ void wait_for(const uint32* count, int64 least) {
    uint32 found;
    do {
        asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(found) : "l"(count) : "memory");
    } while (found < least);
}

// The packed upper triangle of 64 rows, by columns.
__device__ __forceinline__ int packed(int row, int column) {
    return column * (column + 1) / 2 + row;
}

// Solves the triangle for one column, by a warp whose lanes have two rows each: `y`, then x. The
// diagonal has reciprocals.
template <typename Number>
__device__ __forceinline__ void solve_triangle(const Number* diagonal, int lane, Number (&y)[2]) {
#pragma unroll
    for (int half = 1; half >= 0; --half) {
#pragma unroll 8
        for (int owner = kWarp - 1; owner >= 0; --owner) {
            const int k = half * kWarp + owner;
            const Number own = complex_product(y[half], diagonal[packed(k, k)]);
            const Number x = {__shfl_sync(0xffffffffu, own.x, owner),
                              __shfl_sync(0xffffffffu, own.y, owner)};
            const Number negative = {-x.x, -x.y};
            if (lane < owner)
                multiply_add(y[half], diagonal[packed(half * kWarp + lane, k)], negative);
            if (half == 1) multiply_add(y[0], diagonal[packed(lane, k)], negative);
            if (lane == owner) y[half] = x;
        }
    }
}

// Fewest blocks per multiprocessor, in `__launch_bounds__`; 0 says nothing. From sm_100 on ptxas
// would take 64 registers for one column of complex64, those of four blocks, and spill.
template <typename Real, int kColumns>
constexpr int upper_blocks() {
    return __CUDA_ARCH__ >= 1000 && sizeof(Real) == 4 && kColumns == 1 ? 3 : 0;
}

template <typename Real, int kColumns>
__device__ __forceinline__ void solve_upper(const UpperArguments& args) {
    using Number = Complex<Real>;
    constexpr int kRows = kUpperRows, kParts = kUpperThreads / kRows, kOwn = kRows / kParts;
    static_assert(kParts == 4 && kColumns <= 4, "two parts are added to two, a warp has a column");
    __shared__ Number diagonal[kRows * (kRows + 1) / 2];
    __shared__ Number right[kRows][kColumns];
    __shared__ Number sums[2][kColumns][kRows];
    __shared__ uint32 begun;
    const auto* const u = static_cast<const Number*>(args.u);
    auto* const x = static_cast<Number*>(args.x);
    const int row = threadIdx.x % kRows, part = threadIdx.x / kRows;
    const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
    // Blocks have the rows in the order in which they begin, so none waits for one that has not.
    if (threadIdx.x == 0) begun = atomicAdd(args.state, 1);
    __syncthreads();
    const int64 n = args.n, groups = (args.columns + kColumns - 1) / kColumns;
    const int64 last = (n - 1) / kRows, number = begun / groups, group = begun % groups;
    const int64 first = (last - number) * kRows, column = group * kColumns;
    uint32* const solved = args.state + 1 + group;
    for (int k = part; k < kRows; k += kParts) {
        if (row > k) continue;
        Number value{};
        if (first + k < n) value = u[(first + k) * n + first + row];
        diagonal[packed(row, k)] = row == k && first + k < n ? reciprocal(value) : value;
    }
    const bool has_column = warp < kColumns && column + warp < args.columns;
    Number* const own_x = x + (column + warp) * n + first + lane;
    Number y[2] = {};
#pragma unroll
    for (int half = 0; half < 2; ++half)
        if (has_column && first + half * kWarp + lane < n) y[half] = own_x[half * kWarp];
    Number found[kColumns] = {};
    for (int64 t = 0; t < number; ++t) {
        const int64 from = (last - t) * kRows;
        Number own[kOwn];
#pragma unroll
        for (int q = 0; q < kOwn; ++q) {
            const int64 k = from + q * kParts + part;
            own[q] = k < n ? u[k * n + first + row] : Number{};
        }
        if (threadIdx.x == 0) wait_for(solved, t + 1);
        __syncthreads();  // after which nobody reads `right` of the rows before, either
        for (int i = threadIdx.x; i < kRows * kColumns; i += kUpperThreads) {
            const int64 k = from + i % kRows, c = column + i / kRows;
            right[i % kRows][i / kRows] =
                k < n && c < args.columns ? __ldcg(x + c * n + k) : Number{};
        }
        __syncthreads();
#pragma unroll
        for (int q = 0; q < kOwn; ++q)
#pragma unroll
            for (int c = 0; c < kColumns; ++c)
                multiply_add(found[c], own[q], right[q * kParts + part][c]);
    }
#pragma unroll
    for (int half = 1; half >= 0; --half) {
        if (part / 2 == half) {
#pragma unroll
            for (int c = 0; c < kColumns; ++c) {
                Number& sum = sums[part % 2][c][row];
                sum = half ? found[c] : Number{sum.x + found[c].x, sum.y + found[c].y};
            }
        }
        __syncthreads();
    }
    if (has_column) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const Number sum = sums[i][warp][half * kWarp + lane];
                y[half].x -= sum.x, y[half].y -= sum.y;
            }
        }
        solve_triangle(diagonal, lane, y);
#pragma unroll
        for (int half = 0; half < 2; ++half)
            if (first + half * kWarp + lane < n) own_x[half * kWarp] = y[half];
    }
    __syncthreads();
    if (threadIdx.x == 0)
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(solved) : "memory");
}
