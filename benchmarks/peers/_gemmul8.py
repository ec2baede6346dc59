"""GEMMul8 through ctypes: complex products by int8 and the Chinese remainder theorem, fast mode.

``$GEMMUL8`` names the shared library that `_gemmul8.cu` says how to build.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from benchmarks.peers._peer import CannotRunError


@cache
def library() -> ctypes.CDLL:
    """Return the library. Raises CannotRunError where ``$GEMMUL8`` names none."""
    path = Path(os.environ.get("GEMMUL8", ""))
    if not path.is_file():
        raise CannotRunError("GEMMul8 is not installed ($GEMMUL8 must name its shared library)")
    import cupy

    cupy.cuda.device.get_cublas_handle()  # cuBLAS is in the process before it is looked for
    found = ctypes.CDLL(str(path))
    found.gemmul8_workspace.restype = ctypes.c_size_t
    return found


def product(a: Any, b: Any, out: Any, moduli: int) -> Callable[[], object]:
    """Return the call that writes A B into ``out``: row-major CuPy matrices, or batches of them.

    It is made as the column-major product B^T A^T, one call a product of a batch, and its
    workspace before. Raises CannotRunError where the library is missing.
    """
    import cupy

    own, (m, k), n = library(), a.shape[-2:], b.shape[-1]
    sizes = [ctypes.c_size_t(x) for x in (n, m, k)]
    bytes_needed = own.gemmul8_workspace(*sizes, ctypes.c_uint(moduli))
    workspace = cupy.empty(bytes_needed, cupy.uint8)
    function = getattr(own, f"gemmul8_{a.dtype.name}")
    calls = [
        partial(
            function, ctypes.c_void_p(cupy.cuda.device.get_cublas_handle()), *sizes,
            *(ctypes.c_void_p(int(x.data.ptr)) for x in (right, left, place)),
            ctypes.c_uint(moduli), ctypes.c_void_p(int(workspace.data.ptr)),
        )
        for left, right, place in zip(
            a.reshape(-1, m, k), b.reshape(-1, k, n), out.reshape(-1, m, n), strict=True
        )
    ]  # fmt: skip

    def call() -> object:
        for one in calls:
            one()
        return workspace

    return call
