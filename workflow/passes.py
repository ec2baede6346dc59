"""The passes of a circuit over a state, as records hold them and bounds count them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from argand import CircuitPlan

if TYPE_CHECKING:  # benchmarks count passes where no HDF5 is installed
    from workflow.data import Staged

Array = npt.NDArray[Any]
_DECIMALS = 9
"""Entries that differ by less are equal: fusing gates in another order rounds them otherwise."""
_PASSES = re.compile(r"(?P<count>\d+)x(?P<width>\d+)(n(?P<terms>\d+)r(?P<times>\d+))?")


class Applied(NamedTuple):
    """A matrix that is applied to a state: a gate's, or that of gates fused to a pass.

    Attributes:
        width: qubits.
        terms: most entries of a row that are not 0. A product with 0 rounds nothing.
        times: how often the circuit applies this matrix in all, on whichever qubits.
    """

    width: int
    terms: int
    times: int


def applied_matrices(matrices: Sequence[Array], widths: Sequence[int]) -> list[Applied]:
    """Return the operation that each matrix (2^w, 2^w) applies.

    A pass of ``widths`` may have a smaller matrix.
    """
    keys, terms = [b""] * len(matrices), [0] * len(matrices)
    by_size: dict[int, list[int]] = {}
    for number, matrix in enumerate(matrices):
        by_size.setdefault(len(matrix), []).append(number)
    for numbers in by_size.values():  # together: a circuit has thousands of small matrices
        found = np.array([matrices[number] for number in numbers])
        rounded = np.round(found, _DECIMALS) + 0.0
        most = np.count_nonzero(found, axis=2).max(axis=1)
        for number, matrix, count in zip(numbers, rounded, most, strict=True):
            keys[number], terms[number] = matrix.tobytes(), int(count)
    times = Counter(keys)
    return [Applied(*one) for one in zip(widths, terms, map(times.__getitem__, keys), strict=True)]


def described(matrices: Sequence[Array], widths: Sequence[int], reads: int | None = None) -> str:
    """Return the passes in words that a file can hold, for the matrix and the qubits of each.

    ``12x4n2r3`` are 12 passes on 4 qubits whose rows have at most 2 entries that are not 0, and
    whose matrices are each applied 3 times in all. Where they share ``reads`` of the state, fewer
    than there are, ``4: 12x4n2r3`` begins with that.
    """
    before = "" if reads in (None, len(widths)) else f"{reads}: "
    groups = Counter(applied_matrices(matrices, widths))
    return before + " ".join(
        f"{count}x{one.width}n{one.terms}r{one.times}" for one, count in sorted(groups.items())
    )


def plan_described(plan: CircuitPlan) -> str:
    """Return the passes of a plan as `described` has them."""
    widths = [len(one.qubits) for one in plan.passes]
    return described([form.matrix for form in plan.forms], widths, len(plan.groups))


def passes_in(text: str) -> list[Applied]:
    """Return the passes that `described` wrote, by width.

    For a text without entries and repeats, ``12x4``, the worst is assumed: full matrices, all of
    them equal. Raises ValueError for other text.
    """
    found = []
    for part in text.rpartition(":")[2].split():
        numbers = _PASSES.fullmatch(part)
        if numbers is None:
            raise ValueError(f"passes must be like 12x4n2r3, got {part!r}")
        count, width = int(numbers["count"]), int(numbers["width"])
        terms, times = int(numbers["terms"] or 2**width), int(numbers["times"] or count)
        found += [Applied(width, terms, times)] * count
    return found


def reads_in(text: str) -> int:
    """Return how often the state is read by the passes that `described` wrote."""
    reads = text.partition(":")[0] if ":" in text else ""
    return int(reads) if reads.isdigit() else len(passes_in(text))


def in_words(plan_words: str) -> str:
    """Return `described` in words: how many passes, and on how many qubits at most."""
    widths, reads = [one.width for one in passes_in(plan_words)], reads_in(plan_words)
    passes = "pass" if reads == 1 else "passes"
    shared = f" of {len(widths)} fused gates" if reads < len(widths) else ""
    return f"{reads} {passes}{shared} of up to {max(widths, default=0)} qubits"


def with_passes(staged: Staged, plan_words: str) -> Staged:
    """Return the operands of a circuit with what an implementation fused its gates to.

    ``passes`` is (passes, 3): width, terms and times of each (`Applied`). ``reads`` is how often
    the state is read for them.
    """
    passes, reads = np.array(passes_in(plan_words), np.int64), np.array([reads_in(plan_words)])
    return replace(
        staged,
        operands={**staged.operands, "passes": passes, "reads": reads},
        axes={**staged.axes, "passes": ("pass", "measure"), "reads": ("count",)},
    )


def moved_widths(operands: Mapping[str, Array]) -> tuple[Array, int]:
    """Return the widths of what was applied in turn, and how often the state was moved for it.

    The operands have ``passes`` and ``reads`` where gates were fused (`with_passes`).
    """
    passes = operands.get("passes")
    if passes is None:
        return np.asarray(operands["widths"], np.int64), len(operands["widths"])
    return np.asarray(passes[:, 0], np.int64), int(operands["reads"][0])
