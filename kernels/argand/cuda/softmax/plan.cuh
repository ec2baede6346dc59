// What a softmax kernel is made for: types, operation, and the threads that share a row.
#pragma once
#include "device/rounding.cuh"
#include "device/scaling.cuh"

enum class Operation { softmax, log_softmax, logsumexp };
// Of an array in memory. Complex numbers are read, and their squared magnitude is what goes in.
enum class Kind { fp64, fp32, fp16, bf16, complex64, complex128 };
// What values are rounded to before anything is done with them.
enum class Held { exact, tf32, fp16, bf16 };

struct SoftmaxPlan {
    Operation operation;
    Kind input;
    Kind output;
    bool wide;  // computes in fp64, else in fp32
    bool unit;  // the scale of the exponents is 1
    Held held;
    int terms;
    Rounding roundings[2];
    int row_threads;  // of a block: 1 to 32 share a warp with other rows, more are the block
    int block_threads;
    int values;     // a thread, at a time
    int vector;     // values a memory access
    bool edges;     // rows may begin or end within a vector
    bool resident;  // the threads hold a whole row
    bool staged;    // and take row after row, the next one on its way into shared memory
    int cluster;    // blocks that share a row: of a cluster, in a ring from anywhere
    bool ring;      // rows wait in shared memory: see ring.cuh
    bool watched;   // of a ring: every lane arrives at its barriers, not one for its warp

    constexpr int rows_a_block() const { return block_threads / row_threads; }
    constexpr int team() const { return ring ? row_threads : row_threads * cluster; }
    constexpr int accesses() const { return values / vector; }
    constexpr int tile() const { return team() * values; }
    // Values between the boundaries of memory that accesses keep to, or copies of 16 bytes.
    constexpr int grain() const { return ring ? 16 / (half(input) ? 2 : 4) : vector; }
    // And those that a block's tiles and slices keep to: lines of memory, which no two warps share.
    constexpr int line() const { return ring || row_threads > 32 ? 8 * grain() : vector; }
    // Rows may begin or end within what lies between two of them.
    constexpr bool cut() const { return edges || grain() != vector; }
    // Whether the assembler has to be kept, by branches, from more accesses at a time than there are
    // registers for: elements are larger than the values they become, or fp32 is computed twice.
    constexpr bool guarded() const {
        return packed() ? fine() : !half(input) && input != (wide ? Kind::fp64 : Kind::fp32);
    }
    // Whether a row may begin or end in an access. A tile that holds one whole has no more accesses
    // than it needs.
    constexpr bool at_edge(int access) const {
        return !resident || ring || rows_a_block() > 1 || guarded() || access == 0 ||
               access + 2 >= accesses();
    }
    // Threads that share a row took its exponentials about maxima of their own.
    constexpr bool moved() const { return ring || cluster > 1; }
    constexpr bool half(Kind kind) const { return kind == Kind::fp16 || kind == Kind::bf16; }
    // Values of 16 bits stay packed, two a register, where they are not rounded to something else.
    constexpr bool packed() const { return half(input) && held == Held::exact && !wide; }
    // A result of 16 bits does not need exponentials that are right to an ulp of fp32.
    constexpr bool fine() const { return !wide && !half(output); }
    // Exponentials take the place of the values, and are not computed twice.
    constexpr bool replaces() const {
        return operation == Operation::softmax && resident && !packed();
    }
};

// As the launch fills it. Strides count elements; x's array ends at `x_end`. The scale s of the exponents e^(s x) comes as
// s log2(e); ln(2) / s in two parts; how far below a row's maximum a value still counts; and the
// distance of the numbers that large values are measured from, a power of two.
struct SoftmaxArguments {
    const void* x;
    const void* x_end;
    void* out;
    int64 rows;
    int64 columns;
    int64 x_stride;
    int64 out_stride;
    double scale;
    float scale_f;
    float per_power;   // s log2(e): powers of two a unit of x
    float power_high;  // ln(2) / s: x for a power of two
    float power_low;
    float reach;
    float cell;
    void* places;  // of a ring whose blocks share rows: zero, as they leave them
    int64 slice;   // of a ring: columns of a row that a block has
    int64 stages;  // rows on their way into a block's shared memory
    int64 lag;     // rows that wait there for their sums
};

template <typename T>
struct Complex {
    T re, im;
};

template <Kind kind>
struct ElementOf;
template <>
struct ElementOf<Kind::fp64> {
    using type = double;
};
template <>
struct ElementOf<Kind::fp32> {
    using type = float;
};
template <>
struct ElementOf<Kind::fp16> {
    using type = unsigned short;
};
template <>
struct ElementOf<Kind::bf16> {
    using type = unsigned short;
};
template <>
struct ElementOf<Kind::complex64> {
    using type = Complex<float>;
};
template <>
struct ElementOf<Kind::complex128> {
    using type = Complex<double>;
};
template <Kind kind>
using Element = typename ElementOf<kind>::type;

template <bool wide>
struct RealOf {
    using type = float;
};
template <>
struct RealOf<true> {
    using type = double;
};
template <SoftmaxPlan plan>
using Real = typename RealOf<plan.wide>::type;

// Sums of fp32 exponentials that are to be right to an ulp are kept in fp64.
template <SoftmaxPlan plan>
using Sum = typename RealOf<plan.wide || plan.fine()>::type;
