"""Compiles what a sweep runs before anything is timed, by several processes."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext, suppress
from functools import partial
from itertools import chain
from multiprocessing import get_context
from pathlib import Path

from argand import PRECISIONS
from argand.device import available_cores
from argand.runtime.compile.compiler import compile_all
from argand.runtime.compile.loading import Compilation, NotLaunchedError, compiling_only
from argand.runtime.plan import PlanError

from benchmarks.harness.measuring import chosen_device, release
from benchmarks.peers import Candidate
from benchmarks.sweep.draws import drawn

Part = tuple[int, int | None, int]
"""The arguments of the slice of a sweep's cases that one card takes."""
WHOLE: Part = (0, None, 1)
_COMPILERS = 12
"""Processes that compile: each has a context and one case in the device's memory."""


def with_plans(number: int, ours: Sequence[Candidate], every: int) -> int | None:
    """Return the place among ``ours`` of the one whose plans are all timed, None where none is.

    Each ``every``-th case has one, of another precision at each such case; 0 is never. Products by
    exact integers have no candidate plans, so their turn would be lost.
    """
    if not every or number % every:
        return None
    places = [place for place, one in enumerate(ours) if one.precision.name in PRECISIONS]
    return places[number // every % len(places)] if places else None


def compile_calls(
    what: str, cases: int, seed: int, sizes: Path | None = None, part: Part = WHOLE
) -> None:
    """Bring all kernels of ours into the cache: by their sources, or by a call of each."""
    device = chosen_device("cuda")
    kernels = [case.kernels(device) for case in drawn(what, cases, seed, sizes)[slice(*part)]]
    if None not in kernels:
        compile_all(chain(*filter(None, kernels)))
        return
    count = min(_COMPILERS, available_cores(), len(kernels))
    # A fork of a process that has a context cannot use the device.
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        shares = [(what, cases, seed, sizes, part, first, count) for first in range(count)]
        list(pool.map(_call, *zip(*shares, strict=True)))


def _call(
    what: str, cases: int, seed: int, sizes: Path | None, part: Part, first: int, step: int
) -> None:
    device = chosen_device("cuda")
    for case in drawn(what, cases, seed, sizes)[slice(*part)][first::step]:
        operands, ours = case.operands(device, 0), case.ours(device)
        for one in ours:
            with suppress(Exception):  # what fails says why where it is measured
                one.compute(*one.prepare(*operands))
        del operands
        release(device)


def compile_plans(
    what: str, cases: int, seed: int, sizes: Path | None = None, part: Part = WHOLE, *, every: int
) -> Compilation:
    """Compile the candidate plans of every case that has them, each kernel once, on all cores."""
    device = chosen_device("cuda")
    with compiling_only() as found:
        for number, case in list(enumerate(drawn(what, cases, seed, sizes)))[slice(*part)]:
            ours = case.ours(device)
            taken = with_plans(number, ours, every)
            if taken is None:
                continue
            inputs = ours[taken].prepare(*case.operands(device, 0))
            call = partial(ours[taken].compute, *inputs)
            for plan in (None, *case.plans(ours[taken], inputs)):
                taking = nullcontext() if plan is None else case.with_plan(plan)
                with taking, suppress(NotLaunchedError, PlanError):
                    call()
            del inputs, call
            release(device)
    return found
