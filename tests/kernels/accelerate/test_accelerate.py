"""Products that argand takes over: decisions, counts and the report, without a GPU."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest
from argand import PRECISIONS, accelerate
from argand.accelerate.interceptors import _patched
from argand.accelerate.router import Router

from tests.normal import wide_normal


class OutOfMemoryError(RuntimeError):
    """As torch's, which is a RuntimeError too."""


class Timed:
    """A timer that finds argand at a part of the library's time."""

    def __init__(self, original: Any, part: float) -> None:
        self.original, self.part, self.products = original, part, 0

    def __call__(self, product: Any, a: Any, b: Any) -> float:
        self.products += 1
        return 1e-3 if product is self.original else self.part * 1e-3


@pytest.mark.parametrize(("part", "ours"), [(0.5, True), (0.97, False), (2.0, False)])
def test_the_clearly_faster_one_is_taken(rng: np.random.Generator, part: float, ours: bool) -> None:
    a, b = wide_normal(rng, 4, 5), wide_normal(rng, 5, 3)
    made = []

    def library(x: Any, y: Any) -> Any:
        made.append(1)
        return x @ y

    timer = Timed(library, part)
    router = Router(None, None, timer)
    for _ in range(3):
        np.testing.assert_allclose(router.product("torch", library, a, b, "form"), a @ b)
    assert len(made) == (0 if ours else 3)
    assert timer.products == 6, "measured once"
    (row,) = router.report.forms
    assert (row.by_argand, row.calls) == (ours, 3)
    assert router.report.saved_seconds == pytest.approx(3 * (1 - part) * 1e-3 if ours else 0)
    assert ("by argand, which is faster, 500.0 us against 1000.0 us" in str(router.report)) == ours


def test_what_argand_refuses_is_left_to_the_library_and_said(rng: np.random.Generator) -> None:
    a, b = wide_normal(rng, 4, 5), wide_normal(rng, 5, 3)
    narrow = Router(None, "fp32", Timed(np.matmul, 0.1))
    np.testing.assert_array_equal(narrow.product("torch", np.matmul, a, b, 1), a @ b)
    assert "argand's result would be complex64" in str(narrow.report)
    unproven = Router(1e-40, None, Timed(np.matmul, 0.1))
    np.testing.assert_array_equal(unproven.product("torch", np.matmul, a, b, 1), a @ b)
    assert "argand refused it (" in str(unproven.report)
    assert unproven.report.routed_calls == 0


def test_a_module_is_as_before_behind_the_context() -> None:
    class Module:
        ndarray = np.ndarray
        matmul = staticmethod(np.matmul)

    with _patched(Module, Router(None, None)):
        assert Module.matmul is not np.matmul
        assert Module.matmul([[1, 2]], [[3], [4]]) == 11, "no arrays: the library's"
    assert Module.matmul is np.matmul


def test_contexts_of_threads_leave_a_module_as_it_was() -> None:
    """The first one that began ends first."""

    class Module:
        ndarray = np.ndarray
        matmul = staticmethod(np.matmul)

    first, second = (_patched(Module, Router(None, None)) for _ in range(2))
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert Module.matmul is not np.matmul
    second.__exit__(None, None, None)
    assert Module.matmul is np.matmul


def test_measurements_hold_no_result_and_leave_a_library_without_memory(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result of argand is gone by then."""
    a, b = wide_normal(rng, 4, 5), wide_normal(rng, 5, 3)
    made: list[Any] = []

    def ours(self: Router, x: Any, y: Any) -> Any:
        found = x @ y
        made.append(weakref.ref(found))
        return found

    def timer(product: Any, x: Any, y: Any) -> float:
        assert made[0]() is None
        raise OutOfMemoryError

    monkeypatch.setattr(Router, "_ours", ours)
    router = Router(None, None, timer)
    np.testing.assert_array_equal(router.product("torch", np.matmul, a, b, 1), a @ b)
    assert "argand had no memory for it" in str(router.report)


@pytest.mark.parametrize("error", [MemoryError, OutOfMemoryError])
@pytest.mark.parametrize("call", [0, 1, 4])
def test_a_product_without_memory_is_left_to_the_library(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, call: int, error: type[Exception]
) -> None:
    """While it is measured, and later."""
    a, b = wide_normal(rng, 4, 5), wide_normal(rng, 5, 3)
    made = []

    def ours(self: Router, x: Any, y: Any) -> Any:
        made.append(1)
        if len(made) > call:
            raise error
        return x @ y

    monkeypatch.setattr(Router, "_ours", ours)

    def timer(product: Any, x: Any, y: Any) -> float:
        if product is not np.matmul and call == 1:
            product(x, y)
        return 1.0 if product is np.matmul else 0.5

    router = Router(None, None, timer)
    for _ in range(6):
        np.testing.assert_array_equal(router.product("torch", np.matmul, a, b, 1), a @ b)
    assert "by torch, argand had no memory for" in str(router.report)
    assert router.report.routed_calls == max(0, call - 1)  # the first one is measured


def test_the_report_is_made_at_the_end_also_of_a_program_that_fails() -> None:
    said: list[str] = []
    with pytest.raises(KeyError), accelerate(tolerance=1e-6, report=said.append):
        raise KeyError
    (text,) = said
    assert text.startswith("argand computed 0 of 0 complex products within 1e-06")
    with pytest.raises(ValueError, match="give a precision or a tolerance"), \
            accelerate(tolerance=1e-6, precision="fp32"):  # fmt: skip
        pass


def test_tensors_on_a_cpu_are_left_alone() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x = torch.ones(3, 3, dtype=torch.complex64)
    with accelerate(report=False) as done:
        assert (x @ x).sum() == 27
    assert done.forms == []


@pytest.mark.parametrize("precision", ["fp32", np.float32, PRECISIONS["fp32"]])
def test_the_report_names_a_precision(precision: Any) -> None:
    assert "complex products at fp32, " in str(Router(None, precision).report)
