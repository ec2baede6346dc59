"""A peer: scipy.fft, which is pocketfft, on all cores."""

from __future__ import annotations

from typing import Any

from benchmarks.peers._peer import Peer


def transform(_precision: str, x: Any, *, inverse: bool = False, norm: str = "backward") -> Any:
    """Return the transforms along the last axis, in the type of x."""
    from scipy import fft

    library: Any = fft.ifft if inverse else fft.fft
    return library(x, norm=norm, workers=-1)


PEER = Peer(
    name="scipy", operation="dft", backends=("cpu",), precisions=("fp32", "fp64"),
    algorithm=lambda _: "pocketfft", modules=("scipy",), compute=transform,
)  # fmt: skip
