"""Small ragged transforms for compute-sanitizer: ``python -m benchmarks.sanitize.dft 3xfp16``.

Every kind of plan, by a plan override. Each array is an allocation of its own, so that an access
beyond it is one beyond what is allocated. Every result is verified against its bound. The exit
status is 1 where one is outside.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields

import numpy as np
from argand import PRECISIONS, Precision, dft
from argand.device import gpu
from argand.dft.butterfly import ButterflyPlan
from argand.dft.candidates import candidates, ordered
from argand.dft.legality import check_dft_plan, wide_fits
from argand.dft.method import Method, bluestein, dense, method_for, product, rader
from argand.dft.mixed_radix import MixedRadixPlan
from argand.dft.plan import Plan, dft_source
from argand.dft.three_kernel import ThreeKernelPlan
from argand.dft.two_pass import TwoPassPlan
from argand.runtime.compile.compiler import compile_all

from workflow.accuracy.transform_bounds import plan_bound

_METHODS = (
    dense(7), dense(24), dense(67), dense(251), dense(509), product(6, 5), product(24, 16),
    rader(31, product(6, 5)), rader(113, product(16, 7)), rader(397, product(44, 9)),
    bluestein(20, product(8, 5)), bluestein(300, product(30, 20)), method_for(16_384),
    method_for(32_768),
)  # fmt: skip
"""Small ones: a tool checks every access."""
_PASSES = (
    ThreeKernelPlan(300, (4, 8), (4, 8), 16, 2, 1, 8),
    ThreeKernelPlan(1000, (4, 4), (4, 8, 4), 32, 3, 2, 4),
    MixedRadixPlan((9, 7), 2, 1),
    MixedRadixPlan((4, 6, 5), 3, 2),
    MixedRadixPlan((2, 3, 4, 5), 2, 1),
    TwoPassPlan(912, (4, 6), (2, 19), (16, 32), (2, 3)),
    TwoPassPlan(3657, (3, 53), (1, 23), (32, 16), (2, 3)),
)  # fmt: skip
"""Plans of several stages or kernels; those that are worth measuring are longer."""
_ROWS = 5
_SIZES = ("length", "n1", "n2", "groups", "radices", "columns", "lines", "widths", "block_warps")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the plans of one precision."""
    found = argparse.ArgumentParser(description=__doc__)
    ours = [name for name, row in PRECISIONS.items() if not row.exact_operands]
    found.add_argument("precision", choices=ours)
    found.add_argument(
        "--kinds", type=lambda text: text.split(","), help="of plans, separated by commas; all"
    )
    given = found.parse_args(argv)
    import cupy
    from argand.dft.gpu import PLAN_OVERRIDE

    precision = PRECISIONS[given.precision]
    plans = {
        method: [plan for plan in some if given.kinds is None or plan.kind in given.kinds]
        for method, some in _plans(precision).items()
    }
    target = gpu(0).require_arch().target
    compile_all((dft_source(plan, precision), target) for some in plans.values() for plan in some)
    cupy.cuda.set_allocator(None)
    rng = np.random.default_rng(1)
    wrong = calls = 0
    for method, some in plans.items():
        parts = rng.standard_normal((_ROWS, method.length, 2), dtype=np.float32)
        x = parts.view(np.complex64)[..., 0]
        exact = np.fft.fft(x.astype(complex))
        for plan in some:
            out = cupy.full(x.shape, np.nan, np.complex64)
            with PLAN_OVERRIDE.use(plan):
                dft(cupy.asarray(x), precision=precision, out=out)
            error = np.linalg.norm(out.get() - exact, axis=-1) / np.linalg.norm(exact, axis=-1)
            bound = plan_bound(plan, precision, method.length)
            calls += 1
            if not (error <= bound).all():
                wrong += 1
                print(f"{plan}: {error.max() / bound:.3g} times its bound")
    print(f"{calls} calls, {wrong} wrong")
    return int(wrong > 0)


def _plans(precision: Precision) -> dict[Method, list[Plan]]:
    """Return each method's best plan with copies of either width, and those with new members.

    Members count up to three.
    """
    arch = gpu(0).require_arch()
    seen: set[tuple[object, ...]] = set()
    found: dict[Method, list[Plan]] = {}
    for method in _METHODS:
        some = found[method] = []
        for wide in {False, wide_fits(method.kind, method.length, method.length)}:
            every = candidates(method, precision, arch, wide=wide)
            for index, plan in enumerate(ordered(every, precision)):
                new = _features(plan) - seen
                if new or index == 0:
                    seen |= new
                    some.append(plan)
    for plan in _PASSES:
        check_dft_plan(plan, precision, arch)
        found[plan.method if isinstance(plan, ThreeKernelPlan) else dense(plan.length)] = [plan]
    return found


def _features(plan: Plan) -> set[tuple[object, ...]]:
    members = [field.name for field in fields(plan) if field.name not in _SIZES]
    found: set[tuple[object, ...]] = {
        (plan.kind, name, min(3, getattr(plan, name))) for name in members
    }
    found.add((plan.kind, "buffers", min(3, getattr(plan, "buffers", 1)), plan.wide_copies))
    if isinstance(plan, ButterflyPlan):
        found.add((plan.kind, "stages", len(plan.radices), plan.rader))
    return found


if __name__ == "__main__":
    sys.exit(main())
