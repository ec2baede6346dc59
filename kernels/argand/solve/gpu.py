"""cuSOLVER and cuBLAS on CuPy arrays, in place: both read row-major matrices as transposed ones."""

from __future__ import annotations

from ctypes import c_int, c_void_p
from typing import Any

import cupy
import numpy as np
from cupy.cuda import cublas
from cupy_backends.cuda.libs import cusolver

from argand.device import Device, gpu
from argand.gemm.api import gemm
from argand.runtime.complex_types import PREFIX
from argand.runtime.libraries.cublas import cublas_handle
from argand.runtime.libraries.cusolver import cusolver_handle
from argand.solve.exchange_launch import move_launch, order_launch
from argand.solve.library import Exchanges

_TRSM = (*(c_int,) * 6, c_void_p, c_void_p, c_int, c_void_p, c_int)
_GEAM = (*(c_int,) * 4, c_void_p, c_void_p, c_int, c_void_p, c_void_p, c_int, c_void_p, c_int)
"""Types of cuBLAS's arguments behind the handle."""


class GpuLibrary:
    """See `argand.solve.library.Library`; on the current device and stream."""

    arrays: Any = cupy

    def factor_panel(self, x: Any) -> Exchanges:
        """Overwrite x by its factors (getrf, on a column-major copy)."""
        rows, columns = x.shape
        panel = columns_of(x)
        found = cupy.empty(columns + 1, np.int32)
        factor(panel, found)
        _transpose(panel.data.ptr, rows, x.data.ptr, _pitch(x), x.dtype, columns, rows)
        order, moves = cupy.empty(rows, np.int64), cupy.empty((2 * columns, 2), np.int32)
        launch, apart = order_launch(rows, columns, _current())
        scratch = cupy.empty(rows if apart else 0, np.int32)
        launch({
            "pivots": found.data.ptr, "scratch": scratch.data.ptr if apart else 0,
            "order": order.data.ptr, "moves": moves.data.ptr,
        })  # fmt: skip
        return Exchanges(order, moves, found[columns:])

    def exchange(self, rows: Any, exchanges: Exchanges, first: int, last: int) -> None:
        """Bring rows into the order, except in the columns [first, last)."""
        columns, moves = rows.shape[1], exchanges.moves
        if last - first == columns:
            return
        launch = move_launch(
            len(moves), first, last, columns, _pitch(rows), str(rows.dtype), _current()
        )
        if launch is not None:
            launch({"moves": moves.data.ptr, "rows": rows.data.ptr})
            return
        to, source = moves[:, 0], moves[:, 1]
        for part in (rows[:, :first], rows[:, last:]):
            part[to] = part[source]

    def solve_triangular(self, t: Any, b: Any, *, unit_lower: bool) -> None:
        """Overwrite b by the solution of t x = b (trsm).

        The library sees the transpose T of the row-major t. A column-major b is solved as
        T^T x = b; a row-major one, whose transpose it sees too, as x^T T = b^T.
        """
        trsm(t, _pitch(t), b, upper=unit_lower, unit=unit_lower, transposed=b.flags.f_contiguous)

    def residual(self, a: Any, x: Any, b: Any) -> Any:
        """See `Library`."""
        return gemm(a, x, b, alpha=-1, beta=1, precision="fp64")


def columns_of(x: Any) -> Any:
    """Return a column-major copy of a row-major x (m, n)."""
    rows, columns = x.shape
    found = cupy.empty((rows, columns), x.dtype, order="F")
    _transpose(x.data.ptr, _pitch(x), found.data.ptr, rows, x.dtype, rows, columns)
    return found


def factor(x: Any, found: Any) -> None:
    """Overwrite a column-major x (m, w) by its factors (getrf).

    Columns beyond m, of a wide x, become L^-1 P times what they were. ``found``, int32, gets the
    pivots of min(m, w) columns, counted from 1, and then the number of the first column without
    one, else 0. Beyond that column pivots need not be rows.
    """
    rows, columns = x.shape
    name, (handle, lock) = f"{PREFIX[str(x.dtype)]}getrf", cusolver_handle()
    with lock:
        size = getattr(cusolver, f"{name}_bufferSize")(handle, rows, columns, x.data.ptr, rows)
        workspace = cupy.empty(size, x.dtype)
        getattr(cusolver, name)(
            handle, rows, columns, x.data.ptr, rows, workspace.data.ptr,
            found.data.ptr, found.data.ptr + found.itemsize * min(rows, columns),
        )  # fmt: skip


def trsm(t: Any, pitch: int, b: Any, *, upper: bool, unit: bool, transposed: bool) -> None:
    """Overwrite b by the solution of a triangular system, as the library sees t, column-major.

    Its columns are ``pitch`` elements apart. A column-major b is solved from the left, of the
    transpose of t where ``transposed``; a row-major one, seen as its transpose, from the right.
    """
    rows, columns = b.shape
    by_columns = b.flags.f_contiguous
    one = np.ones((), t.dtype)
    _queue(
        f"cublas{PREFIX[str(t.dtype)].upper()}trsm_v2", _TRSM,
        cublas.CUBLAS_SIDE_LEFT if by_columns else cublas.CUBLAS_SIDE_RIGHT,
        cublas.CUBLAS_FILL_MODE_UPPER if upper else cublas.CUBLAS_FILL_MODE_LOWER,
        cublas.CUBLAS_OP_T if transposed else cublas.CUBLAS_OP_N,
        cublas.CUBLAS_DIAG_UNIT if unit else cublas.CUBLAS_DIAG_NON_UNIT,
        *((rows, columns) if by_columns else (columns, rows)),
        one.ctypes.data, t.data.ptr, pitch, b.data.ptr, rows if by_columns else _pitch(b),
    )  # fmt: skip


class WholeFactors:
    """The factors that `factor` left of a whole matrix, as `argand.solve.lu` has them.

    Args:
        lu, found: as `factor` leaves them; ``found`` has a number beyond those that it writes.
        precision: what `argand.solve.refine.Solution` says.
    """

    def __init__(self, lu: Any, found: Any, precision: str) -> None:
        self._lu, self._found, self.precision = lu, found, precision
        self.as_gesv = True
        # Beyond a column without a pivot, and of NaN, the library's pivots need not be rows.
        cupy.clip(found[: len(lu)], 1, len(lu), out=found[: len(lu)])

    def solve(self, b: Any) -> Any:
        """Return x (n, r) of A x = b, column-major, in the type of the factors (getrs)."""
        lu, found, n = self._lu, self._found, len(self._lu)
        x = cupy.array(b, lu.dtype, order="F")
        handle, lock = cusolver_handle()
        with lock:
            getattr(cusolver, f"{PREFIX[str(lu.dtype)]}getrs")(
                handle, cublas.CUBLAS_OP_N, n, x.shape[1], lu.data.ptr, n, found.data.ptr,
                x.data.ptr, n, found[n + 1 :].data.ptr,
            )  # fmt: skip
        return x


def _current() -> Device:
    return gpu(cupy.cuda.Device().id)


def _pitch(x: Any) -> int:
    """Return the elements from row to row of a row-major matrix."""
    return int(max(x.strides[0] // x.dtype.itemsize, x.shape[1]))


def _transpose(
    source: int, source_pitch: int, to: int, to_pitch: int, dtype: Any, rows: int, columns: int
) -> None:
    """Write the transpose of a column-major (columns, rows) as a column-major (rows, columns).

    By geam, which takes tiles through shared memory; CuPy's own copy reads or writes single
    elements a whole line of memory apart.
    """
    one, zero = np.ones((), dtype), np.zeros((), dtype)
    _queue(
        f"cublas{PREFIX[str(dtype)].upper()}geam", _GEAM,
        cublas.CUBLAS_OP_T, cublas.CUBLAS_OP_N, rows, columns,
        one.ctypes.data, source, source_pitch, zero.ctypes.data, to, to_pitch, to, to_pitch,
    )  # fmt: skip


def _queue(name: str, types: tuple[Any, ...], *arguments: Any) -> None:
    """Queue a function of cuBLAS on the current stream, given what it takes behind the handle."""
    stream = cupy.cuda.get_current_stream().ptr
    handle = cublas_handle(cupy.cuda.runtime.getDevice())
    routine = handle.routine(name, c_void_p, *types)
    handle.call(routine, stream, handle.call_memory(stream), *arguments)
