"""The evolution of a state that others are held to: each gate by itself, in complex128 by NumPy.

A state of 28 qubits is 4 GiB and a gate does little with an amplitude, so as many gates in a row as
act on few qubits are applied to one block of the state after another while it is in the core's
cache: a sweep. Blocks do not depend on each other and are shared out to processes. A diagonal gate
may act on any qubits, because those that number the blocks have one value in each.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from workflow.processes import shared_array, shared_out
from workflow.threads import thread_count

Array = npt.NDArray[Any]
Bits = tuple[int, ...]
_Part = tuple[tuple[int, ...], Bits]
"""The order of a block's axes, and the values of the first of them."""

BLOCK_QUBITS = 16
"""1 MiB: a block and what a gate makes of it fit into a core's L2."""
_RUN_QUBITS = 5
"""The lowest qubits, in every block: copies move runs of at least 512 bytes."""
_FEW = 1
"""Entries of a row other than 0, in the mean, up to which sums beat a product between two copies:
those of permutations."""


@dataclass(frozen=True)
class _Gate:
    """``matrix`` on ``qubits``, the most significant first; ``rows`` that change anything.

    A row is its bits and, for each entry that is not 0, the column's bits and the entry.
    """

    qubits: tuple[int, ...]
    matrix: Array
    rows: tuple[tuple[Bits, tuple[tuple[Bits, complex], ...]], ...]

    @property
    def diagonal(self) -> bool:
        """Whether no amplitude becomes part of another."""
        return all([column for column, _ in entries] == [row] for row, entries in self.rows)

    @property
    def sparse(self) -> bool:
        """Whether sums of whole parts of the state are less work than a matrix product."""
        return int(np.count_nonzero(self.matrix)) <= _FEW * len(self.matrix)


def _gate(qubits: Sequence[int], matrix: Array) -> _Gate:
    numbers = list(product((0, 1), repeat=len(qubits)))
    rows = []
    for number, row in zip(numbers, matrix, strict=True):
        entries = tuple(
            (column, complex(value)) for column, value in zip(numbers, row, strict=True) if value
        )
        if entries != ((number, 1),):
            rows.append((number, entries))
    return _Gate(tuple(qubits), matrix, tuple(rows))


@dataclass(frozen=True)
class _Sweep:
    """Gates in a row, and the qubits of a block, descending."""

    gates: tuple[_Gate, ...]
    inner: tuple[int, ...]


def evolve_in_fp64(
    state: Array, matrices: Array, widths: Sequence[int] | Array, targets: Sequence[int] | Array
) -> Array:
    """Return the state after all gates in complex128, without a plan, fusion or gemm of ours.

    As many processes work as there are threads here (`workflow.threads`). Beside the state each
    takes three blocks of `BLOCK_QUBITS` qubits, or of a gate's if more.

    Args:
        state: (2^qubits,), not changed.
        matrices, widths, targets: flat, as in `workflow.circuits.fused_gates`.
    """
    qubits = int(state.size).bit_length() - 1
    shared = qubits > BLOCK_QUBITS and thread_count() > 1
    final = (shared_array if shared else np.empty)(state.shape, np.complex128)
    final[...] = state
    psi = final.reshape((2,) * qubits)
    for sweep in _sweeps(qubits, _gates(matrices, widths, targets)):
        outer = [qubit for qubit in reversed(range(qubits)) if qubit not in sweep.inner]
        blocks = psi.transpose([qubits - 1 - qubit for qubit in (*outer, *sweep.inner)])
        operations = _block_operations(sweep, outer)

        def apply(
            indices: Sequence[Bits],
            blocks: Array = blocks,
            operations: Sequence[_BlockOperation] = operations,
        ) -> Iterator[None]:
            for index in indices:
                block, *spare = _SCRATCH.take(blocks[index].shape)
                block[...] = blocks[index]
                for operation in operations:
                    operation.apply(block, index, spare)
                blocks[index] = block
                yield

        every = list(np.ndindex(*blocks.shape[: len(outer)]))
        deque(shared_out(apply, every, thread_count() if shared else 1), maxlen=0)
    return final


def _gates(
    matrices: Array, widths: Sequence[int] | Array, targets: Sequence[int] | Array
) -> Iterator[_Gate]:
    used = start = 0
    for width in map(int, widths):
        order = 2**width
        matrix = np.asarray(matrices[start : start + order * order]).reshape(order, order)
        # The first bit of a row belongs to the gate's last target.
        yield _gate([int(target) for target in reversed(targets[used : used + width])], matrix)
        start += order * order
        used += width


def _sweeps(qubits: int, gates: Iterator[_Gate]) -> Iterator[_Sweep]:
    """Yield as many gates at a time as are on qubits of a block, in their order."""
    low = frozenset(range(min(qubits, _RUN_QUBITS, BLOCK_QUBITS)))
    together: list[_Gate] = []
    inner = low
    for gate in gates:
        more = inner if gate.diagonal else inner.union(gate.qubits)
        if together and len(more) > BLOCK_QUBITS:
            yield _Sweep(tuple(together), _filled(inner, qubits))
            together, more = [], low if gate.diagonal else low.union(gate.qubits)
        together.append(gate)
        inner = more
    if together:
        yield _Sweep(tuple(together), _filled(inner, qubits))


def _filled(inner: frozenset[int], qubits: int) -> tuple[int, ...]:
    """Return qubits and the lowest others, as many as a block takes: copies move longer runs."""
    others = [qubit for qubit in range(qubits) if qubit not in inner]
    more = others[: max(0, BLOCK_QUBITS - len(inner))]
    return tuple(sorted([*inner, *more], reverse=True))


def _block_operations(sweep: _Sweep, outer: Sequence[int]) -> list[_BlockOperation]:
    """Return the operations of a sweep on a block; diagonal gates in a row are one operation."""
    operations: list[_BlockOperation] = []
    for diagonal, gates in groupby(sweep.gates, lambda gate: gate.diagonal):
        if diagonal:
            operations.append(_factors(list(gates), sweep.inner, outer))
            continue
        for gate in gates:
            order = _order(gate.qubits, sweep.inner)
            operations.append(
                _Sums(order, gate.rows) if gate.sparse else _Product(order, gate.matrix)
            )
    return operations


def _at(bits: Bits) -> Any:
    """Return the index of a part of a block that can be changed in place, also of one amplitude."""
    return (*bits, ...)


def _order(qubits: Sequence[int], inner: Sequence[int]) -> tuple[int, ...]:
    """Return the axes of a block, those of some qubits first."""
    first = [inner.index(qubit) for qubit in qubits]
    return (*first, *(axis for axis in range(len(inner)) if axis not in first))


def _factors(gates: Sequence[_Gate], inner: Sequence[int], outer: Sequence[int]) -> _Factors:
    everywhere = np.ones((2,) * len(inner), np.complex128)
    some = []
    for gate in gates:
        own = [number for number, qubit in enumerate(gate.qubits) if qubit in inner]
        fixed = [number for number in range(len(gate.qubits)) if number not in own]
        order = _order([gate.qubits[number] for number in own], inner)
        if not fixed:
            for bits, ((_, factor),) in gate.rows:
                everywhere.transpose(order)[bits] *= factor
            continue
        found: dict[Bits, list[tuple[_Part, complex]]] = {}
        for bits, ((_, factor),) in gate.rows:
            part = order, tuple(bits[number] for number in own)
            found.setdefault(tuple(bits[number] for number in fixed), []).append((part, factor))
        some.append((tuple(outer.index(gate.qubits[number]) for number in fixed), found))
    return _Factors(everywhere if len(some) < len(gates) else None, tuple(some))


class _Scratch:
    """Blocks that are used again: fresh memory for every gate would cost more than the gate."""

    def __init__(self) -> None:
        self._room = np.empty((3, 0), np.complex128)

    def take(self, shape: Sequence[int]) -> Array:
        """Return three blocks, (3, *shape), of any values."""
        size = 2 ** len(shape)
        if self._room.shape[1] < size:
            self._room = np.empty((3, size), np.complex128)
        return self._room[:, :size].reshape(3, *shape)


_SCRATCH = _Scratch()


class _BlockOperation(Protocol):
    """Gates on a block of shape (2, ..., 2)."""

    def apply(self, block: Array, index: Bits, spare: Sequence[Array]) -> None:
        """Change a block, with two more of its size for whatever it takes.

        ``index`` has the values of the qubits that number the blocks.
        """


@dataclass(frozen=True)
class _Factors:
    """Diagonal gates: a factor of each amplitude in every block, and factors of parts in some.

    ``some`` has for each gate the axes of a block's index that decide, and by their values which
    parts are multiplied.
    """

    everywhere: Array | None
    some: tuple[tuple[Bits, Mapping[Bits, Sequence[tuple[_Part, complex]]]], ...]

    def apply(self, block: Array, index: Bits, spare: Sequence[Array]) -> None:
        if self.everywhere is not None:
            block *= self.everywhere
        together: dict[_Part, complex] = {}
        for axes, factors in self.some:
            for part, factor in factors.get(tuple(index[axis] for axis in axes), ()):
                together[part] = together.get(part, 1) * factor
        for (order, bits), factor in together.items():
            values = block.transpose(order)[_at(bits)]
            np.multiply(values, factor, out=values)


@dataclass(frozen=True)
class _Sums:
    """A gate with few entries: a part of the block that changes is a sum of parts as they were.

    The axes of a block in ``order`` begin with the gate's, here and below.
    """

    order: tuple[int, ...]
    rows: tuple[tuple[Bits, tuple[tuple[Bits, complex], ...]], ...]

    def apply(self, block: Array, index: Bits, spare: Sequence[Array]) -> None:
        parts = block.transpose(self.order)
        before, summand = (one.reshape(parts.shape) for one in spare)
        for column in {column for _, entries in self.rows for column, _ in entries}:
            before[column] = parts[column]
        for row, ((first, factor), *others) in self.rows:
            changed = parts[_at(row)]
            np.multiply(before[first], factor, out=changed)
            for column, entry in others:
                changed += np.multiply(before[column], entry, out=summand[_at(column)])


@dataclass(frozen=True)
class _Product:
    """A gate as a matrix product between two copies."""

    order: tuple[int, ...]
    matrix: Array

    def apply(self, block: Array, index: Bits, spare: Sequence[Array]) -> None:
        parts = block.transpose(self.order)
        columns, product = (one.reshape(parts.shape) for one in spare)
        columns[...] = parts
        rows = len(self.matrix)
        np.matmul(self.matrix, columns.reshape(rows, -1), out=product.reshape(rows, -1))
        parts[...] = product
