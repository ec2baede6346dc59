"""Readout of a state vector: the calls that a user makes. None of them copies the state."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from argand.checks import as_integer, in_order
from argand.device import array_module, is_cuda_array
from argand.frameworks.foreign import call_on_foreign, has_foreign
from argand.readout import cpu
from argand.readout.problem import MAX_SHOTS, Observable, chosen_qubits, parse_pauli, state_qubits
from argand.readout.rules import adapted, adapted_expectation
from argand.readout.uniforms import checked_seed


class Counts(NamedTuple):
    """Outcomes and how often each was drawn: int64, ascending, with counts above 0."""

    outcomes: Any
    counts: Any


def sample(state: Any, shots: int, *, seed: int, qubits: Sequence[int] | None = None) -> Counts:
    """Count the outcomes of measuring a state in the computational basis.

    Shot s falls at floor(u_s total / 2^64) among the running sums of integer weights, u_s the s-th
    number of ``numpy.random.Philox(key=seed)``. Weights are |a|^2 in units of 2^-61 of a power of
    two next to the norm's square, so sums are exact: CPU and GPU count the same. All probabilities
    together are off by at most 2^(n - 61) of the norm's square (docs/kernels/readout.md).

    Args:
        state: (2^n,), contiguous, complex64 or complex128. NumPy arrays are computed on the CPU,
            CuPy arrays on their GPU. The square of its norm may be from 2^-900 to 2^900.
        shots: how many, from 1 to 2^31 - 1.
        seed: an integer from 0 to 2^64 - 1.
        qubits: the qubits that are measured, in any order; bit j of an outcome is that of
            qubits[j]. By default all, and an outcome is a basis state's number.

    Returns:
        Outcomes and counts, as arrays of the state's kind.

    Raises:
        ValueError: a state that is not a contiguous vector of 2^n amplitudes or whose norm is zero
            or not finite, qubits that are not different ones of it, shots or a seed out of range.
        TypeError: a state of another type.

    Example:
        >>> argand.sample(np.array([0, 1, 0, 0], complex), 10, seed=7)
        Counts(outcomes=array([1]), counts=array([10]))
    """
    if has_foreign(state):
        returned: Counts = call_on_foreign(
            sample, {"state": state}, adapted=adapted, shots=shots, seed=seed, qubits=qubits
        )
        return returned
    found, counts = _drawn(state, shots, seed, ascending=qubits is None, count=qubits is None)
    on_gpu = is_cuda_array(found)
    with found.device if on_gpu else nullcontext():
        if qubits is not None:
            found = cpu.outcomes_of(found, chosen_qubits(qubits, state_qubits(state)))
            counts = _cuda().counted(found) if on_gpu else None
        if counts is not None:
            return Counts(*counts)
        if qubits is not None:
            found.sort()
        return _counted(found, array_module(state))


def basis_states(state: Any, shots: int, *, seed: int) -> Any:
    """Return the basis state of each shot, int64, ascending.

    Arguments and errors are those of `sample`.
    """
    found, _ = _drawn(state, shots, seed)
    with found.device if is_cuda_array(found) else nullcontext():
        return found.astype(np.int64, copy=False)


def _drawn(state: Any, shots: int, seed: int, **options: bool) -> tuple[Any, Any]:
    """Return what `argand.readout.gpu.sample` does; on a CPU int64, ascending, and no counts."""
    state_qubits(state)
    number = as_integer(shots, "shots")
    if not 1 <= number <= MAX_SHOTS:
        raise ValueError(f"shots must be from 1 to 2^31 - 1, got {number}")
    on, seed = _on(state), checked_seed(seed)
    if on is cpu:
        return cpu.sample(state, number, seed), None
    drawn: tuple[Any, Any] = on.sample(state, number, seed, **options)
    return drawn


def probabilities(state: Any, qubits: Sequence[int]) -> Any:
    """Return the probability of each outcome of some qubits: |a|^2 summed over the others.

    Args:
        state: as in `sample`. The probabilities add up to the square of its norm.
        qubits: k different qubits in any order; bit j of an outcome is that of qubits[j].

    Returns:
        (2^k,), float64, of the state's kind. |a|^2 and sums are in
        fp64.

    Raises:
        ValueError, TypeError: as in `sample`.

    Example:
        >>> argand.probabilities(np.array([0.6, 0, 0, 0.8j]), [1]).round(2)
        array([0.36, 0.64])
    """
    if has_foreign(state):
        return call_on_foreign(probabilities, {"state": state}, adapted=adapted, qubits=qubits)
    return _on(state).probabilities(state, chosen_qubits(qubits, state_qubits(state)))


def expectation(state: Any, observables: Sequence[Observable]) -> Any:
    """Return <state|P|state> times a coefficient for each of several Pauli strings P.

    Strings that have X or Y on the same qubits share products of amplitudes; on a GPU up to six
    such groups share a pass over the state (docs/kernels/readout.md).

    Args:
        state: as in `sample`. Nothing is divided by its norm.
        observables: Pauli strings of n letters, the highest qubit's first as in Qiskit, each "ZZI",
            ("ZZI", coefficient) or {"pauli": "ZZI", "coefficient": 0.5}; of Qiskit's SparsePauliOp
            its ``to_list()``. Coefficients are real.

    Returns:
        One value for each observable, float64, of the state's kind.

    Raises:
        ValueError: an observable with other letters, another length, or a coefficient that is not
            finite; a state as in `sample`.
        TypeError: a state of another type, observables that are no sequence.

    Example:
        >>> argand.expectation(np.array([0.6, 0, 0, 0.8 + 0j]), ["ZZ", ("XX", 0.5)]).round(2)
        array([1.  , 0.48])
    """
    observables = in_order(observables, "observables")
    if has_foreign(state):
        return call_on_foreign(
            expectation, {"state": state}, adapted=adapted_expectation, observables=observables
        )
    qubits = state_qubits(state)
    paulis = [parse_pauli(observable, qubits) for observable in observables]
    return _on(state).expectation(state, paulis)


def _counted(ascending: Any, arrays: Any) -> Counts:
    last = arrays.empty(ascending.size, bool)  # whether a shot is the last one of its outcome
    arrays.not_equal(ascending[1:], ascending[:-1], out=last[:-1])
    last[-1:] = True
    at = arrays.flatnonzero(last)
    counts = arrays.empty_like(at)
    arrays.add(at[:1], 1, out=counts[:1])
    arrays.subtract(at[1:], at[:-1], out=counts[1:])
    return Counts(ascending[at].astype(np.int64, copy=False), counts)


def _on(state: Any) -> ModuleType:
    return _cuda() if is_cuda_array(state) else cpu


@cache
def _cuda() -> ModuleType:
    from argand.readout import gpu

    return gpu
