"""The quotient by which blocks find their tile, against integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand.device import gpu
from argand.runtime.compile.loading import load

pytestmark = pytest.mark.gpu
SOURCE = """
#include "device/quotient.cuh"
extern "C" __global__ void quotients(const unsigned* n, const unsigned* d, unsigned* out,
                                     int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = quotient(n[i], d[i]);
}
"""


def test_every_multiple_and_its_neighbours(cp: Any, rng: np.random.Generator) -> None:
    """An error would show where n is a multiple of the divisor, or one less."""
    divisors = np.concatenate([np.arange(1, 1025), rng.integers(1025, 1 << 20, 1024)])
    found = []
    for divisor in divisors:
        multiples = np.arange(divisor, 1 << 20, divisor)[-2048:]
        near = np.concatenate([multiples - 1, multiples, multiples + 1])
        found.append(np.stack([near, np.full_like(near, divisor)]))
    beyond = rng.integers(1 << 20, 1 << 32, (2, 4096))
    pairs = np.concatenate([*found, beyond], axis=1).astype(np.uint32)
    n, d = cp.asarray(pairs)
    out = cp.zeros_like(n)
    kernel = load(SOURCE, gpu(cp.cuda.Device().id).target, "quotients")
    kernel.function((-(-n.size // 256),), (256,), (n, d, out, np.int32(n.size)))
    assert bool((out == n // d).all())
