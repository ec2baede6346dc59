"""Calls by DLPack on arrays of JAX that lie on a GPU: they run on XLA's stream."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import gemm, herk, pairs

from tests.kernels.frameworks.test_array_interfaces import delay

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = jax.numpy
pytestmark = pytest.mark.gpu
ROWS, COLUMNS = 64, 1 << 16
made = jax.jit(lambda value: jnp.full((ROWS, COLUMNS), value, jnp.complex64))


@pytest.fixture(autouse=True)
def _on_a_gpu(gpu: Any) -> None:
    if not any(device.platform == "gpu" for device in jax.devices()):
        pytest.skip("JAX is installed without CUDA")


def test_operands_that_are_gone_are_read_before_their_memory_is_written(cp: Any) -> None:
    herk(made(1.0)).block_until_ready()
    for _ in range(8):
        x = made(1.0).block_until_ready()
        cp.cuda.Device().synchronize()
        delay(cp)
        found = herk(x)
        del x
        jax.block_until_ready([made(7.0) for _ in range(4)])
        assert abs(np.asarray(found)[0, 0] - COLUMNS) < 1


def test_results_that_are_gone_are_read_before_their_memory_is_written(cp: Any) -> None:
    large = jnp.ones((4096, 4096), jnp.float32)
    late = jax.jit(lambda y, a: y + (a @ a @ a @ a)[0, 0] * 0)
    x = made(1.0)
    late(herk(x), large).block_until_ready()
    for _ in range(8):
        found = herk(x).block_until_ready()
        read = late(found, large)
        del found
        held = [cp.full((ROWS, ROWS), 9, cp.complex64) for _ in range(4)]
        cp.cuda.Stream.null.synchronize()
        assert abs(np.asarray(read)[0, 0] - COLUMNS) < 1
        del held


def test_cupys_stream_and_xlas_wait_for_each_other(cp: Any) -> None:
    """For pairs of JAX's arrays, which CuPy's stream reads, and for those that stand beside."""
    integers = np.random.default_rng(3).integers(-9, 9, (256, 256, 2)).astype(np.float32)
    expected = integers.view(np.complex64)[..., 0] @ np.ones((256, 256), np.complex64)
    ones = jnp.ones((256, 256), jnp.complex64)
    gemm(pairs(cp.asarray(integers)), ones)
    for _ in range(4):
        late = cp.zeros((256, 256, 2), cp.float32)
        cp.cuda.Device().synchronize()
        delay(cp)
        late[...] = cp.asarray(integers)
        np.testing.assert_allclose(gemm(pairs(late), ones), expected, rtol=1e-5)
    found = gemm(pairs(jnp.asarray(integers) + 0), cp.ones((256, 256), cp.complex64))
    np.testing.assert_allclose(found.get(), expected, rtol=1e-5)
