"""Blocks of a state in which a GPU applies gates that `gemm` multiplies, within a workspace limit.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from argand.gates.canonical import GateForm
from argand.gates.cpu import product_precision
from argand.gemm.workspace import MAX_WORKSPACE, SLICES_WORKSPACE
from argand.precision import Precision
from argand.runtime.memory.workspace_limit import allowed_workspace, require_workspace

_MIN_COLUMNS = 128
"""Columns of the smallest blocks, a tile of products: fewer would leave most of it empty."""


class BlockMemory(NamedTuple):
    """Bytes that a gate takes beside the state: of the matrix, and of each column of a block."""

    fixed: float
    column: float

    def of(self, columns: int) -> int:
        """Return the bytes of a block."""
        return math.ceil(self.fixed + self.column * columns)


def block_memory(form: GateForm, precision: Precision, library_bytes: int) -> BlockMemory:
    """Return the most that blocks of a gate take: their copy, the result, and what gemm takes.

    ``library_bytes`` are the least that cuBLAS takes, which multiplies at fp32 and fp64.
    """
    item = 16 if precision.output == "complex128" else 8
    column = item * 2**form.width
    if form.monomial:  # its amplitudes in their order too, and factors in place of a matrix
        return BlockMemory(column, 3 * column)
    matrix = column * 2**form.width
    if product_precision(precision, form.width).exact_operands:
        return BlockMemory(matrix + library_bytes, 2 * column)
    most = MAX_WORKSPACE + SLICES_WORKSPACE
    return BlockMemory((1 + most) * matrix, (2 + most) * column)


def columns_within(form: GateForm, memory: BlockMemory, columns: int) -> int:
    """Return the number of columns of a block; it is ``columns`` where memory is not limited.

    Raises WorkspaceError where the smallest blocks take more than is allowed.
    """
    allowed = allowed_workspace()
    if allowed is None or memory.of(columns) <= allowed:
        return columns
    least = min(columns, _MIN_COLUMNS)
    require_workspace(f"a gate of {form.width} qubits, in the smallest blocks,", memory.of(least))
    return max(least, int((allowed - memory.fixed) / memory.column))


def blocks_of(shape: Sequence[int], most: int) -> Iterator[tuple[slice, ...]]:
    """Yield blocks of at most ``most`` elements that cover an array, or single elements of it.

    They are whole along the last axes, and cut along the first ones.
    """
    axis, inner = 0, math.prod(shape)
    while axis < len(shape) and inner > most:
        inner //= shape[axis]
        axis += 1
    if axis == 0:
        yield ()
        return
    step = max(1, most // inner)
    cut = shape[axis - 1]
    for first in product(*map(range, shape[: axis - 1])):
        for begin in range(0, cut, step):
            yield (*(slice(at, at + 1) for at in first), slice(begin, min(begin + step, cut)))
