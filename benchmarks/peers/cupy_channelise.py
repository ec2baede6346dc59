"""A peer: a filter bank by CuPy, its filter one elementwise kernel, and cuFFT."""

from __future__ import annotations

from functools import cache
from typing import Any

from benchmarks.peers._channelise import channelise_peer


@cache
def _kernel() -> Any:
    import cupy

    return cupy.ElementwiseKernel(
        "raw X x, raw R h, int64 samples, int64 hop, int64 count, int32 channels, int32 taps",
        "X y",
        """
        const long long spectrum = i / channels, row = spectrum / count;
        const int k = static_cast<int>(i % channels);
        const long long first = row * samples + spectrum % count * hop + k;
        X sum = X(0);
        for (long long t = 0; t < taps; ++t) sum += x[first + t * channels] * h[t * channels + k];
        y = sum;
        """,
        "argand_peer_filter",
    )


def filtered(x: Any, h: Any, hop: int, count: int) -> Any:
    """Return the sum over taps of coefficients times frames, (..., spectra, channels)."""
    import cupy

    taps, channels = h.shape
    found = cupy.empty((*x.shape[:-1], count, channels), x.dtype)
    if found.size:
        _kernel()(cupy.ascontiguousarray(x), h, x.shape[-1], hop, count, channels, taps, found)
    return found


PEER = channelise_peer("cupy", "cuda", filtered)
