"""Hermitian products of drawn or given sizes, of complex64 and of int8."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from argand import PRECISIONS, Device, gemm, herk, pairs
from argand.beam_power.problem import EXACT
from argand.gemm.tuned import trial
from argand.herk.problem import Form

from benchmarks.gemm.product_check import ProductCheck
from benchmarks.gemm.shapes import Shape
from benchmarks.harness.measuring import array_module, kernels_of
from benchmarks.harness.signals import as_floats
from benchmarks.peers import Candidate
from benchmarks.sweep.case import Assess, Case, precision_row
from benchmarks.sweep.checking import DeferredCheck
from workflow.accuracy import Accuracy

Input = Literal["complex64", "int8"]
_PRECISIONS: dict[Input, tuple[str, ...]] = {
    "complex64": ("tf32", "3xfp16", "fp16"), "int8": (EXACT.name,),
}  # fmt: skip
"""Precisions measured for each type of samples, where none are given."""
_MAX_BYTES = {"cuda": 1 << 30, "cpu": 1 << 20}
"""Bytes of samples and matrices together."""
_CHECKED_ELEMENTS, _CHECKED_LINES = (1 << 15, 1 << 17), 8


class CorrelationCase(Case):
    """V = X X^H of a batch of X (n, k); without ``batch``, of as many as there is room for."""

    def __init__(
        self, n: int, k: int, input: Input, batch: int | None = None, form: Form = "full",
        precisions: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        self._n, self._k, self._input, self._form = n, k, input, form
        self._given_batch, self._batch = batch, 1
        self._precisions = precisions or _PRECISIONS[input]
        self.operation, self.kind = "herk", input if form == "full" else f"{input}, {form}"
        self.shape = f"{n}x{k}"
        self.flops = self.bytes_moved = 0.0

    def operands(self, device: Device, seed: int) -> tuple[Any, ...]:
        """Return normal X (batch, n, k), or integers of all 8 bits (batch, n, k, 2)."""
        n, k = self._n, self._k
        item = 8 if self._input == "complex64" else 2
        results = n * n if self._form == "full" else n * (n + 1) // 2
        each = item * n * k + 8 * results
        room = max(1, _MAX_BYTES[device.backend] // 4 // each)
        self._batch = batch = self._given_batch or room
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
            self._candidate("argand", name, self._form, lambda x, out, name=name: herk(
                x, precision=name, form=self._form, out=out
            ), device)
            for name in self._precisions
        ]  # fmt: skip

    def peers(self, device: Device) -> list[Candidate]:
        """Return our full products, and the line of NumPy or CuPy: x times its own transpose."""
        arrays = array_module(device)
        found = [
            self._candidate("argand full", name, "full", lambda x, out, name=name: gemm(
                x, x, op_b="C", precision=name, out=out
            ), device)
            for name in self._precisions
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
        self, implementation: str, name: str, form: Form, call: Callable[..., Any], device: Device
    ) -> Candidate:
        arrays, n = array_module(device), self._n
        row = precision_row(name)
        dtype = "complex64" if self._input == "int8" else row.output

        def prepare(x: Any) -> tuple[Any, ...]:
            size = (n, n) if form == "full" else (n * (n + 1) // 2,)
            out = arrays.full((self._batch, *size), complex(np.nan, np.nan), dtype)
            return (x.astype(dtype, copy=False) if x.dtype.kind == "c" else pairs(x)), out

        return Candidate(
            implementation, row, implementation, prepare, call,
            self._matrices if form == "full" else lambda lower: self._matrices(
                _whole(arrays, n, lower)
            ), input=self._input, output=dtype, chosen=kernels_of(call),
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
        """Return a function that compares sampled rows and columns with SciPy in fp64.

        Every element of ours is compared with the conjugate of the one that mirrors it, and every
        sum of integers with its value.
        """
        x = _floats(operands[0])
        check = ProductCheck(
            self._product, x, x.conj().swapaxes(-1, -2), backend=device.backend, seed=1,
            elements=self.sampled(*_CHECKED_ELEMENTS), lines=_CHECKED_LINES,
        )  # fmt: skip
        first = partial(_wrong, x)
        if device.backend == "cpu":
            return lambda result, candidate: first(result, candidate) or check(result, candidate)
        return DeferredCheck(check, first)


def _wrong(x: Any, result: Any, candidate: Candidate) -> Accuracy | None:
    """Return the verdict on a result that is not Hermitian, or not exact where it has to be."""
    reason = ""
    if candidate.name == "argand" and bool((result != result.conj().swapaxes(-1, -2)).any()):
        reason = "an element is not the conjugate of the one that mirrors it"
    elif candidate.precision == EXACT:
        wide = x.astype(np.complex128)
        exact = (wide @ wide.conj().swapaxes(-1, -2)).astype(result.dtype)
        if bool((result.reshape(exact.shape) != exact).any()):
            reason = "a sum of integers is not exact"
    if not reason:
        return None
    rows = int(np.prod(result.shape[:-1]))
    return Accuracy(
        verdict="wrong", verified=False, reason=reason, reference="full", reference_rows=rows
    )


def _whole(arrays: Any, n: int, lower: Any) -> Any:
    """Return the matrices whose lower triangles ``lower`` (batch, n (n + 1) / 2) has."""
    rows, columns = arrays.tril_indices(n)
    found = arrays.empty((len(lower), n, n), lower.dtype)
    found[:, columns, rows] = lower.conj()
    found[:, rows, columns] = lower
    return found


def _floats(x: Any) -> Any:
    """Return samples (batch, n, k) as complex64; integers have a last axis of 2."""
    if x.dtype.kind == "c":
        return x
    return as_floats(x.reshape(-1, *x.shape[-2:])).reshape(x.shape[:-1])


def draw(rng: np.random.Generator, cases: int, sizes: Any) -> list[Case]:
    """Draw 16 to 4096 inputs and 64 to 16384 samples, log-uniform; every other one of int8."""
    found: list[Case] = []
    for number in range(cases):
        n, k = int(sizes(rng, 16, 4096, (1,))[0]), int(sizes(rng, 64, 16384, (1,))[0])
        found.append(CorrelationCase(n, k, get_args(Input)[number % 2]))
    return found
