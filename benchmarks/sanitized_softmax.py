"""Small ragged softmaxes for compute-sanitizer: ``python -m benchmarks.sanitized_softmax fp32``.

Every kind of plan, forced in turn, on rows that begin anywhere. Each array is an allocation of its
own, so that an access beyond it is one beyond what is allocated. Every result is held to its bound.
The exit status is 1 where one is outside.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from argand.device import gpu
from argand.softmax_choice import candidates
from argand.softmax_plan import SoftmaxForm, SoftmaxPlan

from benchmarks.softmax_plans import Case, operands, right, run

_COLUMNS = (33, 1001, 4096, 20_001, 70_000, 300_001)
_ROWS = 3


def main(argv: Sequence[str] | None = None) -> int:
    """Run all plans of one kind."""
    import cupy
    from argand.cuda_softmax import forced

    found = argparse.ArgumentParser(description=__doc__)
    found.add_argument("kind", choices=("fp32", "fp16", "bf16", "complex64"))
    kind = found.parse_args(argv).kind
    cupy.cuda.set_allocator(None)
    wrong = calls = 0
    for columns in _COLUMNS:
        case = Case(kind, _ROWS, columns)
        x, out = operands(case)
        for form, plan in _different(case):
            with forced.to((plan, form.vector)):
                run(case, x, out)
            good, worst = right(case, x, out)
            calls += 1
            if not good:
                wrong += 1
                print(f"{case} {plan}: {worst:.3g} times its bound")
    print(f"{calls} calls, {wrong} wrong")
    return int(wrong > 0)


def _different(case: Case) -> list[tuple[SoftmaxForm, SoftmaxPlan]]:
    """One plan of each way: access, cluster, lanes or block, resident, staged, streamed, ring."""
    arch = gpu(0).require_arch()
    found = {
        (
            form.vector, plan.cluster > 1, plan.row_threads > 32,
            plan.resident, plan.staged, plan.ring,
        ): (form, plan)
        for form in case.forms
        for plan in candidates(form, arch, case.columns)
    }  # fmt: skip
    return list(found.values())


if __name__ == "__main__":
    sys.exit(main())
