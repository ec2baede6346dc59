"""Our transforms as candidates, by the plan of a call or by our own plan in place of cuFFT."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from argand import Device, Precision, dft
from argand.device import gpu
from argand.dft.heuristics import own_plan
from argand.dft.legality import wide_fits
from argand.dft.method import method_for
from argand.dft.plan import Plan, dft_source
from argand.dft.plan_words import plan_words
from argand.dft.problem import DftProblem
from argand.dft.tuned import chosen as chosen_plan
from argand.runtime.compile.compiler import compile_all

from benchmarks.dft.cases import Case
from benchmarks.harness.measuring import array_module
from benchmarks.peers import Candidate, CannotRunError
from workflow.spectra.transforms import algorithm


def compile_ours(cases: Sequence[Case], precisions: Sequence[Precision], ours: bool) -> None:
    """Compile all our kernels on all CPU cores, before anything is measured."""
    arch = gpu(0).require_arch()
    jobs = []
    for case, precision in product(cases, precisions):
        if precision.exact_operands:
            continue
        plan = running(case, precision, gpu(0), ours)
        if plan is not None:
            jobs.append((dft_source(plan, precision), arch.target))
    compile_all(jobs)


def running(case: Case, precision: Precision, device: Device, ours: bool) -> Plan | None:
    """Return the plan of a case, None where cuFFT computes it."""
    if not ours:
        problem = DftProblem(case.batch, case.length, False, "backward", precision)
        return chosen_plan(problem, device).plan
    method = method_for(case.length)
    wide = wide_fits(method.kind, case.length, case.length)
    return own_plan(method, precision, device.require_arch(), wide=wide)


def ran(device: Device, case: Case, ours: bool, candidate: Candidate) -> str:
    """Return the plan that decides our result's bound on a GPU, in words; empty for a library."""
    precision = candidate.precision
    if candidate.name != "argand" or precision.exact_operands or device.backend == "cpu":
        return ""
    return plan_words(running(case, precision, device, ours))


def candidate(precision: Precision, device: Device, case: Case, *, ours: bool = False) -> Candidate:
    """Return `argand.dft` as a candidate; its output is filled with NaN before."""
    arrays = array_module(device)
    context: Any = partial(_own_plan, precision, case) if ours else nullcontext

    def prepare(x: Any) -> tuple[Any, ...]:
        given = x.astype(precision.output)
        return given, arrays.full(given.shape, np.nan, precision.output)

    def compute(x: Any, out: Any) -> Any:
        with context():
            return dft(x, precision=precision, out=out)

    def chosen(x: Any, out: Any) -> str:
        if device.backend == "cpu":
            return ""
        from argand.dft.gpu import plan_of

        with context():
            return str(plan_of(x, precision=precision, out=out))

    method = ""
    if device.backend == "cpu":
        method, _ = algorithm(case.batch, case.length, precision, device)
    return Candidate(
        "argand", precision, method, prepare, compute, chosen=chosen,
        input=precision.output, output=precision.output,
    )  # fmt: skip


@contextmanager
def _own_plan(precision: Precision, case: Case) -> Iterator[None]:
    """Run our own kernel also where cuFFT is faster. Raises CannotRunError without one."""
    from argand.dft.gpu import PLAN_OVERRIDE

    plan = running(case, precision, gpu(0), ours=True)
    if plan is None:
        raise CannotRunError("no kernel of ours has this length")
    with PLAN_OVERRIDE.use(plan):
        yield
