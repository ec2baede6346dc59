"""The number of blocks that share a direction's channels and pairs of panels. Needs no GPU."""

from __future__ import annotations

from functools import lru_cache

from argand.image.few_antennas_plan import FewAntennasPlan
from argand.image.heuristics import Plan
from argand.image.plan import MmaImagePlan, panels_of
from argand.image.problem import ImageProblem

_WAVES = 4
"""Most waves of blocks that splits make; of few antennas the fewest, where channels allow it."""
_START = 1.0
"""Time in which a block begins and ends, in those of a pair of panels."""
_ALONE = 0.7
"""Time of a block that has its multiprocessor for itself, in that of two which share it."""


def blocks_of_one_split(problem: ImageProblem, plan: Plan) -> int:
    """Return the blocks that all directions and matrices take."""
    return -(-problem.directions // plan.directions) * -(-problem.matrices // plan.images)


def splits_of(problem: ImageProblem, plan: Plan, sm_count: int) -> int:
    """Return how many blocks share the work of a direction, whose powers a last kernel adds.

    Few antennas are split by channels alone.
    """
    blocks = blocks_of_one_split(problem, plan)
    most = -(-_WAVES * plan.blocks * sm_count // blocks)
    if isinstance(plan, FewAntennasPlan):
        return min(problem.channels, max(1, most))
    panels = panels_of(problem.antennas)
    pairs = problem.channels * panels * (panels + 1) // 2
    return _fastest(plan, pairs, blocks, min(pairs, max(1, most)), sm_count)


@lru_cache(maxsize=256)
def _fastest(plan: MmaImagePlan, pairs: int, blocks: int, most: int, sm_count: int) -> int:
    """Return the splits of least estimated time, the fewest of them."""

    def time(splits: int) -> float:
        full, others = divmod(-(-blocks * splits // sm_count), plan.blocks)
        return (full + (_ALONE if others else 0)) * (-(-pairs // splits) + _START)

    return min(range(1, most + 1), key=time)
