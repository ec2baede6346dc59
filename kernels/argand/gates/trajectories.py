"""Circuits with noise as trajectories of pure states: many at once, each gate applied to all.

On a GPU small states take one launch (`gpu_trajectory`). Else trajectories are the lowest qubits of
one larger state, so that a gate on its targets, moved up by as many, acts upon all of them in one
call. The method is that of quantum jumps (Dalibard, Castin
and Mølmer, "Wave-function approach to dissipative processes in quantum optics", 1992).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from argand.checks import as_integer, as_real
from argand.device import Device, checked_device
from argand.gates.api import apply_gate
from argand.gates.gate import Gate, GateLike, as_gates
from argand.gates.noisy_circuit import NoisyCircuit
from argand.precision import Precision, get_precision

_BATCH_QUBITS = 20
"""Qubits of a state that holds a batch of trajectories, where one alone has no more."""
_MAX_QUBITS = 26
"""Most qubits of a state of trajectories."""
_MAX_NUMBERS = 1 << 63
"""Trajectories of a seed: their numbers are integers of 64 bits on a GPU."""


def run_trajectories(
    qubits: int,
    gates: Sequence[GateLike],
    trajectories: int,
    *,
    seed: int,
    depolarising: float = 0.0,
    damping: float = 0.0,
    precision: str | Precision = "fp64",
    device: Device | None = None,
    first: int = 0,
) -> Any:
    """Evolve |0...0> by a circuit with noise after each gate.

    After a gate, on each of its qubits in order, first a depolarising channel, rho <- (1 - p) rho +
    p tr_q(rho) I/2, by a random Pauli matrix with probability 3 p / 4; then amplitude damping, by a
    jump from |1> to |0> with the probability ``damping`` times that of |1>. The mean of |psi><psi|
    over trajectories is an unbiased estimate of the density matrix.

    Args:
        qubits: qubits of the state, from 1 to 26.
        gates: as in `argand.plan_circuit`, in order; unitary.
        trajectories: the number of trajectories. Each has random numbers of its own, so the first
            ones do not depend on how many follow.
        seed: an integer from 0 to 2^64 - 1.
        depolarising, damping: probabilities from 0 to 1, per gate and qubit.
        precision: the precision of the products of gates, as in `argand.apply_gate`.
        device: where they are computed; the CPU where none is given. A GPU takes the same numbers,
            and circuits of gates on up to three targets by one launch where the state fits in a
            block's shared memory.
        first: the number of the first trajectory, where a longer series is computed in parts.

    Returns:
        (trajectories, 2^qubits) states of norm 1 within rounding, in the precision's output, a
        NumPy array or, on a GPU, a CuPy array.

    Raises:
        ValueError: qubits, trajectories, a seed or a probability out of range, a gate that
            `argand.apply_gate` refuses, or one on up to 4 targets, in host memory, that is not
            unitary.
        TypeError: an argument of another kind.

    Example:
        >>> states = argand.run_trajectories(1, [argand.Gate([[0, 1], [1, 0]], (0,))], 3, seed=7)
        >>> abs(states)
        array([[0., 1.],
               [0., 1.],
               [0., 1.]])
    """
    row, device = get_precision(precision), checked_device(device)
    qubits, trajectories = as_integer(qubits, "qubits"), as_integer(trajectories, "trajectories")
    first, seed = as_integer(first, "first"), as_integer(seed, "seed")
    depolarising, damping = as_real(depolarising, "depolarising"), as_real(damping, "damping")
    if not 1 <= qubits <= _MAX_QUBITS:
        raise ValueError(f"qubits must be from 1 to {_MAX_QUBITS}, got {qubits}")
    if trajectories < 1:
        raise ValueError(f"trajectories must be at least 1, got {trajectories}")
    if not 0 <= first < _MAX_NUMBERS - trajectories:
        raise ValueError(f"first must be from 0 to 2^63 less the trajectories, got {first}")
    given = tuple(map(_with_integers, as_gates(gates)))
    circuit = NoisyCircuit(qubits, given, seed, depolarising, damping, row)
    if device.backend == "cpu":
        return _in_batches(np, circuit, first, trajectories)
    import cupy

    from argand.gates.gpu_trajectory import run_in_one_launch

    found = run_in_one_launch(circuit, first, trajectories, device)
    if found is not None:
        return found
    with cupy.cuda.Device(device.index):
        return _in_batches(cupy, circuit, first, trajectories)


def _with_integers(gate: Gate) -> Gate:
    """Return a gate whose qubits are Python's integers, which shifts do not overflow."""
    targets, controls = (
        tuple(as_integer(qubit, "a qubit") for qubit in of) for of in (gate.targets, gate.controls)
    )
    return Gate(gate.matrix, targets, controls)


def _in_batches(arrays: Any, circuit: NoisyCircuit, first: int, trajectories: int) -> Any:
    """Return the states by NumPy or CuPy (``arrays``), as many at once as a batch holds."""
    order, dtype = 2**circuit.qubits, circuit.precision.output
    found = arrays.empty((trajectories, order), dtype)
    bits = min((trajectories - 1).bit_length(), max(0, _BATCH_QUBITS - circuit.qubits))
    for start in range(0, trajectories, 1 << bits):
        states = arrays.zeros((order, 1 << bits), dtype)
        states[0] = 1
        _evolve(arrays, states, circuit, first + start)
        part = found[start : start + (1 << bits)]
        part[...] = states.T[: len(part)]
    return found


def _evolve(arrays: Any, states: Any, circuit: NoisyCircuit, first: int) -> None:
    """Apply gates and noise in place to trajectories ``first`` on, the columns of ``states``."""
    count = states.shape[1]
    bits = count.bit_length() - 1
    channel = 0
    for gate in circuit.gates:
        targets, controls = ([q + bits for q in of] for of in (gate.targets, gate.controls))
        apply_gate(
            states.reshape(-1), gate.matrix, targets, controls=controls,
            precision=circuit.precision,
        )  # fmt: skip
        for qubit in gate.qubits:
            halves = states.reshape(-1, 2, 1 << qubit, count)
            if circuit.depolarising:
                numbers = _uniforms(circuit.seed, channel, first, count)
                _depolarise(arrays, halves, numbers, circuit.depolarising)
            if circuit.damping:
                numbers = arrays.asarray(_uniforms(circuit.seed, channel + 1, first, count))
                _damp(arrays, halves, numbers, circuit.damping)
            channel += 2


def _uniforms(seed: int, channel: int, first: int, count: int) -> Any:
    """Return a channel's numbers in [0, 1) for trajectories from ``first`` on, of any batch."""
    drawn = np.random.Philox(key=seed, counter=[first // 4, channel, 0, 0])
    return (drawn.random_raw(first % 4 + count)[first % 4 :] >> 11) * 2.0**-53


def _depolarise(arrays: Any, halves: Any, uniforms: Any, probability: float) -> None:
    """Apply X, Y or Z to columns whose number lies in its quarter of the probability."""
    which = np.floor(uniforms * (4 / probability))
    for pauli in range(3):
        columns = arrays.asarray(np.flatnonzero(which == pauli))
        low, high = halves[:, 0][..., columns], halves[:, 1][..., columns]
        if pauli == 2:
            halves[:, 1][..., columns] = -high
        else:
            phase = 1j if pauli else 1
            halves[:, 0][..., columns] = high * np.conj(phase)
            halves[:, 1][..., columns] = low * phase


def _damp(arrays: Any, halves: Any, uniforms: Any, probability: float) -> None:
    """Apply a jump to columns whose number is below its probability, and no jump to the others."""
    square = (arrays.abs(halves.astype(np.complex128, copy=False)) ** 2).sum(axis=(0, 2))
    norm, excited = square.sum(axis=0), square[1]
    jumps = uniforms * norm < probability * excited
    halves[:, 0] = arrays.where(jumps, halves[:, 1], halves[:, 0])
    kept = arrays.where(jumps, 0, np.sqrt(1 - probability))
    halves[:, 1] *= kept.astype(halves.real.dtype)
    left = arrays.where(jumps, excited, norm - probability * excited)
    halves /= arrays.sqrt(left).astype(halves.real.dtype)
