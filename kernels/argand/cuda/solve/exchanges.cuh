// The row exchanges of a panel, composed and applied on the GPU, so that the host need not wait for
// the pivots.
#pragma once
#include "device/types.cuh"

struct Move {
    int to, source;
};

struct OrderArguments {
    const int* pivots;  // (columns,), counted from 1, as getrf leaves them
    int* scratch;       // (rows,) where they do not fit shared memory, else null
    int64* order;       // (rows,): which row stands where afterwards
    Move* moves;        // (2 columns,): the rows that may have moved, some of them twice
    int columns, rows;
};

// Launched as one block. Each exchange depends on those before it, so one thread applies them all,
// in shared memory.
__device__ __forceinline__ void order_of_exchanges(const OrderArguments& args) {
    extern __shared__ int shared_pivots[];
    int* const pivots = shared_pivots;
    int* const place = args.scratch ? args.scratch : pivots + args.columns;
    for (int i = threadIdx.x; i < args.columns; i += blockDim.x)
        // Beyond a column without a pivot there may be NaN, for which the library's pivots need not
        // be rows; the host raises when it sees that column.
        pivots[i] = min(max(args.pivots[i] - 1, i), args.rows - 1);
    for (int i = threadIdx.x; i < args.rows; i += blockDim.x) place[i] = i;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 0; i < args.columns; ++i) {
            const int pivot = pivots[i], row = place[i];
            place[i] = place[pivot];
            place[pivot] = row;
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < args.rows; i += blockDim.x) args.order[i] = place[i];
    for (int i = threadIdx.x; i < args.columns; i += blockDim.x) {
        args.moves[i] = {i, place[i]};
        args.moves[args.columns + i] = {pivots[i], place[pivots[i]]};
    }
}

struct MoveArguments {
    const Move* moves;
    void* rows;     // the first row that may move
    int64 pitch;    // from row to row, in elements
    int count;      // of moves
    int first;      // columns [first, last) stay
    int last;
    int columns;
    int width_bits;  // a block moves 2^width_bits columns
};

// Each block brings some columns into order: it reads every row that moves before it writes one.
template <class Element>
__device__ __forceinline__ void move_rows(const MoveArguments& args) {
    extern __shared__ ulonglong2 shared_elements[];
    Element* const kept = reinterpret_cast<Element*>(shared_elements);
    const int block_width = 1 << args.width_bits;
    const int left_blocks = (args.first + block_width - 1) / block_width;
    const int block = blockIdx.x;
    const bool left = block < left_blocks;
    const int start = left ? block * block_width : args.last + (block - left_blocks) * block_width;
    const int width = min(block_width, (left ? args.first : args.columns) - start);
    Element* const rows = static_cast<Element*>(args.rows) + start;
    const int values = args.count << args.width_bits, column = threadIdx.x & (block_width - 1);
    // Loads that are in flight at a time; stores to shared memory would hold back later ones.
    constexpr int kTogether = 8;
    for (int first = threadIdx.x; first < values && column < width;
         first += kTogether * blockDim.x) {
        Element found[kTogether];
#pragma unroll
        for (int j = 0; j < kTogether; ++j) {
            const int i = first + j * blockDim.x;
            if (i < values)
                found[j] = rows[args.moves[i >> args.width_bits].source * args.pitch + column];
        }
#pragma unroll
        for (int j = 0; j < kTogether; ++j)
            if (first + j * blockDim.x < values) kept[first + j * blockDim.x] = found[j];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < values && column < width; i += blockDim.x)
        rows[args.moves[i >> args.width_bits].to * args.pitch + column] = kept[i];
}
