"""A peer: spectral estimates as users of CuPy write them: windowed segments, cuFFT, squares.

Segments are a strided view of the signal, so the window's product is the first that writes them.
"""

from __future__ import annotations

from typing import Any

from argand import PRECISIONS

from benchmarks.peers._spectrum import group_means, spectrum_peer


def _compute(
    precision: str, x: Any, window: Any, overlap: int, average: int,
    scaling: str = "density", sample_rate: float = 1.0, detrend: str | None = None,
) -> Any:  # fmt: skip
    import cupy

    row = PRECISIONS[precision]
    real, length = x.dtype.kind != "c", len(window)
    hop = length - overlap
    w = cupy.asarray(window, row.real_output)
    segments = (x.shape[-1] - length) // hop + 1
    strides = (*x.strides[:-1], hop * x.strides[-1], x.strides[-1])
    views = cupy.lib.stride_tricks.as_strided(x, (*x.shape[:-1], segments, length), strides)
    if detrend is not None:
        views = views - views.mean(axis=-1, keepdims=True)
    if detrend == "linear" and length > 1:
        times = cupy.arange(length, dtype=row.real_output) - (length - 1) / 2
        views -= (views @ times / (times @ times))[..., None] * times
    spectra = (cupy.fft.rfft if real else cupy.fft.fft)(views * w)
    power = spectra.real**2 + spectra.imag**2
    if scaling == "density":
        power *= 1 / (sample_rate * (w * w).sum())
    else:
        power *= 1 / w.sum() ** 2
    if real:
        power[..., 1 : (length + 1) // 2] *= 2
    return group_means(power, average, x)


PEER = spectrum_peer("cupy", "cuda", "window, cuFFT, squares", _compute)
