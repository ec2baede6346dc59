// The epilogue: results of a row's values once its maximum and its sum are known, and their stores.
// row.cuh applies it to the tiles that a thread holds, ring_kernel.cuh to slices in shared memory.
// A new operation on results belongs in `Epilogue::apply`.
#pragma once
#include "load.cuh"
#include "reduce.cuh"

// Two results as 16-bit numbers in one register.
template <DataType dtype>
__device__ __forceinline__ uint32 pack_16bit(float low, float high) {
    constexpr Operand kFormat = dtype == DataType::bf16 ? Operand::bf16 : Operand::fp16;
    const float pair[2] = {low, high};
    return OperandFormat<kFormat>::pack(pair);
}

template <DataType dtype>
__device__ __forceinline__ unsigned short to_half(float x) {
    return static_cast<unsigned short>(pack_16bit<dtype>(x, 0.0f));
}

// Stores by one access, in assembly: the compiler would merge it with the element-wise stores of
// the other branch and split it.
template <typename P>
__device__ __forceinline__ void store_vector(P* to, const P& vector) {
    if constexpr (sizeof(P) == 16) {
        const uint4 words = *reinterpret_cast<const uint4*>(&vector);
        asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words.x),
                     "r"(words.y), "r"(words.z), "r"(words.w)
                     : "memory");
    } else if constexpr (sizeof(P) == 8) {
        const uint2 words = *reinterpret_cast<const uint2*>(&vector);
        asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(words.x), "r"(words.y)
                     : "memory");
    } else {
        *to = vector;
    }
}

// Writes one vector of results; `result_of(i)` is that of value i of the fragment.
template <RowPlan plan, typename Result>
__device__ __forceinline__ void write_vector(const RowView<Element<plan.output>>& row, int index,
                                             Result result_of) {
    using Out = Element<plan.output>;
    const int offset = vector_offset<plan>(index), first = index * plan.vector_width;
    if constexpr (plan.packed && !plan.partial_vectors()) {
        // Always a branch, because ptxas would otherwise compute nearly all results before a store.
        if (offset >= row.end) return;
    } else if (!overlaps_row<plan>(row, index)) {
        return;
    }
    alignas(16) Out results[plan.vector_width];
    if constexpr (plan.is_16bit(plan.output) && plan.vector_width % 2 == 0) {
#pragma unroll
        for (int e = 0; e < plan.vector_width; e += 2) {
            const float low = result_of(first + e), high = result_of(first + e + 1);
            reinterpret_cast<uint32*>(results)[e / 2] =
                pack_16bit<plan.output>(low, high);
        }
    } else {
#pragma unroll
        for (int e = 0; e < plan.vector_width; ++e) {
            if constexpr (plan.is_16bit(plan.output)) {
                results[e] = to_half<plan.output>(result_of(first + e));
            } else {
                results[e] = static_cast<Out>(result_of(first + e));
            }
        }
    }
    if (inside_row<plan>(row, index)) {
        store_vector(reinterpret_cast<AlignedVector<Out, plan.vector_width>*>(row.base + offset),
                     *reinterpret_cast<const AlignedVector<Out, plan.vector_width>*>(results));
    } else if constexpr (plan.partial_vectors()) {
#pragma unroll
        for (int e = 0; e < plan.vector_width; ++e) {
            const int at = offset + e;
            if (at >= row.begin && at < row.end) row.base[at] = results[e];
        }
    }
}

template <RowPlan plan, typename Result>
__device__ __forceinline__ void write_row(const RowView<Element<plan.output>>& row,
                                          Result result_of) {
#pragma unroll
    for (int i = 0; i < plan.vectors_per_thread(); ++i) write_vector<plan>(row, i, result_of);
}

// e / sum of every exponential e; NaN in a row whose maximum is not finite.
template <Accuracy accuracy>
struct Normalizer {
    double factor;
    __device__ __forceinline__ Normalizer(double sum, double maximum)
        : factor(is_finite(maximum) ? 1.0 / sum : static_cast<double>(not_a_number())) {}
    __device__ __forceinline__ double operator()(double e) const { return e * factor; }
};

template <>
struct Normalizer<Accuracy::approximate> {
    float factor;
    __device__ __forceinline__ Normalizer(float sum, float maximum)
        : factor(is_finite(maximum) ? 1.0f / sum : not_a_number()) {}
    __device__ __forceinline__ float operator()(float e) const { return e * factor; }
};
template <>
struct Normalizer<Accuracy::approximate_11_bit> : Normalizer<Accuracy::approximate> {
    using Normalizer<Accuracy::approximate>::Normalizer;
};

// 1 / sum as the sum of two floats, so that the product with it is rounded once.
template <>
struct Normalizer<Accuracy::fp32_ulp> {
    float high, low;
    __device__ __forceinline__ Normalizer(double sum, float maximum) {
        const float rounded = static_cast<float>(sum);
        const float rest = static_cast<float>(sum - static_cast<double>(rounded));
        // `low` makes up for the error of the approximate reciprocal.
        asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(high) : "f"(rounded));
        if (!is_finite(maximum)) high = not_a_number();
        low = high * (fmaf(-rounded, high, 1.0f) - rest * high);
    }
    __device__ __forceinline__ float operator()(float e) const { return fmaf(e, high, e * low); }
};

// Results of a row with this maximum and sum. Where the fragment holds exponentials relative to a
// local maximum, `rescale` turns them into those relative to the row's maximum.
template <RowPlan plan>
struct Epilogue {
    using R = ComputeType<plan>;
    ExponentialsOf<plan> exponentials;
    Normalizer<kAccuracy<plan>> normalizer;
    R maximum, scale;
    R log_term;  // log_softmax: subtracted from s (x - maximum); logsumexp: the result

    __device__ __forceinline__ Epilogue(R maximum, AccumulatorType<plan> sum,
                                        const SoftmaxArguments& args)
        : exponentials(finite_maximum(maximum), args),
          normalizer(sum, maximum),
          maximum(maximum),
          scale(plan.compute_fp64 ? static_cast<R>(args.scale) : static_cast<R>(args.scale_fp32)) {
        if constexpr (plan.operation == Operation::log_softmax) {
            // Relative to a maximum of +inf every value is -inf, and +inf itself NaN.
            const R without_sum = maximum > R(0) ? R(0) : static_cast<R>(not_a_number());
            log_term = is_finite(maximum) ? exponentials.log_of_sum(sum, args) : without_sum;
        } else if constexpr (plan.operation == Operation::logsumexp) {
            // A maximum that is infinite or NaN is the result.
            log_term = is_finite(maximum)
                           ? static_cast<R>(fma(maximum, scale, exponentials.log_of_sum(sum, args)))
                           : maximum;
        }
    }

    __device__ __forceinline__ R apply(R value, R rescale, const SoftmaxArguments& args) const {
        if constexpr (plan.operation == Operation::log_softmax) {
            return fma(value - maximum, scale, -log_term);
        } else if constexpr (plan.keeps_exponentials()) {
            // Not folded into the normalizer, which would lose bits where the rescale is small.
            return clamp_to_one(plan.has_local_maxima() ? R(normalizer(value) * rescale)
                                                        : R(normalizer(value)));
        } else {
            AccumulatorType<plan> ignored{};
            return clamp_to_one(normalizer(exponentials.template accumulate<false>(
                value - exponentials.origin, args, ignored)));
        }
    }

    // A term that was rounded up may exceed the more exact sum, and above 1 an ulp is twice as
    // large.
    __device__ __forceinline__ static R clamp_to_one(R result) {
        if constexpr (plan.fp32_results()) return min_nan(result, 1.0f);
        return result;
    }

    __device__ __forceinline__ void write_logsumexp(Element<plan.output>* to) const {
        if constexpr (plan.is_16bit(plan.output)) {
            *to = to_half<plan.output>(log_term);
        } else {
            *to = static_cast<Element<plan.output>>(log_term);
        }
    }
};
