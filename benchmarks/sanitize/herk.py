"""Small Hermitian products for compute-sanitizer: ``python -m benchmarks.sanitize.herk tf32``.

Both forms, every op and family of kernels, and where no precision is named integers of 8 bits. Each
array is an allocation of its own, so that an access beyond it is one beyond what is allocated. The
exit status is 1 where an element is beyond its bound, which of integers is 0.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from typing import Any, get_args

import numpy as np
from argand import PRECISIONS, herk, pairs
from argand.device import gpu
from argand.gemm.candidates import candidates
from argand.gemm.families import Family, families_of
from argand.gemm.operands import Op
from argand.gemm.question import GemmSizes, OperandTraits, Question
from argand.gemm.tuned import trial
from argand.herk.problem import FORMS, Form
from argand.precision import Precision

from benchmarks.harness.samples import on_host
from benchmarks.sanitize.verdicts import bounded_program
from workflow.accuracy import bounds

EXACT = "exact"
SHAPES = ((1, 1, 1), (2, 33, 77), (1, 150, 300))
"""Batch, n and k: none a multiple of a tile."""
WAVES = (24, 260, 308), (2, 1930, 80)
"""The same of triangles that are packed while they are multiplied: of many in a wave of an H200,
and of one."""
_SEED = 1


def products(precision: str, arrays: Any) -> Iterator[tuple[str, float]]:
    """Yield (call, the largest error of an element over its bound).

    ``arrays`` is the module of the arrays, cupy (or numpy).
    """
    rng = np.random.default_rng(_SEED)
    row = None if precision == EXACT else PRECISIONS[precision]
    families: tuple[Family | None, ...] = (None,)
    if row is not None and arrays is not np:
        families = (None, *families_of(row))
    for (batch, n, k), form, op, family in itertools.product(SHAPES, FORMS, get_args(Op), families):
        shape = (batch, n, k) if op == "N" else (batch, k, n)
        parts = rng.integers(-128, 128, (*shape, 2)).astype(np.int8)
        a: Any = parts.astype(np.float32).view(np.complex64)[..., 0]
        given = pairs(arrays.asarray(parts)) if row is None else arrays.asarray(a)
        found = herk(given, op=op, form=form, precision=precision, kernels=family)
        yield f"{family} {batch}x{n}x{k} {form} {op}", _excess(on_host(found), a, op, form, row)
    if arrays is not np and row is not None:
        yield from fused_products(row)


def fused_products(row: Precision) -> Iterator[tuple[str, float]]:
    """Yield (call, the largest error over its bound): triangles packed while they are multiplied.

    Their tiles are more than multiprocessors. Such small products would be packed beforehand.
    """
    import cupy

    card, traits = gpu(cupy.cuda.Device().id), (OperandTraits(), OperandTraits(conjugated=True))
    for batch, n, k in WAVES:
        question = Question(row, GemmSizes(batch, n, n, k, triangle=True), *traits)
        for choice in candidates(question, card.require_arch(), card.sm_count):
            if choice.wgmma is None or not choice.wgmma.fused_pack:
                continue
            parts = np.random.default_rng(_SEED).standard_normal((batch, n, k, 2), np.float32)
            a = parts.view(np.complex64)[..., 0]
            with trial(choice):
                found = herk(cupy.array(a), precision=row.name)
            yield f"{batch}x{n}x{k} {choice.name}", _excess(on_host(found), a, "N", "full", row)


def _excess(found: Any, a: Any, op: Op, form: Form, row: Precision | None) -> float:
    """Return the largest error over its bound; infinite where an exact element differs."""
    x = (a if op == "N" else a.swapaxes(-1, -2)).astype(complex)
    x = x.conj() if op == "C" else x
    expected, size = x @ x.conj().swapaxes(-1, -2), abs(x) @ abs(x).swapaxes(-1, -2)
    if form == "triangle":
        rows, columns = np.tril_indices(x.shape[-2])
        expected, size = expected[..., rows, columns], size[..., rows, columns]
    if row is None:
        return 0.0 if np.array_equal(found, expected.astype(found.dtype)) else float("inf")
    # The bound is of each part; a scaled line of integers of 8 bits loses less than 2^-20 of it.
    bound = 2**0.5 * (bounds.product_bound(row, x.shape[-1], "cuda") + 2.0**-20 * row.scaled)
    return float((abs(found - expected) / (bound * size)).max())


main = bounded_program(
    __doc__,
    ("precision", (EXACT, *PRECISIONS)),
    products,
    "an element is off by {} times its bound",
)


if __name__ == "__main__":
    sys.exit(main())
