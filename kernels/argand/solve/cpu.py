"""LAPACK and BLAS on the CPU, through SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from argand.solve.library import PREFIX, Pivots


class CpuLibrary:
    """See `argand.solve.library.Library`."""

    arrays: Any = np

    def factor_panel(self, x: Any) -> tuple[Pivots, int]:
        """Overwrite x by its factors (LAPACK's getrf)."""
        getrf = getattr(lapack, f"{PREFIX[str(x.dtype)]}getrf")
        x[...], pivots, info = getrf(x)
        return pivots, int(info)

    def solve_triangular(self, t: Any, b: Any, *, unit_lower: bool) -> None:
        """Overwrite b by the solution of t x = b (BLAS's trsm)."""
        trsm = getattr(blas, f"{PREFIX[str(t.dtype)]}trsm")
        # The transpose of the whole matrix is column-major, so SciPy does not copy it.
        b[...] = trsm(1, t.T, b, trans_a=1, lower=not unit_lower, diag=unit_lower)
