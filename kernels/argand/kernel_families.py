"""Families of kernels that compute products on GPUs: which there are for a precision and a card.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from typing import Literal

from argand.device import Arch
from argand.precision import Precision
from argand.wgmma_plan import TARGET

Family = Literal["wgmma", "mma.sync", "cublas"]


def families_of(precision: Precision, arch: Arch | None = None) -> tuple[Family, ...]:
    """Those that a precision has, on a card or at all: cuBLAS alone where operands stay exact."""
    if precision.exact_operands:
        return ("cublas",)
    return ("wgmma", "mma.sync") if arch is None or arch.target == TARGET else ("mma.sync",)


def check_family(family: Family | None, precision: Precision, arch: Arch | None = None) -> None:
    """Raise ValueError for a family that a precision, or a card, has not; None is any."""
    allowed = families_of(precision, arch)
    if family is not None and family not in allowed:
        where = "" if arch is None else f" on {arch.name}"
        raise ValueError(
            f"kernels at {precision.name}{where} must be one of {list(allowed)}, got {family!r}"
        )
