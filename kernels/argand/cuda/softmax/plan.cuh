// What a softmax kernel is made for: types, operation, and the threads that share a row.
#pragma once
#include "device/rounding.cuh"
#include "device/scaling.cuh"

enum class Operation { softmax, log_softmax, logsumexp };
// Of an array in memory. Complex numbers are read, and their squared magnitude is what goes in.
enum class DataType { fp64, fp32, fp16, bf16, complex64, complex128 };
// What values are rounded to before anything is done with them.
enum class InputRounding { exact, tf32, fp16, bf16 };

struct SoftmaxPlan {
    Operation operation;
    DataType input;
    DataType output;
    bool compute_fp64;  // computes in fp64, else in fp32
    bool unit_scale;    // the scale of the exponents is 1
    InputRounding input_rounding;
    int terms;
    Rounding roundings[2];
    int row_threads;  // of a block: 1 to 32 share a warp with other rows, more are the block
    int block_threads;
    int values_per_thread;  // a thread, at a time
    int vector_width;       // values a memory access
    bool unaligned_rows;    // rows may begin or end within a vector
    bool resident;          // the threads hold a whole row
    bool staged;            // and take row after row, the next one on its way into shared memory
    int blocks_per_row;     // blocks that share a row: of a cluster, in a ring from anywhere
    bool ring;              // rows wait in shared memory: see ring.cuh
    bool arrive_per_lane;   // of a ring: every lane arrives at its barriers, not one for its warp

    constexpr int rows_per_block() const { return block_threads / row_threads; }
    constexpr int threads_per_row() const {
        return ring ? row_threads : row_threads * blocks_per_row;
    }
    constexpr int vectors_per_thread() const { return values_per_thread / vector_width; }
    constexpr int tile_columns() const { return threads_per_row() * values_per_thread; }
    // Values between the boundaries of memory that accesses keep to, or copies of 16 bytes.
    constexpr int copy_alignment() const {
        return ring ? 16 / (is_16bit(input) ? 2 : 4) : vector_width;
    }
    // And those that a block's tiles and slices keep to: lines of memory, which no two warps share.
    constexpr int tile_alignment() const {
        return ring || row_threads > 32 ? 8 * copy_alignment() : vector_width;
    }
    // Rows may begin or end within what lies between two of them.
    constexpr bool partial_vectors() const {
        return unaligned_rows || copy_alignment() != vector_width;
    }
    // Whether the assembler has to be kept, by branches, from more accesses at a time than there are
    // registers for: elements are larger than the values they become, or fp32 is computed twice.
    constexpr bool predicate_every_vector() const {
        return packed()
                   ? ulp_accurate()
                   : !is_16bit(input) && input != (compute_fp64 ? DataType::fp64 : DataType::fp32);
    }
    // Whether a row may begin or end in an access. A tile that holds one whole has no more accesses
    // than it needs.
    constexpr bool needs_predicate(int access) const {
        return !resident || ring || rows_per_block() > 1 || predicate_every_vector() ||
               access == 0 || access + 2 >= vectors_per_thread();
    }
    // Threads that share a row took its exponentials about maxima of their own.
    constexpr bool has_local_maxima() const { return ring || blocks_per_row > 1; }
    constexpr bool is_16bit(DataType dtype) const {
        return dtype == DataType::fp16 || dtype == DataType::bf16;
    }
    // Values of 16 bits stay packed, two a register, where they are not rounded to something else.
    constexpr bool packed() const {
        return is_16bit(input) && input_rounding == InputRounding::exact && !compute_fp64;
    }
    // A result of 16 bits does not need exponentials that are right to an ulp of fp32.
    constexpr bool ulp_accurate() const { return !compute_fp64 && !is_16bit(output); }
    // Exponentials take the place of the values, and are not computed twice.
    constexpr bool keeps_exponentials() const {
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
    float scale_fp32;
    float scale_log2;           // s log2(e): powers of two a unit of x
    float ln2_over_scale_high;  // ln(2) / s: x for a power of two
    float ln2_over_scale_low;
    float underflow_distance;
    float origin_spacing;
    void* exchange;         // of a ring whose blocks share rows: zero, as they leave them
    int64 slice_columns;    // of a ring: columns of a row that a block has
    int64 load_stages;      // rows on their way into a block's shared memory
    int64 epilogue_stages;  // rows that wait there for their sums
};

template <typename T>
struct Complex {
    T re, im;
};

template <DataType dtype>
struct ElementOf;
template <>
struct ElementOf<DataType::fp64> {
    using type = double;
};
template <>
struct ElementOf<DataType::fp32> {
    using type = float;
};
template <>
struct ElementOf<DataType::fp16> {
    using type = unsigned short;
};
template <>
struct ElementOf<DataType::bf16> {
    using type = unsigned short;
};
template <>
struct ElementOf<DataType::complex64> {
    using type = Complex<float>;
};
template <>
struct ElementOf<DataType::complex128> {
    using type = Complex<double>;
};
template <DataType dtype>
using Element = typename ElementOf<dtype>::type;

template <bool compute_fp64>
struct SelectReal {
    using type = float;
};
template <>
struct SelectReal<true> {
    using type = double;
};
template <SoftmaxPlan plan>
using ComputeType = typename SelectReal<plan.compute_fp64>::type;

// Sums of fp32 exponentials that are to be right to an ulp are kept in fp64.
template <SoftmaxPlan plan>
using AccumulatorType = typename SelectReal<plan.compute_fp64 || plan.ulp_accurate()>::type;
