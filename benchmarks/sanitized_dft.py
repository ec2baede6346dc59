"""Small ragged transforms for compute-sanitizer: ``python -m benchmarks.sanitized_dft 3xfp16``.

Every kind of plan, forced in turn. Each array is an allocation of its own, so that an access beyond
it is one beyond what is allocated. Every result is held to its bound. The exit status is 1 where
one is outside.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np
from argand import PRECISIONS, Precision, dft
from argand.device import gpu
from argand.dft_choice import candidates, estimate
from argand.dft_limits import wide_fits
from argand.dft_method import Method, bluestein, dense, method_for, product, rader
from argand.dft_plan import Plan

from workflow.accuracy.transform_bounds import dft_bound

_METHODS = (
    dense(7), dense(64), dense(97), dense(251), dense(509), product(24, 15), product(32, 32),
    rader(31, product(6, 5)), method_for(1009), bluestein(100, product(20, 10)),
    bluestein(100, product(12, 10)),
)  # fmt: skip
_ROWS = 5


def main(argv: Sequence[str] | None = None) -> int:
    """Run the plans of one precision."""
    import cupy
    from argand.cuda_dft import forced

    found = argparse.ArgumentParser(description=__doc__)
    ours = [name for name, row in PRECISIONS.items() if not row.exact_operands]
    found.add_argument("precision", choices=ours)
    precision = PRECISIONS[found.parse_args(argv).precision]
    cupy.cuda.set_allocator(None)
    rng = np.random.default_rng(1)
    wrong = calls = 0
    for method in _METHODS:
        parts = rng.standard_normal((_ROWS, method.length, 2), dtype=np.float32)
        x = parts.view(np.complex64)[..., 0]
        exact = np.fft.fft(x.astype(complex))
        bound = dft_bound(precision, method, "cuda")
        for plan in _plans(method, precision):
            out = cupy.full(x.shape, np.nan, np.complex64)
            with forced.to(plan):
                dft(cupy.asarray(x), precision=precision, out=out)
            error = np.linalg.norm(out.get() - exact, axis=-1) / np.linalg.norm(exact, axis=-1)
            calls += 1
            if not (error <= bound).all():
                wrong += 1
                print(f"{plan}: {error.max() / bound:.3g} times its bound")
    print(f"{calls} calls, {wrong} wrong")
    return int(wrong > 0)


def _plans(method: Method, precision: Precision) -> list[Plan]:
    """One plan of each way: copies of 16 bytes or not, warps that share a tile or not, buffers."""
    arch = gpu(0).require_arch()
    found: dict[tuple[object, ...], Plan] = {}
    for wide in (False, wide_fits(method.kind, method.length, method.length)):
        for plan in sorted(candidates(method, precision, arch, wide=wide), key=estimate):
            key = (wide, plan.warps > 1, getattr(plan, "buffers", 1))
            found.setdefault(key, plan)
    return list(found.values())


if __name__ == "__main__":
    sys.exit(main())
