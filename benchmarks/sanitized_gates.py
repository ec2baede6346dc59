"""Gates on small states for compute-sanitizer: ``python -m benchmarks.sanitized_gates 3xfp16``.

Every kernel of a precision: each width, with qubit 0 a target or not, under controls, permutations,
and states smaller than a tile, on so few blocks that each has several tiles. The state is an
allocation of its own, so that an access beyond it is one beyond what is allocated. Every result is
held to its bound against fp64. The exit status is 1 where one is outside.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from argand import PRECISIONS, Gate, Precision, apply_gate
from argand.device import gpu
from argand.gate_forms import gate_form

from benchmarks.gate_circuits import random_unitary
from workflow.accuracy.bounds import evolution_bound

_QUBITS = 16
_CORES = 1
"""Multiprocessors that a launch is made for: fewer blocks than tiles."""
_MOST_WIDTH = 7


def main(argv: Sequence[str] | None = None) -> int:
    """Run every gate at one precision."""
    import cupy

    found = argparse.ArgumentParser(description=__doc__)
    found.add_argument("precision", choices=list(PRECISIONS))
    row = PRECISIONS[found.parse_args(argv).precision]
    cupy.cuda.set_allocator(None)
    rng = np.random.default_rng(1)
    wrong = calls = 0
    for qubits, gate in gates(rng):
        state = rng.standard_normal((2**qubits, 2)).view(np.complex128)[:, 0]
        state = (state / np.linalg.norm(state)).astype(row.output)
        wanted = apply_gate(
            state.astype(np.complex128), gate.matrix, gate.targets, controls=gate.controls
        )
        result = _apply(state, qubits, gate, row)
        error = float(np.linalg.norm(result - wanted))
        calls += 1
        if not error <= evolution_bound(row, [len(gate.targets)], "cuda"):
            wrong += 1
            print(f"{gate.targets} under {gate.controls} of {qubits} qubits: error {error:.3g}")
    print(f"{calls} calls, {wrong} wrong")
    return int(wrong > 0)


def gates(rng: np.random.Generator) -> Iterator[tuple[int, Gate]]:
    """Gates with the qubits of their states."""
    for width in range(1, _MOST_WIDTH + 1):
        order = 2**width
        permutation = np.diag(np.exp(2j * np.pi * rng.random(order)))[rng.permutation(order)]
        for targets in (range(width), range(4, 4 + width), range(_QUBITS - width, _QUBITS)):
            rest = [qubit for qubit in range(_QUBITS) if qubit not in targets]
            for matrix in (random_unitary(rng, width), permutation):
                for controls in ((), rest[:1], rest[2:4]):
                    yield _QUBITS, Gate(matrix, tuple(targets), tuple(controls))
        yield width, Gate(random_unitary(rng, width), tuple(reversed(range(width))))
        yield 9, Gate(random_unitary(rng, width), tuple(range(1, 1 + width)), (0, 8))


def _apply(state: Any, qubits: int, gate: Gate, precision: Precision) -> Any:
    """The state after a gate, by our kernel where there is one."""
    import cupy
    from argand import cuda_gates

    given = cupy.asarray(state)
    form = gate_form(qubits, gate.matrix, gate.targets, gate.controls)
    device = replace(gpu(0), cores=_CORES)
    plan = cuda_gates.plan_for(qubits, form, precision, device)
    if plan is None:
        apply_gate(given, gate.matrix, gate.targets, controls=gate.controls, precision=precision)
    else:
        launch = cuda_gates.GateLaunch(plan, qubits, form, device)
        matrix = cupy.asarray(launch.operand(form))
        launch(given.data.ptr, matrix, cuda_gates.matrix_exponent(form, precision))
    return given.get()


if __name__ == "__main__":
    sys.exit(main())
