"""Sequences of gates on a GPU: one launch of ``cuda/gates/sequence_kernel.cuh`` for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cupy
import numpy as np

from argand.device import Device, gpu
from argand.gates import sequence_plan as plans
from argand.gates import sequence_tables as tables
from argand.gates.canonical import GateForm
from argand.gates.gate_launch import launch_at_chunk
from argand.precision import Precision
from argand.runtime.launch.kernel import BoundKernel, bound_kernel
from argand.runtime.memory.device_table import stream_table
from argand.runtime.plan import PlanError


class PreparedSequence:
    """A sequence whose matrices are on the current GPU, for states of one size."""

    def __init__(
        self,
        qubits: int,
        forms: Sequence[GateForm],
        precision: Precision,
        tile: Sequence[int],
        device: Device | None = None,
    ) -> None:
        """Raise PlanError where the gates share no tile or the precision has no such kernel.

        The launch is made for ``device``, the current one where none is given.
        """
        device = device or gpu(cupy.cuda.Device().id)
        arch = device.require_arch()
        plan = plans.plan_sequence(precision, arch, len(tile))
        if plan is None:
            raise PlanError(
                f"a sequence must have a precision with products of {plans.WIDTH} qubits on "
                f"{arch.target}, got {precision.name}"
            )
        plan = plans.for_few_tiles(plan, qubits, device.sm_count)
        gates, matrices, phases = tables.tables(qubits, forms, tile, plan)
        placed = np.ascontiguousarray(gates["placed"])
        self._held = [stream_table(one.view(np.uint8)) for one in (placed, matrices, phases)]
        values = tables.launch_values(qubits, tile, forms[-1], plan)
        names = ("gates", "matrix", "phases")
        values |= {name: held.data.ptr for name, held in zip(names, self._held, strict=True)}
        values |= {
            "count": len(gates),
            "products": len(matrices),
            **tables.gate_values(gates, plan),
        }
        self._launch = bound_kernel(
            plans.kernel_source(plan), plans.kernel_name(plan),
            min(values["tiles"], device.sm_count), plan.threads, plans.SEQUENCE_ARGUMENTS, device,
            values, plan.shared_bytes(len(matrices)),
        )  # fmt: skip

    def __call__(self, state: Any) -> None:
        """Queue it on the current stream."""
        launch_at_chunk(state, lambda at: self._launch({"state": at}))

    def kernel(self) -> BoundKernel:
        """Return its launch, for a ``state`` that is to be set."""
        return self._launch
