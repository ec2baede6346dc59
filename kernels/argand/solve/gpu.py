"""cuSOLVER and cuBLAS on CuPy arrays, in place: both read row-major matrices as transposed ones."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np
from cupy.cuda import cublas, device
from cupy_backends.cuda.libs import cusolver

from argand.solve.library import PREFIX, Pivots


class GpuLibrary:
    """See `argand.solve.library.Library`; on the current device and stream."""

    arrays: Any = cupy

    def factor_panel(self, x: Any) -> tuple[Pivots, int]:
        """Overwrite x by its factors (getrf, on a column-major copy); waits for the pivots.

        The host needs them: it composes the permutations of many panels, which are then applied
        at once, and stops at a singular matrix.
        """
        rows, columns = x.shape
        panel = cupy.asfortranarray(x)
        name, handle = f"{PREFIX[str(x.dtype)]}getrf", device.get_cusolver_handle()
        size = getattr(cusolver, f"{name}_bufferSize")(handle, rows, columns, panel.data.ptr, rows)
        workspace = cupy.empty(size, x.dtype)
        found = cupy.empty(columns + 1, np.int32)
        getattr(cusolver, name)(
            handle, rows, columns, panel.data.ptr, rows, workspace.data.ptr,
            found.data.ptr, found[columns:].data.ptr,
        )  # fmt: skip
        x[...] = panel
        pivots = found.get()
        return pivots[:columns] - 1, int(pivots[columns])

    def solve_triangular(self, t: Any, b: Any, *, unit_lower: bool) -> None:
        """Overwrite b by the solution of t x = b (trsm).

        The library sees the transpose T of the row-major t. A column-major b is solved as
        T^T x = b; a row-major one, whose transpose it sees too, as x^T T = b^T.
        """
        (size, columns), item = b.shape, b.dtype.itemsize
        by_columns = b.flags.f_contiguous
        trsm = getattr(cublas, f"{PREFIX[str(t.dtype)]}trsm")
        one = np.ones((), t.dtype)
        trsm(
            device.get_cublas_handle(),
            cublas.CUBLAS_SIDE_LEFT if by_columns else cublas.CUBLAS_SIDE_RIGHT,
            cublas.CUBLAS_FILL_MODE_UPPER if unit_lower else cublas.CUBLAS_FILL_MODE_LOWER,
            cublas.CUBLAS_OP_T if by_columns else cublas.CUBLAS_OP_N,
            cublas.CUBLAS_DIAG_UNIT if unit_lower else cublas.CUBLAS_DIAG_NON_UNIT,
            *((size, columns) if by_columns else (columns, size)),
            one.ctypes.data, t.data.ptr, max(t.strides[0] // item, size),
            b.data.ptr, size if by_columns else max(b.strides[0] // item, columns),
        )  # fmt: skip
