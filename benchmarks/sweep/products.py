"""Complex products of drawn sizes, batches, ops and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np
from argand import Device, Precision, gemm
from argand.gemm.choice import GemmChoice
from argand.gemm.operands import OPS, Op
from argand.gemm.problem import Output
from argand.gemm.tuned import trial
from argand.precision import HALF_FORMATS, ROUNDED_PRECISIONS, any_precision

from benchmarks.gemm.product_check import ProductCheck
from benchmarks.gemm.shapes import Shape
from benchmarks.harness.measuring import array_module, kernels_of
from benchmarks.peers import Candidate, candidates
from benchmarks.sweep.case import Assess, Case
from benchmarks.sweep.checking import DeferredCheck

PEERS = ("cublas", "torch", "numpy")
"""Libraries that multiply interleaved matrices as they are: planes made before the clock starts,
and kernels that are tuned for each size, are measured by `benchmarks.gemm`."""
_EXACT = "7xint8"
"""Exact integers of fp32's errors. Small products leave them out: each takes several launches."""
_MAX_BYTES = 2 << 30
_CHECKED_ELEMENTS, _CHECKED_LINES = 1 << 15, 8
"""Elements of operands and results that are checked, and rows and columns at least."""


class ProductCase(Case):
    """One product, or a batch of them."""

    def __init__(
        self, shape: Shape, op_a: Op = "N", op_b: Op = "N", half: bool = False, exact: bool = False
    ) -> None:
        self._shape, self._ops, self._half = shape, (op_a, op_b), half
        self._precisions = [x for x in ROUNDED_PRECISIONS if not half or x in HALF_FORMATS]
        self._precisions += [_EXACT] if exact and not half else []
        self.operation = "gemm"
        self.shape = str(shape)
        self.kind = f"{op_a}{op_b}" + (" > half" if half else "")
        self.flops = float(shape.flops)
        m, n, k = shape.m, shape.n, shape.k
        self.bytes_moved = shape.batch * (8 * (m * k + k * n) + (4 if half else 8) * m * n)

    def operands(self, device: Device, seed: int) -> tuple[Any, ...]:
        """Return normal A and B as they are stored, before their op."""
        arrays = array_module(device)
        rng, shape = arrays.random.default_rng(seed), self._shape
        found = []
        for op, size in zip(self._ops, ((shape.m, shape.k), (shape.k, shape.n)), strict=True):
            stored = size if op == "N" else size[::-1]
            parts = rng.standard_normal((*shape.leading, *stored, 2), dtype=arrays.float32)
            found.append(parts.view(arrays.complex64)[..., 0])
        return tuple(found)

    def ours(self, device: Device) -> list[Candidate]:
        """Return `argand.gemm` at the precisions of tensor cores."""
        return [self._candidate(any_precision(name), device) for name in self._precisions]

    def _candidate(self, precision: Precision, device: Device) -> Candidate:
        arrays, shape = array_module(device), self._shape
        output: Output = "complex-half" if self._half else "complex64"
        call = partial(gemm, op_a=self._ops[0], op_b=self._ops[1], precision=precision)
        if self._half:
            call = partial(call, output=output)

        def prepare(a: Any, b: Any) -> tuple[Any, ...]:
            if self._half:
                return a, b
            return a, b, arrays.full((*shape.leading, shape.m, shape.n), np.nan, "complex64")

        def compute(a: Any, b: Any, out: Any = None) -> Any:
            return call(a, b, out=out)

        return Candidate(
            "argand", precision, "gemm", prepare, compute,
            (lambda x: x.to_complex64()) if self._half else (lambda x: x),
            output=output, chosen=kernels_of(compute),
        )  # fmt: skip

    def peers(self, device: Device) -> list[Candidate]:
        """Return the libraries' products, of op(A) and op(B) made before the clock starts."""
        if self._half:
            return []
        return [
            _of_ops(one, self._ops)
            for one in candidates("gemm", device.backend)
            if one.name in PEERS and one.precision.name != "fp64"
        ]

    def assessment(self, operands: Sequence[Any], device: Device) -> Assess:
        """Return a function that compares sampled rows and columns with SciPy in fp64."""
        a, b = (_op(x, op) for x, op in zip(operands, self._ops, strict=True))
        check = ProductCheck(
            self._shape, a, b, backend=device.backend, seed=1, elements=_CHECKED_ELEMENTS,
            lines=_CHECKED_LINES,
        )  # fmt: skip
        return check if device.backend == "cpu" else DeferredCheck(check)

    def plans(self, candidate: Candidate, inputs: tuple[Any, ...]) -> Sequence[GemmChoice]:
        """Return the candidates whose estimates are near the least."""
        from benchmarks.sweep.product_plans import near_plans

        return near_plans(partial(candidate.compute, *inputs))

    def with_plan(self, plan: GemmChoice) -> AbstractContextManager[object]:
        """Return a context in which products take this plan."""
        return trial(plan)


def _op(x: Any, op: Op) -> Any:
    """Return op(x) as an array."""
    turned = x if op == "N" else x.swapaxes(-1, -2)
    return turned.conj() if op == "C" else turned


def _of_ops(candidate: Candidate, ops: tuple[Op, Op]) -> Candidate:
    """Return the candidate of op(A) op(B)."""
    prepare = candidate.prepare

    def prepared(a: Any, b: Any) -> tuple[Any, ...]:
        return prepare(_op(a, ops[0]), _op(b, ops[1]))

    return Candidate(
        candidate.name, candidate.precision, candidate.algorithm, prepared, candidate.compute,
        candidate.result, input=candidate.input, output=candidate.output,
    )  # fmt: skip


def draw(rng: np.random.Generator, cases: int, sizes: Any) -> list[Case]:
    """Draw m, n and k of 32 to 16384, log-uniform, of at most 2 GiB together.

    Every fifth is a batch of 2 to 64, two of five have an op, a tenth have 16-bit results. Those
    of complex64 are multiplied by exact integers too.
    """
    found: list[Case] = []
    while len(found) < cases:
        m, n, k = sizes(rng, 32, 16384, (3,)).tolist()
        batch = int(sizes(rng, 2, 64, (1,))[0]) if rng.random() < 0.2 else 1
        op_a, op_b = ("N" if rng.random() < 0.75 else OPS[int(rng.integers(3))] for _ in "ab")
        half = bool(rng.random() < 0.1)
        if 8 * batch * (m * k + k * n + m * n) <= _MAX_BYTES:
            found.append(ProductCase(Shape(m, n, k, batch), op_a, op_b, half, exact=True))
    return found


def draw_small(rng: np.random.Generator, sizes: Any) -> Case:
    """Draw 1 to 512 of m, n and k."""
    m, n, k = sizes(rng, 1, 512, (3,)).tolist()
    return ProductCase(Shape(m, n, k))
