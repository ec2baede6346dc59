// Arguments and plan of the kernel that solves small Hermitian systems (argand/hermitian/plan.py).
#pragma once
#include "device/complex.cuh"

// Matrices, right-hand sides and solutions of a system are contiguous, by rows. Strides
// from system to system count elements; 0 repeats.
template <typename Real>
struct HermitianArguments {
    const Complex<Real>* r;  // (systems, n, n), of which lower triangles are read
    const Complex<Real>* b;  // (systems, n, columns)
    Complex<Real>* x;        // of b's shape; may be b
    int* info;               // (systems,) or null: rows, counted from 1, without a pivot; else 0
    Complex<Real>* factors;  // where shared memory is too small: those of each block, else null
    int64 r_batch, b_batch, x_batch;
    int64 systems;
    int64 columns;
};

struct HermitianPlan {
    int n;        // rows of a matrix
    int side;     // a group of side * side threads solves a system
    int rhs;      // right-hand sides of a thread at a time
    int groups;   // of a block
    bool fused;      // whether L y = b is solved beside the factorization, not after it
    bool in_global;  // whether factors are in global memory

    constexpr int group_threads() const { return side * side; }
    constexpr int parts() const { return (n + side - 1) / side; }
    constexpr int packed() const { return n * (n + 1) / 2; }
    constexpr int width() const { return side * rhs; }
    // Rows of right-hand sides that threads exchange at a time.
    constexpr int exchanged_rows() const { return side < 8 ? side : 8; }
    // Elements of a group's shared memory: factors, and rows of right-hand sides. With a stride
    // of 2 modulo 16, groups of four threads read other banks than their neighbours.
    constexpr int group_elements() const {
        const int used = (in_global ? 0 : packed()) + exchanged_rows() * width();
        return used + (18 - used % 16) % 16;
    }
};
