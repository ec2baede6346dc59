"""Gates on a GPU: launches the kernels of ``cuda/gates``.

What depends on a gate's place alone (its layout, its kernel, its grid) is made once and kept; a
call then uploads its matrix and fills in two addresses.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import cupy
import numpy as np

from argand.device import Device, gpu
from argand.gates import cpu as numpy_gates
from argand.gates.canonical import Array, GateForm
from argand.gates.layout import CHUNK, make_tile, segments_of, table_values, tile_columns
from argand.gates.plan import (
    ARGUMENTS,
    GatePlan,
    argument_values,
    check_gate_plan,
    gate_source,
    kernel_name,
    plan_gate,
)
from argand.gates.truncation import grown
from argand.precision import Precision
from argand.rounding import LARGEST_SHIFT, scale_exponents
from argand.runtime import compiler as nvrtc
from argand.runtime.arguments import Arguments, arguments_dtype
from argand.runtime.call_cache import Remembered
from argand.runtime.kernel import BoundKernel
from argand.runtime.layout import place

_DTYPE = arguments_dtype(ARGUMENTS)
_kept: Remembered[tuple[Any, ...], GateLaunch | None] = Remembered()


def apply_gate(state: Any, form: GateForm, precision: Precision) -> None:
    """Apply a gate in place to a contiguous state on a GPU, on its current stream.

    Raises CompileError where NVRTC fails.
    """
    with place(state):
        prepared_gate(state, form, precision)(state)


def prepared_gate(state: Any, form: GateForm, precision: Precision) -> Callable[[Any], None]:
    """A call that applies a gate to states like this one on the current GPU, its matrix there."""
    launch = _launch_for(int(state.size).bit_length() - 1, form, precision)
    if launch is None:
        return partial(numpy_gates.apply_gate, form=form, precision=precision)
    matrix = cupy.asarray(launch.operand(form))
    exponent = matrix_exponent(form, precision)

    def apply(to: Any) -> None:
        if to.data.ptr % CHUNK:  # a view that begins within a chunk
            copied = to.copy()
            launch(copied.data.ptr, matrix, exponent)
            to[...] = copied
        else:
            launch(to.data.ptr, matrix, exponent)

    return apply


def _launch_for(qubits: int, form: GateForm, precision: Precision) -> GateLaunch | None:
    """The launch for gates like this one on the current device; None where `gemm` applies them."""
    device = cupy.cuda.Device().id
    key = (device, qubits, form.targets, form.controls, form.monomial, precision)
    if key not in _kept:
        plan = plan_for(qubits, form, precision, gpu(device))
        _kept[key] = None if plan is None else GateLaunch(plan, qubits, form, gpu(device))
    return _kept[key]


def plan_for(qubits: int, form: GateForm, precision: Precision, device: Device) -> GatePlan | None:
    """The plan for a gate on a state of so many qubits; None where `gemm` applies it."""
    item = 16 if precision.output == "complex128" else 8
    free = tile_columns(qubits, form.targets, form.controls, item)
    return plan_gate(
        precision, device.require_arch(), width=form.width, inside=form.targets[0] == 0,
        monomial=form.monomial, columns=2 ** len(free),
    )  # fmt: skip


class GateLaunch:
    """A gate on given qubits of a state of given size, for any matrix."""

    def __init__(self, plan: GatePlan, qubits: int, form: GateForm, device: Device) -> None:
        arch = device.require_arch()
        check_gate_plan(plan, arch)
        self.plan = plan
        if plan.kind == "small":
            values = _small_values(plan, qubits, form)
        else:
            free = tile_columns(qubits, form.targets, form.controls, plan.item)
            columns = free[: plan.columns.bit_length() - 1]
            tile = make_tile(plan.kind, columns, form.targets, plan.item, plan.copying)
            values = table_values(plan.kind, tile, qubits, form.controls)
        self._arguments = Arguments(_DTYPE, argument_values(values))
        shared = plan.shared_bytes
        kernel = nvrtc.load(gate_source(plan), arch.target, kernel_name(plan), shared)
        together = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
            kernel.ptr, plan.threads, shared
        )
        blocks = 1 if plan.kind == "small" else min(_tiles(values), int(together) * device.cores)
        self._kernel = BoundKernel(
            kernel, blocks, plan.threads, self._arguments, shared_bytes=shared
        )

    def operand(self, form: GateForm) -> Array:
        """The matrix as the kernel takes it."""
        kind = self.plan.precision.output
        if self.plan.kind == "permute":
            factors = form.factors.astype(kind).view(np.uint8)
            return np.concatenate([factors, form.columns_of_rows.astype(np.uint32).view(np.uint8)])
        transposed = self.plan.kind in ("sum", "small")
        matrix = form.matrix.T if transposed else grown(form.matrix, self.plan)
        return np.ascontiguousarray(matrix.astype(kind))

    def __call__(self, state: int, matrix: Any, exponent: int) -> None:
        """Queue it on the current stream, for a state and a matrix at hand."""
        self._kernel({"state": state, "matrix": matrix.data.ptr, "matrix_exponent": exponent})


def _tiles(values: dict[str, object]) -> int:
    tiles = values["tiles"]
    assert isinstance(tiles, int)
    return tiles


def _small_values(plan: GatePlan, qubits: int, form: GateForm) -> dict[str, object]:
    """Members for the kernel of small states, which numbers the amplitudes that may change."""
    free = [qubit for qubit in range(qubits) if qubit not in form.controls]
    segments = segments_of(qubits, form.controls)
    shift = plan.item.bit_length() - 1
    return {
        "fixed": sum(plan.item << control for control in form.controls),
        "tiles": 1 << len(free),
        "segments": len(segments),
        "segment_mask": [mask for mask, _ in segments],
        "segment_shift": [up + shift for _, up in segments],
        "row_mask": [1 << free.index(target) for target in form.targets],
    }


def matrix_exponent(form: GateForm, precision: Precision) -> int:
    """Of the power of two that brings the matrix into the range of the precision's operand."""
    if not precision.scaled:
        return 0
    found = scale_exponents(form.matrix.reshape(1, -1).astype(np.complex64), -1)
    return max(-LARGEST_SHIFT, min(LARGEST_SHIFT, int(found.item())))
