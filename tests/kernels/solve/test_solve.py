"""The solver on the CPU: every kind of matrix, precision and block against its derived bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from argand import Pairs, pack, pairs, solve
from argand.solve import lu
from argand.solve.api import _solved
from argand.solve.cpu import CpuLibrary, order_of
from argand.solve.lu import Factorization
from argand.solve.problem import default_precision, solve_problem
from argand.solve.refine import Solution

from tests.kernels.solve.systems import SYSTEMS, U, backward_error, bound, normal, system

EXACT = ("15xint8", "14xint8")


@pytest.mark.pairwise
@pytest.mark.parametrize("precision", [None, *EXACT])
@pytest.mark.parametrize("n", [1, 2, 7, 33, 90])
@pytest.mark.parametrize("kind", SYSTEMS)
def test_backward_error(rng: np.random.Generator, kind: str, n: int, precision: str | None) -> None:
    if n == 1 and kind in ("zeros on the diagonal", "nearly singular"):
        n = 3
    a, b = system(kind, n, rng), normal(rng, n, 3)
    kept = a.copy(), b.copy()
    found = solve(a, b, precision=precision, block=16, details=True)
    assert isinstance(found, Solution)
    assert found.x.dtype == np.complex128
    assert found.steps <= 5
    assert backward_error(a, found.x, b) <= bound(n, "complex128")
    np.testing.assert_array_equal(a, kept[0])
    np.testing.assert_array_equal(b, kept[1])


@pytest.mark.each_value
@pytest.mark.parametrize("precision", [None, *EXACT])
@pytest.mark.parametrize("kind", SYSTEMS)
def test_no_larger_than_lapacks(rng: np.random.Generator, kind: str, precision: str | None) -> None:
    """Four unit roundoffs, or no more than zgesv leaves."""
    n = 100
    a, b = system(kind, n, rng), normal(rng, n)
    ours = solve(a, b, precision=precision, block=32)
    lapacks = backward_error(a, np.linalg.solve(a, b), b)
    assert backward_error(a, ours, b) <= max(4 * U["complex128"], lapacks)


def test_solution_is_scipys(rng: np.random.Generator) -> None:
    """Both differ from the exact one by cond(A) times their backward errors at most."""
    n = 80
    a, b = normal(rng, n, n), normal(rng, n, 4)
    expected = scipy.linalg.solve(a, b)
    found = solve(a, b, precision="15xint8", block=16)
    allowed = 2 * np.linalg.cond(a, np.inf) * 2 * bound(n, "complex128")
    differences = np.abs(found - expected).max(axis=0) / np.abs(expected).max(axis=0)
    assert differences.max() <= allowed


@pytest.mark.parametrize("precision", ["8xint8", "10xint8", "fp64", "fp32", "3xtf32", "3xfp16"])
def test_coarse_products_are_refined(rng: np.random.Generator, precision: str) -> None:
    n = 70
    a, b = normal(rng, n, n) + 3 * n**0.5 * np.eye(n), normal(rng, n)
    found = solve(a, b, precision=precision, block=20, details=True)
    assert found.backward_error <= 4 * U["complex128"]
    assert backward_error(a, found.x, b) <= bound(n, "complex128")


@pytest.mark.parametrize("precision", [None, "7xint8", "fp32"])
@pytest.mark.parametrize("n", [1, 5, 90])
def test_complex64(rng: np.random.Generator, n: int, precision: str | None) -> None:
    a, b = normal(rng, n, n).astype(np.complex64), normal(rng, n, 2).astype(np.complex64)
    found = solve(a, b, precision=precision, block=16)
    assert found.dtype == np.complex64
    assert backward_error(a, found, b) <= bound(n, "complex64")


@pytest.mark.parametrize("kind", ["normal", "rows of many scales", "reversed rows"])
@pytest.mark.parametrize("panel", [1, 3, 16, 64, 1000])
def test_factors(rng: np.random.Generator, panel: int, kind: str) -> None:
    """L U is A with its rows in the order, within the bound of a product of n terms."""
    n = 50
    a = system(kind, n, rng)
    factors = a.astype(complex)
    order = Factorization(factors, CpuLibrary(), precision="fp64", block=16, panel=panel).order
    assert sorted(order) == list(range(n))
    lower, upper = np.tril(factors, -1) + np.eye(n), np.triu(factors)
    # The pivot has the largest |Re| + |Im| of its column.
    assert np.abs(lower).max() <= 2**0.5 * (1 + 4 * U["complex128"])
    allowed = 4 * n * U["complex128"] * (np.abs(lower) @ np.abs(upper))
    assert (np.abs(lower @ upper - a[order]) <= allowed).all()


@pytest.mark.parametrize(("panel", "depths"), [(None, {16, 32, 48}), (4, {4, 8, 12, 24, 48})])
def test_updates_are_products(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, panel: int | None, depths: set[int]
) -> None:
    """All flops but those of panels and of triangular systems of one block are products.

    Those as deep as a block have the precision that was asked for.
    """
    n, block, gemm, seen = 96, 16, lu.gemm, []

    def watched(a: Any, b: Any, c: Any, **options: Any) -> Any:
        assert options["precision"] == ("14xint8" if a.shape[1] >= block else "fp64")
        assert options["out"] is c
        seen.append((a.shape[1], 8 * a.shape[0] * a.shape[1] * b.shape[1]))
        return gemm(a, b, c, **options)

    monkeypatch.setattr(lu, "gemm", watched)
    solve(normal(rng, n, n), normal(rng, n), precision="14xint8", block=block, panel=panel)
    assert {depth for depth, _ in seen} == depths
    if panel is None:
        blocks = n // block
        assert sum(flops for _, flops in seen) == 8 * block**3 * sum(i * i for i in range(blocks))


def test_order_of_exchanges() -> None:
    pivots = np.array([3, 1, 3, 4])
    rows = list(range(6))
    for i, pivot in enumerate(pivots):
        rows[i], rows[pivot] = rows[pivot], rows[i]
    assert order_of(pivots, 6).tolist() == rows


@pytest.mark.parametrize(("dtype", "scale"), [
    ("complex128", 1e300), ("complex128", 1e-300), ("complex64", 1e36), ("complex64", 1e-36),
    ("complex128", 1e307),
])  # fmt: skip
def test_norms_near_the_limits(rng: np.random.Generator, dtype: str, scale: float) -> None:
    n = 40
    a, b = (normal(rng, n, n) * scale).astype(dtype), (normal(rng, n) * scale).astype(dtype)
    x = solve(a, b, precision="15xint8" if dtype == "complex128" else "7xint8", block=8)
    assert backward_error(a / scale, x, b / scale) <= 2 * bound(n, dtype)
    found = solve(a, normal(rng, n).astype(dtype), block=8)
    assert np.isfinite(found).all()


def test_layouts_and_types(rng: np.random.Generator) -> None:
    n = 30
    a, b = normal(rng, n, n), normal(rng, n, 2)
    expected = solve(a, b, block=8)
    for left in (np.asfortranarray(a), np.repeat(a, 2, axis=1)[:, ::2], a[::-1][::-1]):
        for right in (np.asfortranarray(b), np.repeat(b, 3, axis=0)[::3]):
            np.testing.assert_array_equal(solve(left, right, block=8), expected)
    assert solve(a, b[:, 0]).shape == (n,)
    assert solve(a.astype(np.complex64), b).dtype == np.complex128
    integers = rng.integers(-4, 5, (n, n)) + 40 * np.eye(n, dtype=int)
    x = solve(integers, integers @ np.arange(n))
    assert x.dtype == np.complex128
    assert np.abs(x - np.arange(n)).max() <= n * np.linalg.cond(integers, np.inf) * bound(
        n, str(x.dtype)
    )
    assert solve([[2, 0], [0, 4]], [2, 4]).tolist() == [1, 1]
    half = pairs(rng.integers(-9, 9, (n, n, 2)).astype(np.int8))
    assert isinstance(half, Pairs)
    np.testing.assert_array_equal(solve(half, b), solve(half.to_complex64(), b))


@pytest.mark.parametrize(("n", "shape"), [(0, (0,)), (0, (0, 3)), (3, (3, 0))])
def test_empty(n: int, shape: tuple[int, ...]) -> None:
    found = solve(np.eye(n), np.ones(shape), details=True)
    assert found.x.shape == shape
    assert (found.x.dtype, found.backward_error, found.steps) == (np.complex128, 0, 0)


def test_right_sides_of_zeros(rng: np.random.Generator) -> None:
    b = normal(rng, 20, 3)
    b[:, 1] = 0
    x = solve(normal(rng, 20, 20), b)
    assert not x[:, 1].any()
    assert x[:, [0, 2]].all()
    assert not solve(np.eye(4), np.zeros(4)).any()


@pytest.mark.parametrize(("matrix", "column"), [
    (np.zeros((3, 3)), 0), (np.ones((60, 60)), 1), (np.diag([1.0, 2, 0, 3]), 2),
    (np.kron(np.ones((2, 2)), np.eye(24)), 24),
])  # fmt: skip
@pytest.mark.parametrize("precision", [None, "8xint8"])
def test_singular(matrix: Any, column: int, precision: str | None) -> None:
    with pytest.raises(np.linalg.LinAlgError, match=f"singular.* column {column} is 0"):
        solve(matrix, np.ones(len(matrix)), precision=precision, block=16)


def test_too_coarse_products(rng: np.random.Generator) -> None:
    a = system("nearly singular", 60, rng)
    with pytest.raises(np.linalg.LinAlgError, match=r"backward error is .* steps of refinement"):
        solve(a, normal(rng, 60), precision="fp16", block=16)


@pytest.mark.parametrize("precision", [None, "15xint8"])
def test_growth_of_the_factors(rng: np.random.Generator, precision: str | None) -> None:
    """Wilkinson's matrix, whose last column doubles at every pivot.

    At n = 60 zgesv's solution has lost all digits, and refinement finds them; at n = 120 factors
    have nothing left of the last column, which is refused.
    """
    for n in (60, 120):
        a = np.eye(n) - np.tril(np.ones((n, n)), -1)
        a[:, -1] = 1
        b = normal(rng, n)
        if n == 60:
            x = solve(a, b, precision=precision, block=16)
            assert backward_error(a, x, b) <= bound(n, "complex128")
        else:
            with pytest.raises(np.linalg.LinAlgError, match="its factors grow too large"):
                solve(a, b, precision=precision, block=16)


@pytest.mark.parametrize("value", [np.nan, np.inf, complex(0, -np.inf)])
def test_not_finite(value: complex) -> None:
    a = np.eye(40, dtype=complex)
    a[7, 3] = value
    with pytest.raises(ValueError, match="a must be finite"):
        solve(a, np.ones(40))
    with pytest.raises(ValueError, match="b must be finite"):
        solve(np.eye(40), a[7])


def test_what_is_refused() -> None:
    eye, ones = np.eye(3), np.ones(3)
    for a, b, message in (
        (np.ones((3, 2)), ones, "a must be a square matrix, got shape"),
        (np.ones((2, 3, 3)), ones, r"a must be a square matrix, got .*: solve .* one by one"),
        (eye, np.ones(4), r"b must have shape \(3,\) or \(3, r\), got \(4,\)"),
        (eye, np.ones((3, 1, 1)), "b must have shape"),
    ):
        with pytest.raises(ValueError, match=message):
            solve(a, b)
    with pytest.raises(ValueError, match="block must be positive, got 0"):
        solve(eye, ones, block=0)
    with pytest.raises(ValueError, match="panel must be positive, got -1"):
        solve(eye, ones, panel=-1)
    with pytest.raises(ValueError, match=r"precision must be one of .*'15xint8'.*, got '5xint8'"):
        solve(eye, ones, precision="5xint8")
    with pytest.raises(ValueError, match="a must be an array or Pairs, got a packed operand"):
        solve(pack(eye + 0j, "fp32"), ones)
    with pytest.raises(TypeError, match="must be numbers"):
        solve(np.full((3, 3), "x"), ones)
    with pytest.raises(TypeError, match="must fit complex128"):
        solve(eye.astype(np.longdouble), ones)


@pytest.mark.parametrize(("condition", "precision"), [(1e3, "12xint8"), (1e17, "15xint8")])
def test_more_moduli_where_refinement_fails(
    rng: np.random.Generator, condition: float, precision: str
) -> None:
    """On a GPU by default: 12 moduli, whose truncation of 7e-13 does not converge, then 15."""
    n = 60
    left, right = (np.linalg.qr(normal(rng, n, n))[0] for _ in range(2))
    a, b = left * np.geomspace(1, 1 / condition, n) @ right, normal(rng, n)
    shapes = (a.shape, a.dtype), (b.shape, b.dtype)
    problem = solve_problem(*shapes, "cuda", precision=None, block=16)
    found = _solved(problem, CpuLibrary(), a, b)
    assert found.precision == precision
    assert backward_error(a, found.x, b) <= bound(n, "complex128")
    assert found.backward_error <= 4 * U["complex128"]


def test_default_moduli() -> None:
    for n in (0, 1, 100, 4096, 65536, 140_000):
        assert default_precision(n, "complex128") == "15xint8"
        assert default_precision(n, "complex64") == "7xint8"


def test_default_blocks() -> None:
    """The library factors all where its own products are of the precision."""
    for backend, precision, block in (
        ("cpu", None, 3000), ("cuda", "fp32", 3000), ("cpu", "15xint8", 256), ("cuda", None, 3000),
        ("cuda", "3xtf32", 512),
    ):  # fmt: skip
        operand = (3000, 3000), np.dtype(complex)
        right = (3000,), np.dtype(complex)
        found = solve_problem(operand, right, backend, precision=precision)
        assert (found.block, found.panel) == (block, block)
    small = (512, 512), np.dtype(np.complex64)
    found = solve_problem(small, small, "cuda", precision=None)
    assert (found.precision, found.fallback, found.panel) == ("fp32", "fp64", 512)
    assert (found.working, found.is_cgesv, found.is_zgesv) == ("complex64", True, False)
    found = found.fallen_back()
    assert (found.working, found.is_cgesv, found.is_zgesv) == ("complex128", False, True)
    with pytest.raises(ValueError, match="fp64 has no fallback"):
        found.fallen_back()
    found = solve_problem(operand, right, "cuda", precision=None, block=7, panel=3)
    assert (found.block, found.panel) == (7, 3)
    assert (found.precision, found.fallback) == ("12xint8", "15xint8")
    for dtype, precision, fallback in (("c8", "7xint8", None), ("c16", "12xint8", "15xint8")):
        large = (9000, 9000), np.dtype(dtype)
        found = solve_problem(large, large, "cuda", precision=None)
        assert (found.precision, found.fallback, found.panel) == (precision, fallback, 512)
