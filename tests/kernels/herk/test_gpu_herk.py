"""Hermitian products on a GPU: every element against fp64 and the CPU's, outputs poisoned first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from argand import PRECISIONS, gemm, herk, launched, pairs
from argand.device import arch_for, gpu
from argand.gemm.candidates import candidates
from argand.gemm.choice import GemmChoice
from argand.gemm.families import families_of
from argand.gemm.question import GemmSizes, OperandTraits, Question
from argand.gemm.sm80.tiles import mma_tiles
from argand.gemm.sm90.scheduler import CallWorkspace, Tiles
from argand.gemm.tuned import trial
from argand.runtime.plan import WGMMA_TARGET

from tests.kernels.herk.herk_cases import (
    OPS,
    assert_hermitian,
    check,
    expected,
    oriented,
    packed,
    poisoned,
    tolerance,
)
from tests.normal import normal

pytestmark = pytest.mark.gpu
Array = npt.NDArray[Any]
SHAPES = [(1, 1), (3, 200), (64, 4096), (65, 33), (130, 257), (257, 64), (300, 1000)]
PLACES = [(precision, family) for precision in PRECISIONS
          for family in families_of(PRECISIONS[precision])]  # fmt: skip


def skip_without(cp: Any, family: str) -> None:
    if family == "wgmma" and gpu(cp.cuda.Device().id).target != WGMMA_TARGET:
        pytest.skip("wgmma needs sm_90a")


@pytest.mark.parametrize(("precision", "family"), PLACES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shapes(
    cp: Any, rng: np.random.Generator, precision: str, family: str, shape: tuple[int, int]
) -> None:
    skip_without(cp, family)
    check(cp, normal(rng, *shape), precision, family)


@pytest.mark.parametrize("precision", ["fp32", "fp64"])
@pytest.mark.parametrize("most", [0, 1 << 40])
def test_products_of_cublas_by_triangles_and_whole(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, precision: str, most: int
) -> None:
    from argand.herk import cublas

    monkeypatch.setattr(cublas, "_FULL_ROWS", most)
    dtype = PRECISIONS[precision].output
    for op in OPS:
        a = normal(rng, 2, 3, *((45, 70) if op == "N" else (70, 45)))
        for _ in range(3):  # the last ones are repeated
            with launched() as names:
                check(cp, a.astype(dtype), precision, None, op, alpha=-0.5)
            assert ("full product" in names[0]) == bool(most)


@pytest.mark.parametrize(("precision", "family"), PLACES)
@pytest.mark.parametrize("op", OPS)
def test_ops_and_batches(
    cp: Any, rng: np.random.Generator, precision: str, family: str, op: str
) -> None:
    skip_without(cp, family)
    a = normal(rng, 2, 3, *((150, 70) if op == "N" else (70, 150)))
    check(cp, a, precision, family, op, alpha=-0.5)


@pytest.mark.parametrize("precision", ["tf32", "3xfp16", "3xtf32"])
def test_many_tiles_in_groups(cp: Any, rng: np.random.Generator, precision: str) -> None:
    """More tile rows than one raster group, and a last group that is not full."""
    with launched() as names:
        check(cp, normal(rng, 2500, 96), precision, None)
    assert "lower triangle" in names[0]


@pytest.mark.parametrize("precision", ["fp64", "fp32", "tf32", "3xfp16"])
@pytest.mark.parametrize("n", [140, 27])
def test_beta_reads_the_lower_triangle_alone(
    cp: Any, rng: np.random.Generator, precision: str, n: int
) -> None:
    dtype = PRECISIONS[precision].output
    a, c = normal(rng, 3, n, 60), normal(rng, 3, n, n)
    in_fp64 = herk(a.astype(dtype), c.astype(dtype), alpha=2, beta=-0.75, precision="fp64")
    c[..., ~np.tril(np.ones((n, n), bool))] = np.nan
    size = 2 * expected(a)[1] + abs(in_fp64)
    limit = 4 * tolerance(precision, 60, "cuda", alpha=2.0, beta=-0.75)
    scalars: dict[str, Any] = {"alpha": 2, "beta": -0.75, "precision": precision}
    x, addend = cp.asarray(a), cp.asarray(c.astype(dtype))
    found = herk(x, addend, **scalars).get()
    assert_hermitian(found)
    assert (abs(found - in_fp64) <= limit * size).all()
    assert herk(x, addend, out=addend, **scalars) is addend
    np.testing.assert_array_equal(addend.get(), found)
    rows = cp.asarray(packed(c).astype(dtype))
    triangle = herk(x, rows, form="triangle", **scalars).get()
    assert (abs(triangle - packed(in_fp64)) <= limit * packed(size)).all()


def integers(rng: np.random.Generator, *shape: int) -> Array:
    parts = rng.integers(-128, 128, (*shape, 2), np.int8)
    parts[..., :3, :, :] = -128  # has no negative in int8
    return parts


def exactly(parts: Array, op: str) -> Array:
    wide = oriented(parts[..., 0] + 1j * parts[..., 1].astype(np.float64), op)
    return np.asarray(wide @ wide.conj().swapaxes(-1, -2))


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(
    "shape", [(1, 1), (5, 1000), (64, 64), (65, 129), (128, 128), (200, 700), (400, 1100)], ids=str
)
def test_int8_is_exact(cp: Any, rng: np.random.Generator, shape: tuple[int, int], op: Any) -> None:
    n, k = shape
    parts = integers(rng, 3, *((n, k) if op == "N" else (k, n)))
    expected, a = exactly(parts, op), pairs(cp.asarray(parts))
    for dtype in ("complex64", "complex128"):
        out = poisoned(cp, expected.shape, dtype)
        with launched() as names:
            herk(a, op=op, precision="exact", out=out)
        np.testing.assert_array_equal(out.get(), expected.astype(dtype))
        assert_hermitian(out.get())
        triangle = poisoned(cp, (3, n * (n + 1) // 2), dtype)
        herk(a, op=op, precision="exact", form="triangle", out=triangle)
        np.testing.assert_array_equal(triangle.get(), packed(expected).astype(dtype))
    if gpu(cp.cuda.Device().id).target == WGMMA_TARGET:
        assert "exact in s32" in names[0]
    else:
        assert "full product" in names[0]


def test_the_longest_sums_of_int8(cp: Any) -> None:
    """All numbers -128 - 128 i: 2 k 2^14 is one k below 2^31."""
    for k in (65535, 65536):
        parts = np.full((2, k, 2), -128, np.int8)
        out = poisoned(cp, (2, 2), "complex128")
        herk(pairs(cp.asarray(parts)), precision="exact", out=out)
        np.testing.assert_array_equal(out.get(), np.full((2, 2), k * 2.0**15))


def test_int8_with_scalars_and_many_tiles(cp: Any, rng: np.random.Generator) -> None:
    parts = integers(rng, 20, 390, 300)
    expected = exactly(parts, "N")
    c = rng.integers(-9, 9, expected.shape).astype(np.complex128)
    lower = np.tril(c, -1)
    whole = lower + lower.swapaxes(-1, -2) + np.tril(np.triu(c))
    c[..., ~np.tril(np.ones((390, 390), bool))] = np.nan
    for out in (poisoned(cp, expected.shape, "complex128"), cp.asarray(c)):
        addend = out if bool(cp.isfinite(out[0, 0, 0])) else cp.asarray(c)
        a = pairs(cp.asarray(parts))
        herk(a, addend, alpha=0.5, beta=-2, precision="exact", out=out)
        np.testing.assert_array_equal(out.get(), 0.5 * expected - 2 * whole)


def test_int8_layouts(cp: Any, rng: np.random.Generator) -> None:
    parts = integers(rng, 2, 70, 150)
    expected = exactly(parts, "N").astype(np.complex64)
    wide = cp.zeros((2, 140, 453, 2), np.int8)
    wide[:, ::2, 3::3] = cp.asarray(parts)
    offset = cp.zeros(parts.size + 1, np.int8)
    offset[1:] = cp.asarray(parts).ravel()
    apart = cp.asarray(np.moveaxis(parts, -1, 0).copy())
    for view in (
        wide[:, ::2, 3::3], offset[1:].reshape(parts.shape), cp.moveaxis(apart, 0, -1),
        cp.asarray(parts[:, ::-1, ::-1].copy())[:, ::-1, ::-1],
    ):  # fmt: skip
        found = herk(pairs(view), precision="exact").get()
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("precision", ["fp32", "tf32", "3xfp16", "7xint8"])
def test_layouts_and_overlaps(cp: Any, rng: np.random.Generator, precision: str) -> None:
    a = normal(rng, 2, 67, 90)
    plain = herk(cp.asarray(a), precision=precision).get()
    wide = cp.zeros((2, 134, 270), np.complex64)
    wide[:, ::2, ::3] = cp.asarray(a)
    limit = 1e-3 if precision == "tf32" else 1e-5
    for view in (wide[:, ::2, ::3], cp.asfortranarray(cp.asarray(a))):
        found = herk(view, precision=precision).get()
        assert_hermitian(found)
        assert (abs(found - plain) <= limit * expected(a)[1]).all()
    memory = cp.zeros(20000, np.complex64)
    memory[: a.size] = cp.asarray(a).ravel()
    out = memory[1000 : 1000 + plain.size].reshape(plain.shape)
    herk(memory[: a.size].reshape(a.shape), precision=precision, out=out)
    assert (abs(out.get() - plain) <= limit * expected(a)[1]).all()
    strided = poisoned(cp, (2, 134, 134))[:, ::2, 1::2]
    herk(cp.asarray(a), precision=precision, out=strided)
    assert (abs(strided.get() - plain) <= limit * expected(a)[1]).all()


def test_what_is_not_finite_stays_in_its_row_and_column(cp: Any, rng: np.random.Generator) -> None:
    for precision in PRECISIONS:
        a = normal(rng, 90, 60)
        a[3, 4], a[66, 0] = np.nan, np.inf
        found = herk(cp.asarray(a), precision=precision).get()
        lost = np.zeros(90, bool)
        lost[[3, 66]] = True
        np.testing.assert_array_equal(np.isfinite(found), ~(lost[:, None] | lost))
        assert not np.diagonal(found).imag.any()


@pytest.mark.parametrize("family", ["wgmma", "mma.sync"])
@pytest.mark.parametrize("op", OPS)
def test_calls_of_one_form_are_repeated(
    cp: Any, rng: np.random.Generator, op: Any, family: Any
) -> None:
    """Other operands, results made by the call and given, and a C that is the result."""
    skip_without(cp, family)
    for n, k in ((70, 41), (200, 64)):
        for _ in range(3):
            a, c = normal(rng, 2, n, k), normal(rng, 2, *[n if op == "N" else k] * 2)
            value, size = expected(a, op)
            limit = 2**0.5 * tolerance("tf32", oriented(a, op).shape[-1], "cuda")
            options = {"op": op, "precision": "tf32", "kernels": family}
            given, addend = cp.asarray(a), cp.asarray(c + c.conj().swapaxes(-1, -2))
            out, whole = poisoned(cp, value.shape), addend.get()
            assert herk(given, **options, out=out) is out
            for found in (herk(given, **options).get(), out.get()):
                assert_hermitian(found)
                assert (abs(found - value) <= limit * size).all()
            assert herk(given, addend, beta=1, **options, out=addend) is addend
            error = abs(addend.get() - value - whole)
            assert (error <= limit * (size + 2 * abs(whole))).all()


def test_trials_choose_the_plan_of_kept_calls(cp: Any, rng: np.random.Generator) -> None:
    x = cp.asarray(normal(rng, 9, 24, 80))
    for _ in range(3):
        herk(x, precision="tf32")
    for block in (64, 32):
        tile = next(t for t in mma_tiles(PRECISIONS["tf32"], gpu(x.device.id).require_arch())
                    if t.block_m == t.block_n == block)  # fmt: skip
        with trial(GemmChoice(mma=tile)) as asked, launched() as names:
            herk(x, precision="tf32")
        assert f"{block}x{block}x{tile.block_k}" in names[0]
        assert asked.question is not None
        assert asked.question.sizes.triangle


def test_repeated_calls_of_integers(cp: Any, rng: np.random.Generator) -> None:
    for _ in range(3):
        parts = rng.integers(-128, 128, (3, 40, 90, 2)).astype(np.int8)
        value, _ = expected(parts.astype(np.float32).view(np.complex64)[..., 0])
        found = herk(pairs(cp.asarray(parts)), precision="exact")
        np.testing.assert_array_equal(found.get(), value.astype(np.complex64))


def test_empty_and_no_product(cp: Any, rng: np.random.Generator) -> None:
    for shape in ((0, 3, 4), (2, 0, 4), (2, 3, 0)):
        found = herk(cp.zeros(shape, np.complex64), precision="tf32")
        np.testing.assert_array_equal(found.get(), np.zeros((*shape[:-1], shape[-2])))
    c = normal(rng, 40, 40)
    found = herk(cp.zeros((40, 0), np.complex64), cp.asarray(c), beta=2).get()
    np.testing.assert_array_equal(found, herk(np.zeros((40, 0), np.complex64), c, beta=2))


def test_the_same_as_a_full_product(cp: Any, rng: np.random.Generator) -> None:
    """Tiles below the diagonal sum in the order of gemm's, so an error of more is a wrong tile."""
    a = cp.asarray(normal(rng, 700, 512))
    full = gemm(a, a, op_b="C", precision="tf32").get()
    found = herk(a, precision="tf32").get()
    size = expected(a.get())[1]
    assert (abs(found - full) <= tolerance("tf32", 512, "cuda") * size).all()


def test_mainloops_overlap_epilogues_that_mirror_nothing() -> None:
    """Those of a result that is wanted whole store mirror images instead."""
    from argand.gemm.sm90.launch_plan import schedule_with_overlap
    from argand.gemm.sm90.problem import WgmmaProblem

    traits = OperandTraits(), OperandTraits(conjugated=True)
    sizes = GemmSizes(900, 128, 128, 700, triangle=True)
    plan = next(
        replace(x.wgmma, tma_epilogue=True)
        for x in candidates(Question(PRECISIONS["tf32"], sizes, *traits), arch_for(90), 132)
        if x.wgmma is not None and (x.wgmma.block_m, x.wgmma.storage) == (128, "planar")
    )  # fmt: skip
    for rows, mirror, overlaps in ((1, True, False), (4, True, False), (1, False, True)):
        problem = WgmmaProblem(128 * rows, 128 * rows, 700, 900, True, True, mirror=mirror)
        found, _ = schedule_with_overlap(
            plan, PRECISIONS["tf32"], problem, Tiles(rows, rows, 900, True), 132, CallWorkspace(),
            arch_for(90),
        )  # fmt: skip
        assert (found.overlapped_stages > 0) == overlaps, rows
