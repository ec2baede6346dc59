"""Trajectories on a GPU: those of the CPU, from the same numbers."""

from __future__ import annotations

from typing import Any

import argand
import numpy as np
import pytest
from argand import Gate
from argand.device import Arch, gpu
from argand.gates import trajectory_source as source
from argand.gates.plan import MAX_WIDTH

from tests.kernels.compiled import ARCHS, assert_clean

NOISE = {"depolarising": 0.1, "damping": 0.2}
CHANNELS = 3


def circuit(rng: np.random.Generator, qubits: int, widest: int) -> list[Gate]:
    """Random unitaries on one to ``widest`` qubits, some under controls."""
    gates = []
    for width in (*range(1, widest + 1), 1, 2):
        taken = [int(qubit) for qubit in rng.permutation(qubits)[: min(width + 1, qubits)]]
        width = min(width, len(taken))
        parts = rng.standard_normal((2, 2**width, 2**width))
        unitary = np.linalg.qr(parts[0] + 1j * parts[1])[0]
        controls = taken[width:] if rng.random() < 0.5 else []
        gates.append(Gate(unitary, tuple(taken[:width]), tuple(controls)))
    return gates


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["fp64", "fp32", "3xfp16"])
@pytest.mark.parametrize(
    ("qubits", "widest"), [(1, 1), (2, 2), (5, 3), (6, 3), (9, 3), (12, 3), (15, 3), (5, 4)]
)
def test_trajectories_are_those_of_the_cpu(
    cp: Any, rng: np.random.Generator, precision: str, qubits: int, widest: int
) -> None:
    """Cases: states that no block holds, gates of more targets than a thread's registers.

    Each gate and channel rounds 2^widest sums of each part; a norm divides both.
    """
    gates = circuit(rng, qubits, widest)
    count = 300 if qubits < 9 else 21
    given = {"seed": 2**63 + 5, "precision": precision, **NOISE}
    found = argand.run_trajectories(qubits, gates, count, device=gpu(0), **given)
    expected = argand.run_trajectories(qubits, gates, count, **given)
    u = argand.PRECISIONS["fp64" if precision == "fp64" else "fp32"].u
    channels = sum(len(gate.qubits) for gate in gates)
    near = 2 * u * (len(gates) * 4 * 2**widest + 8 * channels)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    apart = np.linalg.norm(found.get() - expected, axis=1)
    assert apart.max() <= near
    assert np.abs(expected[1:] - expected[:-1]).max() > 100 * near


@pytest.mark.gpu
def test_the_first_ones_do_not_depend_on_how_many_follow(cp: Any, rng: np.random.Generator) -> None:
    gates = circuit(rng, 4, 3)
    few, many = (
        argand.run_trajectories(4, gates, count, seed=3, device=gpu(0), **NOISE)
        for count in (5, 1000)
    )
    assert np.array_equal(few.get(), many[:5].get())
    last = argand.run_trajectories(4, gates, 7, seed=3, device=gpu(0), first=993, **NOISE)
    assert np.array_equal(last.get(), many[993:].get())


def test_the_kernel_compiles_without_spills(arch: Arch) -> None:
    for dtype in ("complex64", "complex128"):
        assert_clean(source.kernel_source(dtype), arch.target, source.kernel_name(dtype))


def test_operations_of_a_circuit() -> None:
    """A controlled gate, then the channels of its qubits in the order in which it names them."""
    gate = Gate(np.array([[1, 2], [3, 4]]), (3,), (1,))
    operations, matrices = source.operations_of(
        [gate, gate], source.forms_of(4, [gate, gate]), True, "c16"
    )
    assert operations["width"].tolist() == [1, 0, 0, 1, 0, 0]
    assert operations["place"].tolist() == [0, 0, 2, 4, 4, 6]
    assert operations["target"][:, 0].tolist() == [8, 8, 2, 8, 8, 2]
    assert (operations["taken"][0], operations["controls"][0]) == (10, 2)
    assert matrices.tolist() == [1, 2, 3, 4] * 2


def test_a_block_holds_its_states() -> None:
    """A state of up to 13 qubits of complex64 fits on Hopper; a gate has fewer targets there."""
    most = ARCHS["sm_90a"].shared_bytes
    assert source.shared_bytes(1, 8) == 256 * 16
    assert source.shared_bytes(14, 8) <= most < source.shared_bytes(15, 8)
    assert source.MAX_WIDTH < MAX_WIDTH
