"""Transforms on the CPU: the model of the GPU's, with the same splits, scales and stages.

A scaled precision multiplies each transform by a power of two (`HEADROOM`), and every stage divides
by the power of two from its length on. So operands never leave the range of fp16.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from argand.dft.method import Method
from argand.dft.scipy_transform import by_scipy
from argand.dft.tables import convolutions, dimensions, folded_matrices, twiddles
from argand.precision import Precision
from argand.rounding import Array, power_of_two, scale_exponents, split

if TYPE_CHECKING:
    from argand.dft.problem import DftProblem

_BLOCK_VALUES = 1 << 19
"""Complex values worked on at a time: they stay in the last-level cache."""
_LARGEST_SUM = 64
"""Largest k of a BLAS product: errors of fp32 sums grow with the root of their length."""
HEADROOM = 1
"""Powers of two below the format's scale: folding adds two numbers."""


def dft(problem: DftProblem, x: Array, method: Method | None) -> Array:
    """Return the transforms of the rows of x, (rows, N) of the precision's type.

    A ``method`` of None is SciPy's fast transform; NumPy's computes complex64 in fp64.
    """
    if method is None:
        found = by_scipy(x, None, -1, problem.norm, False, None, problem.inverse)
        return np.asarray(found).astype(problem.precision.output, copy=False)
    return in_blocks(x, problem.length, lambda rows: _rows(problem, rows, method))


def in_blocks(x: Array, values: int, transform: Callable[[Array], Array]) -> Array:
    """Return transforms of the rows of x, block by block; a row takes ``values`` complex values."""
    out = np.empty_like(x, order="C")
    step = max(1, _BLOCK_VALUES // values)
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(x), step):
            out[start : start + step] = transform(x[start : start + step])
    return out


def _rows(problem: DftProblem, x: Array, method: Method) -> Array:
    precision = problem.precision
    given = np.conj(x) if problem.inverse else x
    if not precision.scaled:
        found, _ = _transform(given, method, precision)
        found *= np.float32(problem.factor)
    else:
        exponents = scale_exponents(x, -1, precision.operand) - HEADROOM
        found, shift = _transform(given * power_of_two(exponents), method, precision)
        found *= np.float32(problem.factor * 2.0**shift)
        found *= power_of_two(-exponents)
    return np.conj(found) if problem.inverse else found


def table_exponent(precision: Precision) -> int:
    """Return the exponent of the power of two that multiplies tables: their largest number is 1."""
    return precision.operand.scaled_exponent if precision.scaled else 0


def stage_shift(precision: Precision, length: int) -> int:
    """Return the exponent of the power of two by which a stage divides, so that sums stay small."""
    return (length - 1).bit_length() if precision.scaled else 0


def _transform(x: Array, method: Method, precision: Precision) -> tuple[Array, int]:
    """Return transforms of rows over 2^shift, and the shift, which is 0 where nothing is scaled."""
    if method.kind == "dense":
        return _dense(x, precision)
    if method.kind == "product":
        return _product(x, method, precision)
    return _convolved(x, method, precision)


@lru_cache(maxsize=64)
def _tables(length: int, precision: Precision) -> tuple[list[Array], list[Array], int]:
    """Return the terms of the folded matrices, and the exponent of their scale."""
    exponent = table_exponent(precision)
    cosines, sines = (np.ldexp(x, exponent) for x in folded_matrices(length))
    return split(cosines, precision), split(sines, precision), exponent


def _dense(x: Array, precision: Precision) -> tuple[Array, int]:
    """Return transforms as folded products, and the power of two by which they are scaled down."""
    length = x.shape[-1]
    half = length // 2
    shift = stage_shift(precision, length)
    if half == 0:
        return x.copy(), shift
    below = np.zeros((len(x), half), x.dtype)
    mirrored = x[:, : length - half - 1 : -1] if length % 2 else x[:, :half:-1]
    below[:, : mirrored.shape[1]] = mirrored
    even, odd = x[:, 1 : half + 1] + below, x[:, 1 : half + 1] - below
    cosines, sines, exponent = _tables(length, precision)
    scale = np.float32(2.0 ** -(exponent + shift))
    p, q = _multiply(even, cosines, precision), _multiply(odd, sines, precision)
    kept = np.float32(2.0**-shift)
    first = x[:, :1] * kept
    out = np.empty_like(x)
    out[:, :1] = first + even.sum(axis=-1, keepdims=True) * kept
    turned = np.empty_like(q)
    turned.real, turned.imag = q.imag, -q.real  # -i Q
    out[:, length - half :] = ((p - turned) * scale + first)[:, ::-1]
    out[:, 1 : half + 1] = (p + turned) * scale + first
    return out, shift


def _multiply(x: Array, table: list[Array], precision: Precision) -> Array:
    """Return x times a real matrix, given as terms, by the products that the precision keeps."""
    terms = split(x, precision)
    total: Any = None
    for i, j in precision.products:
        for start in range(0, len(table[j]), _LARGEST_SUM):
            k = slice(start, start + _LARGEST_SUM)
            found = np.empty(x.shape[:-1] + table[j].shape[-1:], x.dtype)
            found.real = terms[i].real[..., k] @ table[j][k]
            found.imag = terms[i].imag[..., k] @ table[j][k]
            total = found if total is None else total + found
    return np.asarray(total)


def _product(x: Array, method: Method, precision: Precision) -> tuple[Array, int]:
    first, second = (part.length for part in method.parts)
    columns = x.reshape(-1, first, second).swapaxes(-1, -2).reshape(-1, first)
    found, before = _transform(columns, method.parts[0], precision)
    found = found.reshape(-1, second, first) * _twiddles(first, second)
    rows = np.ascontiguousarray(found.swapaxes(-1, -2)).reshape(-1, second)
    found, after = _transform(rows, method.parts[1], precision)
    found = found.reshape(-1, first, second).swapaxes(-1, -2)
    return np.ascontiguousarray(found).reshape(x.shape), before + after


@lru_cache(maxsize=64)
def _twiddles(first: int, second: int) -> Array:
    return np.ascontiguousarray(twiddles(first, second).T).astype(np.complex64)


def _convolved(x: Array, method: Method, precision: Precision) -> tuple[Array, int]:
    """Return transforms by convolution, and the power of two by which they are scaled down."""
    inner = method.parts[0]
    kept = stage_shift(precision, method.length)
    numbers = order = np.arange(inner.length)
    if inner.coprime:
        numbers, order = (found.ravel() for found in dimensions(*inner.stages))
    place = np.argsort(numbers)
    out = np.zeros_like(x)
    for one in convolutions(method):
        given = np.zeros((len(x), inner.length), x.dtype)
        taken = x[:, one.input_order]
        if one.input_factors is not None:
            taken = taken * one.input_factors.astype(x.dtype)
        given[:, place[: taken.shape[1]]] = taken
        spectrum, shift = _inner_transform(given, inner, precision)
        total = spectrum[:, :1].copy()
        # The inverse transform is the conjugate of the transform of the conjugate.
        spectrum = np.conj(spectrum * one.spectrum[order].astype(x.dtype))
        found, more = _inner_transform(spectrum, inner, precision)
        # Descale: the shifts of both transforms, and the spectrum's scale.
        power = shift + more - one.exponent - kept
        values = np.conj(found)[:, place[one.output_order]] * np.float32(2.0**power)
        if one.output_factors is not None:
            values = values * one.output_factors.astype(x.dtype)
        if one.separate:
            start = x[:, :1] * np.float32(2.0**-kept)
            out[:, :1] = start + total * np.float32(2.0 ** (shift - kept))
            out[:, 1:] = start + values
        else:
            out += values
    return out, kept


def _inner_transform(x: Array, inner: Method, precision: Precision) -> tuple[Array, int]:
    """Return the transform inside a convolution, of two dimensions where factors are coprime."""
    if not inner.coprime:
        return _transform(x, inner, precision)
    shift = 0
    for length in inner.stages:
        # The last dimension becomes the first.
        turned = x.reshape(len(x), length, -1).swapaxes(-1, -2)
        found, more = _dense(np.ascontiguousarray(turned).reshape(-1, length), precision)
        x, shift = found.reshape(len(x), -1), shift + more
    return np.ascontiguousarray(x), shift
