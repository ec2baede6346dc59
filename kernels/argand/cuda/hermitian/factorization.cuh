// R = L D L^H in registers. Step k publishes column k of L D, which stays in the factors; each
// thread then subtracts (v / d) v^H of it from its elements, and (v / d) y_k from its right-hand
// sides.
#pragma once
#include "group.cuh"

// A pivot that is not in [kSmallest, kLargest] has no reciprocal.
template <typename Real>
struct Pivot;
template <>
struct Pivot<float> {
    static constexpr float kSmallest = 0x1p-126f, kLargest = 0x1p126f;
    static __device__ __forceinline__ float quotient(float d) {
        float x;
        asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(x) : "f"(d));
        return fmaf(x, fmaf(-d, x, 1.0f), x);
    }
};
template <>
struct Pivot<double> {
    static constexpr double kSmallest = 0x1p-1022, kLargest = 0x1p1022;
    static __device__ __forceinline__ double quotient(double d) { return 1.0 / d; }
};

template <typename Real>
__device__ __forceinline__ Real pivot_reciprocal(Real d) {
    const Real found = Pivot<Real>::quotient(d);
    return d >= Pivot<Real>::kSmallest && d <= Pivot<Real>::kLargest
               ? found
               : static_cast<Real>(not_a_number());
}

template <typename Real, HermitianPlan plan>
struct HermitianFactorization : HermitianGroup<Real, plan> {
    using Group = HermitianGroup<Real, plan>;
    using typename Group::Value;
    using Group::exchange, Group::factors, Group::i, Group::inside, Group::j, Group::sync;
    static constexpr int N = Group::N, P = Group::P, T = Group::T, S = Group::S;

    // Where a step finds rows i and j of its column of the factors, and its pivot. Columns are
    // stored from the diagonal on, so the address of a row above it lies in another column and is
    // not read.
    struct Places {
        Value *at_i, *at_j, *pivot;
    };

    __device__ __forceinline__ void factor(Value (&a)[P][P], Value (&y)[P][S]) const {
        factor_block<0>(a, y, Places{factors + i, factors + j, factors});
    }

    // Runs the steps [block T, block T + T) and all after them.
    template <int block>
    __device__ __forceinline__ void factor_block(Value (&a)[P][P], Value (&y)[P][S],
                                                 Places at) const {
#pragma unroll 1
        for (int step = 0; step < Group::rows_of(block); ++step) {
            const int k = block * T + step;
            Value* const row = exchange + (step & 1) * plan.width() + j;
            if (j == step) publish_column<block>(a, at.at_i, step);
            if constexpr (plan.fused) {
                if (i == step) {
#pragma unroll
                    for (int s = 0; s < S; ++s) row[T * s] = y[block][s];
                }
            }
            sync();
            Value l[P];
            column_of_l<block>(l, at, step);
#pragma unroll
            for (int q = block; q < P; ++q) {
                const Value v = inside(j, q) ? at.at_j[T * q] : Value{0, 0};
#pragma unroll
                for (int p = q; p < P; ++p) subtract_conjugate(a[p][q], l[p], v);
            }
            if constexpr (plan.fused) {
#pragma unroll
                for (int s = 0; s < S; ++s) {
                    const Value of_row = row[T * s];
#pragma unroll
                    for (int p = block; p < P; ++p) subtract_product(y[p][s], l[p], of_row);
                }
            }
            at = {at.at_i + N - 1 - k, at.at_j + N - 1 - k, at.pivot + N - k};
        }
        if constexpr (block + 1 < P) factor_block<block + 1>(a, y, at);
    }

    // Writes what this thread holds of a column, from the diagonal on.
    template <int block>
    __device__ __forceinline__ void publish_column(const Value (&a)[P][P], Value* at_i,
                                                   int step) const {
        const Value d = a[block][block];
        const Value first = i == step ? Value{d.x, pivot_reciprocal(d.x)} : d;
        if (i >= step && inside(i, block)) at_i[T * block] = first;
#pragma unroll
        for (int p = block + 1; p < P; ++p)
            if (inside(i, p)) at_i[T * p] = a[p][block];
    }

    // Rows below the diagonal of a column of L; 0 in other rows.
    template <int block>
    __device__ __forceinline__ void column_of_l(Value (&l)[P], const Places& at, int step) const {
        const Real reciprocal = at.pivot->y;
#pragma unroll
        for (int p = block; p < P; ++p) {
            const bool below = (p > block || i > step) && inside(i, p);
            const Value v = below ? at.at_i[T * p] : Value{0, 0};
            l[p] = {v.x * reciprocal, v.y * reciprocal};
        }
    }
};
