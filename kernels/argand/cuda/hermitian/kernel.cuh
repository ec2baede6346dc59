// Many small Hermitian positive definite systems R X = B in one launch: R = L D L^H and both
// substitutions, without square roots. A group of side x side threads solves a system. Thread (i,
// j) of it holds the elements (i + side p, j + side q) of R in registers, and rows i + side p of
// the right-hand sides j + side s.
//
// A pivot out of range makes its reciprocal NaN, and thereby those of all later steps and all of x.
#pragma once
#include "factorization.cuh"
#include "substitution.cuh"

// The first row without a pivot, counted from 1; 0 where each has one.
template <typename Group>
__device__ __forceinline__ int row_without_pivot(const Group& group) {
    const auto reciprocal = [&](int k) { return group.factors[Group::column_start(k) + k].y; };
    if (reciprocal(Group::N - 1) == reciprocal(Group::N - 1)) return 0;
    int k = 0;
    while (reciprocal(k) == reciprocal(k)) ++k;
    return k + 1;
}

// Solves one system; where it is not `there`, the threads only synchronise with the others of their
// warp.
template <typename Real, HermitianPlan plan>
__device__ __forceinline__ void solve_system(const HermitianGroup<Real, plan>& group,
                                             const HermitianArguments<Real>& args, int64 system,
                                             bool there) {
    using Group = HermitianGroup<Real, plan>;
    using Value = Complex<Real>;
    const int columns = there ? static_cast<int>(args.columns) : 0;
    const HermitianSubstitution<Real, plan> substitution{group};
    Value y[Group::P][Group::S];
    {
        Value a[Group::P][Group::P];
        group.load(a, args.r + system * args.r_batch);
        if constexpr (plan.fused) group.load_rhs(y, args, system, 0, columns);
        HermitianFactorization<Real, plan>{group}.factor(a, y);
    }
    int first = 0;
    do {
        if (!plan.fused || first > 0) {
            group.load_rhs(y, args, system, first, columns);
            substitution.forward(y);
        }
        substitution.backward(y);
        group.store(y, args, system, first, columns);
        first += plan.width();
    } while (first < args.columns);
    if (args.info && there && group.i == 0 && group.j == 0)
        args.info[system] = row_without_pivot(group);
}

// The kernel: groups of threads solve a system each, one after another.
template <typename Real, HermitianPlan plan>
__device__ __forceinline__ void solve_hermitian(const HermitianArguments<Real>& args) {
    using Value = Complex<Real>;
    extern __shared__ __align__(16) unsigned char shared_bytes[];
    const int number = threadIdx.x / plan.group_threads();
    const int thread = threadIdx.x % plan.group_threads();
    Value* const mine = reinterpret_cast<Value*>(shared_bytes) + number * plan.group_elements();
    const int64 index = static_cast<int64>(blockIdx.x) * plan.groups + number;
    HermitianGroup<Real, plan> group;
    group.factors = plan.in_global ? args.factors + index * plan.packed() : mine;
    group.exchange = plan.in_global ? mine : mine + plan.packed();
    group.i = thread / plan.side;
    group.j = thread % plan.side;
    for (int64 first = static_cast<int64>(blockIdx.x) * plan.groups; first < args.systems;
         first += static_cast<int64>(gridDim.x) * plan.groups) {
        const int64 system = first + number;
        const bool there = system < args.systems;
        group.sync();  // the factors of the system before may still be read
        solve_system(group, args, there ? system : args.systems - 1, there);
    }
}
