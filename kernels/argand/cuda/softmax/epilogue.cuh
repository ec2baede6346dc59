// What becomes of a row's values when its maximum and its sum are known, and how that is written.
#pragma once
#include "load.cuh"
#include "reduce.cuh"

template <DataType dtype>
__device__ __forceinline__ unsigned short to_half(float x) {
    if constexpr (dtype == DataType::fp16) return static_cast<unsigned short>(pack_fp16(x, 0.0f));
    return static_cast<unsigned short>(pack_bf16(x, 0.0f));
}

// In one access: left to itself, the compiler joins it with the stores of single elements in the
// other branch, as far as they agree, and writes it in pieces.
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

// Writes one access of what `result(i)` says of each value.
template <SoftmaxPlan plan, typename Result>
__device__ __forceinline__ void write_vector(const RowView<Element<plan.output>>& row, int index,
                                             Result result_of) {
    using Out = Element<plan.output>;
    const int offset = vector_offset<plan>(index), first = index * plan.vector_width;
    if constexpr (plan.packed() && !plan.partial_vectors()) {
        // Always a branch: the assembler would compute nearly all results before it stores one.
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
                plan.output == DataType::fp16 ? pack_fp16(low, high) : pack_bf16(low, high);
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

template <SoftmaxPlan plan, typename Result>
__device__ __forceinline__ void write_row(const RowView<Element<plan.output>>& row,
                                          Result result_of) {
#pragma unroll
    for (int i = 0; i < plan.vectors_per_thread(); ++i) write_vector<plan>(row, i, result_of);
}

// e / sum for every e of a row; NaN in a row whose maximum is not finite.
template <Accuracy accuracy>
struct Normalizer {
    double factor;
    __device__ __forceinline__ Normalizer(double sum, double maximum)
        : factor(is_finite(maximum) ? 1.0 / sum : static_cast<double>(not_a_number())) {}
    __device__ __forceinline__ double operator()(double e) const { return e * factor; }
};

template <>
struct Normalizer<Accuracy::to_half> {
    float factor;
    __device__ __forceinline__ Normalizer(float sum, float maximum)
        : factor(is_finite(maximum) ? 1.0f / sum : not_a_number()) {}
    __device__ __forceinline__ float operator()(float e) const { return e * factor; }
};
template <>
struct Normalizer<Accuracy::half_to_half> : Normalizer<Accuracy::to_half> {
    using Normalizer<Accuracy::to_half>::Normalizer;
};

// 1 / sum in two floats, so that the product with it is rounded once.
template <>
struct Normalizer<Accuracy::fp32_ulp> {
    float high, low;
    __device__ __forceinline__ Normalizer(double sum, float maximum) {
        const float rounded = static_cast<float>(sum);
        const float rest = static_cast<float>(sum - static_cast<double>(rounded));
        // Whatever `high` lacks of the reciprocal is in `low`.
        asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(high) : "f"(rounded));
        if (!is_finite(maximum)) high = not_a_number();
        low = high * (fmaf(-rounded, high, 1.0f) - rest * high);
    }
    __device__ __forceinline__ float operator()(float e) const { return fmaf(e, high, e * low); }
};

// What the values of a row become, when its maximum and its sum are known. Where values were replaced
// by exponentials, those about another maximum are `change` away.
template <SoftmaxPlan plan>
struct Epilogue {
    using R = ComputeType<plan>;
    ExponentialsOf<plan> exponentials;
    Normalizer<kAccuracy<plan>> normalizer;
    R maximum, scale;
    R log_term;  // of log_softmax what is subtracted; of logsumexp the result

    __device__ __forceinline__ Epilogue(R maximum, AccumulatorType<plan> sum,
                                        const SoftmaxArguments& args)
        : exponentials(finite_maximum(maximum), args),
          normalizer(sum, maximum),
          maximum(maximum),
          scale(plan.compute_fp64 ? static_cast<R>(args.scale) : static_cast<R>(args.scale_fp32)) {
        if constexpr (plan.operation == Operation::log_softmax) {
            // About +inf each value is -inf, or NaN at +inf, and stays so.
            const R without_sum = maximum > R(0) ? R(0) : static_cast<R>(not_a_number());
            log_term = is_finite(maximum) ? exponentials.log_of_sum(sum, args) : without_sum;
        } else if constexpr (plan.operation == Operation::logsumexp) {
            // An infinite or NaN maximum is the logarithm itself.
            log_term = is_finite(maximum)
                           ? static_cast<R>(fma(maximum, scale, exponentials.log_of_sum(sum, args)))
                           : maximum;
        }
    }

    __device__ __forceinline__ R apply(R value, R rescale, const SoftmaxArguments& args) const {
        if constexpr (plan.operation == Operation::log_softmax) {
            return fma(value - maximum, scale, -log_term);
        } else if constexpr (plan.keeps_exponentials()) {
            // Apart from the share, which would lose bits with it where the change is large.
            return clamp_to_one(plan.has_local_maxima() ? R(normalizer(value) * rescale)
                                                        : R(normalizer(value)));
        } else {
            AccumulatorType<plan> ignored{};
            return clamp_to_one(normalizer(exponentials.template accumulate<false>(
                value - exponentials.origin, args, ignored)));
        }
    }

    // A term that was rounded up may be more than the whole sum, which is more exact. Above 1 numbers
    // are twice as far apart as below.
    __device__ __forceinline__ static R clamp_to_one(R result) {
        if constexpr (plan.ulp_accurate()) return min_nan(result, 1.0f);
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
