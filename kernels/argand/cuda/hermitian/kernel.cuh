// Many small Hermitian positive definite systems R X = B in one launch: R = L D L^H and both
// substitutions, without square roots.
//
// A group of side x side threads solves a system. Thread (i, j) of it holds the elements
// (i + side p, j + side q) of R in registers, and rows i + side p of the right-hand sides j + side s.
// Step k publishes column k, v = L D of it, in shared memory, where it stays; each thread then
// subtracts (v / d) v^H from its elements and (v / d) y_k from its right-hand sides. So all of L D
// is in shared memory when the last step ends, and x follows from below: D L^H x = y.
//
// Of a column, packed without what lies above its diagonal, the diagonal element is (d, 1 / d). A
// pivot that is not in [smallest, largest] (docs/kernels/hermitian.md) makes 1 / d NaN, and thereby
// all of x.
#pragma once
#include "plan.cuh"

template <typename Real>
struct Pivot;
template <>
struct Pivot<float> {
    static constexpr float kSmallest = 0x1p-126f, kLargest = 0x1p126f;
    static __device__ __forceinline__ float reciprocal(float d) {
        float x;
        asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(x) : "f"(d));
        return fmaf(x, fmaf(-d, x, 1.0f), x);
    }
};
template <>
struct Pivot<double> {
    static constexpr double kSmallest = 0x1p-1022, kLargest = 0x1p1022;
    static __device__ __forceinline__ double reciprocal(double d) { return 1.0 / d; }
};

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
struct HermitianSolver {
    using Value = Complex<Real>;
    static constexpr int N = plan.n, P = plan.parts(), T = plan.side, S = plan.sides;
    static constexpr bool kRagged = N % T != 0;

    Value* factors;   // column k begins at k N - k (k - 1) / 2
    Value* exchange;  // two rows of right-hand sides, of the step at hand and the one before
    int* failed;
    int i, j;         // of this thread

    static __device__ __forceinline__ void meet() {
        if constexpr (plan.group_threads() > kWarp) __syncthreads();
        else __syncwarp();
    }

    // Whether this thread's part p is a row (or q a column) of the matrix.
    __device__ __forceinline__ bool inside(int index, int part) const {
        return !kRagged || part < P - 1 || index + T * part < N;
    }

    // Steps of a block of T columns.
    static __device__ __forceinline__ constexpr int steps(int block) {
        return block < P - 1 || !kRagged ? T : N % T;
    }

    // Where row 0 of a column would stand.
    static __device__ __forceinline__ int column_start(int k) { return k * (N - 1) - k * (k - 1) / 2; }

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

    __device__ __forceinline__ void load_sides(Value (&y)[P][S], const Value* b, int columns,
                                               int left) const {
        b += i * columns + j;
#pragma unroll
        for (int p = 0; p < P; ++p) {
#pragma unroll
            for (int s = 0; s < S; ++s) {
                y[p][s] = Value{0, 0};
                if (inside(i, p) && j + T * s < left) y[p][s] = b[p * T * columns + s * T];
            }
        }
    }

    __device__ __forceinline__ void store(const Value (&x)[P][S], Value* to, int columns,
                                          int left) const {
        to += i * columns + j;
#pragma unroll
        for (int p = 0; p < P; ++p) {
#pragma unroll
            for (int s = 0; s < S; ++s)
                if (inside(i, p) && j + T * s < left) to[p * T * columns + s * T] = x[p][s];
        }
    }

    // Writes column k of L D, of which this thread holds rows from the diagonal on.
    template <int block>
    __device__ __forceinline__ void publish_column(const Value (&a)[P][P], Value* column, int k,
                                                   int step) const {
        if (j != step) return;
#pragma unroll
        for (int p = block; p < P; ++p)
            if ((p > block || i > step) && inside(i, p)) column[i + T * p] = a[p][block];
        if (i == step) {
            const Real d = a[block][block].x;
            Real reciprocal = Pivot<Real>::reciprocal(d);
            if (!(d >= Pivot<Real>::kSmallest && d <= Pivot<Real>::kLargest)) {
                reciprocal = static_cast<Real>(not_a_number());
                if (*failed == 0) *failed = k + 1;
            }
            column[k] = {d, reciprocal};
        }
    }

    template <int block>
    __device__ __forceinline__ void publish_sides(const Value (&y)[P][S], int k, int step) const {
        if (i != step) return;
#pragma unroll
        for (int s = 0; s < S; ++s) exchange[(k & 1) * plan.width() + j + T * s] = y[block][s];
    }

    __device__ __forceinline__ Value published(int k, int s) const {
        return exchange[(k & 1) * plan.width() + j + T * s];
    }

    // Rows below k of column k of L; 0 in other rows.
    template <int block>
    __device__ __forceinline__ void column_of_l(Value (&l)[P], const Value* column, int k,
                                                int step) const {
        const Real reciprocal = column[k].y;
#pragma unroll
        for (int p = block; p < P; ++p) {
            const bool below = (p > block || i > step) && inside(i, p);
            l[p] = below ? column[i + T * p] : Value{0, 0};
            l[p] = {l[p].x * reciprocal, l[p].y * reciprocal};
        }
    }

    template <int block>
    __device__ __forceinline__ void eliminate_sides(Value (&y)[P][S], const Value (&l)[P],
                                                    int k) const {
#pragma unroll
        for (int s = 0; s < S; ++s) {
            const Value of_row = published(k, s);
#pragma unroll
            for (int p = block; p < P; ++p) subtract_product(y[p][s], l[p], of_row);
        }
    }

    // Steps [block T, block T + T) of the factorization and, where they are fused, of L y = b.
    template <int block>
    __device__ __forceinline__ void factor_block(Value (&a)[P][P], Value (&y)[P][S]) const {
        Value* column = factors + column_start(block * T);
#pragma unroll 1
        for (int step = 0; step < steps(block); ++step) {
            const int k = block * T + step;
            publish_column<block>(a, column, k, step);
            if constexpr (plan.fused) publish_sides<block>(y, k, step);
            meet();
            Value l[P];
            column_of_l<block>(l, column, k, step);
#pragma unroll
            for (int q = block; q < P; ++q) {
                const Value v = inside(j, q) ? column[j + T * q] : Value{0, 0};
#pragma unroll
                for (int p = q; p < P; ++p) subtract_conjugate(a[p][q], l[p], v);
            }
            if constexpr (plan.fused) eliminate_sides<block>(y, l, k);
            column += N - 1 - k;
        }
        if constexpr (block + 1 < P) factor_block<block + 1>(a, y);
    }

    // L y = b, by the factors.
    template <int block>
    __device__ __forceinline__ void forward_block(Value (&y)[P][S]) const {
        const Value* column = factors + column_start(block * T);
#pragma unroll 1
        for (int step = 0; step < steps(block); ++step) {
            const int k = block * T + step;
            publish_sides<block>(y, k, step);
            meet();
            Value l[P];
            column_of_l<block>(l, column, k, step);
            eliminate_sides<block>(y, l, k);
            column += N - 1 - k;
        }
        if constexpr (block + 1 < P) forward_block<block + 1>(y);
    }

    // D L^H x = y, where row i of L^H D is the conjugate of column i of the factors.
    template <int block>
    __device__ __forceinline__ void backward_block(Value (&y)[P][S], const int (&starts)[P]) const {
#pragma unroll 1
        for (int step = steps(block) - 1; step >= 0; --step) {
            const int k = block * T + step;
            if (i == step) {
                const Real reciprocal = factors[starts[block] + k].y;
#pragma unroll
                for (int s = 0; s < S; ++s)
                    y[block][s] = {y[block][s].x * reciprocal, y[block][s].y * reciprocal};
            }
            publish_sides<block>(y, k, step);
            meet();
#pragma unroll
            for (int p = 0; p <= block; ++p) {
                const bool above = p < block || i < step;
                const Value v = above ? factors[starts[p] + k] : Value{0, 0};
#pragma unroll
                for (int s = 0; s < S; ++s) subtract_conjugate(y[p][s], published(k, s), v);
            }
        }
        if constexpr (block > 0) backward_block<block - 1>(y, starts);
    }

    __device__ __forceinline__ void backward(Value (&y)[P][S]) const {
        int starts[P];
#pragma unroll
        for (int p = 0; p < P; ++p) starts[p] = column_start(i + T * p);
        meet();  // the last step may still read the row that the first one here writes
        backward_block<P - 1>(y, starts);
    }

    // Solves one system; where it is not `there`, the threads only meet the others of their warp.
    __device__ __forceinline__ void solve(const HermitianArguments<Real>& args, int64 system,
                                          bool there) const {
        const Value* b = args.b + system * args.b_batch;
        Value* x = args.x + system * args.x_batch;
        const int columns = static_cast<int>(args.columns);
        int left = there ? columns : 0;
        Value y[P][S];
        {
            Value a[P][P];
            load(a, args.r + system * args.r_batch);
            if constexpr (plan.fused) load_sides(y, b, columns, left);
            if (i == 0 && j == 0) *failed = 0;
            meet();
            factor_block<0>(a, y);
        }
        for (bool solved = plan.fused;; solved = false) {
            if (!solved) {
                load_sides(y, b, columns, left);
                meet();  // the last step before may still read the row that the first one here writes
                forward_block<0>(y);
            }
            backward(y);
            store(y, x, columns, left);
            left -= plan.width();
            if (left <= 0) break;
            b += plan.width();
            x += plan.width();
        }
        if (args.info && there && i == 0 && j == 0) args.info[system] = *failed;
    }
};

template <typename Real, HermitianPlan plan>
__device__ __forceinline__ void solve_hermitian(const HermitianArguments<Real>& args) {
    using Value = Complex<Real>;
    extern __shared__ __align__(16) unsigned char shared_bytes[];
    const int group = threadIdx.x / plan.group_threads();
    const int thread = threadIdx.x % plan.group_threads();
    Value* const mine = reinterpret_cast<Value*>(shared_bytes) + group * plan.group_elements();
    Value* const factors =
        plan.global ? args.factors + (static_cast<int64>(blockIdx.x) * plan.groups + group) * plan.packed()
                    : mine;
    Value* const exchange = plan.global ? mine : mine + plan.packed();
    const HermitianSolver<Real, plan> solver{
        factors, exchange, reinterpret_cast<int*>(exchange + 2 * plan.width()),
        thread / plan.side, thread % plan.side};
    for (int64 first = static_cast<int64>(blockIdx.x) * plan.groups; first < args.systems;
         first += static_cast<int64>(gridDim.x) * plan.groups) {
        const int64 system = first + group;
        solver.meet();  // the system before may still be read
        solver.solve(args, system < args.systems ? system : args.systems - 1, system < args.systems);
    }
}
