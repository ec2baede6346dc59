"""Readout for compute-sanitizer: ``python -m benchmarks.sanitize.readout complex64``.

States are small. Each is an allocation of its own, so that an access beyond it is one beyond what
is allocated. The exit status is 1 where counts differ from the CPU's or a sum is beyond its bound.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from argand import expectation, probabilities
from argand.readout.api import basis_states
from argand.readout.bounds import expectation_bound, sum_bound

from benchmarks.harness.samples import on_host
from benchmarks.sanitize.verdicts import bounded_program

QUBITS = (1, 9, 14, 16)
_SHOTS, _STRINGS, _SEED = 100, 20, 1


def answers(dtype: str, arrays: Any) -> Iterator[tuple[str, float]]:
    """Yield (call, the largest error over its bound); ``arrays`` is cupy (or numpy)."""
    rng = np.random.default_rng(_SEED)
    backend = "cpu" if arrays is np else "cuda"
    for qubits in QUBITS:
        state = rng.standard_normal((2**qubits, 2)).view(complex)[:, 0]
        state = (state / np.linalg.norm(state)).astype(dtype)
        given = arrays.asarray(state)
        found = on_host(basis_states(given, _SHOTS, seed=_SEED))
        same = np.array_equal(found, basis_states(state, _SHOTS, seed=_SEED))
        yield f"{qubits} qubits, shots", 0.0 if same else float("inf")
        for count in (0, qubits // 2, qubits):
            chosen = rng.permutation(qubits)[:count].tolist()
            error = abs(on_host(probabilities(given, chosen)) - probabilities(state, chosen)).max()
            yield f"{qubits} qubits, marginals of {count}", error / (2 * sum_bound(qubits))
        strings = ["".join(rng.choice([*"IXYZ"], qubits)) for _ in range(_STRINGS)]
        apart = on_host(expectation(given, strings)) - expectation(state, strings)
        allowed = sum(expectation_bound(qubits, dtype, on) for on in (backend, "cpu"))
        yield f"{qubits} qubits, strings", float(abs(apart).max()) / allowed


main = bounded_program(
    __doc__,
    ("dtype", ("complex64", "complex128")),
    answers,
    "an answer is off by {} times its bound",
)


if __name__ == "__main__":
    sys.exit(main())
