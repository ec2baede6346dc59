"""A peer: shots, marginals and Pauli strings of a state by NVIDIA's cuStateVec.

Shots end as basis states in ascending order in the host's memory, where NumPy counts equal ones;
the random numbers are there before the clock starts.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from argand import PRECISIONS

from benchmarks.peers._peer import Candidate, Peer
from benchmarks.peers.custatevec import COMPLEX64, lacks, numbers, state_vector

_ASCENDING = 1
_PAULIS = "IXYZ"
"""The letters by their numbers in ``custatevecPauli_t``."""


def _shots(state: Any, drawn: Any, found: Any) -> Any:
    """Return the basis states that were drawn and how often, by a sampler of the state."""
    import cupy

    library, shots, size = state_vector(), ctypes.c_uint32(len(drawn)), ctypes.c_size_t()
    sampler, qubits = ctypes.c_void_p(), _qubits(state)
    made = ctypes.byref(sampler), shots, ctypes.byref(size)
    library.call("custatevecSamplerCreate", *_of_state(state), *made)
    try:
        workspace = cupy.empty(size.value, cupy.uint8)
        own = library.handle, sampler
        library.call("custatevecSamplerPreprocess", *own, _pointer(workspace), size)
        order = numbers(range(qubits)), ctypes.c_uint32(qubits)
        drawn, into = _on_host(drawn), _on_host(found)
        library.call("custatevecSamplerSample", *own, into, *order, drawn, shots, _ASCENDING)
    finally:
        library.call("custatevecSamplerDestroy", sampler)
    ends = np.append(np.flatnonzero(found[1:] != found[:-1]), len(found) - 1)
    return found[ends], np.diff(ends, prepend=-1)


def _marginals(chosen: Sequence[int], state: Any, found: Any) -> Any:
    """Return the sums of |a|^2 by the chosen qubits, the first one's bit the lowest."""
    order = numbers(chosen), ctypes.c_uint32(len(chosen))
    masked = None, None, ctypes.c_uint32(0)
    into = _pointer(found)
    state_vector().call("custatevecAbs2SumArray", *_of_state(state), into, *order, *masked)
    return found


def _expectation(strings: Sequence[str], state: Any, found: Any) -> Any:
    """Return the expectation value of each Pauli string, the highest qubit's letter first."""
    qubits, count = _qubits(state), len(strings)
    pointers = ctypes.POINTER(ctypes.c_int32) * count
    letters = [numbers([_PAULIS.index(letter) for letter in text[::-1]]) for text in strings]
    state_vector().call(
        "custatevecComputeExpectationsOnPauliBasis", *_of_state(state), _on_host(found),
        pointers(*map(_first, letters)), ctypes.c_uint32(count),
        pointers(*[_first(numbers(range(qubits)))] * count),
        (ctypes.c_uint32 * count)(*[qubits] * count),
    )  # fmt: skip
    return found


def _of_state(state: Any) -> tuple[Any, ...]:
    """Return the arguments that each function begins with."""
    return state_vector().handle, _pointer(state), COMPLEX64, ctypes.c_uint32(_qubits(state))


def _qubits(state: Any) -> int:
    return int(state.size).bit_length() - 1


def _pointer(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.data.ptr)


def _on_host(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _first(array: Any) -> Any:
    return ctypes.cast(array, ctypes.POINTER(ctypes.c_int32))


def _prepared(
    shots: int = 0, chosen: Sequence[int] = (), strings: Sequence[str] = ()
) -> list[Candidate]:
    """Return the one that answers what is asked for."""

    def prepare_shots(state: Any) -> tuple[Any, ...]:
        state_vector()
        return state, np.random.default_rng(1).random(shots), np.full(shots, -1, np.int64)

    def prepare_marginals(state: Any) -> tuple[Any, ...]:
        import cupy

        state_vector()
        return state, cupy.full(1 << len(chosen), np.nan)

    def prepare_strings(state: Any) -> tuple[Any, ...]:
        state_vector()
        return state, np.full(len(strings), np.nan)

    one = partial(Candidate, "custatevec", PRECISIONS["fp32"], output="real")
    if shots:
        return [one("sampler", prepare_shots, _shots)]
    if strings:
        return [one("Pauli basis", prepare_strings, partial(_expectation, strings))]
    return [one("sums of |a|^2", prepare_marginals, partial(_marginals, chosen))]


PEER = Peer(
    name="custatevec", operation="readout", backends=("cuda",), precisions=("fp32",),
    algorithm=lambda _: "sampler, sums of |a|^2, Pauli basis", modules=("cupy",),
    prepared=_prepared, lacks=lacks,
    version=lambda: f"cuStateVec {state_vector().version()}",
)  # fmt: skip
