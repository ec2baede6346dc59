"""Readout of a state by NumPy or CuPy alone, in fp64 and in blocks: what ours are compared with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from argand.device import array_module

_BLOCK = 1 << 20
"""Amplitudes at a time."""


def expectation(
    state: Any, strings: Sequence[str], coefficients: Sequence[float] | None = None
) -> Any:
    """Return <state|P|state> of each Pauli string, the highest qubit's letter first; float64.

    Each is multiplied by its coefficient, 1 where there are none.
    """
    arrays = array_module(state)
    found = [_string(state, letters, arrays) for letters in strings]
    factors = coefficients or [1.0] * len(found)
    return arrays.asarray([one * factor for one, factor in zip(found, factors, strict=True)])


def _string(state: Any, letters: str, arrays: Any) -> float:
    """Return a Pauli string's expectation value, from its letters qubit by qubit."""
    total = 0.0
    flips = sum(1 << q for q, letter in enumerate(reversed(letters)) if letter in "XY")
    for numbers, block in _blocks(state, arrays):
        own = block.astype(np.complex128)
        for qubit, letter in enumerate(reversed(letters)):
            if letter in "YZ":
                own *= 1.0 - 2.0 * (numbers >> qubit & 1)
            if letter == "Y":
                own *= 1j
        total += float((state[numbers ^ flips].conj() * own).sum().real)
    return total


def marginals(state: Any, qubits: Sequence[int]) -> Any:
    """Return |a|^2, float64, summed over all other qubits: bit j of an outcome is qubits[j]'s."""
    arrays = array_module(state)
    out = arrays.zeros(1 << len(qubits))
    for numbers, block in _blocks(state, arrays):
        outcomes = sum(
            ((numbers >> qubit & 1) << bit for bit, qubit in enumerate(qubits)), numbers & 0
        )
        out += arrays.bincount(outcomes, _power(block), minlength=out.size)
    return out


def running_sums(state: Any) -> Any:
    """Return the sums of |a|^2 up to each basis state; float64."""
    arrays = array_module(state)
    ends = arrays.empty(state.size)
    before = 0.0
    for numbers, block in _blocks(state, arrays):
        part = ends[int(numbers[0]) : int(numbers[0]) + block.size]
        arrays.cumsum(_power(block), out=part)
        part += before
        before = part[-1]
    return ends


def shots(state: Any, uniforms: Any) -> Any:
    """Return the basis state at each of ascending numbers in [0, 1) of the running sums."""
    ends = running_sums(state)
    arrays = array_module(state)
    found = arrays.searchsorted(ends, arrays.asarray(uniforms) * ends[-1], side="right")
    return arrays.minimum(found, state.size - 1).astype(np.float64)


def _power(block: Any) -> Any:
    wide = block.astype(np.complex128)
    return wide.real**2 + wide.imag**2


def _blocks(state: Any, arrays: Any) -> Iterator[tuple[Any, Any]]:
    for start in range(0, state.size, _BLOCK):
        block = state[start : start + _BLOCK]
        yield arrays.arange(start, start + block.size), block
