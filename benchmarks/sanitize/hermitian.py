"""Hermitian systems for compute-sanitizer: ``python -m benchmarks.sanitize.hermitian complex64``.

Every size of a group of threads, whole and ragged, with fewer right-hand sides than a group takes
at a time and with more, and factors in global memory. Each array is an allocation of its own, so
that an access beyond it is one beyond what is allocated. The exit status is 1 where a residual is
beyond its bound.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
from argand import solve_hermitian
from argand.device import gpu
from argand.hermitian.bounds import residual_bound
from argand.hermitian.plan import plan_hermitian

from benchmarks.harness.samples import on_host
from benchmarks.sanitize.verdicts import bounded_program

SYSTEMS = (
    (1, 3, 1), (3, 33, 2), (8, 33, 4), (13, 5, 5), (16, 31, 4), (23, 9, 4), (32, 7, 9), (51, 3, 4),
    (64, 2, 9), (100, 2, 4), (128, 1, 17),
)  # fmt: skip
"""Rows, systems and right-hand sides."""
_SEED = 1


def solutions(dtype: str, arrays: Any) -> Iterator[tuple[str, float]]:
    """Yield (systems, the largest residual over its bound).

    ``arrays`` is the module of the arrays, cupy (or numpy).
    """
    rng = np.random.default_rng(_SEED)
    for n, systems, columns in SYSTEMS:
        v = rng.standard_normal((systems, n, n + 3, 2)).view(complex)[..., 0]
        r = (v @ v.conj().swapaxes(-1, -2)).astype(dtype)
        b = rng.standard_normal((systems, n, columns, 2)).view(complex)[..., 0].astype(dtype)
        for in_global in (False, True):
            with _factors(n, columns, dtype, in_global=in_global and arrays is not np):
                found = on_host(solve_hermitian(arrays.asarray(r), arrays.asarray(b)))
            residual = np.linalg.norm(b - r.astype(complex) @ found, axis=-2)
            ratio = residual / residual_bound(r.astype(complex), b, found, dtype)
            where = ", factors in global memory" if in_global else ""
            yield f"{systems} systems of {n} rows, {columns} sides{where}", float(ratio.max())


def _factors(n: int, columns: int, dtype: str, *, in_global: bool) -> Any:
    if not in_global:
        return nullcontext()
    from argand.hermitian.gpu import PLAN_OVERRIDE

    plan = plan_hermitian(n, columns, dtype, gpu(0).require_arch())
    return PLAN_OVERRIDE.use(replace(plan, in_global=True))


main = bounded_program(
    __doc__,
    ("dtype", ("complex64", "complex128")),
    solutions,
    "a residual is {} times its bound",
)


if __name__ == "__main__":
    sys.exit(main())
