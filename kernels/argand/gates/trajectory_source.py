"""Operations, arguments and CUDA C++ of trajectories in one launch. Needs no GPU and no CuPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from argand.gates.canonical import GateForm, gate_form
from argand.gates.gate import Gate
from argand.runtime.compile.kernel_entry import kernel_entry
from argand.runtime.launch.arguments import Fields, size_check

THREADS, _BLOCKS = 256, 2
"""Threads of a block, and fewest blocks per multiprocessor: more leave too few registers."""
MAX_WIDTH = 3
"""Targets of a gate whose columns a thread holds in registers."""
STATIC_BYTES = 1024
"""Shared memory of a block beside its states, at most."""
ARGUMENTS: Fields = (
    ("void*", "states"), ("const void*", "operations"), ("const void*", "matrices"),
    ("int64", "first"), ("int64", "trajectories"), ("int64", "seed"), ("double", "pauli_scale"),
    ("double", "damping"), ("double", "kept"), ("int", "operation_count"), ("int", "qubits"),
    ("int", "group_bits"),
)  # fmt: skip
"""Members of ``TrajectoryArguments`` in ``cuda/gates/trajectory_kernel.cuh``."""
OPERATION = np.dtype(
    [("width", np.int32), ("place", np.int32), ("taken", np.uint32), ("controls", np.uint32),
     ("target", np.uint32, (MAX_WIDTH,)), ("padding", np.int32)]
)  # fmt: skip
"""``TrajectoryOperation``: a gate, or the channels after it on one qubit."""


def group_bits(qubits: int) -> int:
    """Return the logarithm of the threads that share a state: a thread for two amplitudes."""
    return min(THREADS.bit_length() - 1, max(0, qubits - 1))


def shared_bytes(qubits: int, item: int) -> int:
    """Return the dynamic shared memory of a block, which holds the states of its groups."""
    return item << (qubits + THREADS.bit_length() - 1 - group_bits(qubits))


def forms_of(qubits: int, gates: Sequence[Gate]) -> list[GateForm]:
    """Return the gates in canonical form. Raises ValueError as `gate_form` does."""
    return [gate_form(qubits, gate.matrix, gate.targets, gate.controls) for gate in gates]


def operations_of(gates: Sequence[Gate], forms: Sequence[GateForm], noisy: bool, dtype: str) -> Any:
    """Return the operations of a circuit (`OPERATION`), and the entries of its matrices row by row.

    The channels after a gate are those of its qubits in the order in which it names them.
    """
    operations: list[tuple[Any, ...]] = []
    matrices: list[Any] = [np.empty(0, dtype)]
    place = channel = 0
    for gate, form in zip(gates, forms, strict=True):
        targets = [1 << target for target in form.targets]
        controls = sum(1 << control for control in form.controls)
        padded = (*targets, *[0] * (MAX_WIDTH - len(targets)))
        operations.append((form.width, place, sum(targets) | controls, controls, padded, 0))
        matrices.append(form.matrix.astype(dtype).reshape(-1))
        place += form.matrix.size
        for qubit in gate.qubits:
            if noisy:
                operations.append((0, channel, 0, 0, (1 << qubit, *[0] * (MAX_WIDTH - 1)), 0))
            channel += 2
    return np.array(operations, OPERATION), np.concatenate(matrices)


def kernel_name(dtype: str) -> str:
    """Return the symbol of the kernel for states of a type."""
    return f"gate_trajectories_{dtype}"


def kernel_source(dtype: str) -> str:
    """Return the CUDA C++ of the kernel for states of a type."""
    real = "double" if dtype == "complex128" else "float"
    return (
        '#include "gates/trajectory_kernel.cuh"\n'
        f"{size_check('TrajectoryArguments', ARGUMENTS)}"
        f'static_assert(sizeof(TrajectoryOperation) == {OPERATION.itemsize}, "operations");\n'
        + kernel_entry(
            kernel_name(dtype),
            "TrajectoryArguments",
            f"run_trajectories<{real}>(args);",
            THREADS,
            _BLOCKS,
        )
    )
