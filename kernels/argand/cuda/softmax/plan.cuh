// The compile-time plan and the run-time arguments of a softmax kernel, and the C++ types that
// follow from the plan. argand/softmax/source.py writes a plan as the template argument of every
// function of this folder, and argand/softmax/gpu.py fills in the arguments.
#pragma once
#include "device/conditional.cuh"
#include "device/rounding.cuh"

enum class Operation { softmax, log_softmax, logsumexp };
// The type of an array in global memory. The kernels take the squared magnitude of complex
// elements.
enum class DataType { fp64, fp32, fp16, bf16, complex64, complex128 };

struct RowPlan {
    Operation operation;
    DataType input;
    DataType output;
    bool compute_fp64;  // else computes in fp32
    bool unit_scale;    // the scale s of e^(s x) is 1
    Operand input_rounding;  // the format to which values are rounded right after they are loaded
    int terms;
    Rounding roundings[2];
    int row_threads;  // of a block, per row: 1 to 32 lanes of a warp, or the whole block
    int block_threads;
    int values_per_thread;  // of a row, in registers at a time
    int vector_width;       // values of one memory access
    bool unaligned_rows;    // rows may begin or end within a vector
    bool resident;          // the threads hold a whole row in registers
    bool staged;            // resident, persistent: cp.async prefetches the next row meanwhile
    int blocks_per_row;     // a cluster; blocks of any multiprocessors where `ring` is set
    bool ring;              // warp-specialized persistent kernel: ring_kernel.cuh
    bool arrive_per_lane;   // of a ring: each lane arrives at mbarriers, not one per warp
    int slab_stages;        // of a slab plan, stages of a warp; else 0: slab_kernel.cuh
    bool bulk;              // of a slab plan: bulk copies, not accesses by all lanes
    bool packed;            // two values of 16 bits share a register
    bool ulp_accurate;      // exponentials are within an ulp of fp32

    constexpr int rows_per_block() const { return block_threads / row_threads; }
    constexpr int threads_per_row() const {
        return ring ? row_threads : row_threads * blocks_per_row;
    }
    constexpr int vectors_per_thread() const { return values_per_thread / vector_width; }
    constexpr int tile_columns() const { return threads_per_row() * values_per_thread; }
    // Alignment of memory accesses, or of the ring's bulk copies of 16 bytes, in values.
    constexpr int copy_alignment() const {
        return ring ? 16 / (is_16bit(input) ? 2 : input == DataType::complex64 ? 8 : 4)
                    : vector_width;
    }
    // Alignment of a block's tiles and slices, in values: 128-byte lines, so that no two warps
    // share a line.
    constexpr int tile_alignment() const {
        return ring || row_threads > 32 ? 8 * copy_alignment() : vector_width;
    }
    // Rows may begin or end within an access.
    constexpr bool partial_vectors() const {
        return unaligned_rows || copy_alignment() != vector_width;
    }
    // Elements are larger than the values they become.
    constexpr bool has_wide_elements() const {
        return !is_16bit(input) && input != (compute_fp64 ? DataType::fp64 : DataType::fp32);
    }
    // Elements are requested before any of them becomes values: wide ones, and those of 16 bits
    // whose accesses have branches, because each branch would wait for the one before.
    constexpr bool requests_before_values() const {
        return has_wide_elements() ||
               (is_16bit(input) && !packed && resident && partial_vectors() && !compute_fp64);
    }
    // Every access gets a branch, because without branches ptxas keeps more accesses in flight than
    // there are registers: wide elements are read from shared memory, or exponentials in fp32 are
    // computed twice.
    constexpr bool predicate_every_vector() const {
        return packed ? ulp_accurate : has_wide_elements() && staged;
    }
    // Whether a row may begin within this access: only in the first, as a tile begins less than a
    // line before it.
    constexpr bool may_begin_in(int access) const { return partial_vectors() && access == 0; }
    // Whether a row may end in this access. A tile that holds a whole row has no more accesses than
    // it needs, so it can end in the last two only.
    constexpr bool may_end_in(int access) const {
        return !resident || ring || predicate_every_vector() || access + 2 >= vectors_per_thread();
    }
    constexpr bool needs_predicate(int access) const { return access == 0 || may_end_in(access); }
    // Warps or blocks that share a row subtract local maxima, so their exponentials are rescaled.
    constexpr bool has_local_maxima() const { return ring || blocks_per_row > 1; }
    constexpr bool is_16bit(DataType dtype) const {
        return dtype == DataType::fp16 || dtype == DataType::bf16;
    }
    // Values are rounded to one number of tf32, fp16 or bf16.
    constexpr bool rounds_to_one_term() const {
        return input_rounding != Operand::exact && terms == 1;
    }
    // Values that the 16 bits of an element hold.
    constexpr bool has_16bit_values() const {
        return is_16bit(input) && input_rounding == Operand::exact && !compute_fp64;
    }
    constexpr bool slab() const { return slab_stages > 0; }
    // Values of no more than 11 significant bits.
    constexpr bool has_11_bit_values() const {
        return !compute_fp64 && (has_16bit_values() || rounds_to_one_term());
    }
    constexpr bool fp32_results() const { return !compute_fp64 && !is_16bit(output); }
    // Exponentials overwrite the values in the fragment and are not computed again in the epilogue.
    constexpr bool keeps_exponentials() const {
        return operation == Operation::softmax && resident && !packed;
    }
};

// Filled in by argand/softmax/gpu.py; ARGUMENTS of argand/softmax/source.py lists the same members.
// Strides count elements. The array of x ends at `x_end`. s is the scale of e^(s x).
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
    float scale_log2;           // s log2(e)
    float ln2_over_scale_high;  // ln(2) / s, as the sum of two floats,
    float ln2_over_scale_low;   // the low one times s
    float underflow_distance;   // values further below the maximum are clamped: results are 0
    float origin_spacing;       // a power of two: large values are relative to a multiple of it
    void* exchange;         // workspace of a ring whose blocks share rows: zero before and after
    int64 slice_columns;    // of a ring: columns of a row per block
    int64 load_stages;      // of a ring: slices in shared memory that are loaded or reduced
    int64 epilogue_stages;  // of a ring: slices there that wait for the row's sum
};

// A complex element, which is read as its parts: as a vector it would need its own alignment.
template <typename T>
struct ComplexElement {
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
    using type = ComplexElement<float>;
};
template <>
struct ElementOf<DataType::complex128> {
    using type = ComplexElement<double>;
};
template <DataType dtype>
using Element = typename ElementOf<dtype>::type;

template <RowPlan plan>
using ComputeType = typename Conditional<plan.compute_fp64, double, float>::Type;

// Exponentials within an ulp of fp32 need a sum in fp64.
template <RowPlan plan>
using AccumulatorType =
    typename Conditional<plan.compute_fp64 || plan.ulp_accurate, double, float>::Type;
