"""The documented most workspace of a call, and what libraries take for themselves."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from threading import Thread
from typing import Any

from argand import Pairs
from argand.gemm.modular.moduli import EXACT
from argand.gemm.pack.plan import pitch_of
from argand.gemm.workspace import MAX_WORKSPACE, SLICES_WORKSPACE
from argand.precision import any_precision
from argand.runtime.memory.workspace_limit import allowed_workspace

_OF_PRODUCTS = MAX_WORKSPACE + SLICES_WORKSPACE
"""Most workspace of a product, as a multiple of its operands' bytes (docs/memory.md)."""
_CUBLAS = 32 << 20
"""Bytes of workspace that argand gives cuBLAS."""
_ALWAYS_ALLOWED = 256 << 20
"""Bytes that exact products, and matrices taken by their triangles, may have in any case."""
_SIDE = 256
"""Lines of the product for which cuBLAS takes its workspace."""


def by_plan(plan: Callable[..., Any], *arrays: Any, **options: Any) -> int:
    """Return the bytes of workspace that a plan of a call says, planned within the limit."""
    said: str = plan(*arrays, **options).describe()
    return int(said.rpartition("workspace: ")[2].split()[0])


def of_herk(a: Any, precision: str, form: str) -> int:
    """Return the bytes that docs/memory.md allows `argand.herk` within the limit: it has no plan.

    ``a`` is (n, k), an array or `Pairs`.
    """
    n, k = a.shape
    item = 2 * a.array.itemsize if isinstance(a, Pairs) else a.itemsize
    operands, result = 2 * item * n * pitch_of(k), n * n * (16 if precision == "fp64" else 8)
    if precision in ("fp32", "fp64"):
        found = _CUBLAS
    elif precision == EXACT or any_precision(precision).moduli:
        found = max(_ALWAYS_ALLOWED, operands + result)
    else:
        found = math.ceil(_OF_PRODUCTS * operands)
    if form == "triangle":
        found += max(_ALWAYS_ALLOWED, result)
    allowed = allowed_workspace()
    return found if allowed is None else min(found, allowed)


def of_cufft(x: Any, cupy: Any) -> int:
    """Return the bytes of cuFFT's own workspace for transforms of rows."""
    from cupyx.scipy.fft import get_fft_plan

    return int(get_fft_plan(x, axes=-1).work_area.mem.size)


@cache
def of_cublas(cupy: Any) -> int:
    """Return the bytes of the device that a handle of cuBLAS takes with its first product.

    They are the handle's, whatever the size of its products.
    """
    x, out = (cupy.ones((_SIDE, _SIDE), cupy.complex64) for _ in range(2))
    found: list[int] = []

    def multiply() -> None:  # CuPy makes a handle a thread
        free, _ = cupy.cuda.runtime.memGetInfo()
        cupy.matmul(x, x, out=out)
        cupy.cuda.runtime.deviceSynchronize()
        found.append(free - cupy.cuda.runtime.memGetInfo()[0])

    for _ in range(2):  # the first loads the library's kernels too
        thread = Thread(target=multiply)
        thread.start()
        thread.join()
    return found[-1]
