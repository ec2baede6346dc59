"""Small Hermitian products on the CPU of which BLAS makes rows Hermitian to the bit."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from argand import herk
from argand.device import Device
from argand.herk import api, cpu, cpu_dot, cpu_lower, cpu_matmul, cpu_padded, cpu_parts
from argand.herk.problem import herk_problem
from argand.runtime.cpu import numpy_blas
from argand.runtime.cpu.one_core import numpy_on_one_core

from tests.kernels.herk.herk_cases import assert_hermitian, oriented
from tests.normal import normal

ROWS = (2, 4, 5, 8, 11, 24, 40, 61, 117, 120)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize(
    ("n", "op"),
    [*zip(ROWS, 5 * "NC", strict=True),
     *(pytest.param(*row, marks=pytest.mark.exhaustive)
       for row in zip(ROWS, 5 * "CN", strict=True))],
)  # fmt: skip
@pytest.mark.parametrize("part_bytes", [5000, 1 << 22])
def test_small_products_of_any_strides_are_hermitian(
    n: int, op: Any, dtype: str, part_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are mirrored at once, or some at a time."""
    monkeypatch.setattr(cpu_parts, "_PART_BYTES", part_bytes)
    api._CPU_CALLS.clear()
    for batch, k in ((1, 3), (3, 2), (20, 9), (70, 3)):
        a = oriented(normal(np.random.default_rng(n), batch, n, k), op).astype(dtype)
        finite = slice(int(batch > 1), None)
        a[: finite.start] *= 1e30  # has no finite product in complex64
        column_major = a.swapaxes(-1, -2).copy().swapaxes(-1, -2)
        for x in (a, column_major, np.repeat(a, 2, axis=-1)[..., ::2]):
            found = herk(x, op=op)
            np.testing.assert_array_equal(found, np.conjugate(found).swapaxes(-1, -2))
            assert not np.diagonal(found, axis1=1, axis2=2).imag.any()
            full = np.einsum("bik,bjk->bij" if op == "N" else "bkj,bki->bij", x, x.conj())
            bound = 8 * k * np.finfo(dtype).eps * np.abs(full[finite]).max()
            assert np.abs(found[finite] - full[finite]).max() <= bound
    api._CPU_CALLS.clear()  # calls kept with other values


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("op", ["N", "C"])
def test_rows_that_matmul_makes_hermitian_are_so_by_other_numbers(op: Any, dtype: str) -> None:
    """Columns beyond whole tiles are a tile of their own."""
    for n, k in (
        (2, 2), (5, 7), (8, 2), (12, 3), (16, 100), (23, 9), (27, 5), (40, 12), (46, 30), (90, 4),
        (96, 7),
    ):  # fmt: skip
        a = oriented(normal(np.random.default_rng(n), 50, n, k), op).astype(dtype)
        problem = herk_problem(a.shape, op=op, precision=None, dtype=dtype)
        rows = cpu_matmul.matched_rows(problem)
        multiply = partial(
            numpy_on_one_core, cpu_matmul.full_product(op, n, cpu_matmul.TILE[dtype])
        )
        kept = np.empty((50, n, n), dtype)
        multiply(a, kept)
        np.testing.assert_array_equal(multiply(a), kept)
        found = kept[:, :rows, :rows]
        np.testing.assert_array_equal(found, np.conjugate(found).swapaxes(-1, -2))


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize(
    ("batch", "n", "k"), [((3,), 2, 2), ((7,), 11, 4), ((2, 3), 8, 9), ((9,), 25, 3)]
)
@pytest.mark.parametrize("part_bytes", [12_000, 1 << 18])
@pytest.mark.parametrize("few_rows", [0, 1 << 10])
def test_products_by_whole_tiles(
    batch: tuple[int, ...], n: int, k: int, dtype: str, part_bytes: int, few_rows: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """No result has anything of the next matrix, whose conjugates follow."""
    monkeypatch.setattr(cpu_padded, "_PART_BYTES", part_bytes)
    monkeypatch.setattr(cpu_padded, "_FEW_ROWS", few_rows)
    problem = herk_problem((*batch, n, k), precision=None, dtype=dtype)
    if not cpu_padded._are_hermitian(n, k, dtype):
        pytest.skip("another BLAS, whose tiles are others")
    numbers = normal(np.random.default_rng(n), *batch, n, k).astype(dtype)
    last = tuple(x - 1 for x in batch)
    numbers[(*last, 1, 0)] = np.nan
    run, finite = cpu_padded.padded(problem), np.ones((*batch, n, n), bool)
    finite[(*last, 1)] = finite[(*last, slice(None), 1)] = False
    out = np.empty((*batch, n, n), dtype)
    for a in (numbers, np.asfortranarray(numbers)):
        for found in (run(a), cpu.into(run)(a, out=out)):
            np.testing.assert_array_equal(np.isfinite(found), finite)
            assert_hermitian(found, finite)
            assert found.flags.c_contiguous
            assert found.flags.writeable
            full = np.einsum("...ik,...jk->...ij", a, a.conj())
            bound = 8 * k * np.finfo(dtype).eps * np.abs(full[finite]).max()
            assert np.abs(found - full)[finite].max() <= bound
    assert found is out


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_dot_products_that_are_hermitian_are_so_by_other_numbers(dtype: str) -> None:
    """Rows may lie at any address, and begin at different ones."""
    for n, k in ((2, 2), (3, 5), (4, 31), (5, 100)):
        if not cpu_dot.are_hermitian(n, k, dtype):
            continue
        numbers = normal(np.random.default_rng(n), 50 * n * k + 3).astype(dtype)
        for first in range(4):
            a, found = numbers[first:][: 50 * n * k].reshape(50, n, k), np.empty((50, n, n), dtype)
            cpu_dot.all_dots(a, found)
            np.testing.assert_array_equal(found, np.conjugate(found).swapaxes(-1, -2))


@pytest.mark.parametrize("are_hermitian", [False, True])
@pytest.mark.parametrize("shape", [(3, 3, 9), (40, 5, 90), (500, 3, 300), (4, 300)])
def test_few_rows_by_dot_products(
    shape: tuple[int, ...], are_hermitian: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_lower, "available_cores", lambda: 1)
    if not are_hermitian:
        monkeypatch.setattr(cpu_dot, "are_hermitian", lambda *_: False)
    api._CPU_CALLS.clear()
    cpu_dot.dotted.cache_clear()
    a = normal(np.random.default_rng(1), *shape)
    a[..., 0, 1] = np.inf
    problem = herk_problem(a.shape, precision=None, dtype="complex64")
    by_dots = cpu_dot.dotted(problem)
    assert are_hermitian or by_dots is not cpu_dot.all_dots
    found = herk(a)
    lost = np.zeros((shape[-2], shape[-2]), bool)
    lost[0] = lost[:, 0] = True
    assert (np.isfinite(found) == ~lost).all()
    assert not np.diagonal(found, axis1=-2, axis2=-1).imag.any()
    rest = found[..., 1:, 1:]
    np.testing.assert_array_equal(rest, np.conjugate(rest).swapaxes(-1, -2))
    kept = a[..., 1:, :]
    full = kept @ kept.conj().swapaxes(-1, -2)
    bound = 8 * shape[-1] * np.finfo(np.complex64).eps * np.abs(full).max()
    assert np.abs(rest - full).max() <= bound
    api._CPU_CALLS.clear()  # calls kept with other values
    cpu_dot.dotted.cache_clear()


def test_rows_of_one_wrong_number_are_not_hermitian(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(a: Any, b: Any, out: Any) -> None:
        found = np.tril(np.einsum("bik,bkj->bij", a, b), -1)
        out[...] = found + np.conjugate(found).swapaxes(-1, -2)
        out[3, 9, 4] = out[3, 9, 4] * np.float32(1 + 2**-23)

    problem = herk_problem((5, 12, 6), precision=None, dtype="complex64")
    monkeypatch.setattr(cpu_matmul, "openblas_kernels", lambda: "any")
    monkeypatch.setattr(np, "matmul", wrong)
    cpu_matmul._matched.cache_clear()
    assert cpu_matmul.matched_rows(problem) == 9
    cpu_matmul._matched.cache_clear()
    monkeypatch.setattr(cpu_matmul, "openblas_kernels", lambda: None)
    assert cpu_matmul.matched_rows(problem) == 0


@pytest.mark.parametrize(("n", "k"), [(2, 8000), (3, 3000), (2, 2), (60, 9), (180, 2)])
def test_few_numbers_show_which_rows_are_hermitian(
    n: int, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call of a new shape waits for them."""
    sizes = []

    def product(a: Any, out: Any) -> None:
        sizes.append((len(a), a.size))
        out[...] = 0

    monkeypatch.setattr(cpu_matmul, "full_product", lambda *_, **__: product)
    cpu_matmul._matched.cache_clear()
    cpu_matmul._matched(n, k, "C", "complex64")
    cpu_matmul._matched.cache_clear()
    ((matrices, numbers),) = sizes
    assert 8 <= matrices <= 64
    assert numbers <= max(1 << 16, 8 * n * k)


def test_results_that_are_mirrored_whole_take_matmul_at_fewer_multiplications(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a C, another alpha or a triangle all rows are finished, whatever BLAS made of them."""
    monkeypatch.setattr(cpu_lower, "available_cores", lambda: 1)
    problem = herk_problem((50, 40, 40), op="C", precision=None, dtype="complex64")
    for of_amd in (True, False):  # whose calls of matmul wait
        monkeypatch.setattr(cpu_lower, "is_of_amd", lambda of_amd=of_amd: of_amd)
        assert cpu_lower.is_multiplied(problem, matched=40) is not of_amd
    assert not cpu_lower.is_multiplied(problem)
    monkeypatch.setattr(cpu_lower, "matched_rows", lambda _: 1 // 0)
    cpu_lower.lower_of(problem)


@pytest.mark.parametrize(
    ("name", "is_avx512", "expected"),
    [("AMD EPYC, 2 cores", True, "_TIMES_BY_AVX512_OF_AMD"), ("AMD EPYC, 2 cores", False, "_TIMES"),
     ("Intel(R) Xeon(R), 2 cores", True, "_TIMES_BY_AVX512"),
     ("AMD64 Family 25 Model 97 Stepping 2, AuthenticAMD, 8 cores", True,
      "_TIMES_BY_AVX512_OF_AMD"), ("AMD64, 8 cores", True, "_TIMES_BY_AVX512")],
)  # fmt: skip
def test_dot_products_are_estimated_for_the_processor(
    name: str, is_avx512: bool, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numpy_blas, "cpu", lambda: Device("cpu", name))
    monkeypatch.setattr(cpu_dot, "has_avx512_kernels", lambda: is_avx512)
    numpy_blas.is_of_amd.cache_clear()
    try:
        assert cpu_dot._times() is getattr(cpu_dot, expected)
    finally:
        numpy_blas.is_of_amd.cache_clear()


@pytest.mark.parametrize(
    ("shape", "dtype", "is_padded"),
    [((14, 6, 15), "complex64", True), ((14, 6, 16), "complex64", False),
     ((14, 8, 60), "complex64", True), ((14, 7, 60), "complex128", True)],
)  # fmt: skip
def test_columns_beyond_a_result_are_multiplied_for_a_short_k(
    shape: tuple[int, ...], dtype: str, is_padded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_padded, "has_avx512_kernels", lambda: True)
    monkeypatch.setattr(cpu_padded, "is_multiplied", lambda *_: True)
    monkeypatch.setattr(cpu_padded, "_are_hermitian", lambda *_: True)
    assert cpu_padded.is_padded(herk_problem(shape, precision=None, dtype=dtype)) is is_padded
