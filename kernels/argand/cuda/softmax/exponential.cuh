// Exponentials e^(s (x - maximum)) of a row in four accuracies, each with what the online softmax
// needs: the factor that rescales a sum to another maximum, and the logarithm of a sum. Reductions
// (reduce.cuh), rows (row.cuh) and the epilogue use them through `ExponentialsOf<plan>`.
#pragma once
#include "plan.cuh"

__device__ __forceinline__ float exp2_approx(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Maximum and minimum that return NaN where an argument is NaN.
__device__ __forceinline__ float max_nan(float x, float y) {
    float z;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
    return z;
}
__device__ __forceinline__ double max_nan(double x, double y) { return x > y || x != x ? x : y; }
__device__ __forceinline__ float min_nan(float x, float y) {
    float z;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
    return z;
}

__device__ __forceinline__ bool is_finite(double x) { return x - x == 0; }

// Accuracy of exponentials: fp64; fp32 within an ulp; fp32 by ex2.approx, of values of 11
// significant bits or of any others.
enum class Accuracy { fp64, fp32_ulp, approximate_11_bit, approximate };
template <RowPlan plan>
constexpr Accuracy kAccuracy = plan.compute_fp64     ? Accuracy::fp64
                               : plan.ulp_accurate        ? Accuracy::fp32_ulp
                               : plan.has_11_bit_values() ? Accuracy::approximate_11_bit
                                                          : Accuracy::approximate;

// Exponentials of a row relative to a maximum. All of them may carry one common factor, which
// cancels in the quotients of `Normalizer`. `unit_scale`: the scale s is 1.
//
//     accumulate           returns the exponential of a value and adds it to the sum
//     rescale_factor_to    factor from a sum relative to this maximum to one relative to another
//     rounding_correction  difference of the exact and the rounded exponential
//     log_of_sum           logarithm of the sum relative to the maximum
template <Accuracy accuracy, bool unit_scale>
struct Exponentials;

template <bool unit_scale>
struct Exponentials<Accuracy::fp64, unit_scale> {
    static constexpr double origin = 0.0;
    double maximum;

    __device__ __forceinline__ Exponentials(double maximum, const SoftmaxArguments&)
        : maximum(maximum) {}

    template <bool>
    __device__ __forceinline__ double accumulate(double x, const SoftmaxArguments& args,
                                                 double& sum) const {
        const double e = exp((x - maximum) * args.scale);
        sum += e;
        return e;
    }
    __device__ __forceinline__ double rescale_factor_to(const Exponentials& other,
                                                        const SoftmaxArguments& args) const {
        return exp((maximum - other.maximum) * args.scale);
    }
    __device__ __forceinline__ double rounding_correction(double, const SoftmaxArguments&) const {
        return 0.0;
    }
    __device__ __forceinline__ double log_of_sum(double sum, const SoftmaxArguments&) const {
        return log(sum);
    }
};

template <bool unit_scale>
struct Exponentials<Accuracy::approximate, unit_scale> {
    static constexpr float origin = 0.0f;
    float maximum;

    __device__ __forceinline__ Exponentials(float maximum, const SoftmaxArguments&)
        : maximum(maximum) {}

    template <bool>
    __device__ __forceinline__ float accumulate(float x, const SoftmaxArguments& args,
                                                float& sum) const {
        const float e = exp2_approx((x - maximum) * args.scale_log2);
        sum += e;
        return e;
    }
    __device__ __forceinline__ float rescale_factor_to(const Exponentials& other,
                                                       const SoftmaxArguments& args) const {
        return exp2_approx((maximum - other.maximum) * args.scale_log2);
    }
    __device__ __forceinline__ float rounding_correction(float, const SoftmaxArguments&) const {
        return 0.0f;
    }
    __device__ __forceinline__ float log_of_sum(float sum, const SoftmaxArguments&) const {
        return logf(sum);
    }
};

// 2^(p x - shift) in one fma with p = s log2(e) and shift = p maximum. Rounding of the shift is a
// factor that all terms have in common. From |shift| = 2^20 on that factor could be far from 1; but
// then every value of 11 significant bits is the maximum or at least 2^-11 of it below, so that its
// exponential is 0. Any p that keeps it there gives the same result, and with a power of two the
// shift is exact.
template <bool unit_scale>
struct Exponentials<Accuracy::approximate_11_bit, unit_scale> {
    static constexpr float origin = 0.0f;
    static constexpr float kMaxShift = 1048576.0f;  // 2^20: the factor is within 2^(1/32) of 1
    float maximum, scale_log2, shift;

    __device__ __forceinline__ Exponentials(float maximum, const SoftmaxArguments& args)
        : maximum(maximum), scale_log2(args.scale_log2), shift(maximum * args.scale_log2) {
        if (!(fabsf(shift) < kMaxShift) && is_finite(maximum)) {
            const uint32 exponent = __float_as_uint(maximum) >> 23 & 0xffu;
            scale_log2 = __uint_as_float((127 + 20 + 127 - exponent) << 23);
            shift = maximum * scale_log2;
        }
    }

    template <bool>
    __device__ __forceinline__ float accumulate(float x, const SoftmaxArguments&,
                                                float& sum) const {
        const float e = exp2_approx(fmaf(x, scale_log2, -shift));
        sum += e;
        return e;
    }
    __device__ __forceinline__ float rescale_factor_to(const Exponentials& other,
                                                       const SoftmaxArguments& args) const {
        return exp2_approx(scale_log2 == other.scale_log2
                               ? shift - other.shift
                               : (maximum - other.maximum) * args.scale_log2);
    }
    __device__ __forceinline__ float rounding_correction(float, const SoftmaxArguments&) const {
        return 0.0f;
    }
    __device__ __forceinline__ float log_of_sum(float sum, const SoftmaxArguments&) const {
        return logf(sum) - fmaf(maximum, scale_log2, -shift) * 0.693147181f;
    }
};

// e^(s x) = 2^n e^u with an integer n and |u| <= ln(2) / 2. Rounding of x - maximum would cost an
// ulp of its own, so the maximum is subtracted from the integers n instead: the common factor is
// 2^(kExponentOffset - n of the maximum). kExponentOffset keeps small terms normal numbers until
// the last multiplication.
template <bool unit_scale>
struct Exponentials<Accuracy::fp32_ulp, unit_scale> {
    static constexpr float kExponentOffset = 64.0f;
    static constexpr float kRoundMagic = 12582912.0f;  // 1.5 x 2^23: adding it rounds to an integer
    // |s x log2(e)| of a maximum from which on there is an origin.
    static constexpr float kMaxWithoutOrigin = 65536.0f;

    float maximum;
    // Subtracted from x first where x is large: exactly so for every x whose exponential is not 0.
    // A multiple of `args.origin_spacing`, so that maxima near each other share an origin.
    float origin;
    float lower_clamp;
    float magic;  // kRoundMagic + kExponentOffset - n of the maximum

    __device__ __forceinline__ Exponentials(float maximum, const SoftmaxArguments& args)
        : maximum(maximum) {
        const bool large = !(fabsf(maximum * args.scale_log2) < kMaxWithoutOrigin);
        origin = large && is_finite(maximum)
                     ? rintf(maximum / args.origin_spacing) * args.origin_spacing
                     : 0.0f;
        const float top = maximum - origin;
        lower_clamp = top - args.underflow_distance;
        magic = kRoundMagic + (kExponentOffset - rintf(top * args.scale_log2));
    }

    // s x = n ln(2) + main + rest (Cody-Waite). The low bits of `shifted` hold n + kExponentOffset
    // - n of the maximum.
    struct ReducedArgument {
        float shifted, minus_n, main;

        __device__ __forceinline__ float times_power_of_two(float x) const {
            return __uint_as_float(__float_as_uint(x) + (__float_as_uint(shifted) << 23));
        }
    };

    // `offset` is x - origin.
    __device__ __forceinline__ ReducedArgument reduce_argument(float offset,
                                                               const SoftmaxArguments& args) const {
        const float clamped = fmaxf(offset, lower_clamp);
        ReducedArgument argument;
        argument.shifted = fmaf(clamped, args.scale_log2, magic);
        argument.minus_n = magic - argument.shifted;
        // The fma is exact: neither number has bits below the last place of ln(2) / s.
        argument.main = fmaf(argument.minus_n, args.ln2_over_scale_high, clamped);
        if constexpr (!unit_scale) argument.main *= args.scale_fp32;
        return argument;
    }

    // Relative error at most 1.3 x 2^-24: 1/2 to 1 from the last rounding, the rest from u and p.
    __device__ __forceinline__ float exponential(float offset, const SoftmaxArguments& args) const {
        const ReducedArgument argument = reduce_argument(offset, args);
        const float u = fmaf(argument.minus_n, args.ln2_over_scale_low, argument.main);
        // (e^u - 1) / u, minimax on the interval to 2^-28.
        float p = 1.38637563e-3f;
        p = fmaf(p, u, 8.36750958e-3f);
        p = fmaf(p, u, 4.16672379e-2f);
        p = fmaf(p, u, 1.66665345e-1f);
        p = fmaf(p, u, 0.5f);
        p = fmaf(p, u, 1.0f);
        return argument.times_power_of_two(fmaf(p, u, 1.0f));
    }

    // e^(s x) = 2^n (1 + main + tail), to 2^-33.
    struct ExponentialParts {
        ReducedArgument reduced;
        float tail;

        __device__ __forceinline__ float rounded() const {
            return reduced.times_power_of_two(1.0f + (reduced.main + tail));
        }
        __device__ __forceinline__ double exact() const {
            const int high =
                static_cast<int>((__float_as_uint(reduced.shifted) << 20) + (1023u << 20));
            const double power = __hiloint2double(high, 0);
            return fma(static_cast<double>(reduced.main) + static_cast<double>(tail), power, power);
        }
    };

    __device__ __forceinline__ ExponentialParts
    exponential_parts(float offset, const SoftmaxArguments& args) const {
        ExponentialParts parts;
        parts.reduced = reduce_argument(offset, args);
        const float rest = parts.reduced.minus_n * args.ln2_over_scale_low;
        const float u = parts.reduced.main + rest;
        // (e^u - 1 - u) / u^2, minimax on the interval to 2^-33.
        float q = 1.97319969e-4f;
        q = fmaf(q, u, 1.39358744e-3f);
        q = fmaf(q, u, 8.33359361e-3f);
        q = fmaf(q, u, 4.16664556e-2f);
        q = fmaf(q, u, 1.66666657e-1f);
        q = fmaf(q, u, 0.5f);
        parts.tail = fmaf(u * u, q, rest);
        return parts;
    }

    template <bool exact>
    __device__ __forceinline__ float accumulate(float offset, const SoftmaxArguments& args,
                                                double& sum) const {
        if constexpr (exact) {
            const ExponentialParts parts = exponential_parts(offset, args);
            sum += parts.exact();
            return parts.rounded();
        }
        const float e = exponential(offset, args);
        sum += e;
        return e;
    }

    // What rounding takes from the largest term: where it dominates a row, the sum has to be more
    // exact than the rounded term.
    __device__ __forceinline__ double rounding_correction(float x,
                                                          const SoftmaxArguments& args) const {
        return exponential_parts(x - origin, args).exact() -
               static_cast<double>(exponential(x - origin, args));
    }

    // `other` has a maximum that is not smaller.
    __device__ __forceinline__ double rescale_factor_to(const Exponentials& other,
                                                        const SoftmaxArguments& args) const {
        const float n = other.magic - magic;
        if (origin == other.origin) {  // a power of two
            return n < -1000.0f ? 0.0 : __hiloint2double((static_cast<int>(n) + 1023) << 20, 0);
        }
        const double origin_distance =
            static_cast<double>(origin) - static_cast<double>(other.origin);
        const double power = n + origin_distance * (args.scale * 1.4426950408889634);
        return power < -1000.0 ? 0.0 : exp2(power);
    }

    __device__ __forceinline__ float log_of_sum(double sum, const SoftmaxArguments& args) const {
        const float n = kRoundMagic + kExponentOffset - magic;
        const float top = maximum - origin;
        const float u =
            fmaf(-n, args.ln2_over_scale_high, top) * args.scale_fp32 - n * args.ln2_over_scale_low;
        return logf(static_cast<float>(sum * 0x1p-64)) - u;
    }
};

template <RowPlan plan>
using ExponentialsOf = Exponentials<kAccuracy<plan>, plan.unit_scale>;
