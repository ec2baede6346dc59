"""Transforms by cuFFT: graphs of them at addresses that come again, and captures of programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from argand import DftPlan, dft

pytestmark = pytest.mark.gpu


def complexes(rng: np.random.Generator, *shape: int) -> Any:
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(np.complex64)


@pytest.mark.parametrize("length", [48, 1 << 18])
def test_graphs_read_and_write_the_arrays_of_their_call(cp: Any, rng: Any, length: int) -> None:
    """More arrays than graphs are kept for, each of them several times."""
    given = [cp.asarray(complexes(rng, 2, length)) for _ in range(10)]
    plan = DftPlan(given[0], precision="fp32")
    expected = [cp.fft.fft(x) for x in given]
    outs = [cp.empty_like(x) for x in given]
    for first in (0, 3, 0):
        for _ in range(3):
            for x, out, result in zip(given[first:], outs, expected[first:], strict=False):
                out.fill(7)
                plan(x, out=out)
                assert bool((out == result).all())


@pytest.mark.parametrize("length", [48, 1 << 18])
def test_a_program_may_capture_a_transform_that_has_a_graph(cp: Any, rng: Any, length: int) -> None:
    x, y = (cp.asarray(complexes(rng, 2, length)) for _ in range(2))
    out, stream = cp.empty_like(x), cp.cuda.Stream(non_blocking=True)
    expected = dft(y, precision="fp32")
    cp.cuda.Device().synchronize()
    with stream:
        for _ in range(3):
            dft(x, precision="fp32", out=out)
        stream.begin_capture()
        dft(x, precision="fp32", out=out)
        graph = stream.end_capture()
        x[...] = y
        out.fill(7)
        graph.launch(stream=stream)
        assert bool((out == expected).all())
