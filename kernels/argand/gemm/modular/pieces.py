"""The pieces in which a GPU computes exact products, and the workspace that these take.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from argand.gemm.modular.problem import ModularProblem, Piece
from argand.gemm.modular.product_plan import COLUMN_BLOCK

_PANELS = {"rows": (256, 128), "columns": (768, COLUMN_BLOCK)}
"""Lines of which wide panels have a multiple, whole tiles of every plan, and narrow ones."""
_ANY_BYTES, _TWICE_BYTES = 1 << 28, 1 << 31
"""Workspace that any call may take, and up to which a call may take twice its operands' bytes: in
pieces, products of a millisecond or two would take 4% longer."""


def workspace_limit(problem: ModularProblem) -> int:
    """Return the most bytes of planes and residues that a call takes.

    They are those of its operands and result, for small ones twice as many or 256 MiB.
    """
    return max(_ANY_BYTES, problem.nbytes, min(2 * problem.nbytes, _TWICE_BYTES))


def pieces_of(problem: ModularProblem, limit: int) -> list[Piece]:
    """Cut a problem so that its planes and residues take at most ``limit`` bytes.

    A piece has whole products, all about as many, or where one is too large a panel of its rows,
    or of its columns where these are more: at least 128, whatever the limit. Few products at a
    time, whose planes stay in the L2 cache, take no less time than many: kernels that are so short
    take longer to begin and to end than they save.
    """
    of_a, of_b, of_c = problem.plane_bytes()
    rows, columns = problem.a.rows, problem.b.rows
    padded = -(-columns // COLUMN_BLOCK) * COLUMN_BLOCK
    a_batched, b_batched = bool(problem.a.batch_stride), bool(problem.b.batch_stride)
    shared = of_a * rows * (not a_batched) + of_b * padded * (not b_batched)
    each = of_a * rows * a_batched + of_b * padded * b_batched + of_c * rows * padded
    products = min(problem.batch, max(1, (limit - shared) // each))
    products = -(-problem.batch // -(-problem.batch // products))
    row_step, column_step = rows, columns
    if products == 1 and shared + each > limit:
        if rows >= columns:
            most = (limit - of_b * padded) // (of_a + of_c * padded)
            row_step = _panel(rows, most, *_PANELS["rows"])
        else:
            most = (limit - of_a * rows) // (of_b + of_c * rows)
            column_step = _panel(columns, most, *_PANELS["columns"])
    return [
        Piece(
            first, min(products, problem.batch - first), row, min(row_step, rows - row),
            column, min(column_step, columns - column),
        )
        for first in range(0, problem.batch, products)
        for row in range(0, rows, row_step)
        for column in range(0, columns, column_step)
    ]  # fmt: skip


def _panel(lines: int, most: int, wide: int, narrow: int) -> int:
    """Lines of a panel: all about as many, and no more than ``most`` but for ``narrow`` ones."""
    unit = wide if most >= 2 * wide else narrow
    panels = -(-lines // max(unit, most // unit * unit))
    return -(-lines // (panels * unit)) * unit
