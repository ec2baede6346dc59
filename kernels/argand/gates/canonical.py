"""Gates in canonical form: matrix and qubits, checked, and brought to the cheapest form.

Qubits are little-endian as in Qiskit: amplitude number b has qubit j in state (b >> j) & 1, and bit
j of a row or column number of a gate's matrix is its targets[j].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from argand.checks import as_array, is_integer
from argand.device import is_cupy_array

Array = npt.NDArray[Any]

KEPT = 1024
"""Matrices whose analysis is kept: a circuit repeats few gates in many places."""
KEPT_WIDTH = 4
"""Most qubits of such a matrix: wider ones are as fast to analyse again."""
_MADE: WeakValueDictionary[int, Array] = WeakValueDictionary()
"""Matrices of forms by their `id`. Another form shares them, since nobody else writes to them; a
caller's own matrix is copied even where it is read-only, because one of its views may write."""


class GatePlace(NamedTuple):
    """A gate without its matrix: gates of one place share a launch; attributes as in `GateForm`."""

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
        """The targets and controls, without the matrix."""
        return GatePlace(self.targets, self.controls, self.monomial)

    @property
    def is_identity(self) -> bool:
        """Whether it changes nothing."""
        ones = bool((np.diagonal(self.matrix) == 1).all())
        return ones and np.count_nonzero(self.matrix) == len(self.matrix)

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
    return np.asarray(found, np.complex128)


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
    places = tuple(map(int, targets)), tuple(map(int, controls))
    if len(targets) > KEPT_WIDTH:
        return _form(found, *places)
    return _known_form(found.tobytes(), *places)


@lru_cache(maxsize=KEPT)
def _known_form(data: bytes, targets: tuple[int, ...], controls: tuple[int, ...]) -> GateForm:
    order = 2 ** len(targets)
    return _form(np.frombuffer(data, np.complex128).reshape(order, order), targets, controls)


def _form(given: Array, targets: tuple[int, ...], controls: tuple[int, ...]) -> GateForm:
    """Return the form of a matrix: no idle targets, controls apart, targets in ascending order.

    Only the diagonal of a diagonal matrix is taken apart.
    """
    changed, places = changed_bits(given), np.argsort(targets)
    entries = permuted(given if changed else np.diagonal(given), places)
    kept, fixed = sorted(targets), sorted(controls)
    # From the highest bit down, so that the remaining bits keep their positions.
    for bit in reversed(range(len(kept))):
        if len(kept) == 1:
            break
        if changed >> int(places[bit]) & 1:
            continue
        off, on = _parts(entries, bit)
        if np.array_equal(off, on):
            kept.pop(bit)
            entries = off
        elif np.array_equal(off, np.eye(len(off)) if changed else np.ones(len(off))):
            fixed.append(kept.pop(bit))
            entries = on
    if tuple(kept) == targets and _MADE.get(id(given)) is given:
        matrix = given
    elif changed:
        matrix = np.array(entries, order="C")
    else:
        matrix = np.zeros((len(entries),) * 2, np.complex128)
        np.einsum("ii->i", matrix)[:] = entries  # faster than numpy.diag
    matrix.flags.writeable = False
    _MADE[id(matrix)] = matrix
    if changed:
        occupied = matrix != 0
        monomial = bool((occupied.sum(0) == 1).all() and (occupied.sum(1) == 1).all())
    else:
        monomial = bool(entries.all())
    return GateForm(tuple(kept), tuple(sorted(fixed)), matrix, monomial)


def changed_bits(matrix: Array) -> int:
    """Return a mask of the bits of row and column numbers that some entry of a matrix changes."""
    width = len(matrix).bit_length() - 1
    occupied = np.flatnonzero(matrix)
    # A place is the row number, followed by the column number.
    return int(np.bitwise_or.reduce(occupied ^ (occupied >> width))) & (len(matrix) - 1)


def permuted(entries: Array, order: Sequence[int] | Array) -> Array:
    """Return a matrix or a diagonal, bit j of its row and column numbers where bit order[j] was."""
    width = len(order)
    # Axis 0 is the highest bit.
    axes = [width - 1 - int(order[width - 1 - axis]) for axis in range(width)]
    every = [dimension * width + axis for dimension in range(entries.ndim) for axis in axes]
    return entries.reshape((2,) * len(every)).transpose(every).reshape(entries.shape)


def _parts(entries: Array, bit: int) -> tuple[Array, Array]:
    """Return the parts of a matrix or a diagonal where a bit of rows and columns is 0, and is 1."""
    half, low = len(entries) // 2, 2**bit
    split = entries.reshape((half // low, 2, low) * entries.ndim)
    shape = (half,) * entries.ndim
    off, on = (split[(slice(None), value, slice(None)) * entries.ndim] for value in (0, 1))
    return off.reshape(shape), on.reshape(shape)
