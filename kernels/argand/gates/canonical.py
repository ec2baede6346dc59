"""Gates in canonical form: matrix and qubits, checked, and brought to the cheapest form.

Qubits are little-endian as in Qiskit: amplitude number b has qubit j in state (b >> j) & 1, and bit
j of a row or column number of a gate's matrix is its targets[j].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from argand.checks import as_array, is_integer
from argand.device import is_cupy_array

Array = npt.NDArray[Any]

KEPT = 1024
"""Matrices whose analysis is kept: a circuit repeats few gates in many places."""
KEPT_WIDTH = 4
"""Most qubits of such a matrix: wider ones are as fast to analyse again."""


class GatePlace(NamedTuple):
    """A gate without its matrix: gates of one place share a launch; attributes as of `GateForm`."""

    targets: tuple[int, ...]
    controls: tuple[int, ...]
    monomial: bool

    @property
    def width(self) -> int:
        """Number of targets."""
        return len(self.targets)


@dataclass(frozen=True, eq=False)
class GateForm:
    """A gate in its cheapest form.

    Attributes:
        targets: ascending; bit j of a row or column number of the matrix is targets[j].
        controls: ascending; the gate acts where all of them are 1.
        matrix: (2^w, 2^w) complex128 for w targets.
        monomial: whether each row and each column has one entry that is not 0.
    """

    targets: tuple[int, ...]
    controls: tuple[int, ...]
    matrix: Array
    monomial: bool

    @property
    def width(self) -> int:
        """Number of targets."""
        return len(self.targets)

    @property
    def place(self) -> GatePlace:
        """All but the matrix."""
        return GatePlace(self.targets, self.controls, self.monomial)

    @property
    def is_identity(self) -> bool:
        """Whether it changes nothing."""
        return bool(np.array_equal(self.matrix, np.eye(len(self.matrix))))

    @property
    def columns_of_rows(self) -> Array:
        """The column of each row's entry, of a monomial matrix."""
        return np.asarray(np.argmax(self.matrix != 0, axis=1))

    @property
    def diagonal(self) -> bool:
        """Whether the matrix is monomial and no entry lies beside its diagonal."""
        return self.monomial and bool(np.all(np.diagonal(self.matrix)))

    @property
    def factors(self) -> Array:
        """Each row's entry, of a monomial matrix."""
        return np.asarray(self.matrix[np.arange(len(self.matrix)), self.columns_of_rows])


def check_qubits(qubits: int, targets: Sequence[int], controls: Sequence[int]) -> None:
    """Raise ValueError where targets and controls are not different qubits of a state."""
    if len(targets) == 0:  # they may be an array
        raise ValueError("targets must name at least one qubit, got none")
    for name, given in (("targets", targets), ("controls", controls)):
        for qubit in given:
            if not is_integer(qubit):
                raise ValueError(f"{name} must be integers, got {qubit!r}")
            if not 0 <= qubit < qubits:
                raise ValueError(f"{name} must be qubits from 0 to {qubits - 1}, got {qubit}")
    every = {*map(int, targets), *map(int, controls)}
    if len(every) != len(targets) + len(controls):
        raise ValueError(
            "targets and controls must be different qubits, "
            f"got {list(targets)} and {list(controls)}"
        )


def check_matrix(matrix: Any, targets: Sequence[int]) -> Array:
    """Return the matrix as complex128 on the host. Raises ValueError for a wrong shape or type."""
    found: Array = as_array(matrix.get() if is_cupy_array(matrix) else matrix, "matrix")
    check_matrix_form(found, targets)
    return found.astype(np.complex128)


def check_matrix_form(found: Any, targets: Sequence[int]) -> None:
    """Raise ValueError for an array of a wrong shape or type, whatever it holds."""
    order = 2 ** len(targets)
    if found.shape != (order, order):
        raise ValueError(
            f"matrix must have shape {(order, order)} for {len(targets)} targets, got {found.shape}"
        )
    if found.dtype.kind not in "biufc":
        raise ValueError(f"matrix must be numbers, got {found.dtype}")


def gate_form(
    qubits: int, matrix: Any, targets: Sequence[int], controls: Sequence[int] = ()
) -> GateForm:
    """Return a gate on a state of ``qubits`` qubits in its cheapest form.

    Targets are sorted. A target that acts as a control becomes one, and a target on which the
    matrix is the identity is dropped: a CNOT is a NOT under a control.

    Raises ValueError as `check_qubits` and `check_matrix` do.
    """
    check_qubits(qubits, targets, controls)
    found = check_matrix(matrix, targets)
    key = (found.tobytes(), tuple(map(int, targets)), tuple(map(int, controls)))
    return _known_form(*key) if len(targets) <= KEPT_WIDTH else _form(*key)


@lru_cache(maxsize=KEPT)
def _known_form(data: bytes, targets: tuple[int, ...], controls: tuple[int, ...]) -> GateForm:
    return _form(data, targets, controls)


def _form(data: bytes, targets: tuple[int, ...], controls: tuple[int, ...]) -> GateForm:
    """Return the form of a matrix: no idle targets, controls apart, targets in ascending order."""
    order = 2 ** len(targets)
    matrix = permuted(np.frombuffer(data, np.complex128).reshape(order, order), np.argsort(targets))
    kept, fixed = sorted(targets), sorted(controls)
    # From the highest bit down, so that the remaining bits keep their positions.
    for bit in reversed(range(len(kept))):
        if len(kept) == 1:
            break
        parts = _quarters(matrix, bit)
        if parts[0, 1].any() or parts[1, 0].any():
            continue
        if np.array_equal(parts[0, 0], parts[1, 1]):
            kept.pop(bit)
            matrix = parts[0, 0]
        elif np.array_equal(parts[0, 0], np.eye(len(matrix) // 2)):
            fixed.append(kept.pop(bit))
            matrix = parts[1, 1]
    matrix = np.ascontiguousarray(matrix)
    matrix.flags.writeable = False
    entries = matrix != 0
    monomial = bool((entries.sum(0) == 1).all() and (entries.sum(1) == 1).all())
    return GateForm(tuple(kept), tuple(sorted(fixed)), matrix, monomial)


def permuted(matrix: Array, order: Sequence[int] | Array) -> Array:
    """Return the matrix with bit j of its row and column numbers where bit order[j] was."""
    width = len(order)
    # Axis 0 is the highest bit.
    axes = [width - 1 - int(order[width - 1 - axis]) for axis in range(width)]
    tensor = matrix.reshape((2,) * (2 * width)) if width else matrix
    return tensor.transpose([*axes, *(width + axis for axis in axes)]).reshape(matrix.shape)


def _quarters(matrix: Array, bit: int) -> Array:
    """Return (2, 2, order / 2, order / 2): the matrix by a bit of the row and of the column."""
    half = len(matrix) // 2
    low = 2**bit
    split = matrix.reshape(half // low, 2, low, half // low, 2, low)
    return split.transpose(1, 4, 0, 2, 3, 5).reshape(2, 2, half, half)
