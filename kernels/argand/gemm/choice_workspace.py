"""Workspace of a choice of the wgmma family, and what a choice may take of it.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from dataclasses import replace

from argand.gemm.choice import GemmChoice
from argand.gemm.pack.plan import pitch_of, planes_bytes
from argand.gemm.question import GemmSizes, Question
from argand.gemm.sm80.slices import partial_bytes
from argand.gemm.workspace import (
    MAX_WORKSPACE,
    SLICES_WORKSPACE,
    absmax_bytes,
    aligned,
    slices_pitch,
)


def workspace_of(choice: GemmChoice, question: Question) -> int:
    """Return the bytes within which a choice can be launched, at most some bytes a line too many.

    They are planes, slices of k, scales of rows, what the absmax kernel may find, and accumulators
    that spill beside a C. Partial tiles of stream-K take what the question allows beyond.
    """
    return _bytes_of(choice, question._replace(precision=choice.computed_at(question.precision)))


def _bytes_of(choice: GemmChoice, question: Question) -> int:
    """Return the workspace of a choice; the question has the precision that it computes at."""
    sizes = question.sizes
    if choice.wgmma is not None:
        packed = _packed_bytes(choice, question)
        if choice.split_k_slices > 1:
            return packed + slices_bytes(choice, sizes)
        beside = question.adds or sizes.power
        spills = beside and choice.wgmma.spills_accumulators(question.precision, sizes.k)
        return packed + spills * 8 * sizes.batch * sizes.m * sizes.n
    if choice.fma is not None:
        return 0
    tile = choice.mma
    partials = partial_bytes(tile) * sizes.tiles(tile.block_m, tile.block_n) if tile else 0
    return partials + absmax_bytes(question.precision, sizes.batch, sizes.m, sizes.n)


def partials_capacity(choice: GemmChoice, question: Question) -> int:
    """Return the bytes that a choice of the wgmma family may take besides its planes.

    The question has the precision that the choice computes at.
    """
    assert choice.wgmma is not None
    both = choice.wgmma.storage == "planar"  # Y is in planes with every storage of X
    packed = both or choice.swapped, both or not choice.swapped
    found = MAX_WORKSPACE * _operand_bytes(question)
    found -= sum(x for x, packs in zip(_planes_of(question), packed, strict=True) if packs)
    if question.allowed is None:
        return found
    return min(found, question.allowed - _bytes_of(choice, question))


def slices_capacity(choice: GemmChoice, question: Question) -> int:
    """Return the bytes that the results of split-K slices may take."""
    least = int(SLICES_WORKSPACE * _operand_bytes(question))
    return max(least, partials_capacity(replace(choice, split_k_slices=1), question))


def slices_bytes(choice: GemmChoice, sizes: GemmSizes) -> int:
    """Return the bytes of the results of all split-K slices."""
    rows, columns = (sizes.n, sizes.m) if choice.swapped else (sizes.m, sizes.n)
    numbers = sizes.batch * rows * slices_pitch(columns)
    return 8 * choice.split_k_slices * numbers


def _packed_bytes(choice: GemmChoice, question: Question) -> int:
    """Return the bytes of the planes that a choice packs, with their descale factors."""
    sizes, plan = question.sizes, choice.wgmma
    assert plan is not None
    precision = question.precision
    operands = [(sizes.m, question.a), (sizes.n, question.b)]
    (rows, x), (columns, y) = reversed(operands) if choice.swapped else operands
    found = 0
    for lines, operand, packs in (
        (rows, x, plan.storage == "planar"),
        (columns, y, not plan.conjugate_y),  # else its planes are those of X
    ):
        batches = sizes.batch if operand.batched else 1
        if operand.packed and precision.scaled:
            found += 8 * batches * lines  # factors of 1, where those that are packed have none
        elif packs and not operand.packed:
            found += aligned(planes_bytes(precision, lines, sizes.k, batches))
            # Factors that scale results, and what the absmax kernel may find.
            found += aligned(8 * batches * lines) + 4 * batches * lines if precision.scaled else 0
    return found


def _numbers(question: Question) -> tuple[int, int]:
    """Return the complex numbers of A and of B, k rounded up to the pitch."""
    sizes = question.sizes
    lines = (sizes.m, question.a), (sizes.n, question.b)
    a, b = ((sizes.batch if x.batched else 1) * rows * pitch_of(sizes.k) for rows, x in lines)
    return a, b


def _operand_bytes(question: Question) -> int:
    """Return the bytes of both operands as they are given: complex64, 16-bit pairs or planes."""
    planar = question.precision.planar_bytes
    items = (planar if x.packed else 4 if x.half else 8 for x in (question.a, question.b))
    return sum(numbers * item for numbers, item in zip(_numbers(question), items, strict=True))


def _planes_of(question: Question) -> tuple[int, int]:
    """Return the bytes of the planes of A and of B, 0 for an operand that is packed already."""
    (a, b), item = _numbers(question), question.precision.planar_bytes
    return a * item * (not question.a.packed), b * item * (not question.b.packed)
