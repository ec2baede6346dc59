"""Results that go where the arguments lie, in whole or in part, are as if they went elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from argand import PRECISIONS, apply_gate, dft, gemm, log_softmax, logsumexp, softmax
from argand.runtime.cpu.numpy_calls import NumpyCalls
from argand.softmax import api as softmax_api
from argand.softmax import cpu as numpy_softmax
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.covers import examples
from tests.kernels.precisions import SOFTMAX

Array = npt.NDArray[Any]
STORE = 200
"""Numbers in the memory that all arrays of a test are parts of."""


@pytest.fixture(autouse=True, scope="module")
def small_blocks() -> Iterator[None]:
    """Rows of few numbers take several tiles, and a few rows several blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numpy_softmax, "TILE_COLUMNS", 3)
        patch.setattr(numpy_softmax, "BLOCK_VALUES", 8)
        patch.setattr(softmax_api, "_CPU_CALLS", NumpyCalls())  # calls kept with other values
        yield


shifts = st.integers(0, 60)
lengths = st.integers(1, 8)


def store(seed: int, dtype: str) -> Array:
    rng = np.random.default_rng(seed)
    values = rng.normal(0, 2, STORE) + 1j * rng.normal(0, 2, STORE)
    return (values if np.dtype(dtype).kind == "c" else values.real).astype(dtype)


def part(memory: Array, first: int, *shape: int, step: int = 1) -> Array:
    return memory[first::step][: int(np.prod(shape))].reshape(shape)


@pytest.mark.parametrize("precision", SOFTMAX)
@pytest.mark.parametrize("function", [softmax, log_softmax, logsumexp])
@given(seed=st.integers(0, 99), rows=lengths, columns=lengths, x_at=shifts, out_at=shifts)
@settings(max_examples=examples(60), deadline=None)
def test_softmax(
    function: Callable[..., Array], precision: str, seed: int, rows: int, columns: int, x_at: int,
    out_at: int,
) -> None:  # fmt: skip
    memory = store(seed, PRECISIONS[precision].real_output)
    x = part(memory, x_at, rows, columns)
    expected = function(x.copy(), precision=precision)
    out = part(memory, out_at, *expected.shape)
    assert function(x, precision=precision, out=out) is out
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("kind", ["fp16", "bf16"])
def test_softmax_of_16_bits(kind: str) -> None:
    memory = np.random.default_rng(1).normal(0, 2, STORE).astype(np.float32)
    memory = memory.astype(np.float16) if kind == "fp16" else memory.view(np.uint16)[1::2].copy()
    options = {"format": "bf16" if kind == "bf16" else None, "output": kind}
    x, out = part(memory, 0, 9, 20), part(memory, 1, 9, 20)
    expected = softmax(x.copy(), **options)
    np.testing.assert_array_equal(softmax(x, out=out, **options), expected)


@pytest.mark.parametrize("precision", PRECISIONS)
@given(
    seed=st.integers(0, 99), rows=lengths, length=lengths, x_at=shifts, out_at=shifts,
    step=st.integers(1, 2), inverse=st.booleans(),
)  # fmt: skip
@settings(max_examples=examples(60), deadline=None)
def test_dft(
    precision: str, seed: int, rows: int, length: int, x_at: int, out_at: int, step: int,
    inverse: bool,
) -> None:  # fmt: skip
    memory = store(seed, PRECISIONS[precision].output)
    x = part(memory, x_at, rows, length, step=step)
    expected = dft(x.copy(), inverse=inverse, precision=precision)
    out = part(memory, out_at, rows, length)
    assert dft(x, inverse=inverse, precision=precision, out=out) is out
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("precision", PRECISIONS)
@given(
    seed=st.integers(0, 99), m=lengths, n=lengths, k=lengths,
    places=st.tuples(shifts, shifts, shifts, shifts),
)  # fmt: skip
@settings(max_examples=examples(60), deadline=None)
def test_gemm(
    precision: str, seed: int, m: int, n: int, k: int, places: tuple[int, int, int, int]
) -> None:
    memory = store(seed, PRECISIONS[precision].output)
    shapes = ((m, k), (k, n), (m, n), (m, n))
    a, b, c, out = (part(memory, at, *shape) for at, shape in zip(places, shapes, strict=True))
    options = {"alpha": 2 - 1j, "beta": 0.5, "precision": precision}
    expected = gemm(a.copy(), b.copy(), c.copy(), **options)
    assert gemm(a, b, c, out=out, **options) is out
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("precision", ["fp64", "fp32", "3xfp16"])
@given(seed=st.integers(0, 99), targets=st.permutations([0, 1, 2]), width=st.integers(1, 2),
       state_at=shifts, matrix_at=shifts)  # fmt: skip
@settings(max_examples=examples(60), deadline=None)
def test_a_gate_whose_matrix_is_part_of_the_state(
    precision: str, seed: int, targets: list[int], width: int, state_at: int, matrix_at: int
) -> None:
    memory = store(seed, PRECISIONS[precision].output)
    state, matrix = part(memory, state_at, 8), part(memory, matrix_at, 2**width, 2**width)
    expected = apply_gate(state.copy(), matrix.copy(), targets[:width], precision=precision)
    apply_gate(state, matrix, targets[:width], precision=precision)
    np.testing.assert_array_equal(state, expected)
