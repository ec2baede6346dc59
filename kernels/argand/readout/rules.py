"""Readout of conjugate and negative views of a state, for frameworks that have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argand.frameworks.rules import stored
from argand.readout.problem import parse_pauli


def adapted(arrays: dict[str, Any], _options: dict[str, Any]) -> None:
    """Read what lies in memory, since its probabilities are the same."""
    arrays["state"], _, _ = stored(arrays["state"])


def adapted_expectation(
    arrays: dict[str, Any], options: dict[str, Any]
) -> Callable[[Any], None] | None:
    """Read what lies in memory: a conjugate changes the sign of strings with an odd number of Y."""
    state, _, conjugate = stored(arrays["state"])
    arrays["state"] = state
    if not conjugate:
        return None
    qubits = state.numel().bit_length() - 1
    observables = enumerate(options["observables"])
    odd = [number for number, one in observables if parse_pauli(one, qubits).ys % 2]

    def finish(found: Any) -> None:
        for number in odd:
            found[number].neg_()

    return finish
