"""Shots, marginals and Pauli strings of states of drawn or given size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from argand import PRECISIONS, Device, expectation, probabilities, sample
from argand.readout.bounds import expectation_bound, sum_bound

from benchmarks.gates.check import random_state
from benchmarks.harness.measuring import array_module, kernels_of
from benchmarks.harness.recorded import OURS
from benchmarks.harness.samples import on_host
from benchmarks.peers import Candidate, candidates
from benchmarks.sweep.case import Assess, Case
from benchmarks.sweep.verdicts import by_bound
from workflow.accuracy import Accuracy
from workflow.circuits import plain_readout

Ask = Literal["shots", "marginals", "random Pauli strings", "diagonal Pauli strings"]
LINES = "numpy lines"
"""The name of what a user of NumPy or CuPy writes."""
_CHECKED_STRINGS = 10
_SQUARED = 16 * 2.0**-24
"""Most relative error of |a|^2 in fp32 by a library: a modulus within 3 ulp, squared, rounded."""
_SEED = 1


class ReadoutCase(Case):
    """One question to a state: so many shots or strings, or the marginals of so many qubits."""

    def __init__(self, qubits: int, ask: Ask, count: int) -> None:
        if ask == "marginals" and count > qubits:
            raise ValueError(f"count must be at most {qubits}, the qubits, got {count}")
        self._qubits, self._ask, self._count = qubits, ask, count
        self.operation, self.shape = "readout", f"{qubits} qubits"
        self.kind = f"marginals of {count} qubits" if ask == "marginals" else f"{count} {ask}"
        self.flops, self.bytes_moved = 0.0, 8 * 2.0**qubits
        rng = np.random.default_rng([qubits, count])
        self._chosen = rng.permutation(qubits)[:count].tolist()
        letters = [*("IZ" if ask.startswith("diagonal") else "IXYZ")]
        self._strings = ["".join(rng.choice(letters, qubits)) for _ in range(count)] if (
            ask.endswith("strings")
        ) else []  # fmt: skip

    def operands(self, device: Device, seed: int) -> tuple[Any, ...]:
        """Return a random state of norm 1."""
        return (random_state(self._qubits, device, seed),)

    def _candidate(self, name: str, call: Callable[[Any], Any]) -> Candidate:
        return Candidate(
            name, PRECISIONS["fp32"], self._ask, lambda state: (state,), call, output="real",
            chosen=kernels_of(call),
        )  # fmt: skip

    def ours(self, device: Device) -> list[Candidate]:
        """Return `argand.sample`, `argand.probabilities` or `argand.expectation`."""

        def call(state: Any) -> Any:
            if self._ask == "shots":
                return sample(state, self._count, seed=_SEED)
            if self._ask == "marginals":
                return probabilities(state, self._chosen)
            return expectation(state, self._strings)

        return [self._candidate(OURS, call)]

    def peers(self, device: Device) -> list[Candidate]:
        """Return libraries, and the lines of a user; of strings, which take minutes, on a CPU."""
        arrays = array_module(device)
        libraries = candidates(
            "readout", device.backend, shots=self._count if self._ask == "shots" else 0,
            chosen=self._chosen, strings=self._strings,
        )  # fmt: skip
        if self._ask == "shots":
            lines: Callable[[Any], Any] = partial(_plain_shots, arrays, self._count)
        elif self._ask == "marginals":
            lines = partial(_plain_marginals, self._chosen)
        elif device.backend == "cuda":
            return libraries
        else:
            lines = partial(plain_readout.expectation, strings=self._strings)
        return [*libraries, self._candidate(LINES, lines)]

    def assessment(self, operands: Sequence[Any], device: Device) -> Assess:
        """Return a function that compares answers with fp64, and our shots with the CPU's."""
        (state,), bound = operands, sum_bound(self._qubits)
        if self._ask == "shots":
            return partial(_assess_shots, sample(on_host(state), self._count, seed=_SEED))
        if self._ask == "marginals":
            bound, exact = 2 * bound, plain_readout.marginals(state, self._chosen)
        else:
            bound += expectation_bound(self._qubits, str(state.dtype), device.backend)
            exact = plain_readout.expectation(state, self._strings[:_CHECKED_STRINGS])
        exact = on_host(exact)

        def assess(result: Any, candidate: Candidate) -> Accuracy:
            off = np.abs(on_host(result)[: len(exact)] - exact)
            allowed = bound + (0.0 if candidate.name == OURS else _SQUARED)
            worst = float(off.max()) / allowed
            error = float(np.linalg.norm(off) / np.linalg.norm(exact))
            return by_bound(worst, error, len(exact), "an answer")

        return assess


def _assess_shots(expected: Sequence[Any], result: Any, candidate: Candidate) -> Accuracy:
    """Return whether shots of ours are the CPU's; of a library's only their number is known."""
    found = [on_host(x) for x in result]
    if candidate.name != OURS:
        right = int(found[1].sum()) == int(expected[1].sum())
    else:
        right = all(np.array_equal(x, y) for x, y in zip(found, expected, strict=True))
    worst = 0.0 if right else float("inf")
    return by_bound(worst, worst, len(found[0]), "an answer")


def _plain_shots(arrays: Any, shots: int, state: Any) -> Any:
    """Return shots as a user draws them: running sums of |a|^2 and bisection."""
    ends = arrays.cumsum(abs(state) ** 2, dtype=np.float64)
    drawn = arrays.random.random(shots) * ends[-1]
    return arrays.unique(arrays.searchsorted(ends, drawn), return_counts=True)


def _plain_marginals(chosen: Sequence[int], state: Any) -> Any:
    """Return marginals as a user takes them: |a|^2 with an axis a qubit, summed over the others."""
    qubits = int(state.size).bit_length() - 1
    axes = tuple(qubits - 1 - q for q in range(qubits) if q not in chosen)
    summed = (abs(state) ** 2).reshape([2] * qubits).sum(axis=axes, dtype=np.float64)
    left = sorted(chosen, reverse=True)
    return summed.transpose([left.index(qubit) for qubit in reversed(chosen)]).ravel()


def draw(rng: np.random.Generator, cases: int, sizes: Any) -> list[Case]:
    """Draw 20 to 28 qubits and each question in turn.

    There are 1000 to 10^7 shots, marginals of 1 to 20 qubits, and 1 to 200 strings.
    """
    counts = {"shots": (1000, 10**7), "marginals": (1, 20)}
    found: list[Case] = []
    for number in range(cases):
        ask = get_args(Ask)[number % len(get_args(Ask))]
        count = int(sizes(rng, *counts.get(ask, (1, 200)), (1,))[0])
        found.append(ReadoutCase(int(rng.integers(20, 29)), ask, count))
    return found
