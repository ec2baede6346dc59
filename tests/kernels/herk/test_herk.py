"""Hermitian products on the CPU: every element, every precision, and calls that are refused."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, Pairs, gemm, herk, pack, pairs
from argand.herk import (
    api,
    cpu,
    cpu_blas,
    cpu_dot,
    cpu_gather,
    cpu_lower,
    cpu_mirror,
    cpu_padded,
    cpu_parts,
)
from argand.runtime.cpu import kept_memory, scratch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.covers import examples
from tests.kernels.herk.herk_cases import (
    OPS,
    assert_hermitian,
    expected,
    oriented,
    packed,
    tolerance,
)
from tests.normal import normal


@pytest.fixture(autouse=True)
def small_panels(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A few rows take several panels, and BLAS's herk; a few products several parts and threads."""
    values = {
        cpu_parts: {"_PART_BYTES": 1200}, scratch: {"MIN_KEPT_BYTES": 0},
        cpu_padded: {"_FEW_NUMBERS": 60, "_PART_BYTES": 1200, "_MAX_ROWS": 8, "_FEW_ROWS": 12},
        cpu: {"_PANEL": 9},
        cpu_gather: {"_MAX_NUMBERS": 60, "_MIN_TAKEN": 20, "_MAX_MIRRORED": 80},
        cpu_mirror: {"_FEW": 6, "_MIRRORED": 3, "_MANY": 3, "_HALVED": 7, "_HALVED_VALUES": 50},
        cpu_dot: {
            "_MAX_ROWS": 6, "_PANEL": 0.05, "_MIRROR": 0,
            **{name: {dtype: times._replace(edges=(100, 100))
                      for dtype, times in getattr(cpu_dot, name).items()}
               for name in ("_TIMES", "_TIMES_BY_AVX512", "_TIMES_BY_AVX512_OF_AMD")},
        },
        cpu_blas: {"_MIN_ALONE": 600},
        cpu_lower: {
            "ONE_CORE_COMPLEX": 1200, "_SHARED_PRODUCTS": 10_000, "_HERK_PRODUCTS": 900,
            "_NUMPY_HERK_PRODUCTS": 700, "ALONE_PRODUCTS": 500,
            "_THREADED_PRODUCTS": 3000, "_THREADED_CALL": 100, "_PANEL_ROWS": 3, "_LANES": 3,
        },
    }  # fmt: skip
    for module, names in values.items():
        for name, value in names.items():
            monkeypatch.setattr(module, name, value)
    for clear in (api._CPU_CALLS.clear, cpu_dot.dotted.cache_clear):
        clear()
    yield
    for clear in (api._CPU_CALLS.clear, cpu_dot.dotted.cache_clear):
        clear()  # what is kept with other values


@pytest.fixture(params=[1, 2], ids=["one core", "two cores"], autouse=True)
def cores(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_lower, "available_cores", lambda: request.param)


@pytest.mark.parametrize("precision", PRECISIONS)
@given(
    n=st.integers(0, 14), k=st.integers(0, 20), batch=st.lists(st.integers(0, 3), max_size=2),
    op=st.sampled_from(OPS), seed=st.integers(0, 99),
    alpha=st.sampled_from([1.0, -0.5]), beta=st.sampled_from([0.0, 2.0]),
)  # fmt: skip
@example(n=1, k=9, batch=[], op="N", seed=109, alpha=1.0, beta=0.0)
@settings(max_examples=examples(40), deadline=None)
def test_random_shapes(
    precision: str, n: int, k: int, batch: list[int], op: str, seed: int, alpha: float, beta: float
) -> None:
    rng = np.random.default_rng(seed)
    a = normal(rng, *batch, *((n, k) if op == "N" else (k, n)))
    c = normal(rng, *batch, n, n)
    lower = np.tril(c, -1)
    hermitian = lower + lower.conj().swapaxes(-1, -2) + np.tril(np.triu(c)).real
    c[..., ~np.tril(np.ones((n, n), bool))] = np.nan  # not read
    value, size = expected(a, op)
    found = herk(a, c, alpha=alpha, beta=beta, op=op, precision=precision)  # type: ignore[arg-type]
    row = PRECISIONS[precision]
    assert found.dtype == row.output
    assert_hermitian(found)
    magnitude = abs(alpha) * size + abs(beta) * abs(hermitian)
    exact = alpha * value + beta * hermitian
    # Each of the two parts is within the bound.
    limit = 2**0.5 * tolerance(precision, k, alpha=alpha, beta=beta)
    assert (abs(found - exact) <= limit * magnitude).all()
    triangle = herk(
        a, packed(c), alpha=alpha, beta=beta, op=op, precision=precision, form="triangle",  # type: ignore[arg-type]
    )  # fmt: skip
    assert (abs(triangle - packed(exact)) <= limit * packed(magnitude)).all()
    # BLAS's products that are only mirrored may be those of other routines than a triangle's.
    if not (row.exact_operands and alpha == 1 and beta == 0):
        np.testing.assert_array_equal(triangle, packed(found))


@pytest.mark.each_value
@pytest.mark.parametrize("n", [40, 70, 128, 129])
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("batch", [(), (1,), (3,)], ids=str)
def test_ways_that_sizes_choose(
    n: int, op: Any, batch: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No size comes to some of them with the small panels of other tests, which are undone."""
    monkeypatch.undo()
    single = normal(np.random.default_rng(n), *batch, *((n, 33) if op == "N" else (33, n)))
    for precision, a in (("fp32", single), ("fp64", single.astype(complex))):
        value, size = expected(a, op)
        found, out = herk(a, op=op), np.empty_like(value, a.dtype)
        assert_hermitian(found)
        assert (abs(found - value) <= 2**0.5 * tolerance(precision, 33) * size).all()
        np.testing.assert_array_equal(herk(a, op=op, out=out), found)


@pytest.mark.parametrize("options", [{}, {"precision": "tf32"}, {"alpha": 2}], ids=str)
def test_a_c_that_is_not_added_is_not_read_at_a_repeated_call_either(options: Any) -> None:
    a, c = normal(np.random.default_rng(4), 9, 7), np.full((9, 9), np.nan, np.complex64)
    found = herk(a, **options)
    for _ in range(3):
        np.testing.assert_array_equal(herk(a, c, beta=0, **options), found)


def limits(kind: str) -> tuple[int, int]:
    return int(np.iinfo(kind).min), int(np.iinfo(kind).max)


@pytest.mark.parametrize("kind", ["int8", "int16", "fp16"])
@pytest.mark.parametrize("op", OPS)
def test_exact_integers(kind: str, op: Any) -> None:
    rng = np.random.default_rng(1)
    parts = (
        rng.standard_normal((2, 9, 30, 2)).astype(np.float16) if kind == "fp16"
        else rng.integers(*limits(kind), (2, 9, 30, 2), kind, endpoint=True)
    )  # fmt: skip
    if kind != "fp16":
        parts[0] = np.iinfo(kind).min  # its negative is not a number of the type
    a = pairs(parts)
    wide = oriented(parts[..., 0] + 1j * parts[..., 1].astype(np.float64), op)
    value = wide @ wide.conj().swapaxes(-1, -2)
    found = herk(a, op=op, precision="exact")
    np.testing.assert_array_equal(found, value.astype(np.complex64))
    assert_hermitian(found)
    if kind != "fp16":
        out = np.full(value.shape, np.nan, complex)
        assert herk(a, op=op, precision="exact", out=out) is out
        np.testing.assert_array_equal(out, value)
    structured = parts.view([("r", parts.dtype), ("i", parts.dtype)])[..., 0]
    np.testing.assert_array_equal(herk(structured, op=op, precision="exact"), found)


@pytest.mark.parametrize("precision", ["7xint8", "15xint8"])
def test_a_number_of_moduli(precision: str) -> None:
    a = normal(np.random.default_rng(2), 9, 30).astype(complex)
    found = herk(a, precision=precision)
    assert_hermitian(found)
    full = gemm(a, a, op_b="C", precision=precision)
    np.testing.assert_array_equal(np.tril(found, -1), np.tril(full, -1))
    assert found.dtype == full.dtype


@pytest.mark.parametrize("precision", ["fp64", "3xfp16"])
def test_views_give_the_same_bits(precision: str) -> None:
    a = normal(np.random.default_rng(3), 2, 9, 30)
    plain = herk(a, precision=precision)
    wide = np.zeros((4, 18, 90), np.complex64)
    wide[::2, ::2, ::3] = a
    for view in (wide[::2, ::2, ::3], np.asfortranarray(a), a[:, ::-1, ::-1].copy()[:, ::-1, ::-1]):
        found = herk(view, precision=precision)
        limit = tolerance(precision, 30)
        assert (abs(found - plain) <= 4 * limit * expected(a)[1]).all()
        assert_hermitian(found)


def test_what_is_not_finite_stays_in_its_row_and_column() -> None:
    for precision in PRECISIONS:
        a = normal(np.random.default_rng(4), 9, 30)
        a[3, 4], a[6, 0] = np.nan, np.inf
        found = herk(a, precision=precision)
        lost = np.zeros(9, bool)
        lost[[3, 6]] = True
        np.testing.assert_array_equal(np.isfinite(found), ~(lost[:, None] | lost))
        assert not np.diagonal(found).imag.any()


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("batch", [(2,), (2, 4)], ids=["together", "parts"])
def test_products_by_blas_are_what_each_is_alone(
    op: Any, batch: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_dot, "_MAX_ROWS", 0)  # no dot products
    for name in ("_HERK_PRODUCTS", "_NUMPY_HERK_PRODUCTS"):  # nor matmul
        monkeypatch.setattr(cpu_lower, name, 0)
    monkeypatch.setattr(cpu_lower, "matched_rows", lambda _: 0)
    monkeypatch.setattr(cpu, "is_padded", lambda _: False)
    for name in ("_SHARED_PRODUCTS", "_THREADED_PRODUCTS"):  # nor threads
        monkeypatch.setattr(cpu_lower, name, 1 << 30)
    a = oriented(normal(np.random.default_rng(6), *batch, 6, 15), op)
    out = np.empty((*batch, 6, 6), np.complex64)
    for found in (herk(a, op=op), herk(a, op=op, out=out)):
        for index in np.ndindex(batch):
            np.testing.assert_array_equal(found[index], herk(a[index], op=op))


@pytest.mark.parametrize("shape", [(4, 6), (2, 3, 7)])
def test_a_repeated_call_leaves_earlier_results_as_they_are(shape: tuple[int, ...]) -> None:
    operands = [normal(np.random.default_rng(seed), *shape) for seed in range(8)]
    expected = [herk(a) for a in operands]
    copies = [x.copy() for x in expected]
    herk(np.full(shape, np.nan, np.complex64))  # is not read later
    with ThreadPoolExecutor(4) as pool:
        for found, x in zip(pool.map(herk, operands * 50), copies * 50, strict=True):
            np.testing.assert_array_equal(found, x)
    np.testing.assert_array_equal(expected, copies)


def test_little_memory_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_memory, "_FORMS", [])
    monkeypatch.setattr(kept_memory, "MAX_BYTES", 20_000)
    forms: list[kept_memory.KeptMemory[Any]] = []
    for n in range(2, 7):
        a = normal(np.random.default_rng(n), n, 3)
        np.testing.assert_array_equal(herk(a), herk(a))
        kept = kept_memory._FORMS
        dropped = [form for form in forms if all(form is not x for x in kept)]
        assert not any(map(len, dropped))
        forms = [*dropped, *kept]
        assert 1 <= len(kept) <= 2
        assert sum(form.nbytes for form in kept) <= 20_000


def test_out_may_be_c_and_overlap_a() -> None:
    rng = np.random.default_rng(5)
    a, c = normal(rng, 9, 9), normal(rng, 9, 9)
    expected = herk(a, c, beta=2)
    in_place = c.copy()
    assert herk(a, in_place, beta=2, out=in_place) is in_place
    np.testing.assert_array_equal(in_place, expected)
    memory = np.concatenate([a.ravel(), np.zeros(119, np.complex64)])
    expected = herk(a)
    out = memory[17:98].reshape(9, 9)
    herk(memory[:81].reshape(9, 9), out=out)
    np.testing.assert_array_equal(out, expected)


A = np.ones((3, 4), np.complex64)
BYTES = pairs(np.ones((3, 4, 2), np.int8))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: herk(A[0]), ValueError, "a must have at least 2 axes, got shape"),
        (lambda: herk(A, op="H"), ValueError, r"op must be one of \['N', 'T', 'C'\], got 'H'"),  # type: ignore[arg-type]
        (lambda: herk(A, precision="fp8"), ValueError, "precision must be one of"),
        (lambda: herk(A, precision="exact"), ValueError, "takes Pairs of .*got complex64"),
        (lambda: herk(BYTES, precision="exact", rounding="toward_zero"), ValueError, "no rounding"),
        (lambda: herk(A, alpha=1j), ValueError, "alpha must be real, as C is Hermitian"),  # type: ignore[arg-type]
        (lambda: herk(A, beta=1), ValueError, "beta is 1, so c must be given"),
        (lambda: herk(A, A, beta=1), ValueError, r"c must have shape \(3, 3\), got \(3, 4\)"),
        (lambda: herk(A, form="upper"), ValueError, r"form must be one of \['full', 'triangle'\]"),  # type: ignore[arg-type]
        (lambda: herk(A, out=A), ValueError, r"out must have shape \(3, 3\) and type complex64"),
        (
            lambda: herk(A, form="triangle", out=np.zeros((3, 3), "c8")),
            ValueError,
            r"out must have shape \(6,\)",
        ),
        (lambda: herk(A, kernels="cublas", precision="tf32"), ValueError, "kernels at tf32 must"),
        (lambda: herk(BYTES, kernels="wgmma", precision="exact"), ValueError, "kernels at exact"),
        (lambda: herk(pack(A, "tf32", side="a")), ValueError, "got a packed operand"),
        (
            lambda: herk(Pairs(np.zeros((3, 4, 2), np.uint16), "bf16"), precision="exact"),
            ValueError,
            "got Pairs of bf16",
        ),
    ],
)
def test_wrong_calls_say_what_was_found_and_what_is_allowed(
    call: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()
