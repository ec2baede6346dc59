"""A peer: cuFFT, through CuPy's fft in studies, by a plan of its own in benchmarks."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from argand import PRECISIONS

from benchmarks.peers._peer import Candidate, CannotRunError, Peer

_PRECISIONS = ("fp32", "fp64")


def transform(_precision: str, x: Any, *, inverse: bool = False, norm: str = "backward") -> Any:
    """Return the transforms of a CuPy array along the last axis, in its type."""
    import cupy

    return (cupy.fft.ifft if inverse else cupy.fft.fft)(x, norm=norm)


def _prepared() -> list[Candidate]:
    return [
        Candidate(
            "cufft", PRECISIONS[name], "cufft", partial(_planned, name), _executed,
            input=PRECISIONS[name].output, output=PRECISIONS[name].output,
        )
        for name in _PRECISIONS
    ]  # fmt: skip


def _planned(name: str, x: Any) -> tuple[Any, ...]:
    """Return the operands of cuFFT, its plan made before the clock starts."""
    import cupy
    from cupy.cuda import cufft

    given = x.astype(PRECISIONS[name].output)
    kind = cufft.CUFFT_Z2Z if name == "fp64" else cufft.CUFFT_C2C
    try:
        plan = cufft.Plan1d(x.shape[-1], kind, len(x))
    except cufft.CuFFTError as error:
        raise CannotRunError(f"cuFFT: {error}") from error
    return plan, given, cupy.full(given.shape, np.nan, given.dtype)


def _executed(plan: Any, x: Any, out: Any) -> Any:
    from cupy.cuda import cufft

    plan.fft(x, out, cufft.CUFFT_FORWARD)
    return out


def _version() -> str:
    from cupy.cuda import cufft

    return f"cuFFT {cufft.getVersion()}"


PEER = Peer(
    name="cufft", operation="dft", backends=("cuda",), precisions=_PRECISIONS,
    algorithm=lambda _: "cufft", modules=("cupy",), compute=transform, prepared=_prepared,
    version=_version,
)  # fmt: skip
