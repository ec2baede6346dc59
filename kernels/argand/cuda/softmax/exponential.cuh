// Exponentials of a row about its maximum, in the accuracies that results ask for.
#pragma once
#include "plan.cuh"

__device__ __forceinline__ float power_approximately(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// A maximum of which one NaN makes a NaN.
__device__ __forceinline__ float larger(float x, float y) {
    float z;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
    return z;
}
__device__ __forceinline__ double larger(double x, double y) { return x > y || x != x ? x : y; }
__device__ __forceinline__ float smaller(float x, float y) {
    float z;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
    return z;
}

__device__ __forceinline__ bool is_finite(double x) { return x - x == 0; }

// Which a plan takes: fp64; fp32 right to an ulp; fp32 for results of 16 bits, from values of 16 bits or
// any others.
enum class Accuracy { wide, fine, narrow, coarse };
template <SoftmaxPlan plan>
constexpr Accuracy kAccuracy = plan.wide       ? Accuracy::wide
                               : plan.fine()   ? Accuracy::fine
                               : plan.packed() ? Accuracy::narrow
                                               : Accuracy::coarse;

// The exponentials of a row about a maximum, all multiplied by one number, which is theirs to choose.
// `Share` gives the quotients. `unit` says that the scale s is 1.
template <Accuracy accuracy, bool unit>
struct Exponentials;

template <bool unit>
struct Exponentials<Accuracy::wide, unit> {
    static constexpr double origin = 0.0;
    double maximum;

    __device__ __forceinline__ Exponentials(double maximum, const SoftmaxArguments&)
        : maximum(maximum) {}

    template <bool>
    __device__ __forceinline__ double add(double x, const SoftmaxArguments& args,
                                          double& sum) const {
        const double e = exp((x - maximum) * args.scale);
        sum += e;
        return e;
    }
    // What a sum about this maximum is multiplied by to be one about `other`, which is larger.
    __device__ __forceinline__ double change(const Exponentials& other,
                                             const SoftmaxArguments& args) const {
        return exp((maximum - other.maximum) * args.scale);
    }
    __device__ __forceinline__ double correction(double, const SoftmaxArguments&) const {
        return 0.0;
    }
    __device__ __forceinline__ double log_of(double sum, const SoftmaxArguments&) const {
        return log(sum);
    }
};

template <bool unit>
struct Exponentials<Accuracy::coarse, unit> {
    static constexpr float origin = 0.0f;
    float maximum;

    __device__ __forceinline__ Exponentials(float maximum, const SoftmaxArguments&)
        : maximum(maximum) {}

    template <bool>
    __device__ __forceinline__ float add(float x, const SoftmaxArguments& args, float& sum) const {
        const float e = power_approximately((x - maximum) * args.per_power);
        sum += e;
        return e;
    }
    __device__ __forceinline__ float change(const Exponentials& other,
                                            const SoftmaxArguments& args) const {
        return power_approximately((maximum - other.maximum) * args.per_power);
    }
    __device__ __forceinline__ float correction(float, const SoftmaxArguments&) const {
        return 0.0f;
    }
    __device__ __forceinline__ float log_of(float sum, const SoftmaxArguments&) const {
        return logf(sum);
    }
};

// 2^(p x - shift) in one fma, where the shift is p times the maximum, rounded: a factor that all terms
// have in common. Where it would be far from 1, a value of 16 bits is the maximum or so far below it
// that it does not count: any power p that keeps it there will do, and one of two has no rounding.
template <bool unit>
struct Exponentials<Accuracy::narrow, unit> {
    static constexpr float origin = 0.0f;
    static constexpr float kNear = 1048576.0f;  // 2^20: a factor within 2^(1/32) of 1
    float maximum, power, shift;

    __device__ __forceinline__ Exponentials(float maximum, const SoftmaxArguments& args)
        : maximum(maximum), power(args.per_power), shift(maximum * args.per_power) {
        if (!(fabsf(shift) < kNear) && is_finite(maximum)) {
            const uint32 exponent = __float_as_uint(maximum) >> 23 & 0xffu;
            power = __uint_as_float((127 + 20 + 127 - exponent) << 23);
            shift = maximum * power;
        }
    }

    template <bool>
    __device__ __forceinline__ float add(float x, const SoftmaxArguments&, float& sum) const {
        const float e = power_approximately(fmaf(x, power, -shift));
        sum += e;
        return e;
    }
    __device__ __forceinline__ float change(const Exponentials& other,
                                            const SoftmaxArguments& args) const {
        return power_approximately(power == other.power
                                       ? shift - other.shift
                                       : (maximum - other.maximum) * args.per_power);
    }
    __device__ __forceinline__ float correction(float, const SoftmaxArguments&) const {
        return 0.0f;
    }
    __device__ __forceinline__ float log_of(float sum, const SoftmaxArguments&) const {
        return logf(sum) - fmaf(maximum, power, -shift) * 0.693147181f;
    }
};

// e^(s x) = 2^n e^u with an integer n and |u| <= ln(2) / 2. The difference x - maximum would lose
// ulps of its own; here it is a difference of integers n, and the common factor is 2^(kLift - n of
// the maximum). kLift keeps what is small a normal number until the last multiplication.
template <bool unit>
struct Exponentials<Accuracy::fine, unit> {
    static constexpr float kLift = 64.0f;
    static constexpr float kRound = 12582912.0f;  // 1.5 x 2^23: adding it rounds to an integer
    static constexpr float kLargest = 65536.0f;   // powers of two that x may be without an origin

    float maximum;
    // Subtracted first where x is so large that this is exact for all that counts. A multiple of
    // `args.cell`, so that two maxima near each other have one origin.
    float origin;
    float lowest;
    float magic;  // kRound + kLift - n of the maximum

    __device__ __forceinline__ Exponentials(float maximum, const SoftmaxArguments& args)
        : maximum(maximum) {
        const bool large = !(fabsf(maximum * args.per_power) < kLargest);
        origin = large && is_finite(maximum) ? rintf(maximum / args.cell) * args.cell : 0.0f;
        const float top = maximum - origin;
        lowest = top - args.reach;
        magic = kRound + (kLift - rintf(top * args.per_power));
    }

    // s x = n ln(2) + main + rest. The low bits of `shifted` hold n + kLift - n of the maximum.
    struct Reduced {
        float shifted, minus_n, main;

        __device__ __forceinline__ float times_power(float x) const {
            return __uint_as_float(__float_as_uint(x) + (__float_as_uint(shifted) << 23));
        }
    };

    // Of what is left of x when `origin` was subtracted.
    __device__ __forceinline__ Reduced reduced(float left, const SoftmaxArguments& args) const {
        const float d = fmaxf(left, lowest);
        Reduced found;
        found.shifted = fmaf(d, args.per_power, magic);
        found.minus_n = magic - found.shifted;
        // The fma is exact: neither number has bits below the last of ln(2) / s.
        found.main = fmaf(found.minus_n, args.power_high, d);
        if constexpr (!unit) found.main *= args.scale_f;
        return found;
    }

    // Within 1.3 x 2^-24: of which 1 / 2 to 1 is the last rounding, and the rest that of u and of p.
    __device__ __forceinline__ float rounded(float left, const SoftmaxArguments& args) const {
        const Reduced found = reduced(left, args);
        const float u = fmaf(found.minus_n, args.power_low, found.main);
        // (e^u - 1) / u, minimax on the interval to 2^-28.
        float p = 1.38637563e-3f;
        p = fmaf(p, u, 8.36750958e-3f);
        p = fmaf(p, u, 4.16672379e-2f);
        p = fmaf(p, u, 1.66665345e-1f);
        p = fmaf(p, u, 0.5f);
        p = fmaf(p, u, 1.0f);
        return found.times_power(fmaf(p, u, 1.0f));
    }

    // e^(s x) = 2^n (1 + main + above), to 2^-33.
    struct Parts {
        Reduced from;
        float above;

        __device__ __forceinline__ float rounded() const {
            return from.times_power(1.0f + (from.main + above));
        }
        __device__ __forceinline__ double exact() const {
            const int high = static_cast<int>((__float_as_uint(from.shifted) << 20) + (1023u << 20));
            const double power = __hiloint2double(high, 0);
            return fma(static_cast<double>(from.main) + static_cast<double>(above), power, power);
        }
    };

    __device__ __forceinline__ Parts parts(float left, const SoftmaxArguments& args) const {
        Parts found;
        found.from = reduced(left, args);
        const float rest = found.from.minus_n * args.power_low;
        const float u = found.from.main + rest;
        // (e^u - 1 - u) / u^2, minimax on the interval to 2^-33.
        float q = 1.97319969e-4f;
        q = fmaf(q, u, 1.39358744e-3f);
        q = fmaf(q, u, 8.33359361e-3f);
        q = fmaf(q, u, 4.16664556e-2f);
        q = fmaf(q, u, 1.66666657e-1f);
        q = fmaf(q, u, 0.5f);
        found.above = fmaf(u * u, q, rest);
        return found;
    }

    template <bool exact>
    __device__ __forceinline__ float add(float left, const SoftmaxArguments& args,
                                         double& sum) const {
        if constexpr (exact) {
            const Parts found = parts(left, args);
            sum += found.exact();
            return found.rounded();
        }
        const float e = rounded(left, args);
        sum += e;
        return e;
    }

    // What a sum of rounded terms lacks for one of them. Where a term dominates a row, the sum has to
    // be more exact than it.
    __device__ __forceinline__ double correction(float x, const SoftmaxArguments& args) const {
        return parts(x - origin, args).exact() - static_cast<double>(rounded(x - origin, args));
    }

    // A sum about this maximum times what is returned is one about `other`, which is not smaller.
    __device__ __forceinline__ double change(const Exponentials& other,
                                             const SoftmaxArguments& args) const {
        const float n = other.magic - magic;
        if (origin == other.origin) {  // a power of two
            return n < -1000.0f ? 0.0 : __hiloint2double((static_cast<int>(n) + 1023) << 20, 0);
        }
        const double away = static_cast<double>(origin) - static_cast<double>(other.origin);
        const double power = n + away * (args.scale * 1.4426950408889634);
        return power < -1000.0 ? 0.0 : exp2(power);
    }

    // The logarithm of the sum about the maximum.
    __device__ __forceinline__ float log_of(double sum, const SoftmaxArguments& args) const {
        const float n = kRound + kLift - magic;
        const float top = maximum - origin;
        const float u = fmaf(-n, args.power_high, top) * args.scale_f - n * args.power_low;
        return logf(static_cast<float>(sum * 0x1p-64)) - u;
    }
};

template <SoftmaxPlan plan>
using ExponentialsOf = Exponentials<kAccuracy<plan>, plan.unit>;
