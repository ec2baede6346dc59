"""Our own products as candidates: at each precision, from each kind of operand."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from argand import Device, Precision, gemm, pack, to_pairs

from benchmarks.harness.measuring import array_module, kernels_of
from benchmarks.peers import Candidate, unscaled

_AT_ONCE = 4
"""Candidates whose operands and results are in the device's memory together."""
INPUTS = ("complex64", "complex-half", "packed")
"""Forms of our operands: interleaved complex64, pairs of 16-bit parts, or a packed B."""


def candidates(device: Device, precisions: Sequence[Precision]) -> list[Candidate]:
    """Return every precision from interleaved operands; those of tensor cores from a packed B too.

    The 16-bit ones also take complex-half, and then return complex64 or complex-half.
    """
    found = [_plain(precision, device) for precision in precisions]
    for precision in precisions:
        if not precision.exact_operands:
            found.append(_packed(precision, device))
        if precision.operand.bytes == 2 and precision.terms == 1:
            found += [_half(precision, device, out) for out in (precision.output, "complex-half")]
    return found


def _algorithm(precision: Precision, device: Device) -> str:
    if device.backend == "cpu":
        from argand.gemm.cpu import gemm_algorithm
    else:
        from argand.gemm.gpu import gemm_algorithm
    return gemm_algorithm(precision)


def _plain(precision: Precision, device: Device) -> Candidate:
    """Return our product; its result's place is filled with NaN before, as in all of ours."""
    arrays = array_module(device)
    dtype = precision.output

    def prepare(a: Any, b: Any) -> tuple[Any, ...]:
        return arrays.array(a, dtype), arrays.array(b, dtype), _place(arrays, a, b, dtype)

    def compute(a: Any, b: Any, out: Any) -> Any:
        return gemm(a, b, precision=precision, out=out)

    return Candidate(
        "argand", precision, _algorithm(precision, device), prepare, compute,
        input=dtype, output=dtype, chosen=kernels_of(compute),
    )  # fmt: skip


def _packed(precision: Precision, device: Device) -> Candidate:
    """Return our product by a B that is packed before it is timed, as a constant operand is."""
    arrays = array_module(device)
    plain = _plain(precision, device)

    def prepare(a: Any, b: Any) -> tuple[Any, ...]:
        left, out = arrays.array(a, precision.output), _place(arrays, a, b, precision.output)
        return left, pack(b, precision, side="b"), out

    return replace(plain, prepare=prepare, input="packed")


def _half(precision: Precision, device: Device, output: str) -> Candidate:
    """Return our product of `Pairs`, which are rounded without scales before it is timed."""
    arrays = array_module(device)

    def prepare(a: Any, b: Any) -> tuple[Any, ...]:
        left, right = (to_pairs(x, precision.operand.name) for x in (a, b))
        if output != "complex-half":
            return left, right, _place(arrays, a, b, output)
        return left, right, to_pairs(_place(arrays, a, b, "complex64"), precision.operand.name)

    def compute(a: Any, b: Any, out: Any) -> Any:
        return gemm(a, b, precision=precision, output=output, out=out)  # type: ignore[call-overload]

    return Candidate(
        "argand", unscaled(precision), _algorithm(precision, device), prepare, compute,
        (lambda x: x) if output != "complex-half" else lambda x: x.to_complex64(),
        input="complex-half", output=output, chosen=kernels_of(compute),
    )  # fmt: skip


def call_once(candidates: Sequence[Candidate], a: Any, b: Any) -> None:
    """Call each on operands (CuPy), several at once: their kernels compile side by side.

    One that fails says why where it is measured.
    """
    import cupy

    def call(one: Candidate) -> None:
        with suppress(Exception):
            one.compute(*one.prepare(a, b))

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(call, candidates))
    cupy.cuda.Device().synchronize()
    cupy.get_default_memory_pool().free_all_blocks()


def _place(arrays: Any, a: Any, b: Any, dtype: str) -> Any:
    return arrays.full((*a.shape[:-1], b.shape[-1]), np.nan, dtype)
