"""Calls that end in products, with nasty data: exact products, contractions, systems."""

from __future__ import annotations

from typing import Any

import argand
import numpy as np
from argand import PRECISIONS
from argand.precision import EXACT_PRECISIONS

from benchmarks.attack import nasty
from benchmarks.attack.nasty import Array, Rng, Verdict
from workflow.accuracy.matrix_product_accuracy import assess_product
from workflow.accuracy.references import product_reference

_SYSTEMS = (None, "fp64", "fp32", "tf32", "8xint8", "12xint8", "15xint8")


def exact(rng: Rng) -> tuple[str, Verdict]:
    """Try products by moduli: within their bound, the same bits for some rows alone, proved."""
    row = EXACT_PRECISIONS[str(rng.choice(list(EXACT_PRECISIONS)))]
    dtype, (m, n, k) = row.output, (int(rng.choice(nasty.LENGTHS)) for _ in range(3))
    batch = [(), (0,), (2,), (3, 1)][int(rng.integers(4))]
    op_a, op_b = (str(rng.choice(["N", "T", "C"])) for _ in "ab")
    largest = 1e16 if dtype == "complex64" else 1e140
    # The reference's |A| |B| of denormal numbers may be 0, which allows no error.
    a, b = (
        _normal(nasty.numbers(rng, shape, dtype, largest))
        for shape in (
            (*batch, *((m, k) if op_a == "N" else (k, m))), (k, n) if op_b == "N" else (n, k),
        )
    )  # fmt: skip
    alpha, beta = complex(rng.choice([1, -2.5, 1j])), complex(rng.choice([0, 0, 0.5j]))
    c = nasty.numbers(rng, (*batch, m, n), dtype, largest) if beta else None
    truth = a.copy()
    (way_a, a), (way_b, b) = nasty.arranged(rng, a), nasty.arranged(rng, b)
    where, a, out = nasty.target(rng, a, (*batch, m, n), dtype)
    scalars: dict[str, Any] = {"alpha": alpha, "beta": beta, "op_a": op_a, "op_b": op_b}
    what = f"gemm {row.name} {op_a}{a.shape} {way_a}, {op_b}{b.shape} {way_b}, {where}"
    how = {**scalars, "precision": row.name, "check": bool(rng.random() < 0.5)}
    some = slice(m // 3, m - m // 3)
    rows = (..., some, slice(None)) if op_a == "N" else (..., some)
    alone = argand.gemm(truth[rows], b, None if c is None else c[..., some, :], **how)
    reference = product_reference(truth, b, c, **scalars)
    got = argand.gemm(a, b, c, **how, out=out)
    if not np.array_equal(got[..., some, :], alone, equal_nan=True):
        return what, "some rows alone have other bits"
    return what, nasty.verdict(assess_product(reference, got, row, backend="cpu"))


def _normal(x: Array) -> Array:
    """Set denormal parts of the numbers to 0; return the numbers."""
    parts = x.view(x.real.dtype)
    parts[np.abs(parts) < np.finfo(parts.dtype).tiny] = 0
    return x


def contract(rng: Rng) -> tuple[str, Verdict]:
    """Try einsum of two arrays: within the bound of one product, elsewhere NaN as NumPy has it."""
    subscripts, sizes = _subscripts(rng)
    precision = PRECISIONS[str(rng.choice(["fp64", "fp32", "tf32", "3xtf32", "bf16"]))]
    dtype = precision.output
    largest = 1e12 if dtype == "complex64" else 1e100
    ins, out = subscripts.split("->")
    x, y = (
        nasty.numbers(rng, tuple(sizes[one] for one in letters), dtype, largest)
        for letters in ins.split(",")
    )
    conj_a, conj_b = bool(rng.random() < 0.3), bool(rng.random() < 0.3)
    (way_x, a), (way_y, b) = nasty.arranged(rng, x), nasty.arranged(rng, y)
    what = f"contract {subscripts} {precision.name} {a.shape} {way_x}, {b.shape} {way_y}"
    got = argand.contract(subscripts, a, b, conj_a=conj_a, conj_b=conj_b, precision=precision.name)
    if got.shape != tuple(sizes[one] for one in out):
        return what, f"the shape is {got.shape}"
    summed = int(np.prod([sizes[one] for one in set(ins) - {",", *out}], dtype=np.int64))
    tiny = np.full((), 4 * np.finfo(dtype).tiny)  # an operand's term below it may be lost
    with np.errstate(all="ignore"):
        wide = [z.astype(complex) for z in (x, y)]
        wide = [z.conj() if turned else z for z, turned in zip(wide, (conj_a, conj_b), strict=True)]
        sums, size = (np.einsum(subscripts, *map(f, wide)) for f in (np.asarray, np.abs))
        lost = sum(
            np.einsum(subscripts, *(np.abs(z) if one == kept else np.broadcast_to(tiny, z.shape)
                                    for one, z in enumerate(wide)))
            for kept in range(2)
        ) + (summed + 4) * tiny  # fmt: skip
        off = np.abs(got.astype(complex) - sums)
    allowed = 4 * (precision.u + (summed + 8) * np.finfo(dtype).eps) * size + lost
    wrong = np.isfinite(size) & ~(off <= allowed)
    return what, f"off by {off[wrong].max():.3g}" if wrong.any() else ""


def _subscripts(rng: Rng) -> tuple[str, dict[str, int]]:
    subscripts = str(rng.choice([
        "ij,jk->ik", "bij,bjk->bik", "tsa,ba->bts", "i,i->", "ij,ij->i", "ab,cd->abcd", "abc,cb->a",
        "ij,kj->ki", "bi,bj->bij",
    ]))  # fmt: skip
    return subscripts, {one: int(rng.choice(nasty.LENGTHS)) for one in "abcdijkst"}


def solve(rng: Rng) -> tuple[str, Verdict]:
    """Try systems of any scale, also singular ones and ones with NaN, which are to be refused."""
    n, columns = int(rng.choice([1, 2, 3, 8, 17, 40])), int(rng.choice([1, 2, 5]))
    dtype = str(rng.choice(["complex64", "complex128"]))
    precision: Any = rng.choice(np.array(_SYSTEMS, object))
    power = int(rng.integers(-40, 41) if dtype == "complex64" else rng.integers(-400, 401))
    a = (rng.standard_normal((n, n, 2)) @ [1, 1j]).astype(dtype) + 4 * np.eye(n, dtype=dtype)
    a = a * np.asarray(2.0**power, np.finfo(dtype).dtype)
    b = nasty.numbers(rng, (n, columns), dtype, 1e8)
    spoiled = str(rng.choice(["", "", "", "a column of zeros", "NaN"]))
    if spoiled:
        a[:, int(rng.integers(n))] = np.nan if spoiled == "NaN" else 0
    (way_a, given), (way_b, right) = nasty.arranged(rng, a), nasty.arranged(rng, b)
    what = f"solve {n}{dtype} 2^{power} {way_a}, {columns} {way_b}, {precision} {spoiled}"
    x = argand.solve(given, right, precision=precision)
    if spoiled or not np.isfinite(b).all():
        return what, "it is solved"
    return what, _residual(a, b, x)


def _residual(a: Array, b: Array, x: Array) -> Verdict:
    """Judge the backward error of each column of x, in the norm of the largest magnitude."""
    wide = [one.astype(np.clongdouble) for one in (a, b, x)]
    off = np.abs(wide[1] - wide[0] @ wide[2]).max(axis=0)
    size = np.abs(a).sum(axis=1).max().astype(np.longdouble) * np.abs(wide[2]).max(axis=0)
    size += np.abs(wide[1]).max(axis=0)
    u, tiny = float(np.finfo(x.dtype).eps) / 2, float(np.finfo(x.dtype).smallest_subnormal)
    allowed = (4 * len(a) ** 0.5 + 2) * 2 * u * size
    allowed += len(a) * tiny * (1 + np.abs(a).max().astype(np.longdouble))
    worst = float(np.max(off / np.maximum(allowed, np.finfo(np.longdouble).tiny), initial=0))
    return "" if worst <= 1 else f"a backward error is {worst:.3g} times what is allowed"


FUNCTIONS = {"exact": exact, "contract": contract, "solve": solve}
