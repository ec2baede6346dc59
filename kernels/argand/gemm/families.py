"""Families of kernels that compute products on GPUs, by precision and card.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from typing import Literal

from argand.checks import check_one_of
from argand.device import Device, DeviceError
from argand.precision import Precision
from argand.runtime.plan import WGMMA_TARGET

Family = Literal["wgmma", "mma.sync", "cublas"]
"""Families that a call may ask for."""
ChosenFamily = Literal["wgmma", "mma.sync", "fma"]
"""Families of candidate plans: fma computes products of a short k without tensor cores."""


def families_of(precision: Precision) -> tuple[Family, ...]:
    """Return the families of a precision: cuBLAS alone where operands stay exact."""
    return ("cublas",) if precision.exact_operands else ("wgmma", "mma.sync")


def check_family(family: Family | None, precision: Precision) -> None:
    """Raise ValueError for a family that a precision has not; None is any."""
    if family is not None:
        check_one_of(f"kernels at {precision.name}", family, families_of(precision))


def require_family(family: Family | None, device: Device) -> None:
    """Raise DeviceError for a family that a device has not; None is any."""
    if family is None:
        return
    if device.arch is None:
        raise DeviceError(f"kernels are a GPU's: on {device.name} there is no {family!r}")
    if family == "wgmma" and device.target != WGMMA_TARGET:
        raise DeviceError(
            f"wgmma needs {WGMMA_TARGET}, and {device.name} is {device.target}, which has mma.sync"
        )
