"""The pieces in which a GPU computes exact products, and the workspace that these take.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from argand.gemm.modular.moduli import NORM_BLOCK
from argand.gemm.modular.problem import ModularProblem, Piece
from argand.gemm.modular.product_plan import COLUMN_BLOCK

_PANEL_UNITS = (COLUMN_BLOCK, 2 * COLUMN_BLOCK, 3 * COLUMN_BLOCK)
"""The lines of panels are multiples of these numbers: whole tiles of one plan or another."""
_MORE_PANELS = 3
"""Panels beyond the fewest that fit, so that whole waves of tiles can be found."""
_MORE_PARTS = 2
"""Parts of k beyond the fewest that fit."""
_PLANE_GROUPS = (2, 3, 4)
"""Launches in which the planes of a panel of rows are multiplied."""
_FEW_LINES = 1024
"""Lines of panels of one side below which panels of both sides are candidates."""
_NORM_BYTES, _NORM_BLOCKS = 8, 2 << 8
"""Workspace of the norm of a block of a line, and what rounding up adds to both operands' norms."""
_EXPONENT_BYTES = 4
"""Workspace of the exponent of a line."""
_ANY_BYTES = 1 << 28
"""Workspace that any call may take."""


def most_workspace(problem: ModularProblem) -> int:
    """Return the most workspace of a call: the bytes of operands and result, or 256 MiB."""
    return max(_ANY_BYTES, problem.nbytes)


def products_within(problem: ModularProblem, limit: int) -> int:
    """Return how many products of a batch one launch has, whose workspace is to be ``limit`` bytes.

    Planes of one of them fit, and what a launch holds of all its lines takes at most a quarter.
    Where no product fits it is one, which is cut into pieces. Exponents of packed operands lie
    after the planes of all products: these are all in one launch.
    """
    sides = (problem.a, problem.a_packed), (problem.b, problem.b_packed)
    if any(packed and x.batch_stride for x, packed in sides):
        return problem.batch
    product = Piece(0, 1, 0, problem.a.rows, 0, problem.b.rows)
    if sum(problem.piece_bytes(product)) > limit:
        return 1
    count = problem.batch
    while count > 1:
        some = replace(problem, batch=count)
        if _norm_bytes(some) + _EXPONENT_BYTES * some.lines + some.proof_bytes <= limit // 4:
            break
        count = -(-count // 2)
    return count


def cuts_of(problem: ModularProblem, limit: int) -> list[list[Piece]]:
    """Return ways to cut a problem so that its planes and residues take at most ``limit`` bytes.

    A piece has whole products, all about as many, for which there is one way. Where one is too
    large it is a panel of its rows or of its columns, of rows maybe with planes in groups, or the
    whole in parts of k; where panels have few lines, a block of rows and columns, in parts of k or
    not. Batches, products with a proof and those of packed operands go in blocks where nothing else
    fits, packed ones in one part of k. Where no block fits it is the smallest. Few products at a
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
    if products > 1 or shared + each <= limit:
        return [_pieces(problem, products, rows, columns)]
    most_rows = (limit - of_b * padded) // (of_a + of_c * padded)
    most_columns = (limit - of_a * rows) // (of_b + of_c * rows)
    found = [_pieces(problem, 1, step, columns) for step in _steps(rows, most_rows)]
    found += _grouped_panels(problem, limit, most_rows)
    # A'(B' x) of a proof takes a pass of its own where C is cut into panels of columns.
    if problem.proved is None or not found:
        found += [_pieces(problem, 1, rows, step) for step in _steps(columns, most_columns)]
    found += [_pieces(problem, 1, rows, columns, parts) for parts in _k_parts(problem, limit)]
    alone = problem.batch == 1 and problem.proved is None and not _is_packed(problem)
    if not found or (alone and max(most_rows, most_columns) < _FEW_LINES):
        found += _blocks(problem, limit)
    return found or [_smallest(problem)]


def _grouped_panels(problem: ModularProblem, limit: int, most_rows: int) -> Iterator[list[Piece]]:
    """Yield panels of more rows than ``most_rows``, whose residues overwrite planes of A."""
    if problem.a_packed:
        return
    of_b = problem.piece_bytes(Piece(0, 1, 0, 0, 0, problem.b.rows))[1]
    for groups in _PLANE_GROUPS:
        row = Piece(0, 1, 0, 1, 0, problem.b.rows, plane_groups=groups)
        most = (limit - of_b) // (problem.workspace_bytes(row) - of_b)
        for step in _steps(problem.a.rows, most):
            if step > most_rows:
                yield _pieces(problem, 1, step, problem.b.rows, plane_groups=groups)


def _smallest(problem: ModularProblem) -> list[Piece]:
    """Return the blocks that take the least workspace: in one part of k, or in the most.

    Parts need norms of all lines, which few blocks of k of many lines outweigh.
    """
    sides = min(problem.a.rows, COLUMN_BLOCK), min(problem.b.rows, COLUMN_BLOCK)
    whole = _pieces(problem, 1, *sides)
    if _is_packed(problem) or problem.k_blocks == 1:
        return whole
    parts = _pieces(problem, 1, *sides, problem.k_blocks)
    part = problem.parts(problem.k_blocks)[0][1]
    in_parts = sum(part.piece_bytes(parts[0])) + _norm_bytes(problem)
    return parts if in_parts < sum(problem.piece_bytes(whole[0])) else whole


def _is_packed(problem: ModularProblem) -> bool:
    return problem.a_packed or problem.b_packed


def _blocks(problem: ModularProblem, limit: int) -> Iterator[list[Piece]]:
    """Yield cuts into blocks of rows and columns, each in the fewest parts of k that fit.

    Blocks that lie beside each other share the rows of A, or one above the other the columns of B,
    whichever encodes less again.
    """
    for rows, columns in product(_halves(problem.a.rows), _halves(problem.b.rows)):
        block = Piece(0, 1, 0, rows, 0, columns)
        if sum(problem.piece_bytes(block)) <= limit:
            parts = 1
        else:
            found = _fewest_parts(problem, limit, block)
            if found is None:
                continue
            parts = found
        by_columns = -(-problem.a.rows // rows) > -(-problem.b.rows // columns)
        yield _pieces(problem, 1, rows, columns, parts, by_columns=by_columns)


def _halves(lines: int) -> Iterator[int]:
    """Yield lines of ever smaller panels: all, a half, a quarter, to 128."""
    yield lines
    while lines > COLUMN_BLOCK:
        lines = -(-lines // 2 // COLUMN_BLOCK) * COLUMN_BLOCK
        yield lines


def _steps(lines: int, most: int) -> Iterator[int]:
    """Yield lines of about equal panels, at most ``most`` each; none where that is too few."""
    if most < COLUMN_BLOCK:
        return
    fewest = -(-lines // (most // COLUMN_BLOCK * COLUMN_BLOCK))
    found = {
        -(-lines // (panels * unit)) * unit
        for panels in range(fewest, fewest + _MORE_PANELS + 1)
        for unit in _PANEL_UNITS
    }
    yield from sorted((step for step in found if step <= most), reverse=True)


def _k_parts(problem: ModularProblem, limit: int) -> Iterator[int]:
    """Yield numbers of parts of k of a product, from the fewest that fit on.

    Planes of packed operands are there in any case, and those of an operand that products share
    would be made for each.
    """
    x, y = problem.a, problem.b
    shared = problem.batch > 1 and not (x.batch_stride and y.batch_stride)
    fewest = _fewest_parts(problem, limit, Piece(0, 1, 0, x.rows, 0, y.rows))
    if shared or fewest is None:
        return
    for count in range(fewest, min(problem.k_blocks, fewest + _MORE_PARTS) + 1):
        # Others have the blocks of fewer parts.
        if -(-problem.k_blocks // -(-problem.k_blocks // count)) == count:
            yield count


def _fewest_parts(problem: ModularProblem, limit: int, piece: Piece) -> int | None:
    """Return the number of parts of k, at least two, in which a piece fits; None if in none."""
    if _is_packed(problem) or problem.k_blocks == 1:
        return None
    limit -= _norm_bytes(problem)
    of_a, of_b, of_c = problem.piece_bytes(piece)
    blocks = (limit - of_c) // ((of_a + of_b) // problem.pitch * NORM_BLOCK)
    if blocks <= 0:
        return None
    # Parts have as many blocks of k, so some numbers of parts are not to be had.
    blocks = min(blocks, -(-problem.k_blocks // 2))
    return max(2, -(-problem.k_blocks // blocks))


def _norm_bytes(problem: ModularProblem) -> int:
    """Return the workspace of the norms of all lines, which those in one part may not need."""
    return _NORM_BYTES * problem.k_blocks * problem.lines + _NORM_BLOCKS


def _pieces(
    problem: ModularProblem, products: int, row_step: int, column_step: int, k_parts: int = 1,
    *, by_columns: bool = False, plane_groups: int = 1,
) -> list[Piece]:  # fmt: skip
    """Return the pieces in turn, row after row of them, or column after column."""
    rows, columns = problem.a.rows, problem.b.rows
    corners = [(i, j) for i in range(0, rows, row_step) for j in range(0, columns, column_step)]
    if by_columns:
        corners.sort(key=lambda corner: corner[1])
    return [
        Piece(
            first_product=first, products=min(products, problem.batch - first), first_row=row,
            rows=min(row_step, rows - row), first_column=column,
            columns=min(column_step, columns - column), k_parts=k_parts, plane_groups=plane_groups,
        )
        for first in range(0, problem.batch, products)
        for row, column in corners
    ]  # fmt: skip
