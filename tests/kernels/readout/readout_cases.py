"""States and Pauli strings that tests of readout share."""

from __future__ import annotations

from typing import Any

import numpy as np


def random_state(rng: np.random.Generator, qubits: int, dtype: str = "complex128") -> Any:
    """A state of norm 1 within rounding."""
    state = rng.standard_normal((2**qubits, 2)).view(complex)[:, 0]
    return (state / np.linalg.norm(state)).astype(dtype)


def random_strings(rng: np.random.Generator, qubits: int, count: int) -> list[str]:
    """Pauli strings of all kinds of pairs: random ones, diagonal ones, and flips of low qubits."""
    strings = ["".join(rng.choice([*"IXYZ"], qubits)) for _ in range(count)]
    strings += ["".join(rng.choice([*"IZ"], qubits)) for _ in range(count // 4)]
    low = ["".join(rng.choice([*"IZ"], qubits - 4)) + "".join(rng.choice([*"IXYZ"], 4))
           for _ in range(count // 2)]  # fmt: skip
    ends = ["I" * (qubits - 1) + "X", "I" * (qubits - 1) + "Y", "Y" + "I" * (qubits - 1)]
    return strings + low + ends


def sum_bound(state: Any, terms: int) -> float:
    """Bound of a sum of ``terms`` products in fp64, each of a few roundings, added in any order."""
    return float((terms + 4) * 2.0**-53 * np.linalg.norm(state) ** 2)
