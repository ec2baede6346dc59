"""Hermitian products on the CPU by NumPy's herk and dot products."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from argand.herk import cpu, cpu_blas, cpu_dot, cpu_gather, cpu_lower, cpu_matmul, cpu_parts
from argand.herk.problem import HerkProblem, herk_problem
from argand.precision import get_precision
from argand.runtime.cpu.numpy_blas import lapack_address

from tests.kernels.herk.herk_cases import assert_hermitian, oriented
from tests.normal import normal

WAYS = {
    "alone": cpu_gather.alone,
    "in place": lambda problem: cpu_gather.gathered(problem, cpu_gather.in_place),
    "dots": cpu_dot.few_by_dots,
}


@pytest.mark.skipif(lapack_address("zherk") is None, reason="NumPy has another BLAS")
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("op", ["N", "C"])
@pytest.mark.parametrize(
    ("way", "shape"),
    [("alone", (2, 64)), ("alone", (1, 13, 70)), ("alone", (40, 300)), ("in place", (2, 64)),
     ("in place", (1, 13, 70)), ("in place", (20, 500)), ("in place", (2, 3, 20, 300)),
     ("in place", (5, 9, 7)), ("in place", (2, 60, 20)),
     ("dots", (2, 64)), ("dots", (2, 3, 5, 8))],
)  # fmt: skip
def test_products_by_kept_calls(
    way: str, shape: tuple[int, ...], op: Any, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Operands of any order, also those that are only read; a row may not be finite."""
    numbers = oriented(normal(np.random.default_rng(1), *shape), op).astype(dtype)
    problem = herk_problem(
        numbers.shape, op=op, precision=get_precision("fp32" if dtype == "complex64" else "fp64"),
        dtype=dtype,
    )  # fmt: skip
    by_dots = op == "N" and cpu_dot.are_hermitian(problem.n, problem.k, dtype)
    if way == "dots" and not by_dots:
        pytest.skip("BLAS makes this product Hermitian by other kernels")
    run, n, k = WAYS[way](problem), problem.n, problem.k
    read_only = numbers.copy()
    read_only.flags.writeable = False
    out = np.empty(problem.shape, dtype)
    for a in (numbers, read_only, np.asfortranarray(numbers)):
        for found in (run(a), cpu.into(run)(a, out=out)):
            rows = a if op == "N" else np.conjugate(a).swapaxes(-1, -2)
            full = np.einsum("...ik,...jk->...ij", rows, rows.conj())
            assert_hermitian(found)
            assert not np.signbit(np.diagonal(found, axis1=-2, axis2=-1).imag).any()
            assert found.shape == problem.shape
            assert np.abs(found - full).max() <= 8 * k * np.finfo(dtype).eps * np.abs(full).max()
    first = run(numbers).copy()
    bad = numbers.copy()
    bad[(*(0 for _ in shape),)] = np.nan
    lost = run(bad)
    assert not np.diagonal(lost, axis1=-2, axis2=-1).imag.any()
    assert np.isfinite(lost).sum() == (problem.batch - 1) * n * n + (n - 1) ** 2
    np.testing.assert_array_equal(run(numbers), first)


@pytest.mark.skipif(lapack_address("zherk") is None, reason="NumPy has another BLAS")
@pytest.mark.parametrize("op", ["N", "C"])
def test_parts_of_a_batch_are_read_in_place(op: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call on a part of a batch writes the products of that part alone."""
    a = oriented(normal(np.random.default_rng(1), 5, 30, 100), op).astype(np.complex64)
    problem = herk_problem(a.shape, op=op, precision=get_precision("fp32"), dtype="complex64")
    found = np.full((5, 30, 30), 7, np.complex64)
    cpu_lower.herk_of_numpy(problem)(a[:3], cpu_blas.places_of(found[:3]))
    rows = a if op == "N" else a.conj().swapaxes(-1, -2)
    full = rows @ rows.conj().swapaxes(-1, -2)
    lower = np.tri(30, dtype=bool)
    bound = 8 * 100 * np.finfo(np.float32).eps * np.abs(full).max()
    assert np.abs(found[:3] - full[:3])[:, lower].max() <= bound
    assert (found[:3][:, ~lower] == 7).all()
    assert (found[3:] == 7).all()


@pytest.mark.skipif(lapack_address("zherk") is None, reason="NumPy has another BLAS")
def test_operands_that_are_only_read_are_not_copied() -> None:
    problem = _problem(3, 9, 500)
    a = normal(np.random.default_rng(1), 3, 9, 500).astype(np.complex64)
    a.flags.writeable = False
    run = cpu_gather.gathered(problem, cpu_gather.in_place)
    assert_hermitian(run(a))
    tracemalloc.start()
    assert_hermitian(run(a))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < a.nbytes / 2


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("op", ["N", "C"])
def test_herk_by_its_address_has_the_bits_of_scipys(op: Any, dtype: str) -> None:
    assert cpu_blas.has_address(dtype)
    a = oriented(normal(np.random.default_rng(8), 5, 6, 15), op).astype(dtype)
    for x in (a, a[::2], a.swapaxes(0, 1).copy().swapaxes(0, 1)):
        found, expected = (np.zeros((len(x), 6, 6), dtype) for _ in range(2))
        cpu_blas.herk_by_address(b"C" if op == "N" else b"N", x, found)
        cpu_lower._by_herk(cpu_lower.trans_of(op), x, expected)
        np.testing.assert_array_equal(found, expected)


def test_batches_are_by_numpys_herk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not single ones that take less than the call, nor of short k but for those of many rows."""
    monkeypatch.setattr(cpu_lower, "has_numpy_herk", lambda _: True)
    taken = {(3, 38, 28): True, (38, 28): False, (38, 29): True, (6, 390): False, (6, 391): True}
    for shape, is_taken in taken.items():
        assert cpu_lower.takes_numpy_herk(_problem(*shape)) is is_taken
    monkeypatch.setattr(cpu_lower, "dotted", lambda _: None)
    for shape, is_multiplied in {(3, 47, 2): True, (3, 48, 2): False, (3, 40, 11): False}.items():
        assert cpu_lower.is_multiplied(_problem(*shape)) is is_multiplied
    monkeypatch.setattr(cpu_lower, "has_numpy_herk", lambda _: False)
    assert not cpu_lower.takes_numpy_herk(_problem(3, 38, 38))
    assert cpu_lower.is_multiplied(_problem(3, 48, 2))


@pytest.mark.parametrize(
    ("cores", "shape", "is_threaded", "is_limited"),
    [(1, (300, 300), False, False), (2, (300, 300), True, False), (2, (45, 41, 101), False, True),
     (8, (5, 60, 200), True, False), (2, (3, 38, 38), False, False), (2, (3, 40, 41), False, True),
     (2, (24, 103), False, True)],
)  # fmt: skip
def test_blas_takes_one_core_where_threads_take_longer(
    cores: int, shape: tuple[int, ...], is_threaded: bool, is_limited: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(cpu_lower, "available_cores", lambda: cores)
    monkeypatch.setattr(cpu_lower.numpy_on_one_core, "threads", object())
    problem = _problem(*shape)
    assert cpu_lower._is_threaded(problem) is is_threaded
    assert (cpu_lower.limited(problem, len) is not len) is is_limited


def test_blas_keeps_its_threads_where_herk_takes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those are set for 1 us a call; a full product of as many rows would be shared by them."""
    monkeypatch.setattr(cpu_lower, "available_cores", lambda: 2)
    monkeypatch.setattr(cpu_lower.numpy_on_one_core, "threads", object())
    for shape, is_multiplied, is_limited in [
        ((44, 18), False, False), ((24, 115), False, True), ((4, 60, 18), True, False),
        ((4, 128, 4), True, True),
    ]:  # fmt: skip
        monkeypatch.setattr(cpu_lower, "is_multiplied", lambda *_, by=is_multiplied: by)
        problem = herk_problem(shape, precision=get_precision("fp64"), dtype="complex128")
        assert (cpu_lower.limited(problem, len) is not len) is is_limited


def test_rows_that_one_core_makes_hermitian_are_computed_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where one core is available: the threads of BLAS may be set after the first call."""
    monkeypatch.setattr(cpu_lower, "available_cores", lambda: 1)
    monkeypatch.setattr(cpu_lower, "is_of_amd", lambda: False)
    large, small = _problem(3, 60, 40), _problem(3, 20, 40)
    assert cpu_lower.limited(large, len) is len
    assert cpu_lower.limited(large, len, matched=60) is not len
    assert cpu_lower.limited(small, len, matched=20) is len
    limits: list[Any] = []
    monkeypatch.setattr(cpu_lower.numpy_on_one_core, "limit", limits.append)
    for rows in (0, 60):
        monkeypatch.setattr(cpu, "hermitian_rows", lambda _, rows=rows: rows)
        cpu.prepared(large, np.ones((3, 60, 40), np.complex64), None)
        assert len(limits) == (rows > 0)


def _problem(*shape: int) -> HerkProblem:
    return herk_problem(shape, precision=get_precision("fp32"), dtype="complex64")


@pytest.mark.parametrize(("part_bytes", "is_kept"), [(1 << 20, True), (4000, False)])
def test_conjugates_of_many_numbers_are_not_kept(
    part_bytes: int, is_kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_parts, "_PART_BYTES", part_bytes)
    run = cpu_gather.gathered(_problem(3, 9, 500), cpu_gather.by_steps(cpu_matmul.of_rows))
    a = normal(np.random.default_rng(1), 3, 9, 500).astype(np.complex64)
    tracemalloc.start()
    assert_hermitian(run(a))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (kept > a.nbytes) is is_kept
