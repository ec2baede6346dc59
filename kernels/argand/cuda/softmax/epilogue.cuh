// What becomes of a row's values when its maximum and its sum are known, and how that is written.
#pragma once
#include "load.cuh"
#include "reduce.cuh"

template <Kind kind>
__device__ __forceinline__ unsigned short half_of(float x) {
    if constexpr (kind == Kind::fp16) return static_cast<unsigned short>(pack_fp16(x, 0.0f));
    return static_cast<unsigned short>(pack_bf16(x, 0.0f));
}

// In one access: left to itself, the compiler joins it with the stores of single elements in the
// other branch, as far as they agree, and writes it in pieces.
template <typename P>
__device__ __forceinline__ void store(P* to, const P& pack) {
    if constexpr (sizeof(P) == 16) {
        const uint4 words = *reinterpret_cast<const uint4*>(&pack);
        asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words.x),
                     "r"(words.y), "r"(words.z), "r"(words.w)
                     : "memory");
    } else if constexpr (sizeof(P) == 8) {
        const uint2 words = *reinterpret_cast<const uint2*>(&pack);
        asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(words.x), "r"(words.y)
                     : "memory");
    } else {
        *to = pack;
    }
}

// Writes one access of what `result(i)` says of each value.
template <SoftmaxPlan plan, typename Result>
__device__ __forceinline__ void write_access(const Window<Element<plan.output>>& row, int access,
                                             Result result) {
    using Out = Element<plan.output>;
    const int offset = place<plan>(access), first = access * plan.vector;
    if constexpr (plan.packed() && !plan.cut()) {
        // Always a branch: the assembler would compute nearly all results before it stores one.
        if (offset >= row.end) return;
    } else if (!touched<plan>(row, access)) {
        return;
    }
    alignas(16) Out found[plan.vector];
    if constexpr (plan.half(plan.output) && plan.vector % 2 == 0) {
#pragma unroll
        for (int e = 0; e < plan.vector; e += 2) {
            const float low = result(first + e), high = result(first + e + 1);
            reinterpret_cast<uint32*>(found)[e / 2] =
                plan.output == Kind::fp16 ? pack_fp16(low, high) : pack_bf16(low, high);
        }
    } else {
#pragma unroll
        for (int e = 0; e < plan.vector; ++e) {
            if constexpr (plan.half(plan.output)) {
                found[e] = half_of<plan.output>(result(first + e));
            } else {
                found[e] = static_cast<Out>(result(first + e));
            }
        }
    }
    if (whole<plan>(row, access)) {
        store(reinterpret_cast<Pack<Out, plan.vector>*>(row.base + offset),
              *reinterpret_cast<const Pack<Out, plan.vector>*>(found));
    } else if constexpr (plan.cut()) {
#pragma unroll
        for (int e = 0; e < plan.vector; ++e) {
            const int at = offset + e;
            if (at >= row.begin && at < row.end) row.base[at] = found[e];
        }
    }
}

template <SoftmaxPlan plan, typename Result>
__device__ __forceinline__ void write(const Window<Element<plan.output>>& row, Result result) {
#pragma unroll
    for (int i = 0; i < plan.accesses(); ++i) write_access<plan>(row, i, result);
}

// e / sum for every e of a row; NaN in a row whose maximum is not finite.
template <Accuracy accuracy>
struct Share {
    double factor;
    __device__ __forceinline__ Share(double sum, double maximum)
        : factor(is_finite(maximum) ? 1.0 / sum : static_cast<double>(not_a_number())) {}
    __device__ __forceinline__ double operator()(double e) const { return e * factor; }
};

template <>
struct Share<Accuracy::coarse> {
    float factor;
    __device__ __forceinline__ Share(float sum, float maximum)
        : factor(is_finite(maximum) ? 1.0f / sum : not_a_number()) {}
    __device__ __forceinline__ float operator()(float e) const { return e * factor; }
};
template <>
struct Share<Accuracy::narrow> : Share<Accuracy::coarse> {
    using Share<Accuracy::coarse>::Share;
};

// 1 / sum in two floats, so that the product with it is rounded once.
template <>
struct Share<Accuracy::fine> {
    float high, low;
    __device__ __forceinline__ Share(double sum, float maximum) {
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
struct Outcome {
    using R = Real<plan>;
    ExponentialsOf<plan> exponentials;
    Share<kAccuracy<plan>> share;
    R maximum, scale;
    R total;  // of log_softmax what is subtracted; of logsumexp the result

    __device__ __forceinline__ Outcome(R maximum, Sum<plan> sum, const SoftmaxArguments& args)
        : exponentials(shift_for(maximum), args),
          share(sum, maximum),
          maximum(maximum),
          scale(plan.wide ? static_cast<R>(args.scale) : static_cast<R>(args.scale_f)) {
        if constexpr (plan.operation == Operation::log_softmax) {
            // About +inf each value is -inf, or NaN at +inf, and stays so.
            const R without_sum = maximum > R(0) ? R(0) : static_cast<R>(not_a_number());
            total = is_finite(maximum) ? exponentials.log_of(sum, args) : without_sum;
        } else if constexpr (plan.operation == Operation::logsumexp) {
            // An infinite or NaN maximum is the logarithm itself.
            total = is_finite(maximum)
                        ? static_cast<R>(fma(maximum, scale, exponentials.log_of(sum, args)))
                        : maximum;
        }
    }

    __device__ __forceinline__ R of(R value, R change, const SoftmaxArguments& args) const {
        if constexpr (plan.operation == Operation::log_softmax) {
            return fma(value - maximum, scale, -total);
        } else if constexpr (plan.replaces()) {
            // Apart from the share, which would lose bits with it where the change is large.
            return at_most_1(plan.moved() ? R(share(value) * change) : R(share(value)));
        } else {
            Sum<plan> ignored{};
            return at_most_1(share(
                exponentials.template add<false>(value - exponentials.origin, args, ignored)));
        }
    }

    // A term that was rounded up may be more than the whole sum, which is more exact. Above 1 numbers
    // are twice as far apart as below.
    __device__ __forceinline__ static R at_most_1(R result) {
        if constexpr (plan.fine()) return smaller(result, 1.0f);
        return result;
    }

    __device__ __forceinline__ void put_total(Element<plan.output>* to) const {
        if constexpr (plan.half(plan.output)) {
            *to = half_of<plan.output>(total);
        } else {
            *to = static_cast<Element<plan.output>>(total);
        }
    }
};
