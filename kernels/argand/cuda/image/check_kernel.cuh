// Checks the operands of an image before its power is computed: finds the largest component of each
// covariance and whether the covariance is Hermitian, and completes directions of two columns to
// unit vectors. The power of operands that fail is NaN. The kernel also sets a word in memory of
// the host, which then checks the operands itself and says what is wrong.
#pragma once
#include "device/scaling.cuh"
#include "refused_operands.cuh"

constexpr int kCheckThreads = 256;

struct CheckArguments {
    const float2* covariances;  // (matrices, antennas, antennas)
    uint32* largest;            // (matrices, parts) largest finite component, as bits of fp32, or
                                // kNotHermitian
    const double* directions;   // (direction_count, columns)
    double* unit_vectors;       // (direction_count, 3), written where there are two columns
    uint32* suspect;            // in memory of the host; null where it is not read
    double longest_square;      // largest |direction|^2
    double hermitian;           // largest |R_ab - conj(R_ba)| over the largest |R_ab|
    int matrices;
    int parts;  // blocks of a matrix
    int antennas;
    int direction_count;
    int columns;  // 2 (l and m) or 3
};

// The bits of a modulus, 0 of NaN: a matrix with NaN passes.
__device__ __forceinline__ uint32 modulus_bits(float2 x) {
    const float size = hypotf(x.x, x.y);
    return is_nan(size) ? 0 : __float_as_uint(size);
}

// A block's part of the rows; each warp takes some, so that no index is divided. The largest entry
// is that of the part, at most that of the matrix, so what is apart is always found.
__device__ __forceinline__ void check_covariance(const CheckArguments& args, uint32 block) {
    __shared__ uint32 largest[3];
    if (threadIdx.x < 3) largest[threadIdx.x] = 0;
    __syncthreads();
    constexpr int kWarps = kCheckThreads / kWarp;
    const int part = static_cast<int>(block % args.parts);
    const int64 size_of_matrix = int64(args.antennas) * args.antennas;
    const float2* r = args.covariances + block / args.parts * size_of_matrix;
    uint32 component = 0, entry = 0, apart = 0;
    for (int row = part * kWarps + threadIdx.x / kWarp; row < args.antennas;
         row += args.parts * kWarps) {
        for (int column = threadIdx.x % kWarp; column <= row; column += kWarp) {
            const float2 x = r[int64(row) * args.antennas + column],
                         y = r[int64(column) * args.antennas + row];
            component = max(component, max(component_absmax_bits(x), component_absmax_bits(y)));
            entry = max(entry, max(modulus_bits(x), modulus_bits(y)));
            apart = max(apart, modulus_bits({x.x - y.x, x.y + y.y}));
        }
    }
    atomicMax(&largest[0], component);
    atomicMax(&largest[1], entry);
    atomicMax(&largest[2], apart);
    __syncthreads();
    if (threadIdx.x != 0) return;
    const float size = __uint_as_float(largest[1]);
    const double off = __uint_as_float(largest[2]);
    const bool wrong = is_finite(size) && off > args.hermitian * size;
    args.largest[block] = wrong ? kNotHermitian : largest[0];
    if (wrong && args.suspect) *args.suspect = 1;
}

__device__ __forceinline__ void check_direction(const CheckArguments& args, int64 number) {
    if (number >= args.direction_count) return;
    const double* s = args.directions + number * args.columns;
    double square;
    if (args.columns == 3) {
        square = square_of(s);
    } else {
        square = square_of(s[0], s[1]);
        double* to = args.unit_vectors + 3 * number;
        to[0] = s[0], to[1] = s[1], to[2] = sqrt(fmax(0.0, 1.0 - square));
    }
    if (!(square <= args.longest_square) && args.suspect) *args.suspect = 1;  // NaN too
}

// A block for each part of each matrix, then one for each 256 directions.
__device__ __forceinline__ void check_operands(const CheckArguments& args) {
    const uint32 parts = uint32(args.matrices) * args.parts;
    if (blockIdx.x < parts) {
        check_covariance(args, blockIdx.x);
    } else {
        check_direction(args, int64(blockIdx.x - parts) * kCheckThreads + threadIdx.x);
    }
}
