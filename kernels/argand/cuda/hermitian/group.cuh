// A group of side x side threads that solves a system: what its threads hold, and where the factors
// are that all of them read.
#pragma once
#include "plan.cuh"

// x -= a conj(b) and x -= a b.
template <typename Value>
__device__ __forceinline__ void subtract_conjugate(Value& x, Value a, Value b) {
    x.x -= a.x * b.x;
    x.y -= a.y * b.x;
    x.x -= a.y * b.y;
    x.y += a.x * b.y;
}
template <typename Value>
__device__ __forceinline__ void subtract_product(Value& x, Value a, Value b) {
    x.x -= a.x * b.x;
    x.y -= a.x * b.y;
    x.x += a.y * b.y;
    x.y -= a.y * b.x;
}

template <typename Real, HermitianPlan plan>
struct HermitianGroup {
    using Value = Complex<Real>;
    // Rows of the matrix, rows of a thread, threads along a row, right-hand sides of a thread.
    static constexpr int N = plan.n, P = plan.parts(), T = plan.side, S = plan.rhs;
    static constexpr bool kRagged = N % T != 0;

    Value* factors;   // L D: column k begins at k N - k (k - 1) / 2 with its diagonal (d, 1 / d)
    Value* exchange;  // rows of right-hand sides
    int i, j;         // this thread's place in the group

    static __device__ __forceinline__ void sync() {
        if constexpr (plan.group_threads() > kWarp) __syncthreads();
        else __syncwarp();
    }

    // Whether this thread's part of the rows (or columns) is one of the matrix.
    static __device__ __forceinline__ bool inside(int index, int part) {
        return !kRagged || part < P - 1 || index + T * part < N;
    }

    // Rows (or columns) of a block of T.
    static __device__ __forceinline__ constexpr int rows_of(int block) {
        return block < P - 1 || !kRagged ? T : N % T;
    }

    // Index at which row 0 of a column of the factors would stand.
    static __device__ __forceinline__ int column_start(int k) {
        return k * (N - 1) - k * (k - 1) / 2;
    }

    // Elements of the lower triangle; those of the diagonal have no imaginary part.
    __device__ __forceinline__ void load(Value (&a)[P][P], const Value* r) const {
        r += i * N + j;
#pragma unroll
        for (int p = 0; p < P; ++p) {
#pragma unroll
            for (int q = 0; q <= p; ++q) {
                const bool lower = p > q || i >= j;
                a[p][q] = Value{0, 0};
                if (lower && inside(i, p)) a[p][q] = r[p * T * N + q * T];
                if (p == q && i == j) a[p][q].y = 0;
            }
        }
    }

    // `columns` right-hand sides from `first` on.
    __device__ __forceinline__ void load_rhs(Value (&y)[P][S],
                                             const HermitianArguments<Real>& args, int64 system,
                                             int first, int columns) const {
        const int pitch = static_cast<int>(args.columns);
        const Value* const b = args.b + system * args.b_batch + i * pitch + first + j;
#pragma unroll
        for (int p = 0; p < P; ++p) {
#pragma unroll
            for (int s = 0; s < S; ++s) {
                y[p][s] = Value{0, 0};
                if (inside(i, p) && first + j + T * s < columns) y[p][s] = b[p * T * pitch + s * T];
            }
        }
    }

    __device__ __forceinline__ void store(const Value (&y)[P][S],
                                          const HermitianArguments<Real>& args, int64 system,
                                          int first, int columns) const {
        const int pitch = static_cast<int>(args.columns);
        Value* const x = args.x + system * args.x_batch + i * pitch + first + j;
#pragma unroll
        for (int p = 0; p < P; ++p) {
#pragma unroll
            for (int s = 0; s < S; ++s)
                if (inside(i, p) && first + j + T * s < columns) x[p * T * pitch + s * T] = y[p][s];
        }
    }
};
