"""The choice among candidate plans of a product on a GPU, by their estimated times.

`choose` lists the candidates (`candidates`), drops those that take more workspace than is allowed
(`choice_workspace`), and takes the one with the least estimated time. Each family has a model of
time (`heuristics` of `sm90`, `sm80` and `fma`). A tuned plan comes first (`tuned.chosen`). Nothing
here needs a GPU or CuPy.
"""

from __future__ import annotations

from dataclasses import replace
from operator import itemgetter

from argand.device import HOPPER, Arch, arch_for
from argand.gemm.candidates import candidates, candidates_in_tf32
from argand.gemm.choice import GemmChoice
from argand.gemm.choice_workspace import workspace_of
from argand.gemm.families import Family
from argand.gemm.fma import heuristics as fma_heuristics
from argand.gemm.in_tf32 import FROM_WGMMA, SAME_TILE, tf32_margin
from argand.gemm.question import Question
from argand.gemm.sm80 import heuristics as sm80_heuristics
from argand.gemm.sm80.heuristics import plan_mma
from argand.gemm.sm90 import heuristics as sm90_heuristics
from argand.runtime.memory.workspace_limit import workspace_error
from argand.runtime.plan import WGMMA_TARGET, PlanError, require_precision

ADVICE = "give complex64 operands and leave kernels open: mma.sync reads such operands in place"
"""The end of an error's message: how to have a product that needs no workspace."""


def choose(
    question: Question,
    arch: Arch,
    sm_count: int,
    family: Family | None = None,
    *,
    memory: float = 1.0,
) -> GemmChoice:
    """Return the candidate of the least estimated time on ``sm_count`` multiprocessors.

    ``memory`` is the card's `Device.relative_memory`. ``family`` restricts the candidates, to those
    of the precision itself. Raises PlanError where there is none, and for a precision that the
    architecture lacks; WorkspaceError where none takes as little as the question allows. Where
    kernels of tf32 may compute a product of 16 bits, those of 16 bits are taken where they are
    clearly faster.
    """
    precision = question.precision
    require_precision(precision, arch)
    own = [x for x in candidates(question, arch, sm_count) if family in (None, x.family)]
    in_tf32 = [] if family else candidates_in_tf32(question, arch, sm_count)
    if not own:
        raise PlanError(
            f"no {family or 'kernel'} for {precision.name} on {arch.name} with packed operands, "
            f"pairs of 16 bits or 16-bit results: those need wgmma on {WGMMA_TARGET}; mma.sync "
            "takes complex64 and gives it, on every card"
        )

    own, in_tf32 = _allowed(question, own, in_tf32)

    def timed(choices: list[GemmChoice]) -> list[_Timed]:
        return [(estimate(x, question, sm_count, memory), x) for x in choices]

    if not in_tf32:
        return min(timed(own), key=_seconds)[1]
    fastest_in_tf32 = min(timed(in_tf32), key=_seconds)
    return _fastest_beside_tf32(timed(own), fastest_in_tf32, question, sm_count, memory)


_Timed = tuple[float, GemmChoice]
"""Estimated seconds of a candidate, and the candidate."""
_seconds = itemgetter(0)


def _fastest_beside_tf32(
    own: list[_Timed], in_tf32: _Timed, question: Question, sm_count: int, memory: float
) -> GemmChoice:
    """Return the fastest plan of 16 bits that is clearly faster than the one in tf32, else that."""
    precision, k = question.precision, question.sizes.k
    other, alike = in_tf32, replace(in_tf32[1], in_tf32=False)
    one_term = precision.terms == 1 and not (precision.scaled or question.sizes.triangle)
    of_wgmma = 0.0
    if one_term and alike.family == "mma.sync":
        other = _same_tile_in_16_bits(in_tf32, question, sm_count, memory)
        alike = other[1]
    elif one_term and alike.family == "wgmma":
        of_wgmma = next((seconds for seconds, choice in own if choice == alike), other[0])

    def clearly_faster(one: _Timed) -> bool:
        seconds, choice = one
        if choice.family == "mma.sync" and 0 < of_wgmma < FROM_WGMMA * seconds:
            return False
        packs = choice.wgmma is not None and choice.wgmma.storage == "planar"
        margin = tf32_margin(
            precision, k, family=choice.family, tf32_family=alike.family, packs=packs,
            same_plan=choice == alike, seconds=seconds,
        )  # fmt: skip
        return margin * seconds < other[0]

    return min(filter(clearly_faster, own), key=_seconds, default=other)[1]


def _same_tile_in_16_bits(
    in_tf32: _Timed, question: Question, sm_count: int, memory: float
) -> _Timed:
    """Return the choice that takes the place of a plan of mma.sync in tf32, after its seconds.

    That is the same tile in as many slices at bf16, which reads the same numbers and has half as
    many MMAs, unless it is illegal there or its estimate is beyond `SAME_TILE`.
    """
    least, choice = in_tf32
    asked = question._replace(precision=choice.computed_at(question.precision))
    tile = plan_mma(asked, arch_for(HOPPER), sm_count, choice.mma)
    alike = replace(choice, in_tf32=False, mma=replace(tile, whole_k=0, copies_between=False))
    try:
        seconds = estimate(alike, question, sm_count, memory)
    except PlanError:
        return in_tf32
    return (seconds, alike) if seconds < SAME_TILE * least else in_tf32


def _allowed(question: Question, *candidates: list[GemmChoice]) -> tuple[list[GemmChoice], ...]:
    """Return the candidates that take no more workspace than the question allows."""
    allowed = question.allowed
    if allowed is None:
        return candidates
    needed = [[(workspace_of(x, question), x) for x in some] for some in candidates]
    least = min(nbytes for some in needed for nbytes, _ in some)
    if least > allowed:
        sizes = question.sizes
        raise workspace_error(
            f"a product {sizes.m}x{sizes.n}x{sizes.k} at {question.precision.name}",
            least, allowed, ADVICE,
        )  # fmt: skip
    return tuple([x for nbytes, x in some if nbytes <= allowed] for some in needed)


def estimate(choice: GemmChoice, question: Question, sm_count: int, memory: float = 1.0) -> float:
    """Return a candidate's estimated seconds on ``sm_count`` multiprocessors, to rank it by.

    ``memory`` is the card's `Device.relative_memory`.
    """
    question = question._replace(precision=choice.computed_at(question.precision))
    if choice.wgmma is not None:
        return sm90_heuristics.estimated_seconds(choice, question, sm_count, memory)
    precision, sizes, a, b, *_ = question
    if choice.fma is not None:
        strided = (not a.k_major and sizes.m > 1) + (not b.k_major and sizes.n > 1)
        return 1e-6 * fma_heuristics.estimated_microseconds(
            choice.fma, precision, sm_count, sizes, memory, strided
        )
    plan = plan_mma(question, arch_for(HOPPER), sm_count, choice.mma)  # for any address
    return 1e-6 * sm80_heuristics.estimated_microseconds(plan, precision, sm_count, sizes, memory)
