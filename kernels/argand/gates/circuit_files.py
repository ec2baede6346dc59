"""Files of planned circuits: fused gates and their passes, which a search has found."""

from __future__ import annotations

from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import numpy as np

from argand.gates.canonical import GateForm, gate_form
from argand.gates.circuit_search import CircuitPlan
from argand.gates.fusion import Pass
from argand.gates.sequences import SharedPass
from argand.precision import get_precision
from argand.runtime.plans.plan_files import read_plan, write_plan

_OPERATION = "circuit"
_MAX_BYTES = 1 << 30
"""Largest file: matrices of some fifty fused gates on ten qubits."""
_MATRIX = np.dtype("<c16")


def save_circuit(plan: CircuitPlan, path: str | Path) -> None:
    """Write a planned circuit to a file, for `load_circuit` in any process.

    Raises OSError where it cannot be written, NotOwnError for a folder that others may write to.
    """
    gates = [
        {
            "targets": form.targets, "controls": form.controls,
            "matrix": b64encode(form.matrix.astype(_MATRIX).tobytes()).decode(),
            "circuit gates": list(map(int, one.gates)), "qubits": list(map(int, one.qubits)),
        }
        for form, one in zip(plan.forms, plan.passes, strict=True)
    ]  # fmt: skip
    write_plan(Path(path), _OPERATION, {
        "qubits": plan.qubits, "precision": plan.precision.name,
        "rounding": list(plan.precision.roundings), "width": plan.width, "gates": gates,
        "groups": [[group.count, list(group.tile)] for group in plan.groups],
        "seconds": list(map(float, plan.seconds)), "measured": plan.measured,
    })  # fmt: skip


def load_circuit(path: str | Path) -> CircuitPlan:
    """Return the plan in a file of `save_circuit`.

    Raises NotOwnError and NotPlainError for a file that others may have written, and ValueError for
    one that is not a planned circuit, or damaged.
    """
    content = read_plan(Path(path), _OPERATION, _MAX_BYTES)
    if "rounding" not in content:
        raise ValueError(f"{path} has no rounding, as of an earlier version; save it again")
    try:
        return _plan_of(content)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {type(error).__name__}: {error}") from error


def _plan_of(content: dict[str, Any]) -> CircuitPlan:
    qubits, gates = int(content["qubits"]), content["gates"]
    forms = tuple(_form(qubits, gate) for gate in gates)
    passes = tuple(Pass(tuple(gate["circuit gates"]), tuple(gate["qubits"])) for gate in gates)
    groups = tuple(SharedPass(int(count), tuple(tile)) for count, tile in content["groups"])
    seconds = tuple(map(float, content["seconds"]))
    if sum(group.count for group in groups) != len(forms) or len(seconds) != len(groups):
        raise ValueError(f"{len(forms)} gates, {len(groups)} passes, {len(seconds)} times")
    if any(qubit not in range(qubits) for group in groups for qubit in group.tile):
        raise ValueError(f"a tile of other qubits than 0 to {qubits - 1}")
    precision = get_precision(content["precision"], content["rounding"])
    return CircuitPlan(
        qubits=qubits, precision=precision, width=int(content["width"]), passes=passes, forms=forms,
        groups=groups, seconds=seconds, measured=bool(content["measured"]),
    )  # fmt: skip


def _form(qubits: int, gate: dict[str, Any]) -> GateForm:
    """Return a fused gate. Raises ValueError for one that is wrong."""
    order = 2 ** len(gate["targets"])
    numbers = np.frombuffer(b64decode(gate["matrix"], validate=True), _MATRIX)
    return gate_form(qubits, numbers.reshape(order, order), gate["targets"], gate["controls"])
