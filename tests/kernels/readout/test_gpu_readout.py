"""Readout on a GPU: the counts of the CPU, and sums within their bounds, in poisoned memory."""

from __future__ import annotations

from typing import Any

import argand
import numpy as np
import pytest
from argand.readout.api import basis_states
from argand.readout.bounds import expectation_bound, sum_bound

from tests.kernels.readout.readout_cases import random_state, random_strings

pytestmark = pytest.mark.gpu
SIZES = pytest.mark.parametrize("qubits", [1, 2, 7, 10, 13, 14, 15, 19])
TYPES = pytest.mark.parametrize("dtype", ["complex64", "complex128"])
PLACES = pytest.mark.parametrize("offset", [0, 1])


def on_gpu(cp: Any, state: Any, offset: int) -> Any:
    """A state that begins ``offset`` amplitudes into its memory, between amplitudes of NaN."""
    held = cp.full(state.size + 2, np.nan, state.dtype)
    held[offset : offset + state.size] = cp.asarray(state)
    return held[offset : offset + state.size]


def poison(cp: Any, *nbytes: int) -> None:
    """Leave NaN in the blocks that the next arrays of these sizes get."""
    for size in nbytes:
        cp.full(max(1, size // 8), np.nan)


@SIZES
@TYPES
@PLACES
def test_counts_are_those_of_the_cpu(
    cp: Any, rng: np.random.Generator, qubits: int, dtype: str, offset: int
) -> None:
    state = random_state(rng, qubits, dtype)
    state[: len(state) // 3] = 0
    for shots, seed in ((1, 5), (31, 2**64 - 1), (5000, 7)):
        poison(cp, 8 * shots, 4 * shots)
        found = basis_states(on_gpu(cp, state, offset), shots, seed=seed).get()
        assert np.array_equal(found, basis_states(state, shots, seed=seed))


def test_states_of_more_qubits_than_int32_holds(
    cp: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Smaller ones by the same memory."""
    from argand.readout import gpu

    state, chosen = random_state(rng, 15, "complex64"), [14, 3, 0]
    for most, dtype in ((31, np.int32), (14, np.int64)):
        monkeypatch.setattr(gpu, "_INT32_QUBITS", most)
        found, counts = gpu.sample(cp.asarray(state), 4000, 7, count=True)
        assert found.dtype == dtype
        assert (counts is None) == (dtype is np.int64)
        assert np.array_equal(np.sort(found.get()), basis_states(state, 4000, seed=7))
        for qubits in (None, chosen):
            found = argand.sample(cp.asarray(state), 4000, seed=7, qubits=qubits)
            expected = argand.sample(state, 4000, seed=7, qubits=qubits)
            for mine, right in zip(found, expected, strict=True):
                assert mine.dtype == np.int64
                assert np.array_equal(mine.get(), right)


@pytest.mark.parametrize("shots", [1, 2, 31, 1023, 1024, 1025, 5000, 1 << 14, (1 << 14) + 1])
@pytest.mark.parametrize("outcomes", [1, 3, 2**31 - 1])
def test_few_shots_are_counted_by_one_block(
    cp: Any, rng: np.random.Generator, shots: int, outcomes: int
) -> None:
    from argand.readout import gpu

    drawn = rng.integers(0, outcomes, shots).astype(np.int32)
    poison(cp, 8 * shots, 8 * shots, 8)
    found = gpu.counted(cp.asarray(drawn))
    assert (found is None) == (shots > 1 << 14)
    for mine, right in zip(found or (), np.unique(drawn, return_counts=True), strict=False):
        assert np.array_equal(mine.get(), right)


@TYPES
@pytest.mark.parametrize("norm", [1e-9, 1e7])
def test_states_of_any_norm(cp: Any, rng: np.random.Generator, dtype: str, norm: float) -> None:
    state = random_state(rng, 15, dtype) * np.dtype(dtype).type(norm)
    found = argand.sample(cp.asarray(state), 4000, seed=9, qubits=[14, 3, 0])
    expected = argand.sample(state, 4000, seed=9, qubits=[14, 3, 0])
    assert np.array_equal(found.outcomes.get(), expected.outcomes)
    assert np.array_equal(found.counts.get(), expected.counts)


@pytest.mark.parametrize("value", [0, np.nan, np.inf])
def test_states_without_a_norm_are_refused(cp: Any, value: float) -> None:
    with pytest.raises(ValueError, match="must have a finite, positive sum"):
        argand.sample(cp.full(2**15, value, "complex64"), 10, seed=0)


@SIZES
@TYPES
@PLACES
def test_marginals_are_those_of_the_cpu(
    cp: Any, rng: np.random.Generator, qubits: int, dtype: str, offset: int
) -> None:
    state = random_state(rng, qubits, dtype)
    given = on_gpu(cp, state, offset)
    for count in sorted({0, 1, 2, qubits // 2, max(0, qubits - 1), qubits} & {*range(qubits + 1)}):
        chosen = rng.permutation(qubits)[:count].tolist()
        poison(cp, 8 << count)
        found = argand.probabilities(given, chosen).get()
        error = abs(found - argand.probabilities(state, chosen)).max()
        assert error <= 2 * sum_bound(qubits)


@SIZES
@TYPES
@PLACES
def test_expectation_values_are_those_of_the_cpu(
    cp: Any, rng: np.random.Generator, qubits: int, dtype: str, offset: int
) -> None:
    state = random_state(rng, qubits, dtype)
    strings = (
        random_strings(rng, qubits, 40)
        if qubits > 4
        else ["I" * qubits, "Y" * qubits, "X" * qubits]
    )
    coefficients = rng.standard_normal(len(strings))
    observables = list(zip(strings, coefficients, strict=True))
    poison(cp, 8 * len(strings))
    found = argand.expectation(on_gpu(cp, state, offset), observables).get()
    expected = argand.expectation(state, observables)
    bound = expectation_bound(qubits, dtype, "cuda") + expectation_bound(qubits, dtype, "cpu")
    assert (abs(found - expected) <= abs(coefficients) * bound).all()


@TYPES
def test_a_changed_amplitude_is_seen(cp: Any, rng: np.random.Generator, dtype: str) -> None:
    """Every amplitude counts: one that has a tenth of the norm moves every answer."""
    state = random_state(rng, 15, dtype)
    strings = ["Z" * 15, "XYZ" * 5, "I" * 14 + "X"]
    before = argand.expectation(cp.asarray(state), strings).get()
    for place in (0, 1, 12345, 2**15 - 1):
        changed = state.copy()
        changed[place] += 0.3
        after = argand.expectation(cp.asarray(changed), strings).get()
        assert abs(after[0] - before[0]) > 1e-3
        assert argand.probabilities(cp.asarray(changed), range(15))[place] > 1e-2


def test_the_same_bits_twice(cp: Any, rng: np.random.Generator) -> None:
    state = cp.asarray(random_state(rng, 18, "complex64"))
    strings = random_strings(rng, 18, 30)
    for call in (
        lambda: argand.expectation(state, strings),
        lambda: argand.probabilities(state, [17, 2, 9]),
    ):
        assert np.array_equal(call().get(), call().get())
    assert argand.expectation(state, []).shape == (0,)
