"""Lower triangles of Hermitian products on the CPU: by dot products, matmul, or herk of each."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from argand.device import available_cores
from argand.gemm.operands import Op
from argand.herk.cpu_blas import (
    ALONE_PRODUCTS,
    has_address,
    has_numpy_herk,
    herk_by_address,
    is_for_numpy_herk,
    numpy_herk,
    places_of,
)
from argand.herk.cpu_dot import all_dots, dotted
from argand.herk.cpu_matmul import MIN_BEYOND, TILE, full_product, matched_rows, weight
from argand.herk.problem import HerkProblem
from argand.runtime.cpu.numpy_blas import is_of_amd
from argand.runtime.cpu.one_core import numpy_on_one_core, scipy_on_one_core
from argand.runtime.cpu.scipy_routines import blas
from argand.runtime.cpu.scratch import with_conjugates
from argand.runtime.cpu.threads import ONE_CORE_COMPLEX

Array = npt.NDArray[Any]
Steps = Callable[..., Any]
"""Computes the lower triangles of products of matrices, (..., n, k) after their op, in contiguous
memory; values above the diagonals are undefined. Those of `hermitian_rows` are returned in new
memory where none is given."""
_HERK_PRODUCTS = 1 << 15
"""`weight` from which a call of SciPy's herk takes less time than a matrix of matmul, where both
are mirrored. Panels of a triangle by matmul on one core do not: BLAS packs what is left of them
again for each."""
_NUMPY_HERK_PRODUCTS = 1 << 14
"""The same for NumPy's herk (`takes_numpy_herk`)."""
_NUMPY_HERK_ROWS = 48
"""Rows of matrices in a batch from which NumPy's herk does at any k: it writes half as much."""
_CALL = 12_000
"""`weight` that a call of herk takes where rows of matmul's product are Hermitian."""
_MIRRORED, _MIRRORED_OF_AMD = 40, 21
"""`weight` for each number that only herk's triangle has mirrored; in a batch on AMD, where matmul
does not wait."""
_MIRRORED_ROWS = 70
"""`weight`, taken off, for each number in the other rows and columns."""
_MIN_ROWS_ALONE = 65
"""Rows from which one matrix is compared so: a gather mirrors herk's triangle of fewer."""
_STEPS_ALONE = 290_000
"""`weight` of the steps that mirror some of its rows, taken off for one matrix."""
_THREADED_PRODUCTS = 1 << 22
"""`weight` times cores from which threads of BLAS take less time than herk on one core, where
nothing else runs: herk computes half of the products. Beside other work threads wait for
milliseconds."""
_THREADED_CALL = 70_000
"""Time of a call that threads of BLAS share, 3.5 us, in complex64 multiplications."""
_PANEL_ROWS = 8
"""Fewest rows of a panel that threads share."""
_MAX_PANELS = 4
"""Most panels, except where each has `_LARGE_PANEL` rows."""
_LARGE_PANEL = 64
"""Rows of a panel from which there may be more panels."""
_LANES = 16
"""Rows of a panel are a multiple of this number: BLAS is slower at rows that do not fill its
lanes."""
_SHARED_PRODUCTS = 1 << 27
"""Multiplications times cores from which threads of our own pay: some 4 ms on two. They start
within 40 us, but wait for the spinning threads of BLAS, and beside other work for milliseconds."""
_FINISHING = 16
"""Time to make one element of the result Hermitian, in multiplications."""


def lower_of(problem: HerkProblem, matched: int = 0) -> Steps:
    """Return a function that computes the lower triangles of operands of the result's type.

    ``matched`` are its `hermitian_rows` where they are left as they are computed.
    """
    by_dots = dotted(problem)
    if by_dots is not None:
        return by_dots
    if not is_multiplied(problem, matched):
        return _each_by_herk(problem)
    op, n, rows = problem.op, problem.n, _panel_rows(problem)
    if not _is_threaded(problem) or rows >= n:
        tile = TILE[problem.dtype] if matched else 0
        return full_product(op, n, tile)
    return lambda a, out: with_conjugates(_by_matmul, a, op, rows, out)


def limited(problem: HerkProblem, function: Steps, matched: int = 0) -> Steps:
    """Return ``function``, with one core for NumPy's BLAS where its threads would take longer.

    BLAS shares each matrix of so many multiplications among its threads. Where ``matched`` rows are
    left as matmul makes them, it takes one core even where no other is available, because more
    threads may be set later, and rows that are Hermitian by the steps of one core are not by those
    of several.
    """
    by_matmul = is_multiplied(problem, matched)
    products = problem.n * problem.n * problem.k
    several = products > ONE_CORE_COMPLEX if by_matmul else takes_threads(problem)
    if not several or not ((by_matmul and matched) or available_cores() > 1):
        return function
    if _is_threaded(problem) or is_shared(problem) or dotted(problem):
        return function
    return numpy_on_one_core.limit(function)


def _each_by_herk(problem: HerkProblem) -> Steps:
    if takes_numpy_herk(problem):
        herk = herk_of_numpy(problem)
        return lambda a, out: herk(a, places_of(out))
    by_herk = (
        partial(herk_by_address, b"C" if problem.op == "N" else b"N") if is_shared(problem)
        else partial(_by_herk, trans_of(problem.op))
    )  # fmt: skip
    return partial(scipy_on_one_core, by_herk) if takes_threads(problem) else by_herk


def herk_of_numpy(problem: HerkProblem) -> Callable[[Array, list[Any]], None]:
    """Return `numpy_herk` of a problem on one core; sums of integers are in complex128."""
    dtype = "complex128" if problem.precision is None else problem.dtype
    return numpy_herk(problem.op, problem.n, problem.k, dtype)


def is_multiplied(problem: HerkProblem, matched: int = 0) -> bool:
    """Return whether matmul computes a problem, and not dot products or BLAS's herk.

    The first ``matched`` rows and columns of its products need no mirror.
    """
    several = problem.batch > 1 or matched > 0
    little = several and weight(problem) <= _most_multiplied(problem, matched)
    return (little and dotted(problem) is None) or _is_threaded(problem)


def takes_numpy_herk(problem: HerkProblem) -> bool:
    """Return whether NumPy's herk on one core takes less time than SciPy's."""
    n, k = problem.n, problem.k
    if problem.batch == 1 and not (is_for_numpy_herk(n, k) or takes_threads(problem)):
        return False
    return has_numpy_herk(problem.dtype) and not is_shared(problem)


def hermitian_rows(problem: HerkProblem) -> int:
    """Return how many rows and columns of a problem need no mirror, as they are computed.

    All of `all_dots`, the `matched_rows` of matmul on one core, which are not looked for where it
    would not compute them: that takes longer than a call.
    """
    by_dots = dotted(problem)
    if by_dots is not None:
        return problem.n if by_dots is all_dots else 0
    most = ONE_CORE_COMPLEX if is_shared(problem) else _most_by_rows(problem, problem.n)
    if problem.batch > 1:
        most = max(most, _HERK_PRODUCTS)
    elif problem.n < _MIN_ROWS_ALONE or problem.n % TILE[problem.dtype] >= MIN_BEYOND:
        return 0  # herk takes less time than two products of columns
    if weight(problem) > most or _is_threaded(problem):
        return 0
    return matched_rows(problem)


def _most_multiplied(problem: HerkProblem, matched: int) -> int:
    """Return the multiplications of a matrix up to which matmul takes less time than herk."""
    if is_shared(problem):
        return ONE_CORE_COMPLEX
    if matched:
        return _most_by_rows(problem, matched)
    if problem.batch == 1 or not takes_numpy_herk(problem):
        return _HERK_PRODUCTS
    return _NUMPY_HERK_PRODUCTS if problem.n < _NUMPY_HERK_ROWS else 0


def _most_by_rows(problem: HerkProblem, matched: int) -> int:
    """Return `_most_multiplied` where so many rows and columns need no mirror."""
    square, numbers = matched * matched, problem.n * problem.n
    mirrored = _MIRRORED_OF_AMD if problem.batch > 1 and is_of_amd() else _MIRRORED
    saved = mirrored * square - _MIRRORED_ROWS * (numbers - square)
    saved = saved * 3 // 2 if problem.dtype == "complex128" else saved
    if problem.batch > 1:
        return _CALL + saved
    return min(ONE_CORE_COMPLEX, saved - (_STEPS_ALONE if matched < problem.n else 0))


def _is_large(problem: HerkProblem) -> bool:
    """Return whether threads of NumPy's BLAS take less time than herk on one core."""
    return weight(problem) * available_cores() >= _THREADED_PRODUCTS


def _is_threaded(problem: HerkProblem) -> bool:
    """Return whether threads of NumPy's BLAS share each matrix."""
    several = available_cores() > 1 and numpy_on_one_core.is_limited()
    return several and _is_large(problem) and not is_shared(problem)


def takes_threads(problem: HerkProblem) -> bool:
    """Return whether BLAS's herk would take threads by itself."""
    return available_cores() > 1 and problem.n * (problem.n + 1) * problem.k > ALONE_PRODUCTS


def is_shared(problem: HerkProblem) -> bool:
    """Return whether a batch is worth threads of our own on all cores, each with some matrices.

    Small matrices are by matmul there, as a call of herk holds the interpreter for a while; dot
    products are too many calls.
    """
    cores, products = available_cores(), weight(problem)
    if cores == 1 or problem.batch == 1 or (problem.batch < cores and _is_large(problem)):
        return False
    made = problem.batch * (products + _FINISHING * problem.n * problem.n)
    able = products <= ONE_CORE_COMPLEX or (
        scipy_on_one_core.is_limited() and has_address(problem.dtype)
    )
    return made * cores >= _SHARED_PRODUCTS and able and dotted(problem) is None


def _panel_rows(problem: HerkProblem) -> int:
    """Return the rows of panels that take the least time, where each adds the time of a call.

    p panels take (1 + 1 / p) / 2 of the product and p calls.
    """
    n = problem.n
    panels = round(math.sqrt(weight(problem) / (2 * _THREADED_CALL)))
    panels = min(panels, max(_MAX_PANELS, n // _LARGE_PANEL))
    rows = max(_PANEL_ROWS, -(-n // max(1, panels)))
    return min(n, rows + -rows % _LANES)


def _by_matmul(conjugates: Array, a: Array, op: Op, rows: int, out: Array) -> None:
    """Compute products by panels of rows up to their last column."""
    conjugate = conjugates.swapaxes(-1, -2)
    left, right = (a, conjugate) if op == "N" else (conjugate, a)
    matmul = np.matmul
    for start in range(0, out.shape[-1], rows):
        end = start + rows
        matmul(left[..., start:end, :], right[..., :end], out[..., start:end, :end])


def _by_herk(trans: int, a: Array, out: Array) -> None:
    """Compute products by a call of herk each (`herk_alone`)."""
    routine, matrices = blas("herk", a.dtype), a.reshape(-1, *a.shape[-2:]).swapaxes(1, 2)
    products = out.reshape(-1, *out.shape[-2:]).swapaxes(1, 2)
    for matrix, product in zip(matrices, products, strict=True):
        routine(1.0, matrix, 0.0, product, trans, 0, 1)  # lower: 0, overwrite_c: 1


def herk_alone(problem: HerkProblem) -> Any:
    """Return BLAS's herk for a problem, on one core.

    It reads a column-major matrix. It is given A^T and computes C^T, whose upper triangle is the
    lower one of C, with a real diagonal. As beta is 0, what C's memory holds is not read. Names of
    arguments take a call longer: beta, C, ``trans``, ``lower`` and ``overwrite_c`` follow alpha
    and A.
    """
    routine = blas("herk", problem.dtype)
    return partial(scipy_on_one_core, routine) if takes_threads(problem) else routine


def trans_of(op: Op) -> int:
    """Return BLAS's ``trans`` of A^T for op(A): conj(A) A^T of N, A^T conj(A) of C."""
    return 2 if op == "N" else 0
