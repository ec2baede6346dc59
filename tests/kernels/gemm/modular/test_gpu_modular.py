"""Exact products on a GPU: the same bits as on the CPU, by every kernel, at any shape."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from argand import gemm, launched, pack, pairs
from argand.gemm.modular.moduli import MAX_MODULI, MIN_PRECISION_MODULI
from argand.gemm.modular.product_plan import MMA_PLANS, WGMMA_PLANS, ResiduePlan

from tests.covers import examples
from tests.kernels.gemm.product_cases import stored

pytestmark = pytest.mark.gpu
TYPES = (np.complex64, np.complex128)
FAMILIES = ("wgmma", "mma.sync")
COUNTS = tuple(range(MIN_PRECISION_MODULI, MAX_MODULI + 1))


@pytest.fixture
def modular_launch(cp: Any) -> Iterator[Any]:
    """The module of launches, without those of other tests."""
    from argand.gemm.gpu_calls import CALLS
    from argand.gemm.modular import launch
    from argand.gemm.modular.kept_launches import launch_for

    launch_for.cache_clear()
    CALLS.clear()
    yield launch
    launch_for.cache_clear()
    CALLS.clear()


@pytest.fixture
def smallest_pieces(modular_launch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Products in the smallest pieces, as with no workspace."""
    monkeypatch.setattr(modular_launch, "most_workspace", lambda *_: 0)


def numbers(rng: np.random.Generator, *shape: int, dtype: Any, spread: float = 0.5) -> Any:
    """Normal numbers whose magnitudes are spread by e^(spread normal)."""
    parts = rng.standard_normal((2, *shape)) * np.exp(spread * rng.standard_normal((2, *shape)))
    return (parts[0] + 1j * parts[1]).astype(dtype)


def same_bits(cp: Any, a: Any, b: Any, c: Any = None, **options: Any) -> None:
    """Compare a product with the CPU's, into an output that was poisoned."""
    kernels = options.pop("kernels", None)
    expected = gemm(a, b, c, **options)
    out = cp.full(expected.shape, complex(np.nan, 7), expected.dtype)
    given = [None if x is None else cp.asarray(x) for x in (a, b, c)]
    found = gemm(*given, **options, kernels=kernels, out=out)
    assert found is out
    np.testing.assert_array_equal(cp.asnumpy(out), expected)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("count", COUNTS)
def test_every_number_of_moduli(cp: Any, rng: np.random.Generator, count: int, dtype: Any) -> None:
    for family, (m, n, k) in zip(FAMILIES * 2, ((150, 141, 300), (64, 257, 33), (1, 1, 1),
                                               (257, 66, 513)), strict=True):  # fmt: skip
        a, b = numbers(rng, m, k, dtype=dtype), numbers(rng, k, n, dtype=dtype)
        same_bits(cp, a, b, precision=f"{count}xint8", kernels=family)


@pytest.mark.parametrize("plan", [*WGMMA_PLANS, *MMA_PLANS], ids=lambda plan: plan.name)
def test_every_plan(
    cp: Any, rng: np.random.Generator, plan: ResiduePlan, modular_launch: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(modular_launch, "choose_plan", lambda *_: plan)
    longest = 128 * plan.resident_tiles or 1000
    for m, n, k in ((300, 520, 700), (2100, 390, 40), (2, 130, 1000), (50, 1300, 300)):
        k = min(k, longest)
        a, b = numbers(rng, m, k, dtype="complex64"), numbers(rng, k, n, dtype="complex64")
        with launched() as names:
            same_bits(cp, a, b, precision="7xint8")
        assert {name.partition(", ")[2].partition(",")[0] for name in names} == {plan.name}


@pytest.mark.parametrize("dtype", TYPES)
def test_random_shapes(cp: Any, rng: np.random.Generator, dtype: Any) -> None:
    for _ in range(examples(24)):
        m, n, k = (int(np.exp(rng.uniform(0, np.log(700)))) for _ in range(3))
        spread = float(rng.choice([0.1, 2.0]))
        a, b = (numbers(rng, *s, dtype=dtype, spread=spread) for s in ((m, k), (k, n)))
        same_bits(cp, a, b, precision=f"{rng.integers(MIN_PRECISION_MODULI, MAX_MODULI + 1)}xint8")


@pytest.mark.parametrize("dtype", TYPES)
def test_ops_scalars_batches_and_strides(cp: Any, rng: np.random.Generator, dtype: Any) -> None:
    for op_a, op_b in itertools.product("NTC", "NTC"):
        a = stored(numbers(rng, 3, 70, 300, dtype=dtype), op_a)
        b = stored(numbers(rng, 300, 90, dtype=dtype), op_b)
        c = numbers(rng, 3, 70, 90, dtype=dtype)
        same_bits(cp, a, b, c, op_a=op_a, op_b=op_b, alpha=0.3 - 2j, beta=1.25j,
                  precision="9xint8")  # fmt: skip
    a, b = numbers(rng, 2, 1, 40, 128, dtype=dtype), numbers(rng, 5, 128, 30, dtype=dtype)
    same_bits(cp, a, b, precision="7xint8")
    same_bits(cp, a[0, 0], b, precision="7xint8")
    x = cp.asarray(numbers(rng, 90, 400, dtype=dtype))
    for left in (x[::2, ::-3], x[::-1, 5:139]):
        right = x[: left.shape[1] // 2 * 2 : 2, 1::4] if left.shape[1] > 134 else x[:1].T[:134]
        right = x.T[3 : 3 + left.shape[1], ::7]
        expected = gemm(left.get(), right.get(), precision="8xint8")
        for order in "CF":
            out = cp.full(expected.shape, np.nan, dtype, order=order)
            gemm(left, right, precision="8xint8", out=out)
            np.testing.assert_array_equal(out.get(), expected)
    square = cp.asarray(numbers(rng, 130, 130, dtype=dtype))
    expected = gemm(square.get(), square.get(), precision="7xint8")
    assert gemm(square, square, precision="7xint8", out=square) is square
    np.testing.assert_array_equal(square.get(), expected)


@pytest.mark.parametrize("family", FAMILIES)
def test_k_beyond_what_one_sum_holds(cp: Any, rng: np.random.Generator, family: str) -> None:
    for k in (65536, 65537, 150_000):
        a, b = (numbers(rng, *s, dtype="complex64") for s in ((5, k), (k, 7)))
        same_bits(cp, a, b, precision="7xint8", kernels=family)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("slices", [2, 4])
def test_slices_of_k(
    cp: Any, rng: np.random.Generator, family: str, slices: int, modular_launch: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(modular_launch, "choose_slices", lambda *_: slices)
    for shape_a, shape_b in (((70, 1300), (1300, 140)), ((3, 5, 1290), (3, 1290, 2))):
        for dtype in TYPES:
            a, b = (numbers(rng, *shape, dtype=dtype) for shape in (shape_a, shape_b))
            with launched() as names:
                same_bits(cp, a, b, precision="9xint8", kernels=family, check=True)
            assert all(name.endswith(f", {slices} slices of k") for name in names)


def test_a_long_k_is_split(cp: Any, rng: np.random.Generator) -> None:
    a, b = (numbers(rng, *s, dtype="complex64") for s in ((20, 100_000), (100_000, 30)))
    with launched() as names:
        same_bits(cp, a, b, precision="8xint8")
    assert all("slices of k" in name for name in names)
    same_bits(cp, a, b, alpha=2 - 1j, precision="16xint8", check=True)


def test_calls_in_a_row_whose_lines_fill_no_cluster(cp: Any, rng: np.random.Generator) -> None:
    """A CTA of a cluster that encodes ends when the others have read its norms, and not before."""
    a, b = (cp.asarray(numbers(rng, *s, dtype="complex64")) for s in ((700, 800), (40, 800, 900)))
    expected = gemm(a, b, precision="7xint8", kernels="mma.sync")
    out = cp.empty_like(expected)
    for _ in range(200):
        gemm(a, b, precision="7xint8", out=out)
    assert (out.view(np.uint64) == expected.view(np.uint64)).all()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("count", [6, 8, 16])
def test_special_values(cp: Any, rng: np.random.Generator, count: int, dtype: Any) -> None:
    a, b = numbers(rng, 70, 300, dtype=dtype), numbers(rng, 300, 140, dtype=dtype)
    tiny, huge = (1e-38, 1e30) if dtype == np.complex64 else (1e-300, 1e300)
    a[2, 3] = np.nan
    a[5, 0] = complex(0, -np.inf)
    a[7] = 0
    a[8] *= dtype(tiny)
    a[9] *= dtype(huge)
    a[10, 1:] = 0
    a[11, :256] *= dtype(1e-25)
    b[299, 4] = np.inf
    b[:, 6] = 0
    b[:, 7] *= dtype(tiny)
    b[:, 8] *= dtype(huge)
    b[:, 9] *= dtype(1e-5)
    a[12] = np.round(8 * a[12])
    b[:, 10] = np.round(8 * b[:, 10])
    with np.errstate(all="ignore"):
        same_bits(cp, a, b, precision=f"{count}xint8")
        same_bits(cp, np.round(4 * a), np.round(4 * b), precision=f"{count}xint8")


def test_integers_on_ties_are_rounded_as_on_the_cpu(cp: Any, rng: np.random.Generator) -> None:
    """Products of integers whose results lie half way between two numbers of the type."""
    k = 64
    x = rng.integers(-(2**13), 2**13, (4, 90, k)).astype(np.float64)
    a, b = x[0] + 1j * x[1], (x[2] + 1j * x[3]).T
    for dtype, count in ((np.complex64, 8), (np.complex64, 17), (np.complex128, 9)):
        same_bits(cp, a.astype(dtype), b.astype(dtype), precision=f"{count}xint8")


@pytest.mark.parametrize("dtype", TYPES)
def test_packed_operands(cp: Any, rng: np.random.Generator, dtype: Any) -> None:
    a, b = numbers(rng, 3, 1, 70, 300, dtype=dtype), numbers(rng, 2, 300, 150, dtype=dtype)
    c = numbers(rng, 3, 2, 70, 150, dtype=dtype)
    options: dict[str, Any] = {"precision": "9xint8", "alpha": 2 - 1j, "beta": 0.5}
    expected = gemm(a, b, c, **options)
    turned = cp.asarray(b.swapaxes(-1, -2).conj())
    left, right = cp.asarray(a), cp.asarray(b)
    packed_left = pack(left, "9xint8")
    packed_right = pack(turned, "9xint8", side="b", op="C")
    addend = cp.asarray(c)
    for x, y in ((packed_left, right), (left, packed_right), (packed_left, packed_right)):
        for order in "CF":
            for _ in range(2):
                out = cp.full(expected.shape, np.nan, dtype, order=order)
                gemm(x, y, addend, out=out, **options)
                np.testing.assert_array_equal(out.get(), expected)
    left[:] = 0  # what was packed stays
    np.testing.assert_array_equal(gemm(packed_left, right, addend, **options).get(), expected)
    with pytest.raises(ValueError, match="check needs the operands themselves on a GPU"):
        gemm(packed_left, right, addend, check=True, **options)


@pytest.mark.parametrize(("name", "sizes"), [("int8", (70, 150, 90)), ("int16", (33, 1, 64)),
                                             ("int8", (300, 5000, 20))])  # fmt: skip
def test_integers_in_pairs(
    cp: Any, rng: np.random.Generator, name: str, sizes: tuple[int, int, int]
) -> None:
    m, k, n = sizes
    limits = np.iinfo(name)
    x, y = (
        rng.integers(limits.min, limits.max + 1, (*s, 2)).astype(name) for s in ((m, k), (k, n))
    )
    x[0], y[:, 0] = limits.min, limits.min
    for dtype in TYPES:
        expected = gemm(pairs(x), pairs(y), precision="exact", out=np.empty((m, n), dtype))
        out = cp.full((m, n), np.nan, dtype)
        left, right = pairs(cp.asarray(x)), pairs(cp.asarray(y))
        assert gemm(left, right, precision="exact", check=True, out=out) is out
        np.testing.assert_array_equal(out.get(), expected)
    a, b = (z[..., 0].astype(float) + 1j * z[..., 1] for z in (x, y))
    np.testing.assert_array_equal(out.get(), a @ b)


def test_tolerances_and_what_is_refused(cp: Any, rng: np.random.Generator) -> None:
    a, b = numbers(rng, 40, 90, dtype="complex128"), numbers(rng, 90, 50, dtype="complex128")
    same_bits(cp, a, b, tolerance=1e-13)
    with pytest.raises(ValueError, match="a tolerance of 1e-30 at k = 90"):
        gemm(cp.asarray(a), cp.asarray(b), tolerance=1e-30)
    with pytest.raises(TypeError, match="all be NumPy arrays or all be CuPy arrays"):
        gemm(cp.asarray(a), b, precision="7xint8")
    for m, n, k in ((0, 3, 2), (3, 0, 2), (3, 2, 0)):
        found = gemm(cp.ones((m, k), complex), cp.ones((k, n), complex), precision="7xint8")
        assert found.shape == (m, n)
        assert not found.any()


def test_a_kernel_serves_lines_of_any_length(cp: Any, rng: np.random.Generator) -> None:
    """Its launches differ in shared memory; a short one must not take from a long one."""
    long, short = (numbers(rng, 3, k, dtype="complex64") for k in (8000, 40))
    for a in (long, short, long[:2]):
        same_bits(cp, a, a.T, precision="7xint8")
