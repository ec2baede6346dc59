"""The gates of a circuit as they are staged, and their fusion for whatever applies them.

Staged gates are flat: ``matrices`` row by row, one after another, ``widths`` how many qubits each
has, ``targets`` their qubits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from argand import Device
from argand import Gate as StateGate
from argand.gates import fusion as gate_fusion
from argand.gates.circuit_search import cheapest_passes
from argand.gates.fusion import Pass

from workflow.circuits.exact_evolution import evolve_in_fp64

Array = npt.NDArray[Any]
AXES = {"matrices": ("entry",), "widths": ("gate",), "targets": ("target",)}
_MOVES = 3.0
"""Two transposing copies of the state and the product's own way through memory, in copies."""
_CORE_PRODUCTS, _GPU_PRODUCTS = 1.2, 0.04
"""Cost of a product for each row of a gate, in copies, 8 flops and 16 bytes an amplitude: on one
core, since BLAS takes all of them and a copy one, and on a GPU."""


@dataclass(frozen=True)
class TargetedGate:
    """A unitary on some qubits: bit j of a row or column number of ``matrix`` is targets[j].

    ``matrix`` is (2^w, 2^w) complex128 for w targets.
    """

    targets: tuple[int, ...]
    matrix: Array


def as_operands(gates: Sequence[TargetedGate]) -> dict[str, Array]:
    """Return the gates as they are staged."""
    targets = [target for gate in gates for target in gate.targets]
    return {
        "matrices": np.concatenate(
            [*(gate.matrix.reshape(-1) for gate in gates), np.empty(0, np.complex128)]
        ),
        "widths": np.array([len(gate.targets) for gate in gates], np.int64),
        "targets": np.array(targets, np.int64),
    }


def gates_in(operands: Mapping[str, Array]) -> list[TargetedGate]:
    """Return the gates of staged operands, whose matrices are read-only views of them."""
    widths = np.asarray(operands["widths"], np.int64)
    if not len(widths):
        return []
    whole = operands["matrices"].view()
    whole.flags.writeable = False  # so that gates of argand take no copies
    matrices = np.split(whole, np.cumsum(4**widths)[:-1])
    targets = np.split(operands["targets"], np.cumsum(widths)[:-1])
    return [
        TargetedGate(tuple(map(int, own)), matrix.reshape(2**width, 2**width))
        for width, own, matrix in zip(map(int, widths), targets, matrices, strict=True)
    ]


def fused(gates: Sequence[TargetedGate], passes: Sequence[Pass]) -> list[TargetedGate]:
    """Return one gate a pass, on its qubits ascending."""
    return [_product([gates[number] for number in one.gates], one.qubits) for one in passes]


def passes_of_width(qubits: int, gates: Sequence[TargetedGate], width: int) -> list[Pass]:
    """Return the fewest passes of at most ``width`` qubits that are found, in any allowed order."""
    return gate_fusion.fuse(
        qubits, _state_gates(gates), gate_fusion.PassRules(width, lambda _: 1.0)
    )


def fused_for_products(
    qubits: int, gates: Sequence[TargetedGate], device: Device
) -> list[TargetedGate]:
    """Return gates fused for the least time where each is a library's product and two copies."""
    each = _CORE_PRODUCTS / device.cores if device.backend == "cpu" else _GPU_PRODUCTS

    def copies(targets: tuple[int, ...]) -> float:
        return _MOVES + each * 2.0 ** len(targets)

    return fused(gates, cheapest_passes(qubits, _state_gates(gates), copies)[1])


def _state_gates(gates: Sequence[TargetedGate]) -> list[StateGate]:
    return [StateGate(gate.matrix, gate.targets) for gate in gates]


def _product(gates: Sequence[TargetedGate], union: Sequence[int]) -> TargetedGate:
    """Return one gate on qubits ``union`` for gates in order; each evolves identity's columns."""
    width = len(union)
    # The columns of the matrix are the high bits of a state of 2 width qubits.
    columns = np.eye(2**width, dtype=np.complex128).reshape(-1)
    local = [[union.index(target) for target in gate.targets] for gate in gates]
    flat = np.concatenate([gate.matrix.reshape(-1) for gate in gates])
    targets = [target for own in local for target in own]
    result = evolve_in_fp64(columns, flat, [len(own) for own in local], targets)
    return TargetedGate(tuple(union), result.reshape(2**width, 2**width).T.copy())
