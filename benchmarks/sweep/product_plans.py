"""Candidate plans of a drawn product, whose times are compared with that of the chosen one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from argand.device import Arch, gpu
from argand.gemm.candidates import candidates, candidates_in_tf32
from argand.gemm.choice import GemmChoice
from argand.gemm.heuristics import estimate
from argand.gemm.question import GemmSizes, Question
from argand.gemm.sm80.heuristics import cut_tiles
from argand.gemm.tuned import trial
from argand.precision import Precision
from argand.runtime.compile.loading import NotLaunchedError
from argand.runtime.plan import PlanError

WITHIN = 1.5
"""Candidates are timed whose estimate is within this of the least: estimates are 5 to 11% off in
the standard deviation, so what is left out is faster once in thousands."""


def near_plans(call: Callable[[], object]) -> list[GemmChoice]:
    """Return the candidates of a product that ``call`` computes, the least estimate first."""
    import cupy

    with trial(None) as asked, suppress(NotLaunchedError):
        call()
    assert asked.question is not None
    return near(asked.question, cupy.cuda.Device().id)


def near(question: Question, device: int) -> list[GemmChoice]:
    """Return the candidates `WITHIN` the least estimate on a device, by their estimates."""
    row, sizes = question.precision, question.sizes
    card = gpu(device)
    arch, memory = card.require_arch(), card.relative_memory
    posed = question, arch, card.sm_count
    estimates: dict[GemmChoice, float] = {}
    for choice in (*candidates(*posed), *candidates_in_tf32(*posed)):
        for one in _with_tiles(choice, row, arch, card.sm_count, sizes):
            with suppress(PlanError):  # a tile that is not legal for these operands
                estimates[one] = estimate(one, question, card.sm_count, memory)
    limit = WITHIN * min(estimates.values())
    return sorted((x for x in estimates if estimates[x] <= limit), key=estimates.__getitem__)


def _with_tiles(
    choice: GemmChoice, precision: Precision, arch: Arch, sm_count: int, sizes: GemmSizes
) -> list[GemmChoice]:
    """Return the choice, of mma.sync with each of its tiles and numbers of slices."""
    if choice.family != "mma.sync":
        return [choice]
    tiles = cut_tiles(choice.computed_at(precision), arch, sizes, sm_count)
    return [replace(choice, mma=tile) for tile in tiles]
