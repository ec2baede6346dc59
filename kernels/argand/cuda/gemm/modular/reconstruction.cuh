// The integers C' themselves, exactly, from their residues, and one rounding. The kernel that
// decodes takes this way where a fraction does not decide.
#pragma once
#include "moduli.cuh"

// (high 2^64 + low) 2^exponent, below 2^125, rounded to `bits` bits, ties to even, with subnormal
// numbers down to 2^least. The result is exact in fp64.
__device__ __forceinline__ double round_integer(uint64 high, uint64 low, int exponent, int bits,
                                                int least) {
    constexpr int kKept = 62;  // leading bits that are rounded, the last of them sticky
    const int length = high ? 128 - __clzll(high) : 64 - __clzll(low);
    const int shift = max(length - kKept, 0);
    uint64 kept = low;
    if (shift > 0) {
        kept = low >> shift | high << (64 - shift);
        kept |= (low & ((1ull << shift) - 1)) != 0;
    }
    exponent += shift;
    const int drop = max(0, min(max(length - shift - bits, least - exponent), kKept + 1));
    uint64 whole = kept >> drop;
    const uint64 rest = kept - (whole << drop), half = drop ? 1ull << (drop - 1) : 0;
    whole += drop && (rest > half || (rest == half && whole & 1));
    // Three factors, because the power of two may be beyond those of fp64 where the result is not.
    exponent = max(-2700, min(exponent + drop, 2700));
    const int third = exponent / 3;
    const double factor = power_of_two(0.0, third);
    return double(whole) * factor * factor * power_of_two(0.0, exponent - 2 * third);
}

// The real or the imaginary part of C' 2^exponent. `residues` are those of the first plane; each
// further one lies `plane` bytes on. They are in shared memory: a single lane takes this path, and
// the last one decides when the kernel ends.
template <typename T>
__device__ __noinline__ T exact_part(const signed char* residues, int plane, bool imaginary,
                                     int exponent) {
    int any = 0;
#pragma unroll 4
    for (int p = 0; p < 2 * kModuli; ++p) any |= residues[p * plane];
    if (any == 0) return T(0);  // common, and not worth what follows
    uint64 words[4] = {};
    float quotient = 0;
#pragma unroll 1
    for (int p = 0; p < kModuli; ++p) {
        const ExactModulus& modulus = kExactModuli[p];
        const int plus = residues[2 * p * plane], minus = residues[(2 * p + 1) * plane];
        int weighted = imaginary ? (plus - minus) * modulus.imag : (plus + minus) * modulus.real;
        weighted %= modulus.p;
        if (weighted < 0) weighted += modulus.p;
#pragma unroll
        for (int i = 0; i < 4; ++i) words[i] += uint64(weighted) * modulus.rest[i];
        quotient += float(weighted) / float(modulus.p);
    }
    // The sum is C' plus a multiple of P, and C' at least 2^-11 P from half of P (scaling.py),
    // where 17 quotients below 1 and their sum are off by less than 2^-16.
    const int64 multiple = __float2int_rn(quotient);
    int64 carry = 0;
    uint64 limbs[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int64 total = int64(words[i]) - multiple * kProduct[i] + carry;
        limbs[i] = uint32(total);
        carry = total >> 32;
    }
    uint64 low = limbs[0] | limbs[1] << 32, high = limbs[2] | limbs[3] << 32;
    const bool negative = carry < 0;
    if (negative) {
        low = ~low + 1;
        high = ~high + (low == 0);
    }
    const double found = sizeof(T) == 4 ? round_integer(high, low, exponent, 24, -149)
                                        : round_integer(high, low, exponent, 53, -1074);
    return T(negative && found != 0 ? -found : found);
}
