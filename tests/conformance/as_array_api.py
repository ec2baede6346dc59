"""NumPy's namespace of the array API with argand's transforms, for the array API's own tests."""

from __future__ import annotations

import atexit
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from argand import dft
from numpy import *  # noqa: F403  the namespace

__version__ = np.__version__
_calls: Counter[str] = Counter()


def _transform(name: str, inverse: bool) -> Callable[..., Any]:
    def call(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
        _calls[name] += 1
        return dft(x, axis, n=n, inverse=inverse, norm=norm)

    return call


fft = SimpleNamespace(**{name: getattr(np.fft, name) for name in np.fft.__all__})
fft.fft, fft.ifft = _transform("fft", False), _transform("ifft", True)
linalg = np.linalg
atexit.register(lambda: print("calls:", *(f"{n} {name}" for name, n in _calls.items())))


def __getattr__(name: str) -> Any:
    return getattr(np, name)
