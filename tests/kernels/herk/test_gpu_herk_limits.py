"""Hermitian products on a GPU within limits of workspace: in blocks, and right in each of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, Pairs, WorkspaceError, herk, launched, pairs, workspace_limit

from benchmarks.harness.device_memory import most_allocated
from tests.kernels.herk.herk_cases import (
    Array,
    assert_hermitian,
    expected,
    oriented,
    packed,
    tolerance,
)
from tests.normal import normal

pytestmark = pytest.mark.gpu

PIECES = 8 * 512
"""Memory is given in multiples of 512 bytes."""
SCALARS = {"alpha": 1.5, "beta": 0.5}


def limits_of(call: Callable[[], object]) -> list[int]:
    """Return the least workspace of a call, as its error says it, and larger ones."""
    with workspace_limit(0):
        try:
            call()
        except WorkspaceError as error:
            least = error.needed
        else:
            least = 0
    if least:
        with workspace_limit(least - 1), pytest.raises(WorkspaceError) as again:
            call()
        assert again.value.needed >= least
    return [least, least + (64 << 10), least + (1 << 20), least + (5 << 20)]


def within(limit: int, cp: Any, call: Callable[[], Any], out: Any) -> Array:
    """Return the result of a call within a limit, where NaN lay before."""
    with workspace_limit(limit):
        out.fill(cp.nan)
        assert most_allocated(cp, call) <= limit + PIECES
    found: Array = out.get()
    return found


def assert_right(
    found: Array, a: Array, op: str, precision: str, form: str, c: Array | None = None
) -> None:
    """Hold every element to the worst case of its sum."""
    value, size = expected(a, op)
    scalars: dict[str, float] = {}
    if c is not None:
        scalars = SCALARS
        value, size = 1.5 * value + 0.5 * c, 1.5 * size + 0.5 * abs(c)
    if form == "triangle":
        value, size = packed(value), packed(size)
    k = oriented(a, op).shape[-1]
    assert (abs(found - value) <= 2**0.5 * tolerance(precision, k, "cuda", **scalars) * size).all()


@pytest.mark.pairwise
@pytest.mark.parametrize("precision", ["fp64", "fp32", "3xtf32", "3xfp16", "fp16"])
@pytest.mark.parametrize("form", ["full", "triangle"])
@pytest.mark.parametrize("op", ["N", "C"])
@pytest.mark.parametrize("shape", [(500, 300), (5, 200, 333), (301, 2000)], ids=str)
@pytest.mark.parametrize("adds", [False, True])
def test_each_limit(
    cp: Any, rng: np.random.Generator, precision: str, form: Any, op: Any, shape: Any, adds: bool
) -> None:
    host = normal(rng, *shape)
    host = host if op == "N" else np.ascontiguousarray(host.swapaxes(-1, -2))
    kind = PRECISIONS[precision].output
    a, given, c = cp.asarray(host).astype(kind), None, None
    how: dict[str, Any] = {"precision": precision, "form": form, "op": op}
    if adds:
        how |= SCALARS
        c = expected(normal(rng, *shape[:-1], 9))[0].astype(kind)
        given = cp.asarray(c if form == "full" else packed(c))
    out = cp.empty(herk(a, precision=precision, form=form, op=op).shape, kind)
    call = partial(herk, a, given, out=out, **how)
    limits = limits_of(call)
    for limit in limits:
        found = within(limit, cp, call, out)
        assert_right(found, host, op, precision, form, c)
        if form == "full":
            assert_hermitian(found)
    if adds:  # C in place
        with workspace_limit(limits[0]):
            found = herk(a, given, out=given, **how).get()
        assert_right(found, host, op, precision, form, c)


@pytest.mark.parametrize("form", ["full", "triangle"])
@pytest.mark.parametrize("shape", [(301, 500), (5, 200, 333)], ids=str)
@pytest.mark.parametrize("how", [{}, SCALARS], ids=str)
def test_exact_products_have_the_same_bits(
    cp: Any, rng: np.random.Generator, form: Any, shape: Any, how: dict[str, Any]
) -> None:
    a = cp.asarray(normal(rng, *shape))
    c = herk(a, form=form) if how else None
    exact = herk(a, c, precision="7xint8", form=form, **how).get()
    out = cp.empty(exact.shape, exact.dtype)
    call = partial(herk, a, c, precision="7xint8", form=form, out=out, **how)
    for limit in limits_of(call):
        np.testing.assert_array_equal(within(limit, cp, call, out), exact)


@pytest.mark.parametrize("kernels", ["wgmma", "mma.sync"])
@pytest.mark.parametrize("form", ["full", "triangle"])
def test_a_family_of_kernels(
    cp: Any, rng: np.random.Generator, wgmma: None, kernels: Any, form: Any
) -> None:
    """In panels of rows and columns, of which those on the diagonal are triangles."""
    host = normal(rng, 700, 600)
    a = cp.asarray(host)
    out = cp.empty(herk(a, form=form).shape, "c8")
    call = partial(herk, a, precision="3xtf32", form=form, kernels=kernels, out=out)
    limits = limits_of(call)
    for limit in limits:
        assert_right(within(limit, cp, call, out), host, "N", "3xtf32", form)
    with workspace_limit(limits[0]), launched() as names:
        call()
    assert all(kernels in name for name in names)
    if kernels == "wgmma" and form == "full":
        assert "panels" in names[0]


@pytest.mark.parametrize("form", ["full", "triangle"])
@pytest.mark.parametrize("shape", [(300, 1000), (7, 200, 900), (2, 3, 129, 500)], ids=str)
@pytest.mark.parametrize("beta", [0, 2])
def test_integers_have_the_same_bits(
    cp: Any, rng: np.random.Generator, wgmma: None, form: Any, shape: Any, beta: int
) -> None:
    """Some products of a batch at a time, and pieces of one where its planes take too much."""
    numbers = cp.asarray(rng.integers(-128, 128, (*shape, 2)).astype(np.int8))
    a: Pairs = pairs(numbers)
    how: dict[str, Any] = {"precision": "exact", "form": form}
    c = herk(a, **how).copy()
    if beta:
        how |= {"beta": beta}
    exact = herk(a, c if beta else None, **how).get()
    out = cp.empty(exact.shape, exact.dtype)
    call = partial(herk, a, c if beta else None, out=out, **how)
    planes = 2 * shape[-2] * -(-shape[-1] // 128) * 128
    copies = 8 * numbers.size // 2  # as complex64, which is not counted
    for limit in (*limits_of(call), planes - 1, planes, 3 * planes):
        if limit < limits_of(call)[0]:
            continue
        with workspace_limit(limit):
            out.fill(cp.nan)
            most = most_allocated(cp, call)
        assert most <= limit + PIECES + copies * (limit < planes)
        np.testing.assert_array_equal(out.get().view("u4"), exact.view("u4"))
