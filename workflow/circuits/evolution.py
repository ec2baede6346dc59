"""Evolution of a state by fused gates as matrix products, with as few copies as possible.

The state of n qubits has one axis of length 2 a qubit, the most significant first. A gate on
targets that lie side by side is a batched product on a view; otherwise the targets are brought to
the front by one copy and stay there, and only at the end is the canonical order restored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy.typing as npt

Array = npt.NDArray[Any]
Multiply = Callable[..., Any]
"""A product with the signature of `argand.gemm`, its precision already chosen."""

MIN_COLUMNS = 64
"""Narrower batched products cost more in calls than the copy that avoids them."""


@dataclass(frozen=True)
class Move:
    """A transposition of the state: reshape to ``shape``, then permute by ``axes``.

    Neighbouring qubits that stay neighbours are one axis, so there are few axes to walk.
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...]


@dataclass(frozen=True)
class GateProduct:
    """One gate: an optional move, then a product on the state reshaped to ``view``.

    ``left`` is U psi with view (..., 2^width, columns), ``right`` is psi U^T with (rows, 2^width).
    """

    width: int
    move: Move | None
    view: tuple[int, ...]
    side: Literal["left", "right"]


@dataclass(frozen=True)
class Evolution:
    """A circuit's products, and the move back to the canonical order (None if it is there)."""

    qubits: int
    products: tuple[GateProduct, ...]
    restore: Move | None


def plan_evolution(qubits: int, targets: Sequence[Sequence[int]]) -> Evolution:
    """Return how to apply gates on these targets in order; bit j of a matrix is its targets[j].

    Raises ValueError for a target that is repeated in a gate or is not a qubit.
    """
    layout = list(range(qubits - 1, -1, -1))
    canonical = list(layout)
    products = []
    for gate in targets:
        if len(set(gate)) != len(gate) or not set(gate) <= set(canonical):
            raise ValueError(f"targets must be different qubits below {qubits}, got {list(gate)}")
        product, layout = _plan_product(layout, list(reversed(gate)))
        products.append(product)
    return Evolution(qubits, tuple(products), _move(layout, canonical))


def _plan_product(layout: list[int], front: list[int]) -> tuple[GateProduct, list[int]]:
    """Return the product for targets ``front`` (most significant first) and the layout after it."""
    width = len(front)
    first = layout.index(front[0])
    rows, columns = 2**first, 2 ** (len(layout) - first - width)
    if layout[first : first + width] == front:
        if columns == 1:
            return GateProduct(width, None, (rows, 2**width), "right"), layout
        if rows == 1 or columns >= MIN_COLUMNS:
            return GateProduct(width, None, (rows, 2**width, columns)[rows == 1 :], "left"), layout
    moved = front + [qubit for qubit in layout if qubit not in front]
    view = (2**width, 2 ** (len(layout) - width))
    return GateProduct(width, _move(layout, moved), view, "left"), moved


def _move(layout: list[int], target: list[int]) -> Move | None:
    """Return the transposition from one order of qubits to another."""
    if layout == target:
        return None
    position = {qubit: index for index, qubit in enumerate(layout)}
    runs: list[list[int]] = []
    for qubit in target:
        if runs and position[qubit] == runs[-1][-1] + 1:
            runs[-1].append(position[qubit])
        else:
            runs.append([position[qubit]])
    in_memory = sorted(runs)
    return Move(
        tuple(2 ** len(run) for run in in_memory), tuple(in_memory.index(run) for run in runs)
    )


def evolve(state: Any, matrices: Any, evolution: Evolution, multiply: Multiply) -> Any:
    """Return the state after all gates.

    Args:
        state: (2^qubits,), NumPy or CuPy, not changed.
        matrices: the gates' matrices, row by row, one after another, in the state's type.
        evolution: the plan for the gates' targets.
        multiply: the product that each gate takes.
    """
    start = 0
    for product in evolution.products:
        order = 2**product.width
        gate = matrices[start : start + order * order].reshape(order, order)
        start += order * order
        state = _moved(state, product.move).reshape(product.view)
        state = multiply(gate, state) if product.side == "left" else multiply(state, gate, op_b="T")
    return _moved(state, evolution.restore).reshape(-1)


def _moved(state: Any, move: Move | None) -> Any:
    return state if move is None else state.reshape(move.shape).transpose(move.axes)
