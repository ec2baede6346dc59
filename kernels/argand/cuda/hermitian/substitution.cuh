// L y = b and D L^H x = y from the factors, a few rows at a time: each thread solves these rows of
// its right-hand sides alike, then subtracts what they add to its other rows.
#pragma once
#include "group.cuh"

template <typename Real, HermitianPlan plan>
struct HermitianSubstitution : HermitianGroup<Real, plan> {
    using Group = HermitianGroup<Real, plan>;
    using typename Group::Value;
    using Group::exchange, Group::factors, Group::i, Group::inside, Group::j, Group::sync;
    static constexpr int N = Group::N, P = Group::P, T = Group::T, S = Group::S;
    static constexpr int kRows = plan.exchanged_rows();
    static constexpr int kWidth = plan.width();

    // Solves L y = b, from the first row on, where y holds b.
    __device__ __forceinline__ void forward(Value (&y)[P][S]) const {
#pragma unroll 1
        for (int k = 0; k < N; k += kRows) {
            const int part = k / T, place = i - k % T;
            Value x[kRows][S];
            take_rows(x, y, part, place);
            int starts[kRows];
            column_starts(starts, k);
#pragma unroll
            for (int m = 0; m < kRows; ++m) {
                if (beyond(k + m)) continue;
                if (place == m) keep_row(y, x[m], part);  // y is not divided by d
                divide(x[m], starts[m] + k + m);
#pragma unroll
                for (int l = m + 1; l < kRows; ++l)
                    if (!beyond(k + l)) subtract(x[l], factors[starts[m] + k + l], x[m]);
            }
#pragma unroll
            for (int p = 0; p < P; ++p) {
                if (p < part) continue;
                const bool below = (p > part || place >= kRows) && inside(i, p);
#pragma unroll
                for (int m = 0; m < kRows; ++m) {  // where rows are beyond, none is below
                    const Value v = below ? factors[starts[m] + i + T * p] : Value{0, 0};
                    subtract(y[p], v, x[m]);
                }
            }
        }
    }

    // Solves D L^H x = y, from the last row back, in the place of y.
    __device__ __forceinline__ void backward(Value (&y)[P][S]) const {
#pragma unroll 1
        for (int k = (N - 1) / kRows * kRows; k >= 0; k -= kRows) {
            const int part = k / T, place = i - k % T;
            Value x[kRows][S];
            take_rows(x, y, part, place);
            int starts[kRows];
            column_starts(starts, k);
#pragma unroll
            for (int m = kRows - 1; m >= 0; --m) {
                if (beyond(k + m)) continue;
                divide(x[m], starts[m] + k + m);
                if (place == m) keep_row(y, x[m], part);
#pragma unroll
                for (int l = 0; l < m; ++l)
                    subtract(x[l], conjugate(factors[starts[l] + k + m]), x[m]);
            }
#pragma unroll
            for (int p = 0; p < P; ++p) {
                if (p > part) continue;
                const bool above = p < part || place < 0;
                const Value* const column = factors + Group::column_start(i + T * p) + k;
#pragma unroll
                for (int m = 0; m < kRows; ++m) {
                    const bool read = above && !beyond(k + m);
                    subtract(y[p], read ? conjugate(column[m]) : Value{0, 0}, x[m]);
                }
            }
        }
    }

    // Whether a row lies beyond the matrix; the last rows of a step may.
    static __device__ __forceinline__ bool beyond(int row) { return N % kRows != 0 && row >= N; }

    static __device__ __forceinline__ Value conjugate(Value v) { return {v.x, -v.y}; }

    static __device__ __forceinline__ void column_starts(int (&starts)[kRows], int first) {
#pragma unroll
        for (int m = 0; m < kRows; ++m) starts[m] = Group::column_start(first + m);
    }

    // Takes kRows rows of a part for this thread's right-hand sides; the thread itself holds the
    // row at its place.
    __device__ __forceinline__ void take_rows(Value (&x)[kRows][S], const Value (&y)[P][S],
                                              int part, int place) const {
        sync();  // the rows before may still be read
        if (place >= 0 && place < kRows) {
#pragma unroll
            for (int p = 0; p < P; ++p) {
                if (p != part) continue;
#pragma unroll
                for (int s = 0; s < S; ++s) exchange[place * kWidth + j + T * s] = y[p][s];
            }
        }
        sync();
#pragma unroll
        for (int m = 0; m < kRows; ++m) {
#pragma unroll
            for (int s = 0; s < S; ++s) x[m][s] = exchange[m * kWidth + j + T * s];
        }
    }

    __device__ __forceinline__ void keep_row(Value (&y)[P][S], const Value (&x)[S],
                                             int part) const {
#pragma unroll
        for (int p = 0; p < P; ++p) {
            if (p != part) continue;
#pragma unroll
            for (int s = 0; s < S; ++s) y[p][s] = x[s];
        }
    }

    // Divides a row by its pivot.
    __device__ __forceinline__ void divide(Value (&x)[S], int pivot) const {
        const Real reciprocal = factors[pivot].y;
#pragma unroll
        for (int s = 0; s < S; ++s) x[s] = {x[s].x * reciprocal, x[s].y * reciprocal};
    }

    static __device__ __forceinline__ void subtract(Value (&y)[S], Value v, const Value (&x)[S]) {
#pragma unroll
        for (int s = 0; s < S; ++s) subtract_product(y[s], v, x[s]);
    }
};
