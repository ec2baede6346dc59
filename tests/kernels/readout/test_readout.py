"""Counts, marginals and expectation values on the CPU against dense fp64."""

from __future__ import annotations

import tracemalloc
from functools import reduce
from typing import Any

import argand
import numpy as np
import pytest
from argand.readout import cpu, uniforms
from argand.readout.api import basis_states
from argand.readout.uniforms import high_product
from argand.readout.weights import UNIT_BITS, norm_exponent
from scipy.stats import chi2

from tests.kernels.readout.readout_cases import random_state, sum_bound

LETTERS = {
    "I": np.eye(2),
    "X": np.array([[0, 1], [1, 0]]),
    "Y": np.array([[0, -1j], [1j, 0]]),
    "Z": np.diag([1, -1]),
}
WIDTHS = pytest.mark.parametrize("width", [1, 3, cpu.BLOCK_QUBITS])
TYPES = pytest.mark.parametrize("dtype", ["complex64", "complex128"])


class Derived(np.ndarray[Any, Any]):
    """A type derived of NumPy's arrays: results are arrays."""


def dense(letters: str) -> Any:
    return reduce(np.kron, [LETTERS[letter] for letter in letters])


@TYPES
@WIDTHS
def test_expectation_values_are_those_of_dense_paulis(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, dtype: str, width: int
) -> None:
    monkeypatch.setattr(cpu, "BLOCK_QUBITS", width)
    state = random_state(rng, 5, dtype)
    strings = ["".join(rng.choice([*"IXYZ"], 5)) for _ in range(60)]
    strings += ["IIIII", "ZZZZZ", "XIIII", "IIIIX", "IIIIY", "YIIII", "YYYYY"]
    coefficients = rng.standard_normal(len(strings))
    found = argand.expectation(state, list(zip(strings, coefficients, strict=True)))
    wide = state.astype(complex)
    for letters, coefficient, value in zip(strings, coefficients, found, strict=True):
        expected = coefficient * np.vdot(wide, dense(letters) @ wide)
        assert abs(expected.imag) < 1e-15
        assert abs(value - expected.real) <= abs(coefficient) * sum_bound(state, 32), letters


def test_a_changed_amplitude_changes_every_expectation_value(rng: np.random.Generator) -> None:
    state = random_state(rng, 4)
    strings = ["ZZZZ", "XYZI", "IIIX", "YYII"]
    before = argand.expectation(state, strings)
    state[5] *= 1.1j
    assert (abs(argand.expectation(state, strings) - before) > 1e-6).all()


@WIDTHS
def test_many_strings_of_one_group(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setattr(cpu, "BLOCK_QUBITS", width)
    state = random_state(rng, 6)
    strings = ["".join(rng.choice([*"IZ"], 6)) for _ in range(2 * cpu._SIGNED_STRINGS + 1)]
    found = argand.expectation(state, strings)
    for letters, value in zip(strings, found, strict=True):
        assert abs(value - np.vdot(state, dense(letters) @ state).real) <= sum_bound(state, 64)


def test_forms_of_an_observable(rng: np.random.Generator) -> None:
    state = random_state(rng, 3)
    same = ["XZY", ("XZY", 1.0), {"pauli": "XZY"}, {"pauli": "XZY", "coefficient": 1.0}]
    same += [("XZY", 1 + 0j), ("XZY", np.complex128(1))]  # type: ignore[list-item]
    assert len(set(argand.expectation(state, same).tolist())) == 1
    assert argand.expectation(state, []).shape == (0,)


@TYPES
@WIDTHS
@pytest.mark.parametrize(
    "qubits", [(), (0,), (5,), (4, 0, 2), (1, 5), (0, 1, 2, 3, 4, 5), (5, 1, 0, 4, 2, 3)]
)
def test_marginals_are_sums_over_the_other_qubits(
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
    dtype: str,
    width: int,
    qubits: tuple[int, ...],
) -> None:
    monkeypatch.setattr(cpu, "BLOCK_QUBITS", width)
    monkeypatch.setattr(cpu, "_ROW_QUBITS", 2)
    state = random_state(rng, 6, dtype)
    power = abs(state.astype(complex)) ** 2
    expected = np.zeros(2 ** len(qubits))
    for number, one in enumerate(power):
        expected[sum(((number >> qubit) & 1) << bit for bit, qubit in enumerate(qubits))] += one
    found = argand.probabilities(state.view(Derived), qubits)
    assert type(found) is np.ndarray
    assert found.shape == expected.shape
    assert (abs(found - expected) <= sum_bound(state, 64)).all()


@TYPES
@WIDTHS
@pytest.mark.parametrize("norm", [1.0, 3e-7, 1e9])
def test_shots_fall_where_exact_integers_say(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, dtype: str, width: int, norm: float
) -> None:
    monkeypatch.setattr(cpu, "BLOCK_QUBITS", width)
    monkeypatch.setattr(uniforms, "_PIECE", 1024)
    state = random_state(rng, 7, dtype) * np.dtype(dtype).type(norm)
    state[40:80] = 0
    wide = state.astype(complex)
    power = wide.real**2 + wide.imag**2
    scale = 2.0 ** (UNIT_BITS + norm_exponent(float(power.sum())))
    ends = np.cumsum([int(np.rint(one * scale)) for one in power], dtype=object)
    expected = np.zeros(128, int)
    for drawn in np.random.Philox(key=11).random_raw(3000):
        at = int(drawn) * ends[-1] >> 64
        expected[next(i for i, end in enumerate(ends) if at < end)] += 1
    outcomes, counts = argand.sample(state, 3000, seed=11)
    assert np.array_equal(outcomes, np.flatnonzero(expected))
    assert np.array_equal(counts, expected[expected > 0])


def test_a_shot_takes_three_numbers_at_most() -> None:
    """Where it fell, its basis state, and that once more before it is in its place."""
    state, shots = np.full(4, 0.5 + 0j), 1 << 18
    tracemalloc.start()
    try:
        argand.sample(state, shots, seed=1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    pieces = 8 * uniforms._PIECE * np.dtype(np.uint64).itemsize
    assert 16 * shots <= peak <= 24 * shots + pieces


def test_counts_follow_the_probabilities(rng: np.random.Generator) -> None:
    """Pearson's chi-square is below what a right sampler exceeds once in 1e6."""
    state, shots = random_state(rng, 5), 20000
    expected = shots * abs(state) ** 2
    counts = np.zeros(32)
    found = argand.sample(state, shots, seed=3)
    counts[found.outcomes] = found.counts
    limit = chi2.ppf(1 - 1e-6, 31)
    assert ((counts - expected) ** 2 / expected).sum() < limit
    assert ((np.roll(counts, 1) - expected) ** 2 / expected).sum() > limit


def test_measured_qubits_are_bits_of_the_basis_states(rng: np.random.Generator) -> None:
    state = random_state(rng, 6)
    all_of_them = basis_states(state, 500, seed=8)
    outcomes, counts = argand.sample(state, 500, seed=8, qubits=[4, 1])
    expected = np.bincount((all_of_them >> 4 & 1) | (all_of_them >> 1 & 1) << 1, minlength=4)
    assert np.array_equal(outcomes, np.flatnonzero(expected))
    assert np.array_equal(counts, expected[expected > 0])
    assert argand.sample(state, 500, seed=8, qubits=[]).counts.tolist() == [500]


def test_a_basis_state_is_always_found() -> None:
    state = np.zeros(2**16, "complex64")
    state[54321] = 1j
    assert argand.sample(state, 100, seed=0).outcomes.tolist() == [54321]


def test_readout_leaves_the_state_as_it_is(rng: np.random.Generator) -> None:
    state = random_state(rng, 6)
    state.flags.writeable = False
    before = state.copy()
    argand.sample(state, 10, seed=1)
    argand.probabilities(state, [1])
    argand.expectation(state, ["XYZXYZ"])
    assert np.array_equal(state, before)


def test_the_upper_half_of_products_of_64_bits(rng: np.random.Generator) -> None:
    x = rng.integers(0, 2**64, 1000, dtype=np.uint64)
    x[:3] = 0, 2**64 - 1, 2**32
    for y in (1, 2**32 - 1, 2**61 + 12345, 2**64 - 1):
        assert high_product(x, np.uint64(y)).tolist() == [int(one) * y >> 64 for one in x]


GOOD = np.ones(8, complex)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: argand.sample([1, 0], 1, seed=0), TypeError, "a NumPy or a CuPy array, got list"),
        (lambda: argand.sample(np.ones(8), 1, seed=0), TypeError, "complex64 or complex128"),
        (lambda: argand.sample(GOOD[:6], 1, seed=0), ValueError, "2\\^n amplitudes"),
        (lambda: argand.sample(GOOD[::2], 1, seed=0), ValueError, "a contiguous vector"),
        (lambda: argand.sample(GOOD, 0, seed=0), ValueError, "shots must be from 1"),
        (lambda: argand.sample(GOOD, 2**31, seed=0), ValueError, "shots must be from 1"),
        (lambda: argand.sample(GOOD, 1, seed=-1), ValueError, "seed must be from 0"),
        (lambda: argand.sample(0 * GOOD, 1, seed=0), ValueError, "add up to 0.0"),
        (lambda: argand.sample(np.nan * GOOD, 1, seed=0), ValueError, "add up to nan"),
        (lambda: argand.sample(1e200 * GOOD, 1, seed=0), ValueError, "add up to inf"),
        (lambda: argand.sample(GOOD, 1, seed=0, qubits=[3]), ValueError, "from 0 to 2, got"),
        (lambda: argand.probabilities(GOOD, [1, 1]), ValueError, "different ones"),
        (lambda: argand.probabilities(GOOD, [-1]), ValueError, "different ones"),
        (lambda: argand.expectation(GOOD, ["ZZ"]), ValueError, "has 2 letters, but the state"),
        (lambda: argand.expectation(GOOD, ["ZZz"]), ValueError, "letters I, X, Y and Z"),
        (lambda: argand.expectation(GOOD, [3]), ValueError, "a Pauli string or a pair"),
        (lambda: argand.expectation(GOOD, [[1, 2]]), ValueError, r"or a pair .*, got \[1, 2\]"),
        (lambda: argand.expectation(GOOD, [("ZZZ", 1j)]), TypeError, "coefficient must be a real"),
        (lambda: argand.expectation(GOOD, [("ZZZ", np.inf)]), ValueError, "must be finite"),
        (lambda: argand.expectation(GOOD, [{"paul": "ZZZ"}]), ValueError, "keys pauli and"),
    ],
)  # fmt: skip
def test_mistakes_are_refused(call: Any, error: type[Exception], said: str) -> None:
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(error, match=said):
        call()


def test_qubits_and_letters_are_numbered_as_in_qiskit(rng: np.random.Generator) -> None:
    info = pytest.importorskip("qiskit.quantum_info")
    state = random_state(rng, 5)
    theirs = info.Statevector(state)
    strings = ["XYZIZ", "IIIYX", "ZIIII", "YYIXZ"]
    found = argand.expectation(state, strings)
    expected = [theirs.expectation_value(info.Pauli(letters)).real for letters in strings]
    np.testing.assert_allclose(found, expected, atol=1e-14)
    for chosen in ([2], [4, 0], [1, 3, 0]):
        found = argand.probabilities(state, chosen)
        np.testing.assert_allclose(found, theirs.probabilities(chosen), atol=1e-14)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_an_infinite_amplitude_leaves_no_finite_expectation(dtype: str) -> None:
    state = np.ones(8, dtype)
    state[3] = np.inf
    assert not np.isfinite(argand.expectation(state, ["XYZ", "YII", "ZZZ"])).any()
