"""Small ragged softmaxes for compute-sanitizer: ``python -m benchmarks.sanitize.softmax fp32``.

Every kind of plan, by a plan override, on rows that begin anywhere; ``rounded``: values rounded to
each precision, by the plans that calls take. Each array is an allocation of its own, so that an
access beyond it is one beyond what is allocated. Every result is verified against its bound. The
exit status is 1 where one is outside. ``--watched`` compiles rings so that racecheck sees their
order.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from argand import PRECISIONS, softmax
from argand.device import gpu
from argand.runtime.compile.compiler import compile_all
from argand.softmax.candidates import candidates
from argand.softmax.plan import RowPlan, SoftmaxForm
from argand.softmax.problem import SOFTMAX_PRECISIONS
from argand.softmax.source import softmax_source

from benchmarks.harness.samples import on_host
from benchmarks.sanitize.verdicts import exit_status
from benchmarks.softmax.plans import PlannedCase, operands, right, run
from workflow.accuracy.references import softmax_reference
from workflow.accuracy.softmax_accuracy import assess_softmax

_COLUMNS = (33, 101, 1001, 4096, 20_001, 70_000, 140_001)
_ROWS = 3
_ROUNDED_COLUMNS = (1, 33, 1000, 40_001)
_SEED = 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run all calls of one kind."""
    found = argparse.ArgumentParser(description=__doc__)
    found.add_argument("kind", choices=("fp32", "fp16", "bf16", "complex64", "rounded"))
    found.add_argument("--watched", action="store_true", help="every lane arrives for itself")
    given = found.parse_args(argv)
    import cupy

    cupy.cuda.set_allocator(None)
    rounded = given.kind == "rounded"
    return exit_status(
        every_rounding(cupy) if rounded else every_plan(given.kind, arrive_per_lane=given.watched)
    )


def every_plan(kind: str, *, arrive_per_lane: bool) -> Iterator[tuple[str, str]]:
    """Yield each kind of plan: its name, and what is wrong with its result."""
    from argand.softmax.gpu import PLAN_OVERRIDE

    cases = {
        case: [
            (form, replace(plan, arrive_per_lane=arrive_per_lane))
            for form, plan in _different(case)
        ]
        for case in (PlannedCase(_ROWS, columns, kind) for columns in _COLUMNS)
    }
    target = gpu(0).require_arch().target
    compile_all((softmax_source(*plan), target) for found in cases.values() for plan in found)
    for case, found in cases.items():
        x, out = operands(case)
        for form, plan in found:
            with PLAN_OVERRIDE.use((plan, form.vector)):
                run(case, x, out)
            good, worst = right(case, x, out)
            yield f"{case} {plan}", "" if good else f"{worst:.3g} times its bound"


def every_rounding(arrays: Any) -> Iterator[tuple[str, str]]:
    """Yield each precision's rounding of values; the same of arrays of NumPy and of CuPy."""
    rng = np.random.default_rng(_SEED)
    rows = (PRECISIONS[name] for name in SOFTMAX_PRECISIONS)
    for precision in (row for row in rows if not row.exact_operands):
        for columns in _ROUNDED_COLUMNS:
            x = rng.standard_normal((_ROWS, columns)).astype(precision.real_output)
            result = on_host(softmax(arrays.array(x), precision=precision))
            backend = "cpu" if arrays is np else "cuda"
            found = assess_softmax(softmax_reference(x), result, precision, backend=backend)
            yield f"{precision.name} {_ROWS}x{columns}", "" if found.verified else found.reason


def _different(case: PlannedCase) -> list[tuple[SoftmaxForm, RowPlan]]:
    """Return one plan of each kind: access, cluster, lanes or block, how rows are held."""
    arch = gpu(0).require_arch()
    found = {
        (
            form.vector, plan.cluster > 1, plan.row_threads > 32,
            plan.resident, plan.staged, plan.ring, plan.slab, plan.bulk,
        ): (form, plan)
        for form in case.forms
        for plan in candidates(form, arch, gpu(0).sm_count, case.columns)
    }  # fmt: skip
    return list(found.values())


if __name__ == "__main__":
    sys.exit(main())
