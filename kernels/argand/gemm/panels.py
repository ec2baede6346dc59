"""Panels in which a product is computed where the workspace is limited. Needs no GPU and no CuPy.

A panel is a product of its own, of some of the matrices of a batch, of some rows or some columns:
what it packs is all that lies in the workspace. An operand that is not cut is packed again for each
panel, or read in place.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from operator import itemgetter

from argand.device import Arch
from argand.gemm.choice_workspace import workspace_of
from argand.gemm.families import Family
from argand.gemm.heuristics import choose, estimate
from argand.gemm.question import GemmSizes, OperandTraits, Question
from argand.runtime.memory.workspace_limit import WorkspaceError

_UNIT = 64
"""The lines of a panel are a multiple of this number."""
_WORSE = 2
"""Times the least estimate from which on no smaller panels are candidates."""


@dataclass(frozen=True)
class Panels:
    """The products of a batch, the rows and the columns that are computed at a time, at most."""

    products: int
    rows: int
    columns: int

    @classmethod
    def whole(cls, sizes: GemmSizes) -> Panels:
        """Return the one panel of a product that is not cut."""
        return cls(sizes.batch, sizes.m, sizes.n)

    def largest(self, sizes: GemmSizes) -> GemmSizes:
        """Return the sizes of the largest panel; a triangle is one where its lines are not cut."""
        whole = (self.rows, self.columns) == (sizes.m, sizes.n)
        return replace(
            sizes, batch=self.products, m=self.rows, n=self.columns,
            triangle=sizes.triangle and whole,
        )  # fmt: skip

    def times(self, sizes: GemmSizes) -> float:
        """Return how many of the largest panel take the time of all panels."""
        rows, columns = -(-sizes.m // self.rows), -(-sizes.n // self.columns)
        found = -(-sizes.batch // self.products) * rows * columns
        return found * (1 + 1 / max(rows, columns)) / 2 if sizes.triangle else found

    def each(self, sizes: GemmSizes) -> Iterator[tuple[slice, slice, slice]]:
        """Yield the products, rows and columns of each panel.

        Those of a triangle cover it without what is above their last row's diagonal; panels of
        equal rows and columns are triangles.
        """
        for first in range(0, sizes.batch, self.products):
            products = slice(first, min(first + self.products, sizes.batch))
            for row in range(0, sizes.m, self.rows):
                for column in range(0, sizes.n, self.columns):
                    last, end = min(row + self.rows, sizes.m), min(column + self.columns, sizes.n)
                    if not sizes.triangle:
                        yield products, slice(row, last), slice(column, end)
                    elif column < last:
                        yield products, slice(max(row, column), last), slice(column, min(end, last))


def panels_by_time(
    question: Question, arch: Arch, sm_count: int, family: Family | None, memory: float
) -> Iterator[Panels]:
    """Yield panels whose workspace is within the question's limit, of the least estimate first.

    Arguments are those of `choose`. Raises WorkspaceError where no panel's is.
    """
    sizes = question.sizes
    fastest = choose(question._replace(allowed=None), arch, sm_count, family, memory=memory)
    assert question.allowed is not None
    if workspace_of(fastest, question) <= question.allowed:
        yield Panels.whole(sizes)
    timed: list[tuple[float, Panels]] = []
    refused: list[WorkspaceError] = []
    best = math.inf
    for cuts in _cuts(question):
        for panels in cuts:
            asked = question._replace(sizes=panels.largest(sizes))
            try:
                choice = choose(asked, arch, sm_count, family, memory=memory)
            except WorkspaceError as error:
                refused.append(error)
                continue
            seconds = panels.times(sizes) * estimate(choice, asked, sm_count, memory)
            timed.append((seconds, panels))
            best = min(best, seconds)
            # Smaller panels by wgmma, which needs more workspace than others, take longer still.
            if choice.wgmma is not None and seconds > _WORSE * best:
                break
    if not timed:
        raise min(refused, key=lambda x: x.needed)
    yield from (panels for _, panels in sorted(timed, key=itemgetter(0)))


def _cuts(question: Question) -> Iterator[Iterable[Panels]]:
    """Yield ways to cut a product, each of panels that are ever smaller, the whole first.

    Batches are cut first, which packs nothing twice. A packed operand is cut nowhere: of a batch of
    them panels have all products.
    """
    sizes, a, b = question.sizes, question.a, question.b
    whole = Panels.whole(sizes)
    batches = [sizes.batch]
    while batches[-1] > 1 and not any(x.packed and x.batched for x in (a, b)):
        batches.append(-(-batches[-1] // 2))
    yield [replace(whole, products=count) for count in batches]
    # Rows or columns alone: then the other operand is read in place, or packed again for each.
    one = replace(whole, products=batches[-1])
    yield (replace(one, columns=step) for step in _halves(sizes.n, b))
    yield (replace(one, rows=step) for step in _halves(sizes.m, a))
    if not (a.packed or b.packed):
        yield _squares(one)


def _squares(panels: Panels) -> Iterator[Panels]:
    """Yield panels with their rows or columns halved, whichever are more."""
    while max(panels.rows, panels.columns) > _UNIT:
        if panels.rows >= panels.columns:
            panels = replace(panels, rows=_half(panels.rows))
        else:
            panels = replace(panels, columns=_half(panels.columns))
        yield panels


def _halves(lines: int, x: OperandTraits) -> Iterator[int]:
    """Yield the lines of ever smaller panels of an operand."""
    while lines > _UNIT and not x.packed:
        lines = _half(lines)
        yield lines


def _half(lines: int) -> int:
    """Return half of them, in whole units."""
    return -(-lines // 2 // _UNIT) * _UNIT
