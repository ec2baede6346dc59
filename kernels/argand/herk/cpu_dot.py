"""Hermitian products of few rows on the CPU by dot products of rows, where those take less time.

BLAS's products of matrices fill few of their lanes with few rows and copy all conjugates. Dot
products read the operand in place. Those of all pairs of rows mostly are Hermitian to the bit
(`cpu_probe`), which no mirror follows then; of more numbers the lower triangle alone takes less
time. Times are estimated (docs/experiments/2026-11-28-small-calls-on-a-cpu.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from argand.herk.cpu_blas import EDGE_OF_HERK, has_numpy_herk, is_for_numpy_herk
from argand.herk.cpu_matmul import matched_rows
from argand.herk.cpu_probe import rows_seen
from argand.herk.problem import HerkProblem
from argand.runtime.complex_types import ITEM
from argand.runtime.cpu.kept_memory import KeptMemory
from argand.runtime.cpu.numpy_blas import has_avx512_kernels, is_of_amd, openblas_kernels
from argand.runtime.cpu.quiet import quiet_context
from argand.runtime.cpu.threads import ONE_CORE_DOT

Array = npt.NDArray[Any]
_MAX_ROWS = 20
"""Most rows whose dot products may take less time."""
_PANEL = 0.8
"""Time in us of a step of NumPy that takes a part of the operand."""
_LOOP = 0.02
"""Time in us of a loop over a row's pairs."""
_MIRROR = 0.6
"""Time in us of the steps of a mirror."""
_CONJUGATES = 0.9
"""Time in us of matmul's conjugates where no mirror follows; a mirror's time has them."""
_HERK = 0.75
"""Time in us that a call of herk takes less than steps that ignore errors."""
_BLOCK = 16
"""Numbers of a block of a dot product: those beyond its blocks are multiplied one by one."""


class _Times(NamedTuple):
    """Times in us.

    Attributes:
        short: a dot product of less than `_BLOCK` numbers; each number of it.
        long: a longer dot product; each number of its blocks; each number beyond them.
        matrix, in_matmul, number: a matrix of a matmul; a multiplication; a number of a.
        tile, edges: matmul computes a product in n (n + edge) multiplications for each k: the first
            edge where n is a multiple of the tile, else the second.
        again: a byte that a panel reads again, from a core's L2.
        in_herk: a multiplication of herk.
        mirrored: a number of a result that is mirrored.
        by_numpy: a call of NumPy's herk; a multiplication of it; its edges, as `EDGE_OF_HERK`, of
            even and odd n.
    """

    short: tuple[float, float]
    long: tuple[float, float, float]
    matrix: float
    in_matmul: float
    number: float
    tile: int
    edges: tuple[float, float]
    again: float
    in_herk: float
    mirrored: float
    by_numpy: tuple[float, float, tuple[float, float]]

    def of_numpy_herk(self, n: int, k: int) -> float:
        """Return the time of a product by NumPy's herk."""
        call, number, edges = self.by_numpy
        return call + number * n * (n / 2 + edges[n % 2]) * k

    def of_dot(self, k: int) -> float:
        """Return the time of a dot product."""
        if k < _BLOCK:
            start, number = self.short
            return start + number * k
        start, number, beyond = self.long
        return start + number * k + beyond * (k % _BLOCK)


_TIMES = {
    "complex64": _Times(
        short=(0.007, 6.1e-4), long=(0.0083, 9.3e-5, 4.8e-4), matrix=0.035, in_matmul=5.2e-5,
        number=0, tile=4, edges=(11, 18), again=0, in_herk=9.6e-5, mirrored=1.2e-3,
        by_numpy=(0.65, 6.7e-5, (7, 11)),
    ),
    "complex128": _Times(
        short=(0.0226, 2.5e-4), long=(0.0125, 1.78e-4, 2.5e-5), matrix=0.035, in_matmul=1e-4,
        number=0, tile=1, edges=(12.5, 12.5), again=0, in_herk=1.48e-4, mirrored=6.3e-4,
        by_numpy=(0.52, 1.37e-4, (5.5, 7)),
    ),
}  # fmt: skip
_TIMES_BY_AVX512 = {
    "complex64": _Times(
        short=(0.008, 5.5e-4), long=(0.0195, 1.25e-4, 1.35e-3), matrix=0.22, in_matmul=7.8e-5,
        number=5.3e-4, tile=8, edges=(8, 16), again=1e-5, in_herk=1.03e-4, mirrored=1.9e-3,
        by_numpy=(0.65, 2e-5, (50, 50)),
    ),
    "complex128": _Times(
        short=(0.019, 2.8e-4), long=(0.019, 2.8e-4, 2e-4), matrix=0.23, in_matmul=1.1e-4,
        number=6.0e-4, tile=4, edges=(8, 16), again=1e-5, in_herk=1.3e-4, mirrored=2.7e-3,
        by_numpy=(0.56, 4e-5, (25, 25)),
    ),
}  # fmt: skip
_TIMES_BY_AVX512_OF_AMD = {
    "complex64": _Times(
        short=(0.0043, 6e-4), long=(0.0086, 1.1e-4, 4.7e-4), matrix=0.069, in_matmul=7.6e-5,
        number=0, tile=8, edges=(8, 15), again=0, in_herk=1.1e-4, mirrored=8.7e-4,
        by_numpy=(0.65, 8.4e-5, (9.6, 11)),
    ),
    "complex128": _TIMES["complex128"]._replace(tile=4, in_herk=1.2e-4),
}  # fmt: skip
"""Times by type of the result: by OpenBLAS's kernels for AVX-512 they fit times by SkylakeX of 500
forms of up to 20 rows on a Sapphire Rapids, and of 500 on an AMD EPYC, whose products
of few rows take half as long; by others times of 150 forms of more columns than rows by Haswell on
an AMD EPYC. Those of NumPy's herk fit times by both kernels there."""
_NUMPY_HERK = 1.0
"""Time in us that calls of NumPy's herk take less than steps that ignore errors."""
_NUMPY_HERK_ALONE = 0.3
"""The same for one call of it."""


@lru_cache(maxsize=1024)  # several steps of preparing a form ask
def dotted(problem: HerkProblem) -> Callable[[Array, Array], Any] | None:
    """Return a function that computes products by dot products, None where others take less time.

    `all_dots` computes them whole, Hermitian to the bit of contiguous operands; others their lower
    triangles.
    """
    n, k, batch = problem.n, problem.k, problem.batch
    if problem.op != "N" or n > _MAX_ROWS or not n * k:
        return None
    times = _times()[problem.dtype]
    dots, loops = batch * n * n * times.of_dot(k), _LOOP * batch * (n - 1)
    panels = min(n, max(1, round(math.sqrt(dots / (2 * _PANEL)))))
    mirror = _MIRROR + times.mirrored * batch * n * n
    in_panels = dots * (1 + 1 / panels) / 2 + (panels * _PANEL if panels > 1 else 0) + mirror
    in_panels += (panels - 1) / 2 * batch * n * k * ITEM[problem.dtype] * times.again
    if batch == 1:
        others = times.in_herk * n * (n / 2 + EDGE_OF_HERK) * k - _HERK + mirror
    else:
        in_tiles = n % times.tile == 0
        edge = times.edges[0 if in_tiles else 1]
        others = batch * (times.matrix + n * k * (times.in_matmul * (n + edge) + times.number))
        unmirrored = in_tiles if has_avx512_kernels() else matched_rows(problem) == n
        others += _CONJUGATES if unmirrored else mirror
    if has_numpy_herk(problem.dtype) and (batch > 1 or is_for_numpy_herk(n, k)):
        by_herk = batch * times.of_numpy_herk(n, k) + mirror
        others = min(others, by_herk - (_NUMPY_HERK_ALONE if batch == 1 else _NUMPY_HERK))
    others -= loops
    whole = dots + _LOOP * batch < min(in_panels, others) and are_hermitian(n, k, problem.dtype)
    if not whole and in_panels >= others:
        return None
    if whole:
        return all_dots
    rows = -(-n // panels)
    return _by_columns if rows == 1 else partial(_by_panels, rows)


def _times() -> Mapping[str, _Times]:
    """Return the times of this processor by NumPy's kernels."""
    if not has_avx512_kernels():
        return _TIMES
    return _TIMES_BY_AVX512_OF_AMD if is_of_amd() else _TIMES_BY_AVX512


def are_hermitian(n: int, k: int, dtype: str) -> bool:
    """Return whether `all_dots` of contiguous operands of this form are Hermitian to the bit."""
    return openblas_kernels() is not None and k <= ONE_CORE_DOT and _seen(n, k, dtype)


@lru_cache(maxsize=4096)
def _seen(n: int, k: int, dtype: str) -> bool:
    return rows_seen(all_dots, n, k, "N", dtype, addresses=2) == n


def all_dots(a: Array, out: Array | None = None) -> Array:
    """Compute A A^H, all pairs of rows of all matrices at a time."""
    found: Array = np.vecdot(a if a.ndim == 2 else a[..., None, :, :], a[..., None, :], out)
    return found


def _by_columns(a: Array, out: Array) -> None:
    """Compute A A^H, a column of all matrices at a time: a row stays, those from it on are read."""
    for q in range(a.shape[-2]):
        np.vecdot(a[..., q : q + 1, :], a[..., q:, :], out[..., q:, q])


def _by_panels(rows: int, a: Array, out: Array) -> None:
    """Compute A A^H, so many rows up to their last column at a time, of all matrices."""
    n = a.shape[-2]
    if rows >= n:
        all_dots(a, out)
        return
    for start in range(0, n, rows):
        end = start + rows
        np.vecdot(a[..., None, :end, :], a[..., start:end, None, :], out[..., start:end, :end])


def few_by_dots(problem: HerkProblem) -> Callable[..., Array]:
    """Return a function that computes products of few numbers, which `all_dots` makes Hermitian."""
    nbytes, vecdot = math.prod(problem.shape) * ITEM[problem.dtype], np.vecdot
    kept = KeptMemory(partial(_products, problem.shape, problem.dtype), nbytes)
    each = (slice(None),) * len(problem.batch_shape)
    rows, columns = (*each, None), (*each, slice(None), None)  # the views of `all_dots`

    def run(a: Array, c: Array | None = None) -> Array:
        try:
            memory = kept.pop()
        except IndexError:
            memory = kept.new()
        product, fill_diagonals, run_quietly = memory
        if not a.flags.c_contiguous:
            a = a.copy()
        run_quietly(vecdot, a[rows], a[columns], product)
        fill_diagonals(0)  # the imaginary parts, which are not zero where a number is not finite
        found = product.copy()
        kept.append(memory)
        return found

    return run


def _products(
    shape: tuple[int, ...], dtype: str
) -> tuple[Array, Callable[[int], None], Callable[..., Any]]:
    """Return memory of products (..., n, n), and what fills the imaginary parts of their diagonals.

    The last function runs a step of NumPy's without warnings.
    """
    n, products = shape[-1], np.empty(shape, dtype)
    return products, products.reshape(-1, n * n)[:, :: n + 1].imag.fill, quiet_context().run
