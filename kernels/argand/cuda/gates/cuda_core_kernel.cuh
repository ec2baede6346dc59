// Gates without tensor cores: fma in fp32 or fp64, monomial matrices, and states smaller than a
// tile. Tiles of the state come from TilePipeline or WalkingPipeline (tile.cuh), are updated in
// shared memory and stored back.
#pragma once
#include "device/complex.cuh"
#include "tile.cuh"

// Rows of the result that a thread accumulates at a time.
template <typename Real>
constexpr int kMaxRows = sizeof(Real) == 4 ? 8 : 4;

constexpr int kMaxSharedMatrixBytes = 16 * 1024;

// Loads two rows of two columns at an address, with the masks of the rows. Where qubit 0 is a
// target, a chunk holds both rows of a column; else both columns of a row.
template <bool TargetsQubit0>
__device__ __forceinline__ void load_2x2(float2 (&x)[2][2], uint32 stage, uint32 at, uint32 first,
                                         uint32 second, uint32 pair) {
    const float4 a = load_shared_16(stage + (at ^ first));
    const float4 b = load_shared_16(stage + (at ^ (TargetsQubit0 ? first ^ pair : second)));
    x[0][0] = {a.x, a.y};
    x[1][1] = {b.z, b.w};
    x[TargetsQubit0 ? 1 : 0][TargetsQubit0 ? 0 : 1] = {a.z, a.w};
    x[TargetsQubit0 ? 0 : 1][TargetsQubit0 ? 1 : 0] = {b.x, b.y};
}

template <bool TargetsQubit0>
__device__ __forceinline__ void load_2x2(double2 (&x)[2][2], uint32 stage, uint32 at, uint32 first,
                                         uint32 second, uint32 pair) {
#pragma unroll
    for (int column = 0; column < 2; ++column) {
        x[0][column] = load_shared_pair(stage + (at ^ first ^ (column ? pair : 0)));
        x[1][column] = load_shared_pair(stage + (at ^ second ^ (column ? pair : 0)));
    }
}

template <bool TargetsQubit0>
__device__ __forceinline__ void store_2x2(const float2 (&x)[2][2], uint32 stage, uint32 at,
                                          uint32 first, uint32 second, uint32 pair) {
    const float2 a = x[TargetsQubit0 ? 1 : 0][TargetsQubit0 ? 0 : 1],
                 b = x[TargetsQubit0 ? 0 : 1][TargetsQubit0 ? 1 : 0];
    store_shared_16(stage + (at ^ first), {x[0][0].x, x[0][0].y, a.x, a.y});
    store_shared_16(stage + (at ^ (TargetsQubit0 ? first ^ pair : second)),
                    {b.x, b.y, x[1][1].x, x[1][1].y});
}

template <bool TargetsQubit0>
__device__ __forceinline__ void store_2x2(const double2 (&x)[2][2], uint32 stage, uint32 at,
                                          uint32 first, uint32 second, uint32 pair) {
#pragma unroll
    for (int column = 0; column < 2; ++column) {
        store_shared_pair(stage + (at ^ first ^ (column ? pair : 0)), x[0][column]);
        store_shared_pair(stage + (at ^ second ^ (column ? pair : 0)), x[1][column]);
    }
}

// Multiplies rows of the transposed matrix, from `first_row` on, with two columns of the tile. A
// thread finds these at `at` and the masks of the rows. The address of the first row would take a
// register more than its number does, which 6 and 7 qubits lack.
template <bool TargetsQubit0, int Order, int Rows, typename Number>
__device__ __forceinline__ void multiply_columns(Number (&accumulators)[Rows][2],
                                                 const Number* matrix, int first_row,
                                                 uint32 stage, uint32 at, const uint32* row_masks,
                                                 uint32 pair_mask) {
#pragma unroll 4
    for (int s = 0; s < Order; s += 2) {
        Number x[2][2];
        load_2x2<TargetsQubit0>(x, stage, at, row_masks[s], row_masks[s + 1], pair_mask);
#pragma unroll
        for (int term = 0; term < 2; ++term) {
#pragma unroll
            for (int r = 0; r < Rows; ++r) {
                const Number u = matrix[(s + term) * Order + first_row + r];
                multiply_add(accumulators[r][0], u, x[term][0]);
                multiply_add(accumulators[r][1], u, x[term][1]);
            }
        }
    }
}

// A dense matrix. Each thread accumulates some rows of two columns. Where it has all rows, no other
// thread reads its columns, and results overwrite them without a barrier.
template <typename Real, int Width, bool TargetsQubit0, int TileBytes, int Threads, int Stages>
__device__ __forceinline__ void fma_gate(const GateArguments& args) {
    using Number = Complex<Real>;
    constexpr int kOrder = 1 << Width;
    constexpr int kRows = kOrder < kMaxRows<Real> ? kOrder : kMaxRows<Real>;
    constexpr int kColumnBits = log2_of(TileBytes / static_cast<int>(sizeof(Number)) / kOrder) - 1;
    constexpr int kThreadBits = log2_of(Threads);
    constexpr int kReadBits = kColumnBits < kThreadBits ? kColumnBits : kThreadBits;
    constexpr int kColumnSteps = 1 << (kColumnBits - kReadBits);
    static_assert(kColumnSteps <= 4 && (kColumnSteps == 1 || kRows == kOrder),
                  "rows or columns fill a block");
    static_assert(kReadBits + log2_of(kOrder / kRows) == kThreadBits,
                  "each accumulator has one thread");

    extern __shared__ __align__(1024) unsigned char memory[];
    // The matrix is transposed, so that a thread's rows are contiguous. A large one is read through
    // L1.
    constexpr bool kMatrixInShared = kOrder * kOrder * sizeof(Number) <= kMaxSharedMatrixBytes;
    __shared__ __align__(16) Number shared_matrix[kMatrixInShared ? kOrder * kOrder : 1];
    __shared__ uint32 row_masks[kOrder];
    const uint32 ring = shared_address(memory);
    WalkingPipeline<TileBytes, Threads, Stages> pipeline(args);
    pipeline.load_prologue(ring);

    const auto* global_matrix = static_cast<const Number*>(args.matrix);
    if constexpr (kMatrixInShared) {
        for (int i = threadIdx.x; i < kOrder * kOrder; i += Threads)
            shared_matrix[i] = global_matrix[i];
    }
    const Number* matrix = kMatrixInShared ? shared_matrix : global_matrix;
    if (threadIdx.x < kOrder) row_masks[threadIdx.x] = xor_masks<Width>(args.row_mask, threadIdx.x);
    const uint32 column_address = xor_masks<kReadBits>(args.read_mask, threadIdx.x);
    const int first_row = static_cast<int>(threadIdx.x >> kReadBits) * kRows;

    uint32 stage = ring;
    TileWalk tile(args);
    for (bool more = true; more; more = tile.next(args)) {
        cp_async_wait<Stages - 1>();
        __syncthreads();
#pragma unroll 1
        for (int column_step = 0; column_step < kColumnSteps; ++column_step) {
            const uint32 at =
                column_address ^ xor_masks<log2_of(kColumnSteps)>(args.column_mask, column_step);
            Number accumulators[kRows][2] = {};
            multiply_columns<TargetsQubit0, kOrder>(accumulators, matrix, first_row, stage, at,
                                                    row_masks, args.pair_mask);
            if constexpr (kRows < kOrder) __syncthreads();
#pragma unroll
            for (int r = 0; r < kRows; r += 2) {
                const Number results[2][2] = {{accumulators[r][0], accumulators[r][1]},
                                               {accumulators[r + 1][0], accumulators[r + 1][1]}};
                store_2x2<TargetsQubit0>(results, stage, at, row_masks[first_row + r],
                                         row_masks[first_row + r + 1], args.pair_mask);
            }
        }
        __syncthreads();
        pipeline.store_and_refill(tile, stage);
        stage = next_stage<TileBytes, Stages>(stage, ring);
    }
}

// A monomial matrix, with one entry per row and column: given as the entries of the rows, then
// their columns. Each thread loads the sources of its own chunks, and nothing is accumulated.
template <typename Real, int Width, bool TargetsQubit0, int TileBytes, int Threads, int Stages>
__device__ __forceinline__ void permute_gate(const GateArguments& args) {
    using Number = Complex<Real>;
    using Pipeline = TilePipeline<TileBytes, Threads, Stages>;
    constexpr int kOrder = 1 << Width;
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ Number factors[kOrder];
    __shared__ uint32 source_masks[kOrder];  // from a row's address to that of its source
    const uint32 ring = shared_address(memory);
    const Pipeline pipeline(args);
    pipeline.load_prologue(ring);
    if (threadIdx.x < kOrder) {
        const auto* factors_and_columns = static_cast<const Number*>(args.matrix);
        const uint32 column =
            reinterpret_cast<const uint32*>(factors_and_columns + kOrder)[threadIdx.x];
        factors[threadIdx.x] = factors_and_columns[threadIdx.x];
        source_masks[threadIdx.x] = xor_masks<Width>(args.row_mask, threadIdx.x ^ column);
    }
    const uint32 thread_row = xor_masks<Pipeline::kThreadBits>(args.thread_row, threadIdx.x);

    uint32 stage = ring;
    for (uint32 tile = blockIdx.x; tile < args.tiles; tile += gridDim.x) {
        cp_async_wait<Stages - 1>();
        __syncthreads();
        char* target = pipeline.source + tile_offset(args, tile);
#pragma unroll
        for (int i = 0; i < Pipeline::kChunks; ++i) {
            const uint32 row = thread_row ^ args.chunk_row[i];
            const uint32 address = pipeline.mask ^ args.chunk_mask[i];
            float4 chunk;
            if constexpr (sizeof(Real) == 8) {
                const double2 x = complex_product(
                    factors[row], load_shared_pair(stage + (address ^ source_masks[row])));
                chunk = {__int_as_float(__double2loint(x.x)), __int_as_float(__double2hiint(x.x)),
                         __int_as_float(__double2loint(x.y)), __int_as_float(__double2hiint(x.y))};
            } else if constexpr (TargetsQubit0) {
                const float2 low = complex_product(
                    factors[row], load_shared_8(stage + (address ^ source_masks[row])));
                const float2 high = complex_product(
                    factors[row + 1], load_shared_8(stage + (address ^ 8 ^ source_masks[row + 1])));
                chunk = {low.x, low.y, high.x, high.y};
            } else {
                const float4 x = load_shared_16(stage + (address ^ source_masks[row]));
                const float2 low = complex_product(factors[row], {x.x, x.y});
                const float2 high = complex_product(factors[row], {x.z, x.w});
                chunk = {low.x, low.y, high.x, high.y};
            }
            store_chunk(args, target + args.chunk_offset[i], chunk);
        }
        __syncthreads();
        pipeline.load(tile + Stages * gridDim.x, stage);
        stage = next_stage<TileBytes, Stages>(stage, ring);
    }
}

// A state that is smaller than a tile. A block has whole columns, so none reads what another one
// writes, and a thread one amplitude. Here `args.tiles` is the number of amplitudes that the gate
// may change, and `args.row_mask` has the target bits of their indices, lowest first.
template <typename Real, int Width, int Threads>
__device__ __forceinline__ void small_gate(const GateArguments& args) {
    using Number = Complex<Real>;
    constexpr uint32 kOrder = 1 << Width;
    static_assert(Threads % kOrder == 0, "a block has whole columns");
    __shared__ Number amplitudes[Threads];
    const auto* matrix = static_cast<const Number*>(args.matrix);
    const uint32 number = blockIdx.x * Threads + threadIdx.x;
    const bool taken = number < args.tiles;
    const uint32 row = threadIdx.x % kOrder, column = threadIdx.x - row;
    uint32 index = number >> Width;  // of the column, with a gap for each target
#pragma unroll
    for (int bit = 0; bit < Width; ++bit) {
        const uint32 below = args.row_mask[bit] - 1;
        index = (index & below) | (index & ~below) << 1;
    }
    index |= xor_masks<Width>(args.row_mask, row);
    auto* amplitude = reinterpret_cast<Number*>(args.state + tile_offset(args, index));
    if (taken) amplitudes[threadIdx.x] = *amplitude;
    __syncthreads();
    if (!taken) return;
    Number accumulator = {};
#pragma unroll 8
    for (uint32 s = 0; s < kOrder; ++s)
        multiply_add(accumulator, matrix[s * kOrder + row], amplitudes[column + s]);
    *amplitude = accumulator;
}
