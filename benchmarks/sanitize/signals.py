"""Small random signals of every type that kernels read."""

from __future__ import annotations

from typing import Any

import numpy as np

KINDS = ("complex64", "int8 pairs", "float32", "int8")
REAL_KINDS = ("float32", "int8")


def drawn_signal(rng: np.random.Generator, kind: str, samples: int) -> tuple[Any, Any]:
    """Return integers (2, samples) as a type of samples, and the same numbers in fp64."""
    parts = rng.integers(-128, 128, (2, samples, 2)).astype(np.int8)
    exact = parts[..., 0] + 1j * parts[..., 1].astype(float)
    given: dict[str, Any] = {
        "complex64": exact.astype(np.complex64), "int8 pairs": parts,
        "float32": exact.real.astype(np.float32), "int8": parts[..., 0].copy(),
    }  # fmt: skip
    return given[kind], exact.real if kind in REAL_KINDS else exact
