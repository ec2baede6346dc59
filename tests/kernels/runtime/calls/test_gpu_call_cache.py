"""The call cache: a call of a known form gives what the first one gives, or is planned again."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from argand import apply_gate, dft, gemm, softmax

from tests.normal import normal

pytestmark = pytest.mark.gpu


def cached(operation: str) -> Any:
    """The call cache of an operation."""
    module = "gpu_calls" if operation == "gemm" else "gpu"
    return import_module(f"argand.{operation}.{module}").CALLS


Call = tuple[str, tuple[int, ...], Callable[..., Any]]
CALLS: dict[str, Call] = {
    "gemm": ("gemm", (40, 40), lambda x, **out: gemm(x, x, precision="3xtf32", **out)),
    "cublas": ("gemm", (40, 40), lambda x, **out: gemm(x, x, precision="fp32", **out)),
    "softmax": ("softmax", (30, 100), lambda x, **out: softmax(x, power=True, **out)),
    "dft": ("dft", (8, 48), lambda x, **out: dft(x, **out)),
    "dft in three kernels": ("dft", (2, 1 << 18), lambda x, **out: dft(x, **out)),
    "inverse by cuFFT": (
        "dft", (8, 48), lambda x, **out: dft(x, inverse=True, precision="fp32", **out)
    ),
    "several kernels of cuFFT": (
        "dft", (2, 1 << 18), lambda x, **out: dft(x, precision="fp32", **out)
    ),
    "columns": ("dft", (48, 8), lambda x, **out: dft(x, 0, **out)),
    "padded": ("dft", (8, 40), lambda x, **out: dft(x, n=48, **out)),
    "cut": ("dft", (8, 60), lambda x, **out: dft(x, n=48, norm="ortho", **out)),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_call_of_a_known_form_takes_its_own_arrays(cp: Any, rng: Any, name: str) -> None:
    operation, shape, call = CALLS[name]
    first, second = (cp.asarray(normal(rng, *shape)) for _ in range(2))
    call(first)
    cached(operation).clear()
    expected = call(second).get()
    before = len(cached(operation)._calls)
    for x in (first, second, second):
        found = call(x)
    np.testing.assert_array_equal(found.get(), expected)
    assert len(cached(operation)._calls) == before
    out = cp.full(found.shape, np.nan, found.dtype)
    for _ in range(2):
        out.fill(np.nan)
        assert call(second, out=out) is out
        np.testing.assert_array_equal(out.get(), expected)


@pytest.mark.parametrize("name", ["dft", "inverse by cuFFT", "dft in three kernels"])
def test_in_place_and_overlapping(cp: Any, rng: Any, name: str) -> None:
    _, shape, call = CALLS[name]
    given = normal(rng, *shape)
    expected = call(cp.asarray(given)).get()
    for _ in range(2):
        x = cp.asarray(given)
        call(x, out=x)
        np.testing.assert_array_equal(x.get(), expected)
    memory = cp.empty(given.size + 16, np.complex64)
    # The form is known from arrays that lie apart; these overlap without being the same.
    for shift in (0, 2, 16):
        x, out = memory[: given.size].reshape(shape), memory[shift:][: given.size].reshape(shape)
        x[...] = cp.asarray(given)
        call(x, out=out)
        np.testing.assert_array_equal(out.get(), expected)


def test_products_that_overlap_their_result(cp: Any, rng: Any) -> None:
    a, b, c = (normal(rng, 40, 40) for _ in range(3))
    on_gpu = [cp.asarray(x) for x in (a, b, c)]
    expected = gemm(*on_gpu, beta=1, precision="3xtf32").get()
    for _ in range(2):
        held = on_gpu[2].copy()
        gemm(on_gpu[0], on_gpu[1], held, beta=1, precision="3xtf32", out=held)
        np.testing.assert_array_equal(held.get(), expected)
        held = on_gpu[0].copy()
        gemm(held, on_gpu[1], on_gpu[2], beta=1, precision="3xtf32", out=held)
        np.testing.assert_array_equal(held.get(), expected)


@pytest.mark.parametrize("width", [1, 2, 5, 6, 7])
def test_gates_follow_the_content_of_their_matrix(cp: Any, rng: Any, width: int) -> None:
    start = normal(rng, 1 << 12)
    start /= np.linalg.norm(start)
    order, targets = 2**width, tuple(range(2, 2 + width))
    matrix = np.linalg.qr(normal(rng, order, order).astype(complex))[0]

    def after(given: Any) -> Any:
        state = cp.asarray(start)
        assert apply_gate(state, given, targets) is state
        return state.get()

    def again(given: Any) -> Any:
        cached("gates").clear()
        return after(given)

    expected = again(matrix)
    np.testing.assert_array_equal(after(matrix), expected)
    np.testing.assert_array_equal(after(matrix.copy()), expected)
    np.testing.assert_array_equal(after(np.asfortranarray(matrix)), expected)
    np.testing.assert_array_equal(after(cp.asarray(matrix)), expected)
    held = matrix.copy()
    after(held)
    # The same memory with another content, in rows that the key of the cache does not have too.
    for row in {0, order // 2, order - 1}:
        held[row] *= 1j
        different = after(held)
        assert not np.array_equal(different, expected)
        np.testing.assert_array_equal(different, again(held.copy()))


def test_a_gate_that_was_seen_is_still_checked(cp: Any, rng: Any) -> None:
    state = cp.asarray(normal(rng, 64))
    flip = np.array([[0, 1], [1, 0]], complex)
    for _ in range(2):
        apply_gate(state, flip, (1,))
    for targets in ((True,), (1.0,), (6,)):
        with pytest.raises(ValueError, match="targets must be"):
            apply_gate(state, flip, targets)  # type: ignore[arg-type]


def test_an_override_is_not_kept_for_other_calls(cp: Any, rng: Any) -> None:
    from argand.dft.gpu import PLAN_OVERRIDE, plan_of

    x = cp.asarray(normal(rng, 8192, 127))  # fewer would be cuFFT's
    assert plan_of(x).plan is not None
    plain = dft(x).get()
    with PLAN_OVERRIDE.use(None):
        by_library = dft(x).get()
        np.testing.assert_array_equal(dft(x).get(), by_library)
    np.testing.assert_array_equal(dft(x).get(), plain)
    assert not np.array_equal(plain, by_library)


@pytest.mark.parametrize("length", [1000, 1 << 18])
def test_two_streams(cp: Any, rng: Any, length: int) -> None:
    x = cp.asarray(normal(rng, 64, length))
    expected = dft(x).get()
    streams = [cp.cuda.Stream(non_blocking=True) for _ in range(2)]
    cp.cuda.Device().synchronize()
    found = []
    for _ in range(3):
        for stream in streams:
            with stream:
                found.append(dft(x))
    cp.cuda.Device().synchronize()
    for one in found:
        np.testing.assert_array_equal(one.get(), expected)
