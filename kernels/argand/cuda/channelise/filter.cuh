// The filter alone, for lengths and precisions whose transforms another kernel computes: sums of
// taps for each spectrum and residue, in the order of residues.
#pragma once
#include "plan.cuh"

template <typename Real, bool RealSamples>
__device__ __forceinline__ void filter_samples(const FilterArguments& args) {
    const Real* const h = static_cast<const Real*>(args.coefficients);
    Complex<Real>* const out = static_cast<Complex<Real>*>(args.out);
    const int64 all = args.count * args.channels;
    for (int64 at = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; at < all;
         at += static_cast<int64>(gridDim.x) * blockDim.x) {
        const int64 number = args.first + at / args.channels;
        const int64 row = number / args.spectra, begin = number % args.spectra * args.hop;
        int l = static_cast<int>(at % args.channels) - static_cast<int>(begin % args.channels);
        if (l < 0) l += args.channels;
        const int64 from = row * args.samples + begin + l;
        Complex<Real> sum = {Real(0), Real(0)};
        for (int t = 0; t < args.taps; ++t) {
            const int64 n = static_cast<int64>(t) * args.channels;
            const Real c = h[l + n];
            if constexpr (RealSamples) {
                sum.x += c * static_cast<const Real*>(args.x)[from + n];
            } else {
                const Complex<Real> x = static_cast<const Complex<Real>*>(args.x)[from + n];
                sum.x += c * x.x;
                sum.y += c * x.y;
            }
        }
        out[at] = sum;
    }
}
