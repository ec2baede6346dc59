"""A system of equations as one value: types, precision and block width of its factorization."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from argand.checks import as_integer
from argand.device import Backend
from argand.gemm.modular.moduli import MODULAR_PRECISIONS, moduli
from argand.precision import Precision, get_precision
from argand.runtime.complex_types import UNIT_ROUNDOFF, solution_type

BLOCK: Mapping[Backend, int] = MappingProxyType({"cpu": 256, "cuda": 512})
"""Least depth of products by default, at precisions that the library does not have, and columns
of a panel. On a GPU the least depth at which exact products gain: an update of C at 15 moduli moves
92 bytes of each of its elements, however deep, so shallow ones take longer than zgemm does
(docs/kernels/solve.md)."""

WHOLE: Mapping[str, int] = MappingProxyType({"complex128": 8000, "complex64": 7200})
"""Rows up to which a GPU's library factors the whole matrix by default, by the result's type.

They are about where exact products are as fast, 7 moduli for complex64: between 7168 and 8192 rows
in a trial on an H200, which no command repeats."""
FIRST: Mapping[str, str] = MappingProxyType({"complex128": "12xint8"})
"""Products that are tried first on a GPU, by the result's type; types without one begin with
`default_precision`. A step of refinement multiplies the error by about t cond(A), with t the
products' truncation (Carson and Higham, SIAM J. Sci. Comput. 40, 2018). With 12 moduli t is 1.6e-11
at n = 32768, so up to cond(A) of about 1e9 they reach in a step or two what 15 do in one, for four
fifths of the operations. What is worse conditioned does not converge, and is factored again."""


@dataclass(frozen=True)
class SolveProblem:
    """A x = b for A of n x n and ``columns`` right-hand sides.

    Attributes:
        dtype: the type of the result: complex128 where an operand needs it, else complex64.
        working: type of the factorization: that of the products at this precision.
        precision: the precision of the products that update the matrix.
        fallback: the precision of those of a second factorization, where refinement with the first
            one fails; None where there is none.
        block: the smallest depth of those products.
        panel: columns that the library factors at a time.
    """

    n: int
    columns: int
    dtype: str
    working: str
    precision: str
    fallback: str | None
    block: int
    panel: int

    @property
    def unit_roundoff(self) -> float:
        """Return the unit roundoff of the result's type."""
        return UNIT_ROUNDOFF[self.dtype]

    @property
    def is_whole(self) -> bool:
        """Return whether the library factors the whole matrix."""
        return self.panel >= self.n

    @property
    def is_zgesv(self) -> bool:
        """Return whether the library solves it as zgesv does: whole, in complex128."""
        return self.is_whole and self.working == "complex128"

    @property
    def is_cgesv(self) -> bool:
        """Return whether a GPU's library solves it as cgesv does, and as zgesv if that fails."""
        return self.is_whole and self.fallback == "fp64"

    def fallen_back(self) -> SolveProblem:
        """Return the problem of the second factorization."""
        if self.fallback is None:
            raise ValueError(f"{self.precision} has no fallback")
        working = _working(self.dtype, get_precision(self.fallback, exact=True))
        return replace(self, working=working, precision=self.fallback, fallback=None)


def solve_problem(
    a: tuple[tuple[int, ...], np.dtype[np.generic]],
    b: tuple[tuple[int, ...], np.dtype[np.generic]],
    backend: Backend,
    *,
    precision: str | None,
    block: int | None = None,
    panel: int | None = None,
) -> SolveProblem:
    """Pose a system from the shapes and types of its operands; arguments as in `argand.solve`.

    Raises:
        ValueError: shapes that do not fit, an unknown precision, a block or panel below 1.
        TypeError: operands that neither complex64 nor complex128 holds.
    """
    (shape_a, type_a), (shape_b, type_b) = a, b
    if len(shape_a) != 2 or shape_a[0] != shape_a[1]:
        batch = ": solve its matrices one by one, or many small Hermitian ones by solve_hermitian"
        raise ValueError(
            f"a must be a square matrix, got shape {shape_a}{batch * (len(shape_a) > 2)}"
        )
    n = shape_a[0]
    if len(shape_b) not in (1, 2) or shape_b[0] != n:
        raise ValueError(f"b must have shape ({n},) or ({n}, r), got {shape_b}")
    dtype = solution_type("a", type_a, type_b)
    for what, width in (("block", block), ("panel", panel)):
        if width is not None and as_integer(width, what) < 1:
            raise ValueError(f"{what} must be positive, got {width}")
    block, panel = (None if width is None else int(width) for width in (block, panel))
    whole = n <= (panel or block or WHOLE[dtype])
    fallback = None
    if precision is None and backend == "cuda" and whole and dtype == "complex64":
        precision, fallback = "fp32", "fp64"
    elif precision is None and (backend == "cpu" or whole):
        precision = "fp64"  # a whole matrix has no products
    elif precision is None:
        accurate = default_precision(n, dtype)
        precision = FIRST.get(dtype, accurate)
        fallback = accurate if precision != accurate else None
    row = get_precision(precision, exact=True)
    if block is None:
        # LAPACK's and cuSOLVER's own updates are fp64 and fp32: they factor the whole matrix.
        block = max(n, 1) if row.exact_operands else BLOCK[backend]
    return SolveProblem(
        n=n, columns=math.prod(shape_b[1:]), dtype=dtype, working=_working(dtype, row),
        precision=precision, fallback=fallback, block=block, panel=panel or block,
    )  # fmt: skip


def _working(dtype: str, row: Precision) -> str:
    """Return the type of a factorization whose products are at a precision."""
    return dtype if row.moduli else row.output


def default_precision(n: int, dtype: str) -> str:
    """Return the fewest moduli whose products are no less accurate than BLAS's in this type.

    A sum of n products in floating point errs by sqrt(n) u, relative to the norms of its row and
    column, where rounding errors are independent (Higham and Mary, SIAM J. Sci. Comput. 41, 2019).
    The proven bound of the products must not be larger: 15 moduli for complex128, 7 for complex64,
    whatever n.
    """
    n = max(n, 1)
    allowed = math.sqrt(n) * UNIT_ROUNDOFF[dtype]
    return next(
        name for name, count in MODULAR_PRECISIONS.items()
        if moduli(count).relative_truncation(n) <= allowed
    )  # fmt: skip
