"""Means over trajectories, with standard errors: in fp64, some trajectories at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from argand.device import array_module
from argand.readout.problem import parse_pauli

_BLOCK = 1 << 20
"""Amplitudes of the trajectories that are computed at a time."""

Readout = Callable[[Any, int], Any]
"""Returns values (trajectories, values) in fp64 of states (trajectories, 2^n) and the number of
the first one."""


def averaged(
    states: Callable[[int, int], Any], readout: Readout, count: int, amplitudes: int
) -> Any:
    """Return the means and standard errors (2, values) of the readout of ``count`` trajectories.

    ``states(first, some)`` are those with the numbers from ``first`` on. Blocks are merged as Chan,
    Golub and LeVeque ("Updating formulae and a pairwise algorithm for computing sample variances",
    1979) do, so that no digits are lost where all trajectories have the same values.
    """
    some = max(1, _BLOCK // amplitudes)
    mean, squares = 0.0, 0.0
    for first in range(0, count, some):
        values = readout(states(first, min(some, count - first)), first)
        own = values.mean(axis=0)
        apart = ((values - own) ** 2).sum(axis=0)
        share = len(values) / (first + len(values))
        squares = squares + apart + (own - mean) ** 2 * first * share
        mean = mean + (own - mean) * share
    arrays = array_module(mean)
    return arrays.stack([mean, arrays.sqrt(squares / (count * (count - 1)))])


def expectation(strings: Sequence[tuple[str, float]]) -> Readout:
    """Return coefficient <psi|P|psi> of each Pauli string, the highest qubit's letter first."""

    def values(states: Any, _: int) -> Any:
        arrays = array_module(states)
        numbers = arrays.arange(states.shape[1])
        found = []
        for one in strings:
            pauli = parse_pauli(one, int(states.shape[1]).bit_length() - 1)
            signs = 1.0 - 2.0 * _parity(numbers & pauli.signs)
            products = states[:, numbers ^ pauli.flips].conj() * states
            value = products.astype(np.complex128) @ (signs * 1j**pauli.ys)
            found.append(pauli.coefficient * value.real)
        return arrays.stack(found, axis=1)

    return values


def marginals(qubits: Sequence[int]) -> Readout:
    """Return |a|^2 summed over all other qubits: bit j of an outcome is that of qubits[j]."""

    def values(states: Any, _: int) -> Any:
        count, total = len(states), int(states.shape[1]).bit_length() - 1
        power = _power(states)
        axes = [total - qubit for qubit in reversed(qubits)]
        others = [axis for axis in range(1, total + 1) if axis not in axes]
        split = power.reshape(count, *[2] * total).transpose(0, *axes, *others)
        return split.reshape(count, 1 << len(qubits), -1).sum(axis=2)

    return values


def outcomes(seed: int, channels: int) -> Readout:
    """Return 1 of the basis state that a measurement of all qubits finds, and 0 of the others.

    The numbers of the measurements are those of Philox by seed and trajectory, after those that
    noise takes of the trajectory's ``channels``.
    """

    def values(states: Any, first: int) -> Any:
        arrays, last = array_module(states), states.shape[1] - 1
        drawn = np.random.Philox(key=seed, counter=[first // 4, channels, 0, 0])
        numbers = drawn.random_raw(first % 4 + len(states))[first % 4 :] * 2.0**-64
        ends = arrays.cumsum(_power(states), axis=1)
        below = ends <= arrays.asarray(numbers)[:, None] * ends[:, -1:]
        found = arrays.minimum(below.sum(axis=1), last)
        return (found[:, None] == arrays.arange(last + 1)).astype(np.float64)

    return values


def overlap(state: Any) -> Readout:
    """Return |<state|psi>|^2, (trajectories, 1)."""

    def values(states: Any, _: int) -> Any:
        bra = array_module(states).asarray(state.conj())
        found = states.astype(np.complex128) @ bra
        return (found.real**2 + found.imag**2)[:, None]

    return values


def together(readouts: Sequence[Readout]) -> Readout:
    """Return the values of several readouts beside each other."""

    def values(states: Any, first: int) -> Any:
        return array_module(states).concatenate([one(states, first) for one in readouts], axis=1)

    return values


def _power(states: Any) -> Any:
    return states.real.astype(np.float64) ** 2 + states.imag.astype(np.float64) ** 2


def _parity(numbers: Any) -> Any:
    for shift in (16, 8, 4, 2, 1):
        numbers = numbers ^ numbers >> shift
    return numbers & 1
