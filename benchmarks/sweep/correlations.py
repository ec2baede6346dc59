"""Hermitian products of drawn sizes, of complex64 and of int8."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np
from argand import PRECISIONS, Device, Precision, gemm, herk, pairs
from argand.gemm.tuned import trial

from benchmarks.gemm.product_check import ProductCheck
from benchmarks.gemm.shapes import Shape
from benchmarks.harness.measuring import array_module, kernels_of
from benchmarks.harness.signals import as_floats
from benchmarks.peers import Candidate
from benchmarks.sweep.case import Assess, Case
from benchmarks.sweep.checking import DeferredCheck

_PRECISIONS = {"complex64": ("tf32", "3xfp16", "fp16"), "int8": ("exact",)}
"""Precisions measured for each type of samples."""
_MOST_BYTES = {"cuda": 1 << 30, "cpu": 1 << 20}
"""Bytes of samples and matrices together."""
_CHECKED_ELEMENTS, _CHECKED_LINES = 1 << 15, 8


class CorrelationCase(Case):
    """V = X X^H of a batch of X (n, k)."""

    def __init__(self, n: int, k: int, kind: str) -> None:
        self._n, self._k, self._input = n, k, kind
        self._batch = 1
        self.operation, self.kind = "herk", kind
        self.shape = f"{n}x{k}"
        self.flops = self.bytes_moved = 0.0

    def operands(self, device: Device, seed: int) -> tuple[Any, ...]:
        """Return normal X (batch, n, k), or integers of all 8 bits (batch, n, k, 2)."""
        n, k = self._n, self._k
        item = 8 if self._input == "complex64" else 2
        each = item * n * k + 8 * n * n
        self._batch = batch = max(1, _MOST_BYTES[device.backend] // 4 // each)
        self.shape = f"{batch}x{n}x{k}"
        self.flops, self.bytes_moved = 4.0 * batch * n * (n + 1) * k, float(batch * each)
        arrays = array_module(device)
        rng = arrays.random.default_rng(seed)
        if self._input == "int8":
            return (rng.integers(-128, 128, (batch, n, k, 2)).astype(np.int8),)
        parts = rng.standard_normal((batch, n, k, 2), dtype=np.float32)
        return (parts.view(np.complex64)[..., 0],)

    def ours(self, device: Device) -> list[Candidate]:
        """Return `argand.herk` at the precisions of the type of samples."""
        return [
            self._candidate("argand", name, lambda x, out, name=name: herk(
                x, precision=name, out=out
            ), device)
            for name in _PRECISIONS[self._input]
        ]  # fmt: skip

    def peers(self, device: Device) -> list[Candidate]:
        """Return our full products, and the line of NumPy or CuPy: x times its own transpose."""
        arrays = array_module(device)
        found = [
            self._candidate("argand full", name, lambda x, out, name=name: gemm(
                x, x, op_b="C", precision=name, out=out
            ), device)
            for name in _PRECISIONS[self._input]
        ]  # fmt: skip

        def line(x: Any) -> Any:
            x = _floats(x)
            return arrays.matmul(x, x.conj().swapaxes(-1, -2))

        library = "cupy" if device.backend == "cuda" else "numpy"
        return [
            *found,
            Candidate(library, PRECISIONS["fp32"], "matmul", lambda x: (x,), line, self._matrices),
        ]

    def _candidate(
        self, implementation: str, name: str, call: Callable[..., Any], device: Device
    ) -> Candidate:
        arrays = array_module(device)

        def prepare(x: Any) -> tuple[Any, ...]:
            out = arrays.full((self._batch, self._n, self._n), np.nan, "complex64")
            return (x if x.dtype.kind == "c" else pairs(x)), out

        return Candidate(
            implementation, _row(name), implementation, prepare, call, self._matrices,
            input=self._input, chosen=kernels_of(call),
        )  # fmt: skip

    def _matrices(self, result: Any) -> Any:
        """Return a result in the shape that the check takes."""
        shape = self._product
        return result.reshape(*shape.leading, shape.m, shape.n)

    def plans(self, candidate: Candidate, inputs: tuple[Any, ...]) -> Sequence[Any]:
        """Return the products' candidates whose estimates are near the least; none of int8."""
        if self._input == "int8":
            return ()
        from benchmarks.sweep.product_plans import near_plans

        return near_plans(partial(candidate.compute, *inputs))

    def with_plan(self, plan: Any) -> AbstractContextManager[object]:
        """Return a context in which products take this plan."""
        return trial(plan)

    @property
    def _product(self) -> Shape:
        return Shape(self._n, self._n, self._k, self._batch)

    def assessment(self, operands: Sequence[Any], device: Device) -> Assess:
        """Return a function that compares sampled rows and columns with SciPy in fp64."""
        x = _floats(operands[0])
        check = ProductCheck(
            self._product, x, x.conj().swapaxes(-1, -2), backend=device.backend, seed=1,
            elements=_CHECKED_ELEMENTS, lines=_CHECKED_LINES,
        )  # fmt: skip
        return check if device.backend == "cpu" else DeferredCheck(check)


def _row(name: str) -> Precision:
    """Return the precision whose bound a result has: exact sums are rounded once, to fp32."""
    return PRECISIONS["fp32" if name == "exact" else name]


def _floats(x: Any) -> Any:
    """Return samples (batch, n, k) as complex64, of which integers have a last axis of 2."""
    if x.dtype.kind == "c":
        return x
    return as_floats(x.reshape(-1, *x.shape[-2:])).reshape(x.shape[:-1])


def draw(rng: np.random.Generator, cases: int, sizes: Any) -> list[Case]:
    """Draw 16 to 4096 inputs and 64 to 16384 samples, log-uniform; every other one of int8."""
    found: list[Case] = []
    for number in range(cases):
        n, k = int(sizes(rng, 16, 4096, (1,))[0]), int(sizes(rng, 64, 16384, (1,))[0])
        found.append(CorrelationCase(n, k, list(_PRECISIONS)[number % 2]))
    return found
