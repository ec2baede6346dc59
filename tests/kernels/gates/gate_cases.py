"""Random gates and states, their product in fp64, and what may be lost of it."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from argand import PRECISIONS, Precision
from argand.gates.plan import CUDA_CORE_WIDTH

Array = npt.NDArray[Any]


def random_unitary(rng: np.random.Generator, width: int) -> Array:
    """A unitary matrix on ``width`` qubits by Haar's measure (Mezzadri 2007) but for phases."""
    order = 2**width
    normal = rng.standard_normal((order, order)) + 1j * rng.standard_normal((order, order))
    return np.asarray(np.linalg.qr(normal)[0])


def random_state(rng: np.random.Generator, qubits: int) -> Array:
    """2^qubits amplitudes of norm 1."""
    normal = rng.standard_normal((2**qubits, 2)).view(np.complex128)[:, 0]
    return np.asarray(normal / np.linalg.norm(normal))


def dense_gate(
    state: Any,
    matrix: Any,
    targets: Sequence[int],
    controls: Sequence[int] = (),
    kind: npt.DTypeLike = np.complex128,
) -> Any:
    """The state after a gate in complex128 or complex64, of NumPy or CuPy as the state before.

    Amplitudes are found by their numbers, without views or axes, and multiplied by BLAS.
    """
    arrays = np if isinstance(state, np.ndarray) else importlib.import_module("cupy")
    found = state.astype(kind)
    numbers = arrays.arange(found.size)
    acts = sum(1 << control for control in controls)
    # The first amplitude of each column that the gate acts upon, and the others by their settings.
    first = numbers[numbers & (acts | sum(1 << target for target in targets)) == acts]
    settings = arrays.arange(2 ** len(targets))
    offsets = sum(((settings >> j) & 1) << target for j, target in enumerate(targets))
    places = offsets[:, None] + first
    found[places] = arrays.asarray(np.asarray(matrix, kind)) @ found[places]
    return found


def gate_bound(precision: Precision, width: int) -> float:
    """||error|| / ||state|| of one unitary gate at most.

    With dU and dx what rounding takes from the operands, ||dU x|| <= ||dU||_F ||x|| <= u
    sqrt(order) ||x|| and ||U dx|| <= u ||x||; the products that are not kept are at most dropped
    sqrt(order) ||x||. A partial sum is a product with a part of a unitary matrix, at most ||x||,
    and each of its 2 order terms a part and product is rounded once: to nearest, by tensor cores
    toward zero. Scaled operands lie in a tile of at most 2^12: `scaled_floor` of its largest each.
    """
    order = 2**width
    narrow = precision.output == "complex64" and width <= CUDA_CORE_WIDTH
    used = PRECISIONS["fp32"] if narrow else precision
    each = 2.0**-53 if used.output == "complex128" else 2.0**-24
    if not used.exact_operands:
        each *= 2
    root = float(np.sqrt(order))
    operands = used.u * (root + 1) + used.dropped * root + used.scaled_floor * (order + 64)
    return operands + float(np.sqrt(2)) * (2 * order * len(used.products) + 2) * each
