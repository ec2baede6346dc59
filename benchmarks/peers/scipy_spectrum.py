"""A peer: spectral estimates by scipy.signal."""

from __future__ import annotations

from typing import Any

import numpy as np
from argand import PRECISIONS

from benchmarks.peers._spectrum import group_means, spectrum_peer


def _compute(
    precision: str, x: Any, window: Any, overlap: int, average: int,
    scaling: str = "density", sample_rate: float = 1.0, detrend: str | None = None,
) -> Any:  # fmt: skip
    from scipy import signal

    row = PRECISIONS[precision]
    how: dict[str, Any] = {
        "window": np.asarray(window, row.real_output), "nperseg": len(window),
        "noverlap": overlap, "detrend": detrend or False, "scaling": scaling,
        "return_onesided": x.dtype.kind != "c",
    }  # fmt: skip
    segments = (x.shape[-1] - len(window)) // (len(window) - overlap) + 1
    if segments == average > 1:
        *_, found = signal.welch(x, sample_rate, **how)
        return found[..., None, :]
    *_, found = signal.spectrogram(x, sample_rate, **how)
    return group_means(found.swapaxes(-1, -2), average, x)


PEER = spectrum_peer("scipy", "cpu", "welch or spectrogram", _compute)
