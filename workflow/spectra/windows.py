"""Windows of scipy.signal by their names, imported only where there is one to make."""

from __future__ import annotations

from typing import Any

import numpy as np

from workflow.config.mistakes import nearest
from workflow.data import Array

NAMED = (
    "barthann", "bartlett", "blackman", "blackmanharris", "bohman", "boxcar", "cosine", "flattop",
    "hamming", "hann", "nuttall", "parzen", "triang",
)  # fmt: skip
"""Windows that take no parameter and that every SciPy has: their names are known to be right."""


def check_window(window: Any) -> None:
    """Raise ValueError as `make_window` does, but import no scipy.signal where a name is known."""
    if not isinstance(window, str) or window not in NAMED:
        make_window(window, 8)


def make_window(window: Any, length: int) -> Array:
    """Return a periodic window by its name, or by [name, parameter...].

    Raises ValueError for one that SciPy does not have. Imports scipy.signal, half a second, only
    where there is a window to make.
    """
    from scipy.signal import get_window

    try:
        if not isinstance(window, str) and any(isinstance(one, str) for one in window[1:]):
            raise TypeError("parameters must be numbers")
        return np.asarray(get_window(window, length))
    except Exception as error:  # SciPy checks few parameters: some fail wherever they are used
        raise ValueError(
            f"window: must be a window of scipy.signal, got {window!r}"
            f"{nearest(str(window), NAMED) or f': {error}'}"
        ) from None
