"""Compiles what a sweep runs before anything is timed, by several processes."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import get_context

from argand.device import available_cores

from benchmarks.harness.measuring import chosen_device, release
from benchmarks.sweep.draws import drawn

_COMPILERS = 12
"""Processes that compile: each has a context and one case in the device's memory."""


def with_plans(number: int, precisions: int, every: int) -> int | None:
    """Return the place of the precision whose plans are all timed, None where none is.

    Each ``every``-th case has one, another at each such case; 0 is never.
    """
    return None if not every or number % every else number // every % precisions


def compile_all(what: str, cases: int, seed: int, plans: int) -> None:
    """Call everything of ours once, so that its kernels are in the cache."""
    count = min(_COMPILERS, available_cores(), cases)
    # A fork of a process that has a context cannot use the device.
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        shares = [(what, cases, seed, plans, first, count) for first in range(count)]
        list(pool.map(_compile, *zip(*shares, strict=True)))


def _compile(what: str, cases: int, seed: int, plans: int, first: int, step: int) -> None:
    device = chosen_device("cuda")
    for number, case in list(enumerate(drawn(what, cases, seed)))[first::step]:
        operands, ours = case.operands(device, 0), case.ours(device)
        for one in ours:
            with suppress(Exception):  # what fails says why where it is measured
                one.compute(*one.prepare(*operands))
        taken = with_plans(number, len(ours), plans)
        if taken is not None:
            with suppress(Exception):
                case.plan_times(ours[taken].precision)
        del operands
        release(device)
