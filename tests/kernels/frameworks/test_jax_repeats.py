"""Calls that XLA makes again on a GPU, from the call cache by the addresses of its buffers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from argand import dft, gemm, log_softmax, softmax

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = jax.numpy
pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def _on_a_gpu(gpu: Any) -> None:
    if not any(device.platform == "gpu" for device in jax.devices()):
        pytest.skip("JAX is installed without CUDA")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the calls that arrays of CuPy were made for."""
    from argand.frameworks import jax_arrays

    found: list[str] = []
    make = jax_arrays._make

    def noted(call: Any, *given: Any) -> None:
        found.append(call.function.__name__)
        make(call, *given)

    monkeypatch.setattr(jax_arrays, "_make", noted)
    return found


def drawn(*shape: int, seed: int = 3) -> Any:
    parts = np.random.default_rng(seed).standard_normal((*shape, 2), np.float32)
    return jnp.asarray(parts.view(np.complex64)[..., 0])


def close(found: Any, expected: Any) -> None:
    assert jnp.linalg.norm(found - expected) <= 1e-5 * jnp.linalg.norm(expected)


def product(a: Any, b: Any) -> Any:
    return jnp.matmul(a, b, precision="highest")


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (lambda x, y: gemm(x, y), product),
        (lambda x, y: gemm(x, y, x, beta=2), lambda x, y: product(x, y) + 2 * x),
        (lambda x, y: gemm(x, y, precision="3xfp16", kernels="wgmma"), product),
        (lambda x, y: gemm(x, y, precision="7xint8"), product),
        (lambda x, y: gemm(x, y, output="power"), lambda x, y: jnp.abs(product(x, y)) ** 2),
        (lambda x, y: softmax(abs(x)), lambda x, y: jax.nn.softmax(abs(x))),
        (lambda x, y: log_softmax(abs(x), axis=0), lambda x, y: jax.nn.log_softmax(abs(x), axis=0)),
        (lambda x, y: dft(x), lambda x, y: jnp.fft.fft(x)),
        (lambda x, y: dft(x, axis=0, n=31), lambda x, y: jnp.fft.fft(x, axis=0, n=31)),
    ],
    ids=["product", "sum", "scaled", "exact", "power", "softmax", "log", "transform", "cut"],
)
def test_repeated_calls_read_what_they_are_given(
    wgmma: None, ours: Callable[..., Any], theirs: Callable[..., Any]
) -> None:
    """At other addresses too, and between calls of another shape by the same program."""
    program = jax.jit(ours)
    kept = []
    for seed in range(12):
        x, y = (drawn(40 + seed % 2, 40 + seed % 2, seed=2 * seed + shift) for shift in (0, 1))
        close(program(x, y), theirs(x, y))
        kept.append((x, y) if seed % 3 else None)


def test_arrays_are_made_for_the_first_call_of_a_form_alone(made: list[str]) -> None:
    program = jax.jit(lambda x, y: gemm(dft(x), y))
    x, y = drawn(24, 36), drawn(36, 20, seed=4)
    expected = product(jnp.fft.fft(x), y)
    close(program(x, y), expected)
    made.clear()
    for _ in range(4):
        close(program(x, y), expected)
    assert made == []
    close(jax.jit(lambda x, y: gemm(dft(x), y, alpha=2))(x, y), 2 * expected)
    assert "gemm" in made


def test_a_cache_that_is_cleared_keeps_none_of_them(made: list[str]) -> None:
    from argand.gemm.gpu_calls import CALLS

    program = jax.jit(lambda x: gemm(x, x, precision="tf32"))
    x = drawn(52, 52)
    jax.block_until_ready([program(x) for _ in range(3)])
    made.clear()
    CALLS.clear()
    jax.block_until_ready([program(x) for _ in range(3)])
    assert made == ["gemm"]


def test_a_batch_that_broadcasts_is_made_each_time(made: list[str]) -> None:
    """Its broadcast arrays are not XLA's buffers, whose addresses the cache would look up."""
    a, b, c = drawn(3, 8, 16), drawn(16, 24, seed=4), drawn(8, 24, seed=5)
    mapped = jax.jit(jax.vmap(lambda a, b, c: gemm(a, b, c, beta=1), (0, None, None)))
    mapped(a, b, c)
    for scale in (1, 2, 3):
        made.clear()
        close(mapped(scale * a, b, c), scale * product(a, b) + c)
        assert made == ["gemm"]


def test_the_stream_is_xlas_where_it_is_busy() -> None:
    """A repeated product reads what a long program writes, and is read by another."""
    large = jnp.ones((4096, 4096), jnp.float32)
    late = jax.jit(lambda x, y: x + (y @ y @ y @ y)[0, 0] * 0)
    program = jax.jit(lambda x: gemm(x, x))
    x = drawn(64, 64)
    expected = product(x, x)
    jax.block_until_ready([late(program(late(x, large)), large) for _ in range(3)])
    for scale in (1, 2, 3):
        close(late(program(late(scale * x, large)), large), scale**2 * expected)
