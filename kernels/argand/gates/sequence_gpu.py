"""Sequences of gates on a GPU: one launch of ``cuda/gates/sequence_kernel.cuh`` for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cupy
import numpy as np

from argand.device import gpu
from argand.gates import sequence_plan as plans
from argand.gates.canonical import GateForm
from argand.gates.layout import CHUNK
from argand.precision import Precision
from argand.rounding import LARGEST_SHIFT, scale_exponents
from argand.runtime.arguments import Arguments, arguments_dtype
from argand.runtime.kernel import BoundKernel
from argand.runtime.loading import load
from argand.runtime.plan import PlanError

_DTYPE = arguments_dtype(plans.SEQUENCE_ARGUMENTS)


class PreparedSequence:
    """A sequence whose matrices are on the current GPU, for states of one size."""

    def __init__(self, qubits: int, forms: Sequence[GateForm], precision: Precision) -> None:
        """Raise PlanError where the gates share no tile or the precision has no such kernel."""
        device = gpu(cupy.cuda.Device().id)
        arch = device.require_arch()
        plan = plans.plan_sequence(precision, arch)
        if plan is None or len(forms) > plans.MOST_GATES:
            raise PlanError(
                f"a sequence must have at most {plans.MOST_GATES} gates and a precision with "
                f"products of {plans.WIDTH} qubits on {arch.target}, got {len(forms)} at "
                f"{precision.name}"
            )
        tile = plans.tile_qubits(qubits, forms)
        gates, matrices = _tables(forms, tile, plan)
        self._held = cupy.asarray(gates.view(np.uint8)), cupy.asarray(matrices)
        values = plans.launch_values(qubits, tile)
        values |= {
            "gates": self._held[0].data.ptr, "matrix": self._held[1].data.ptr, "count": len(forms),
        }  # fmt: skip
        shared = plan.shared_bytes(len(forms))
        kernel = load(plans.kernel_source(plan), arch.target, plans.kernel_name(plan), shared)
        resident = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
            kernel.ptr, plans.THREADS, shared
        )
        blocks = min(values["tiles"], int(resident) * device.sm_count)
        self._launch = BoundKernel(
            kernel, blocks, plans.THREADS, Arguments(_DTYPE, values), shared_bytes=shared
        )

    def __call__(self, state: Any) -> None:
        """Queue it on the current stream."""
        if state.data.ptr % CHUNK:  # a view that begins within a chunk
            copied = state.copy()
            self._launch({"state": copied.data.ptr})
            state[...] = copied
        else:
            self._launch({"state": state.data.ptr})


def _tables(forms: Sequence[GateForm], tile: Sequence[int], plan: plans.SequencePlan) -> Any:
    """The gates as the kernel reads them (`plans.GATE`), and their matrices one after another."""
    order = 2**plans.WIDTH
    gates = np.zeros(len(forms), plans.GATE)
    matrices = np.empty((len(forms), order, order), np.complex64)
    for number, form in enumerate(forms):
        values, matrix = plans.gate_values(form, tile, plan)
        matrices[number] = matrix
        exponent = 0
        if plan.precision.scaled:
            flat = matrices[number].reshape(1, -1)
            found = int(scale_exponents(flat, -1, plan.precision.operand).item())
            exponent = max(-LARGEST_SHIFT, min(LARGEST_SHIFT, found))
        for name, value in {**values, "matrix_exponent": exponent}.items():
            gates[name][number] = value
    return gates, matrices
