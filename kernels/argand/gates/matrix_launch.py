"""Launches of gates whose matrix lies on the GPU: nothing waits for it, and nothing reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cupy

from argand.device import Device
from argand.gates.matrix_source import (
    MATRIX_ARGUMENTS,
    MATRIX_THREADS,
    matrix_kernel_name,
    matrix_source,
    matrix_values,
)
from argand.gates.plan import GatePlan
from argand.runtime.launch.arguments import Address
from argand.runtime.launch.graph import LaunchSequence
from argand.runtime.launch.kernel import BoundKernel, bound_kernel
from argand.runtime.memory.workspace import call_memory

_STATE, _OPERAND, _EXPONENT, _SOURCE = map(Address, range(4))
"""Addresses of a call: the state, the operand, the exponent behind it, and the matrix."""
_GATE_MEMBERS = {"state": _STATE, "matrix": _OPERAND, "exponent_at": _EXPONENT}
_MATRIX_MEMBERS = {"source": _SOURCE, "operand": _OPERAND, "exponent": _EXPONENT}


class MatrixLaunch:
    """A gate for matrices of one type and layout, at any address: two kernels.

    Args:
        plan: the plan of the gate's kernel, for a matrix that is not monomial.
        gate: the gate's kernel, bound for this launch alone.
        targets: the targets in the order of the matrix's bits.
        matrix: one such matrix, complex64 or complex128.
        device: the current one.

    Raises CompileError where NVRTC fails.
    """

    def __init__(
        self, plan: GatePlan, gate: BoundKernel, targets: Sequence[int], matrix: Any, device: Device
    ) -> None:
        item = matrix.dtype.itemsize
        rows, columns = (stride // item for stride in matrix.strides)
        prepare = bound_kernel(
            matrix_source(plan), matrix_kernel_name(plan, str(matrix.dtype)), 1, MATRIX_THREADS,
            MATRIX_ARGUMENTS, device, matrix_values(plan, targets, (rows, columns)),
        )  # fmt: skip
        self._device = device.index
        self._operand_bytes = plan.operand_bytes
        self._launches = LaunchSequence(
            [prepare, gate],
            lambda addresses: [
                prepare.argument_update(_MATRIX_MEMBERS, (), addresses),
                gate.argument_update(_GATE_MEMBERS, (), addresses),
            ],
        )

    def __call__(self, matrix: int, state: int) -> None:
        """Queue both on the current stream, for a matrix and a state at these addresses."""
        operand = call_memory(self._operand_bytes + 16)
        at = operand.ptr
        stream = cupy.cuda.get_current_stream(self._device).ptr
        self._launches((state, at, at + self._operand_bytes, matrix), stream)
