"""Shape and gradient of a gate, for frameworks that trace and differentiate it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from argand.frameworks.rules import (
    Differentiated,
    FrameworkRules,
    Spec,
    copied,
    namespace,
    stored,
)
from argand.gemm.api import gemm


def _result(arrays: Mapping[str, Spec | None], _options: Mapping[str, Any], _gpu: bool) -> Spec:
    state = arrays["state"]
    assert state is not None
    return state


def _gradient(of: Differentiated, grad: Any) -> dict[str, Any]:
    """Return U^H g for the state, and g s^H over the gate's amplitudes for the matrix."""
    state, matrix = of.arrays["state"], of.arrays["matrix"]
    targets, controls = of.options["targets"], of.options.get("controls", ())
    found = {}
    if "state" in of.needed:
        found["state"] = of.call(copied(grad), matrix.conj().mT, **of.options)
    if "matrix" in of.needed:
        g, s = (_of_gate(x, targets, controls) for x in (grad, state))
        found["matrix"] = gemm(g, s, op_b="C")
    return found


def _of_gate(x: Any, targets: Any, controls: Any) -> Any:
    """Return the amplitudes that a gate acts on, (2^k, rest): a row for each state of targets."""
    qubits = x.shape[0].bit_length() - 1
    turned = x.reshape((2,) * qubits)
    last = [qubits - 1 - qubit for qubit in (*reversed(targets), *controls)]
    arrays = namespace(x)
    # Torch computes gradients of a batch at once by this name alone.
    moved = getattr(arrays, "movedim", None) or arrays.moveaxis
    turned = moved(turned, last, list(range(len(last))))
    # Controls stand behind the targets: only where all of them are 1 does the gate act.
    if controls:
        turned = turned[(slice(None),) * len(targets) + (1,) * len(controls)]
    return turned.reshape((2 ** len(targets), -1))


def _adapted(arrays: dict[str, Any], _options: dict[str, Any]) -> None:
    """Change what lies in memory: the conjugate of a state takes that of the gate."""
    arrays["state"], _, conjugate = stored(arrays["state"])
    if conjugate:
        matrix = arrays["matrix"]
        arrays["matrix"] = matrix.conj() if hasattr(matrix, "conj") else np.conj(matrix)


def _reads(_options: Mapping[str, Any], needed: frozenset[str]) -> frozenset[str]:
    return frozenset({"state", "matrix"} - (needed if len(needed) == 1 else set()))


RULES = FrameworkRules(_result, _gradient, _reads, _adapted, leading_axes=False)
