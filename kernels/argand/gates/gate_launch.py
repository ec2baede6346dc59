"""Launches of the gate kernels, by a gate's place: for one matrix, or for many on the GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import cupy

from argand.device import Device, gpu
from argand.gates.canonical import GateForm, GatePlace
from argand.gates.direct import direct_mma_values, direct_values
from argand.gates.layout import CHUNK, make_tile, tile_columns
from argand.gates.matrix_launch import MatrixLaunch
from argand.gates.plan import GatePlan, check_gate_plan
from argand.gates.source import ARGUMENTS, argument_values, gate_source, kernel_name
from argand.gates.tile_tables import segments_of, table_values, tile_steps
from argand.runtime.calls.layout import device_of
from argand.runtime.compile.loading import load
from argand.runtime.launch.arguments import Address, Arguments, arguments_dtype
from argand.runtime.launch.graph import LaunchSequence
from argand.runtime.launch.kernel import BoundKernel

_DTYPE = arguments_dtype(ARGUMENTS)
_MEMBERS = {name: Address(i) for i, name in enumerate(("state", "matrix", "matrix_exponent"))}
"""Members of ``GateArguments`` that differ from call to call."""
_current_stream = cupy.cuda.get_current_stream


class GateLaunch:
    """A gate on given qubits of a state of given size, for any matrix."""

    def __init__(
        self, plan: GatePlan, qubits: int, form: GateForm | GatePlace, device: Device
    ) -> None:
        arch = device.require_arch()
        check_gate_plan(plan, arch)
        self.plan = plan
        self._device = device.index
        if plan.kind == "small":
            values = _small_values(plan, qubits, form)
        elif plan.kind == "direct":
            values = direct_values(qubits, form.targets, form.controls, sectors=plan.whole_sectors)
        elif plan.kind == "direct_mma":
            values = direct_mma_values(qubits, form.targets, form.controls)
        else:
            whole = plan.whole_sectors
            free = tile_columns(qubits, form.targets, form.controls, plan.item, sectors=whole)
            columns = free[: plan.columns.bit_length() - 1]
            tile = make_tile(plan.kind, columns, form.targets, plan.item, plan.copy_threads)
            operand_bytes = plan.precision.operand.bytes
            values = table_values(
                plan.kind, tile, qubits, form.controls, operand_bytes, sectors=whole
            )
        shared = plan.shared_bytes
        kernel = load(gate_source(plan), arch.target, kernel_name(plan), shared)
        self._kernel, self._blocks = kernel, _blocks(plan, kernel, _tiles(values), device)
        if plan.walks_tiles:
            values |= tile_steps(values, self._blocks)
        self._values = argument_values(values)
        bound = self._bound()
        self._launches = LaunchSequence(
            [bound], lambda numbers: [bound.argument_update(_MEMBERS, (), numbers)]
        )

    def with_matrix(self, matrix: int, exponent: int) -> BoundKernel:
        """Return a launch with a matrix at an address; its ``state`` is to be set."""
        return self._bound(matrix=matrix, matrix_exponent=exponent)

    def _bound(self, **members: int) -> BoundKernel:
        arguments = Arguments(_DTYPE, self._values)
        arguments.set(members)
        plan = self.plan
        return BoundKernel(
            self._kernel, self._blocks, plan.threads, arguments, shared_bytes=plan.shared_bytes
        )

    def for_matrices(self, targets: Sequence[int], matrix: Any) -> MatrixLaunch:
        """Return the launch for matrices on the GPU that lie as this one does."""
        return MatrixLaunch(self.plan, self._bound(), targets, matrix, gpu(self._device))

    def __call__(self, state: int, matrix: int, exponent: int) -> None:
        """Queue it on the current stream, for a state and a matrix at addresses, its exponent."""
        self._launches((state, matrix, exponent), _current_stream(self._device).ptr)


def launch_at_chunk(state: Any, launch: Callable[[int], object]) -> None:
    """Call a launch with the address of a state, or of a copy where it begins within a chunk."""
    if state.data.ptr % CHUNK == 0:
        launch(state.data.ptr)
        return
    with device_of(state):
        copied = state.copy()
        launch(copied.data.ptr)
        state[...] = copied


def _blocks(plan: GatePlan, kernel: Any, tiles: int, device: Device) -> int:
    """Return the blocks of a launch: one for its threads' columns, or as many as are resident."""
    if plan.kind in ("small", "direct"):
        return -(-tiles // plan.threads)
    occupancy = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
        kernel.ptr, plan.threads, plan.shared_bytes
    )
    resident = min(int(occupancy), plan.most_blocks or int(occupancy))
    warps = plan.threads // 32 if plan.kind == "direct_mma" else 1  # each takes tiles of its own
    return min(-(-tiles // warps), resident * device.sm_count)


def _tiles(values: dict[str, object]) -> int:
    tiles = values["tiles"]
    assert isinstance(tiles, int)
    return tiles


def _small_values(plan: GatePlan, qubits: int, form: GateForm | GatePlace) -> dict[str, object]:
    """Return the members of ``GateArguments`` for the kernel of small states."""
    free = [qubit for qubit in range(qubits) if qubit not in form.controls]
    segments = segments_of(qubits, form.controls)
    shift = plan.item.bit_length() - 1
    return {
        "control_offset": sum(plan.item << control for control in form.controls),
        "tiles": 1 << len(free),
        "segments": len(segments),
        "segment_mask": [mask for mask, _ in segments],
        "segment_shift": [up + shift for _, up in segments],
        "row_mask": [1 << free.index(target) for target in form.targets],
    }
