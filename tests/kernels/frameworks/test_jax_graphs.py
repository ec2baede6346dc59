"""Calls in programs that JAX compiles into CUDA graphs, whose replays call no Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import dft, gemm, softmax

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = jax.numpy
pytestmark = pytest.mark.gpu
GRAPHS = {"xla_gpu_graph_min_graph_size": 1}
TARGET = "argand_captured_call"


@pytest.fixture(autouse=True)
def _on_a_gpu(gpu: Any) -> None:
    if not any(device.platform == "gpu" for device in jax.devices()):
        pytest.skip("JAX is installed without CUDA")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Collect the arguments of each call that XLA makes."""
    from argand.frameworks import xla_calls

    found: list[Any] = []
    called = xla_calls._called

    def noted(*given: Any) -> None:
        found.append(given)
        called(*given)

    monkeypatch.setattr(xla_calls, "_called", noted)
    return found


def drawn(*shape: int, seed: int = 3) -> Any:
    rng = np.random.default_rng(seed)
    parts = rng.standard_normal((*shape, 2), np.float32)
    return jnp.asarray(parts.view(np.complex64)[..., 0])


def redrawn(x: Any, seed: int) -> None:
    """Write other data where an array of JAX lies, so that a program finds it at its address."""
    cupy = pytest.importorskip("cupy")
    jax.block_until_ready(x)
    cupy.from_dlpack(x)[...] = cupy.from_dlpack(jax.block_until_ready(drawn(*x.shape, seed=seed)))
    cupy.cuda.Device().synchronize()


def replays(made: list[Any], program: Any, *arrays: Any, expected: Any) -> int:
    """Return how many of 6 executions on new data, at the same addresses, are replays.

    XLA captures again where an array lies elsewhere than before. The operands stay where they are;
    an execution whose result lies where the one before it had its own has to be a replay of XLA's
    graph, so that it makes no call. The first is left out: there is no graph yet.
    """
    found, places = 0, [0]
    for seed in range(6):
        for shift, x in enumerate(arrays):
            redrawn(x, 10 * seed + shift)
        made.clear()
        result = jax.block_until_ready(program(*arrays))
        calls = list(made)
        close(result, expected(*arrays))
        places.append(result.unsafe_buffer_pointer())
        if len(places) > 3 and places[-1] == places[-2]:
            assert calls == []
            found += 1
        del result  # so that the next one can have its memory
    return found


def close(found: Any, expected: Any) -> None:
    assert jnp.linalg.norm(found - expected) <= 1e-5 * jnp.linalg.norm(expected)


def chain(x: Any, y: Any) -> Any:
    for _ in range(4):
        x = gemm(x, y) * 0.1
        x = x * softmax(jnp.abs(x))
    return x


def chain_of_jax(x: Any, y: Any) -> Any:
    for _ in range(4):
        x = jnp.matmul(x, y, precision="highest") * 0.1
        x = x * jax.nn.softmax(jnp.abs(x))
    return x


@pytest.mark.parametrize("options", [None, GRAPHS], ids=["as it is", "short graphs"])
def test_replays_read_new_data_at_other_addresses_too(options: Any) -> None:
    """Between them calls outside the graph take and leave memory of their own."""
    ours = jax.jit(chain, compiler_options=options)
    y = drawn(48, 48, seed=8)
    for seed in range(40):
        x = drawn(48, 48, seed=seed)
        close(ours(x, y), chain_of_jax(x, y))
        gemm(drawn(64, 4096), drawn(4096, 64))


def test_a_replay_calls_no_python(made: list[Any]) -> None:
    one = jax.jit(lambda x, y: gemm(x, y, alpha=2j, op_b="C"), compiler_options=GRAPHS)
    x, y = drawn(64, 64), drawn(64, 64, seed=4)
    assert TARGET in one.lower(x, y).as_text()
    assert replays(
        made, one, x, y,
        expected=lambda x, y: 2j * jnp.matmul(x, y.conj().T, precision="highest"),
    )  # fmt: skip


def test_batches_are_tried_anew() -> None:
    """A product of one may be captured and a batch of it not, or the other way round."""
    a, b = drawn(3, 40, 2000), drawn(2000, 40, seed=4)
    mapped = jax.jit(jax.vmap(gemm, (0, None)), compiler_options=GRAPHS)
    for scale in (1, 2, 3, 4):
        close(mapped(scale * a, b), scale * jnp.matmul(a, b, precision="highest"))


@pytest.mark.parametrize("call", [
    lambda x: gemm(x, x, precision="7xint8"),  # waits, or computes what it keeps
    lambda x: gemm(x, x, precision="3xfp16", kernels="wgmma"),  # has scales in memory
    dft,  # has tables, or cuFFT's memory
    lambda x: gemm(jnp.tile(x, (16, 16)), jnp.tile(x, (16, 16))),  # takes the GPU longer
], ids=["exact", "scaled", "transform", "large"])  # fmt: skip
def test_calls_that_are_not_captured(call: Any) -> None:
    x = drawn(96, 96)
    assert TARGET not in jax.jit(call).lower(x).as_text()
