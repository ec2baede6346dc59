// Gates without tensor cores: sums of products in fp32 or fp64, and matrices of one entry a row.
#pragma once
#include "tile.cuh"

template <typename Real>
struct Parts;
template <>
struct Parts<float> {
    using Complex = float2;
    static constexpr int kRows = 8;  // of the result that a thread sums at a time
};
template <>
struct Parts<double> {
    using Complex = double2;
    static constexpr int kRows = 4;
};

constexpr int kMostHeld = 16 * 1024;

template <typename Complex>
__device__ __forceinline__ void add_product(Complex& sum, Complex u, Complex x) {
    sum.x += u.x * x.x;
    sum.y += u.x * x.y;
    sum.x -= u.y * x.y;
    sum.y += u.y * x.x;
}

// Two rows of two columns at an address, the rows' masks given. Inside: qubit 0 is a target, so that a
// chunk holds both rows of a column; else it holds both columns of a row.
template <bool Inside>
__device__ __forceinline__ void read_square(float2 (&x)[2][2], uint32 stage, uint32 at, uint32 first,
                                            uint32 second, uint32 pair) {
    const float4 a = load_shared_16(stage + (at ^ first));
    const float4 b = load_shared_16(stage + (at ^ (Inside ? first ^ pair : second)));
    x[0][0] = {a.x, a.y};
    x[1][1] = {b.z, b.w};
    x[Inside ? 1 : 0][Inside ? 0 : 1] = {a.z, a.w};
    x[Inside ? 0 : 1][Inside ? 1 : 0] = {b.x, b.y};
}

template <bool Inside>
__device__ __forceinline__ void read_square(double2 (&x)[2][2], uint32 stage, uint32 at, uint32 first,
                                            uint32 second, uint32 pair) {
#pragma unroll
    for (int column = 0; column < 2; ++column) {
        x[0][column] = load_shared_pair(stage + (at ^ first ^ (column ? pair : 0)));
        x[1][column] = load_shared_pair(stage + (at ^ second ^ (column ? pair : 0)));
    }
}

template <bool Inside>
__device__ __forceinline__ void write_square(const float2 (&x)[2][2], uint32 stage, uint32 at,
                                             uint32 first, uint32 second, uint32 pair) {
    const float2 a = x[Inside ? 1 : 0][Inside ? 0 : 1], b = x[Inside ? 0 : 1][Inside ? 1 : 0];
    store_shared_16(stage + (at ^ first), {x[0][0].x, x[0][0].y, a.x, a.y});
    store_shared_16(stage + (at ^ (Inside ? first ^ pair : second)), {b.x, b.y, x[1][1].x, x[1][1].y});
}

template <bool Inside>
__device__ __forceinline__ void write_square(const double2 (&x)[2][2], uint32 stage, uint32 at,
                                             uint32 first, uint32 second, uint32 pair) {
#pragma unroll
    for (int column = 0; column < 2; ++column) {
        store_shared_pair(stage + (at ^ first ^ (column ? pair : 0)), x[0][column]);
        store_shared_pair(stage + (at ^ second ^ (column ? pair : 0)), x[1][column]);
    }
}

// Each thread sums some rows of two columns. With all rows in one thread nobody else reads its columns,
// and results take their place at once.
template <typename Real, int Width, bool Inside, int TileBytes, int Threads, int Stages>
__device__ __forceinline__ void sum_gate(const GateArguments& args) {
    using Complex = typename Parts<Real>::Complex;
    constexpr int kOrder = 1 << Width;
    constexpr int kRows = kOrder < Parts<Real>::kRows ? kOrder : Parts<Real>::kRows;
    constexpr int kColumnBits = log_of(TileBytes / static_cast<int>(sizeof(Complex)) / kOrder) - 1;
    constexpr int kThreadBits = log_of(Threads);
    constexpr int kReadBits = kColumnBits < kThreadBits ? kColumnBits : kThreadBits;
    constexpr int kUnits = 1 << (kColumnBits - kReadBits);
    static_assert(kUnits <= 4 && (kUnits == 1 || kRows == kOrder), "rows or columns fill a block");
    static_assert(kReadBits + log_of(kOrder / kRows) == kThreadBits, "each sum has one thread");

    extern __shared__ __align__(1024) unsigned char memory[];
    // The matrix comes transposed: a thread's rows lie together. A large one is read through the cache.
    constexpr bool kHeld = kOrder * kOrder * sizeof(Complex) <= kMostHeld;
    __shared__ __align__(16) Complex held[kHeld ? kOrder * kOrder : 1];
    __shared__ uint32 rows[kOrder];
    const uint32 ring = shared_address(memory);
    const TileMover<TileBytes, Threads, Stages> mover(args);
    mover.load_first(ring);

    const auto* given = static_cast<const Complex*>(args.matrix);
    if constexpr (kHeld) {
        for (int i = threadIdx.x; i < kOrder * kOrder; i += Threads) held[i] = given[i];
    }
    const Complex* matrix = kHeld ? held : given;
    if (threadIdx.x < kOrder) rows[threadIdx.x] = combine_masks<Width>(args.row_mask, threadIdx.x);
    const uint32 columns = combine_masks<kReadBits>(args.read_mask, threadIdx.x);
    const int first_row = static_cast<int>(threadIdx.x >> kReadBits) * kRows;

    uint32 stage = ring;
    for (uint32 tile = blockIdx.x; tile < args.tiles; tile += gridDim.x) {
        wait_copies<Stages - 1>();
        __syncthreads();
#pragma unroll 1
        for (int unit = 0; unit < kUnits; ++unit) {
            const uint32 at = columns ^ combine_masks<log_of(kUnits)>(args.unit_mask, unit);
            Complex sums[kRows][2] = {};
#pragma unroll 4
            for (int s = 0; s < kOrder; s += 2) {
                Complex x[2][2];
                read_square<Inside>(x, stage, at, rows[s], rows[s + 1], args.pair_mask);
#pragma unroll
                for (int term = 0; term < 2; ++term) {
#pragma unroll
                    for (int r = 0; r < kRows; ++r) {
                        const Complex u = matrix[(s + term) * kOrder + first_row + r];
                        add_product(sums[r][0], u, x[term][0]);
                        add_product(sums[r][1], u, x[term][1]);
                    }
                }
            }
            if constexpr (kRows < kOrder) __syncthreads();
#pragma unroll
            for (int r = 0; r < kRows; r += 2) {
                const Complex square[2][2] = {{sums[r][0], sums[r][1]}, {sums[r + 1][0], sums[r + 1][1]}};
                write_square<Inside>(square, stage, at, rows[first_row + r], rows[first_row + r + 1],
                                     args.pair_mask);
            }
        }
        __syncthreads();
        mover.exchange(tile, stage);
        stage = next_stage<TileBytes, Stages>(stage, ring);
    }
}

__device__ __forceinline__ float2 complex_times(float2 u, float2 x) {
    return {u.x * x.x - u.y * x.y, u.x * x.y + u.y * x.x};
}

__device__ __forceinline__ double2 complex_times(double2 u, double2 x) {
    return {u.x * x.x - u.y * x.y, u.x * x.y + u.y * x.x};
}

// A matrix with one entry a row and column comes as the rows' entries, then their columns. Each thread
// fetches what its own chunks become: no sums.
template <typename Real, int Width, bool Inside, int TileBytes, int Threads, int Stages>
__device__ __forceinline__ void permute_gate(const GateArguments& args) {
    using Complex = typename Parts<Real>::Complex;
    using Mover = TileMover<TileBytes, Threads, Stages>;
    constexpr int kOrder = 1 << Width;
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ Complex factors[kOrder];
    __shared__ uint32 moves[kOrder];  // from a row's place to that of the row that it takes
    const uint32 ring = shared_address(memory);
    const Mover mover(args);
    mover.load_first(ring);
    if (threadIdx.x < kOrder) {
        const auto* given = static_cast<const Complex*>(args.matrix);
        const uint32 column = reinterpret_cast<const uint32*>(given + kOrder)[threadIdx.x];
        factors[threadIdx.x] = given[threadIdx.x];
        moves[threadIdx.x] = combine_masks<Width>(args.row_mask, threadIdx.x ^ column);
    }
    const uint32 thread_row = combine_masks<Mover::kThreadBits>(args.thread_row, threadIdx.x);

    uint32 stage = ring;
    for (uint32 tile = blockIdx.x; tile < args.tiles; tile += gridDim.x) {
        wait_copies<Stages - 1>();
        __syncthreads();
        char* target = mover.source + tile_offset(args, tile);
#pragma unroll
        for (int i = 0; i < Mover::kChunks; ++i) {
            const uint32 row = thread_row ^ args.chunk_row[i];
            const uint32 own = mover.mask ^ args.chunk_mask[i];
            float4 found;
            if constexpr (sizeof(Real) == 8) {
                const double2 x =
                    complex_times(factors[row], load_shared_pair(stage + (own ^ moves[row])));
                found = {__int_as_float(__double2loint(x.x)), __int_as_float(__double2hiint(x.x)),
                         __int_as_float(__double2loint(x.y)), __int_as_float(__double2hiint(x.y))};
            } else if constexpr (Inside) {
                const float2 low = complex_times(factors[row], load_shared_8(stage + (own ^ moves[row])));
                const float2 high =
                    complex_times(factors[row + 1], load_shared_8(stage + (own ^ 8 ^ moves[row + 1])));
                found = {low.x, low.y, high.x, high.y};
            } else {
                const float4 x = load_shared_16(stage + (own ^ moves[row]));
                const float2 low = complex_times(factors[row], {x.x, x.y});
                const float2 high = complex_times(factors[row], {x.z, x.w});
                found = {low.x, low.y, high.x, high.y};
            }
            put_chunk(args, target + args.chunk_offset[i], found);
        }
        __syncthreads();
        mover.load(tile + Stages * gridDim.x, stage);
        stage = next_stage<TileBytes, Stages>(stage, ring);
    }
}

// States that are smaller than a tile: one block, every sum apart. `tiles` counts the amplitudes that
// the gate may change, row_mask the targets' bits of their numbers.
template <typename Real, int Width, int Threads>
__device__ __forceinline__ void small_gate(const GateArguments& args) {
    using Complex = typename Parts<Real>::Complex;
    extern __shared__ __align__(1024) unsigned char memory[];
    auto* held = reinterpret_cast<Complex*>(memory);
    const auto* matrix = static_cast<const Complex*>(args.matrix);
    for (uint32 i = threadIdx.x; i < args.tiles; i += Threads) {
        held[i] = *reinterpret_cast<const Complex*>(args.state + tile_offset(args, i));
    }
    __syncthreads();
    uint32 targets = 0;
#pragma unroll
    for (int bit = 0; bit < Width; ++bit) targets |= args.row_mask[bit];
    for (uint32 i = threadIdx.x; i < args.tiles; i += Threads) {
        uint32 row = 0;
#pragma unroll
        for (int bit = 0; bit < Width; ++bit) row |= (i & args.row_mask[bit] ? 1u : 0u) << bit;
        Complex sum = {};
        for (uint32 s = 0; s < 1u << Width; ++s) {
            const uint32 from = (i & ~targets) | combine_masks<Width>(args.row_mask, s);
            add_product(sum, matrix[(s << Width) + row], held[from]);
        }
        *reinterpret_cast<Complex*>(args.state + tile_offset(args, i)) = sum;
    }
}
