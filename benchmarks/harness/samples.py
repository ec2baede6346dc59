"""The part of a result that is compared with fp64: some rows of it, in the host's memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def on_host(x: Any) -> npt.NDArray[Any]:
    """Return a NumPy or CuPy array in NumPy."""
    return np.asarray(x.get() if hasattr(x, "get") else x)


def sampled_rows(rows: int, most: int) -> npt.NDArray[np.int64]:
    """Return all rows up to ``most``, else as many spread over them, first and last included."""
    return np.unique(np.linspace(0, rows - 1, min(rows, most)).astype(np.int64))
