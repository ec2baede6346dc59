"""The two complex types of results: what follows from a type, and LAPACK's letters for it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

import numpy as np

UNIT_ROUNDOFF: Mapping[str, float] = MappingProxyType(
    {"complex64": 2.0**-24, "complex128": 2.0**-53}
)
"""Unit roundoff of a type."""
ITEM: Mapping[str, int] = MappingProxyType({"complex64": 8, "complex128": 16})
"""Bytes of an element."""
REAL: Mapping[str, str] = MappingProxyType({"complex64": "float", "complex128": "double"})
"""Type of a part in CUDA C++."""
PRECISION: Mapping[str, str] = MappingProxyType({"complex64": "fp32", "complex128": "fp64"})
"""Name of the precision that takes operands of a type as they are."""
PREFIX: Mapping[str, str] = MappingProxyType({"complex64": "c", "complex128": "z"})
"""The first letter of LAPACK's and BLAS's routines for a type."""


@lru_cache(maxsize=64)
def solution_type(name: str, matrix: np.dtype[np.generic], sides: np.dtype[np.generic]) -> str:
    """Return complex128 where a matrix or its right-hand sides b need it, else complex64.

    ``name`` is the matrix's, for messages. Raises TypeError for what neither type holds.
    """
    if any(kind.kind not in "biufc" for kind in (matrix, sides)):
        raise TypeError(f"{name} and b must be numbers, got {matrix} and {sides}")
    found = str(np.result_type(matrix, sides, np.complex64))
    if found not in UNIT_ROUNDOFF:
        raise TypeError(f"{name} and b must fit complex128, got {matrix} and {sides}")
    return found
