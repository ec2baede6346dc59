"""Signals of a benchmark: random samples of each type that our kernels read."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from argand import Device, pairs

from benchmarks.harness.measuring import array_module

Input = Literal["complex64", "int8", "float32", "real int8"]
INPUTS: tuple[Input, ...] = get_args(Input)
"""Types of samples; int8 are pairs."""
_DRAWN = (1 << 22) + 18
"""Components that are drawn."""


def drawn_samples(kind: Input, rows: int, components: int, seed: int, device: Device) -> Any:
    """Return random components (rows, time) or (rows, time, 2), of the type of the input.

    A block of them is repeated: drawing on the host takes longer than what is measured.
    """
    arrays = array_module(device)
    rng = np.random.default_rng(seed)
    real = kind in ("float32", "real int8")
    shape: tuple[int, ...] = (rows, components // rows // (1 if real else 2))
    shape += () if real else (2,)
    count = int(np.prod(shape))
    block: Any
    if "int8" in kind:
        block = rng.integers(-128, 128, min(count, _DRAWN), dtype=np.int8)
    else:
        block = rng.standard_normal(min(count, _DRAWN), dtype=np.float32)
    found = arrays.tile(arrays.asarray(block), -(-count // block.size))[:count].reshape(shape)
    return found.view(np.complex64)[..., 0] if kind == "complex64" else found


def as_argument(x: Any) -> Any:
    """Return drawn samples as our calls take them: pairs of integers as `Pairs`."""
    return pairs(x) if x.ndim == 3 else x


def as_floats(x: Any) -> Any:
    """Return drawn samples as libraries take them: integers become complex64 or float32."""
    if x.dtype.kind != "i":
        return x
    x = x.astype(np.float32)
    return x.view(np.complex64)[..., 0] if x.ndim == 3 else x
