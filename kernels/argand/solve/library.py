"""The interface of a backend's library to a factorization: panels and triangular systems."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

PREFIX: Mapping[str, str] = MappingProxyType({"complex64": "c", "complex128": "z"})
"""The first letter of LAPACK's and BLAS's routines for a type."""
Pivots = npt.NDArray[np.integer[Any]]


class Library(Protocol):
    """LAPACK and BLAS of a backend, on arrays of one complex type.

    ``arrays`` is NumPy or CuPy. A row-major matrix is a view whose rows are contiguous, with any
    distance between them; a column-major one is contiguous in Fortran's order.
    """

    arrays: Any

    def factor_panel(self, x: Any) -> tuple[Pivots, int]:
        """Overwrite x (m, w), m >= w, row-major, by its factors L and U, with partial pivoting.

        Returns:
            pivots, in the host's memory: rows i and pivots[i] were exchanged, for i from 0 on; and
            the number, from 1 on, of the first column without a pivot other than 0, else 0.
        """
        ...

    def solve_triangular(self, t: Any, b: Any, *, unit_lower: bool) -> None:
        """Overwrite b (w, columns), row-major or column-major, by the solution x of t x = b.

        Of the row-major t (w, w) only one triangle is read: the lower one with a diagonal of ones,
        or the upper one with its diagonal.
        """
        ...
