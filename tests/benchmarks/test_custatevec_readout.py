"""The arguments that cuStateVec's functions get, as its header names them, and what comes back."""

from __future__ import annotations

import ctypes
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.peers import custatevec_readout
from benchmarks.peers.custatevec import COMPLEX64

QUBITS = 3
DRAWN = [1, 1, 4, 6, 6, 6]


class Library:
    """Keeps the calls; its sampler always draws `DRAWN`."""

    handle = ctypes.c_void_p(7)

    def __init__(self) -> None:
        self.calls: dict[str, tuple[Any, ...]] = {}

    def call(self, name: str, *arguments: Any) -> None:
        self.calls[name] = arguments
        if name == "custatevecSamplerSample":
            (ctypes.c_int64 * len(DRAWN)).from_address(arguments[2].value)[:] = DRAWN


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    found = Library()
    monkeypatch.setattr(custatevec_readout, "state_vector", lambda: found)
    on_gpu = SimpleNamespace(data=SimpleNamespace(ptr=64))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(
        empty=lambda *_: on_gpu, full=lambda *_: on_gpu, uint8=np.uint8
    ))  # fmt: skip
    return found


def answer(**asked: Any) -> Any:
    state = SimpleNamespace(size=2**QUBITS, data=SimpleNamespace(ptr=128))
    (candidate,) = custatevec_readout._prepared(**asked)
    return candidate.compute(*candidate.prepare(state))


def begins_with_the_state(arguments: tuple[Any, ...]) -> bool:
    handle, state, kind, qubits, *_ = arguments
    return (handle.value, state.value, kind, qubits.value) == (7, 128, COMPLEX64, QUBITS)


def test_shots_are_counted(library: Library) -> None:
    outcomes, counts = answer(shots=len(DRAWN))
    assert (outcomes.tolist(), counts.tolist()) == ([1, 4, 6], [2, 1, 3])
    assert begins_with_the_state(library.calls["custatevecSamplerCreate"])
    *_, order, length, _, shots, ascending = library.calls["custatevecSamplerSample"]
    assert (list(order), length.value, shots.value, ascending) == ([0, 1, 2], 3, 6, 1)
    assert "custatevecSamplerDestroy" in library.calls


def test_marginals_have_the_first_qubit_in_the_lowest_bit(library: Library) -> None:
    answer(chosen=[2, 0])
    arguments = library.calls["custatevecAbs2SumArray"]
    assert begins_with_the_state(arguments)
    assert (list(arguments[5]), arguments[6].value) == ([2, 0], 2)
    assert (*arguments[7:9], arguments[9].value) == (None, None, 0)


def test_pauli_strings_have_the_highest_qubit_first(library: Library) -> None:
    answer(strings=["XYZ", "IIZ"])
    arguments = library.calls["custatevecComputeExpectationsOnPauliBasis"]
    assert begins_with_the_state(arguments)
    _, paulis, count, places, lengths = arguments[4:]
    assert [paulis[0][:QUBITS], paulis[1][:QUBITS]] == [[3, 2, 1], [3, 0, 0]]
    assert [places[string][:QUBITS] for string in range(count.value)] == [[0, 1, 2]] * 2
    assert list(lengths) == [QUBITS] * 2
