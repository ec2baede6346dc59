"""Random states, and whether a gate or a circuit is right on them, against fp64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from argand import PRECISIONS, Device, Gate, Precision, plan_circuit
from argand.gates.api import apply_form
from argand.gates.norms import norm_of, overlap_of

from benchmarks.harness.measuring import array_module
from benchmarks.harness.samples import on_host
from benchmarks.peers import Candidate
from workflow.accuracy import Accuracy
from workflow.accuracy.state_accuracy import assess_state, state_reference

_COLUMNS = 1 << 12
"""Columns of a gate that are compared with fp64."""


def evolved(state: Any, gates: Sequence[Gate]) -> Any:
    """Return the state after a circuit at fp64."""
    found = state.astype(np.complex128)
    plan = plan_circuit(int(state.size).bit_length() - 1, gates, precision="fp64")
    for form in plan.forms:
        apply_form(found, form, PRECISIONS["fp64"])
    return found


def random_state(qubits: int, device: Device, seed: int) -> Any:
    """Return 2^qubits normal amplitudes of norm 1, complex64."""
    arrays = array_module(device)
    parts = arrays.random.default_rng(seed).standard_normal((2**qubits, 2), dtype=arrays.float32)
    state = parts.view(arrays.complex64)[:, 0]
    state /= arrays.float32(norm_of(state))
    return state


def check(
    before: Any, gates: Sequence[Gate], backend: str, after: Any, candidate: Candidate,
    *, exact: Callable[[], Any],
) -> Accuracy:  # fmt: skip
    """Return one gate: sampled columns against fp64, and the norm of all.

    A circuit: all of ``exact``.
    """
    qubits = int(before.size).bit_length() - 1
    precision = candidate.precision
    if len(gates) == 1:
        (gate,) = gates
        rng = np.random.default_rng(7)
        rest = rng.integers(0, 2**qubits, min(_COLUMNS, 2**qubits))
        settings = np.arange(2 ** len(gate.targets))
        offsets = sum(((settings >> bit) & 1) << target for bit, target in enumerate(gate.targets))
        rest &= ~sum(1 << target for target in gate.targets)
        rest |= sum(1 << control for control in gate.controls)
        places = np.asarray(offsets)[:, None] | rest
        expected = gate.matrix @ on_host(before[places]).astype(np.complex128)
        found = assess_state(
            state_reference(expected.reshape(-1)), on_host(after[places]).reshape(-1), precision,
            widths=candidate.widths, backend=backend,
        )  # fmt: skip
        # The whole state is known by its norm alone.
        found = replace(found, measures={}, reference="sampled", reference_rows=len(rest))
    else:
        found = _against(exact(), after, precision, candidate.widths, backend)
    drift = abs(norm_of(after) / norm_of(before) - 1)
    assert found.worst_bound is not None
    if not drift <= found.worst_bound:
        reason = f"the norm drifted by {drift:.2e}, the bound is {found.worst_bound:.2e}"
        found = replace(found, verdict="wrong", verified=False, reason=reason)
    return replace(found, measures={**found.measures, "norm_drift": drift})


def _against(
    truth: Any, after: Any, precision: Precision, widths: Sequence[int], backend: str
) -> Accuracy:
    """Return the whole state against one at fp64, part by part: on a GPU little memory is left."""
    error = scale = 0.0
    fidelity = (abs(overlap_of(truth, after)) / (norm_of(truth) * norm_of(after))) ** 2
    step = 1 << 24
    for start in range(0, truth.size, step):
        part = truth[start : start + step]
        error += norm_of(after[start : start + step] - part) ** 2
        scale += norm_of(part) ** 2
    # Errors and bound of a vector of two: what was right, and how far it is from that.
    length = np.sqrt(scale)
    reference = state_reference(np.array([length, 0], np.complex128))
    found = np.array([length, np.sqrt(error)], np.complex128)
    accuracy = assess_state(reference, found, precision, widths=widths, backend=backend)
    return replace(accuracy, measures={**accuracy.measures, "fidelity": fidelity})
