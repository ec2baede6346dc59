"""Arguments of calls on JAX's arrays: those that mean the same, and errors that name the others."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import pytest
from argand import DftPlan, apply_gate, dft, gemm, herk, softmax

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = jax.numpy
X = np.random.default_rng(3).standard_normal((4, 4, 2), np.float32).view(np.complex64)[..., 0]


@pytest.fixture(autouse=True)
def on_the_cpu() -> Any:
    with jax.default_device(jax.devices("cpu")[0]):
        yield


def test_numbers_in_arrays_are_numbers() -> None:
    x = jnp.asarray(X)
    for two in (jnp.float32(2), np.array(2.0), jnp.int32(2)):
        np.testing.assert_array_equal(gemm(x, x, alpha=two), gemm(x, x, alpha=2))
        np.testing.assert_array_equal(softmax(x.real, scale=two), softmax(x.real, scale=2))
    for three in (jnp.int32(3), np.array(3), np.int8(3)):
        np.testing.assert_array_equal(dft(x, n=three), dft(x, n=3))
        np.testing.assert_array_equal(dft(X, n=three, axis=np.array(0)), dft(X, n=3, axis=0))
    for targets in (jnp.array([1]), np.array([1]), range(1, 2)):
        found = apply_gate(x[0], np.eye(2)[::-1], targets)
        np.testing.assert_array_equal(found, apply_gate(x[0], np.eye(2)[::-1], [1]))


def key() -> Any:
    return jax.random.split(jax.random.key(0), 4)


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "traced": (lambda x: jax.jit(lambda s: gemm(x, x, alpha=s))(2.0), TypeError,
               "alpha must be known when JAX traces the call, got"),
    "plan": (lambda x: jax.jit(DftPlan(x))(x), TypeError, "DftPlan cannot be traced by JAX"),
    "vector": (lambda x: gemm(x[0], x), ValueError, "a must have at least 2 axes, got shape"),
    "nothing": (lambda x: gemm(x, None), TypeError, "b must be an array, got None"),
    "text": (lambda x: gemm(np.array([["a"]]), x), TypeError, "a must be numbers, got <U1"),
    "8 bits": (lambda x: gemm(x, jnp.ones((4, 4), jnp.float8_e4m3fn)), TypeError,
               "b must be of integers, .* got float8_e4m3fn"),
    "8 bits, by DLPack": (lambda x: herk(x.real.astype(jnp.float8_e5m2)), TypeError,
                          "a must be of integers, .* got float8_e5m2"),
    "keys": (lambda _: softmax(key()), TypeError, "x must be of integers, .* got key<"),
    "n": (lambda x: dft(x, n=4.0), TypeError, "n must be an integer, got 4.0"),
    # What XLA's call finds wrong.
    "norm": (lambda x: dft(x, norm="x"), ValueError, "norm must be one of .* got 'x'"),
    "check": (lambda x: gemm(x, x, check=True), ValueError, "check is for exact products"),
    "factor": (lambda x: gemm(x, x, alpha=np.ones(4)), TypeError, "alpha must be a number, got"),
    "complex": (softmax, ValueError, "x must be real with at least 1 axis"),
    "in a gradient": (lambda x: jax.grad(lambda y: softmax(y, output="fp8").sum())(x.real),
                      ValueError, "output must be one of"),
    "target": (lambda x: apply_gate(x[0], np.eye(2), [9]), ValueError, "targets must be qubits"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_errors_are_ours_and_name_the_argument(name: str) -> None:
    call, kind, message = WRONG[name]
    for _ in range(2):
        with pytest.raises(kind, match=message):
            call(jnp.asarray(X))


@pytest.mark.parametrize(
    ("call", "value", "equal"),
    [
        (lambda x, n: dft(x, n=n), 4, 4.0),
        (lambda x, inverse: dft(x, inverse=inverse), True, 1),
        (lambda x, check: gemm(x, x, check=check), False, 0),
        (lambda x, scale: softmax(x.real, scale=scale), 2, 2 + 0j),
        (lambda x, power: softmax(x, power=power), True, 1),
    ],
)
def test_options_that_equal_others_are_refused_before_them_and_after(
    call: Any, value: Any, equal: Any
) -> None:
    x = jnp.asarray(X)
    for _ in range(2):
        with pytest.raises(TypeError, match=r"must be (an? |true)"):
            call(x, equal)
        np.testing.assert_array_equal(call(x, value), call(X, value))


def test_an_error_within_a_program_of_jaxs_names_ours() -> None:
    with pytest.raises(jax.errors.JaxRuntimeError, match="ValueError: norm must be one of"):
        jax.block_until_ready(jax.jit(lambda x: dft(x, norm="x"))(jnp.asarray(X)))


def test_an_error_within_a_program_keeps_no_operands() -> None:
    """They lie over buffers that XLA uses again."""
    from argand.frameworks import xla_calls

    with pytest.raises(jax.errors.JaxRuntimeError):
        jax.block_until_ready(jax.jit(lambda x: dft(x, norm="y"))(jnp.asarray(X)))
    found = [error for error in xla_calls._raised if "'y'" in str(error)]
    assert found
    assert all(error.__traceback__ is None and error.__context__ is None for error in found)


def test_masked_arrays_without_a_masked_element_beside_jaxs() -> None:
    x = jnp.asarray(X)
    np.testing.assert_array_equal(gemm(x, np.ma.masked_array(X)), gemm(x, x))
    with pytest.raises(TypeError, match="b has 16 masked elements"):
        gemm(x, np.ma.masked_array(X, np.ones((4, 4))))


@pytest.mark.parametrize("call", ["f", "jax.jit(f)"])
def test_a_program_ends_with_calls_that_nobody_waited_for(call: str) -> None:
    """XLA makes them on a thread of its own, which Python stops when it ends."""
    code = (
        "import argand, jax\n"
        "f = lambda x: argand.softmax(x @ x @ x)\n"
        f"{call}(jax.numpy.ones((1000, 1000)))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_threads_that_come_first_at_once_register_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """XLA calls the functions that it was given first, which must not be freed."""
    from argand.frameworks import xla_calls

    given: list[str] = []

    def registered(target: str, _function: Any, **_options: Any) -> None:
        time.sleep(0.01)  # others come meanwhile
        given.append(target)

    monkeypatch.setattr(jax.ffi, "register_ffi_target", registered)
    monkeypatch.setattr(xla_calls.atexit, "register", lambda *_: None)
    monkeypatch.setattr(xla_calls, "_registered", cache(xla_calls._registered.__wrapped__))
    with ThreadPoolExecutor(4) as pool:
        first, *others = (
            one.result() for one in [pool.submit(xla_calls.register) for _ in range(4)]
        )
    assert all(one is first for one in others)
    assert sorted(given) == sorted(2 * list(xla_calls.TARGETS))
