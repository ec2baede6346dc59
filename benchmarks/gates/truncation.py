"""The truncation bias of gates on tensor cores, by a fit over random unitaries and states.

    python -m benchmarks.gates.truncation --csv h200-gate-cut.csv

Each kernel of a split precision multiplies normal amplitudes by a random unitary, first without
bias compensation. The bias of the products of each column of the matrix, on average over all
amplitudes, is fitted by the MMA along k that adds them and those after it. What was found on an
H200 is in `argand.gates.truncation`. A second call with the compensated matrix shows what is left
of the error and of the norm's change. The exit status is 1 where that change is more than an eighth
of 2^-24 a gate.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from argand import PRECISIONS, Device
from argand.gates.canonical import GateForm, gate_form
from argand.gates.heuristics import mma_plans
from argand.gates.plan import MAX_WIDTH, GatePlan, widest_mma
from argand.gates.truncation import TruncationBias, compensated, k_tiles_of, truncation_bias

from benchmarks.gates.circuits import random_unitary
from benchmarks.harness.measuring import chosen_device
from benchmarks.harness.tables import Table, parser

_MIN_WIDTH = 4
_MAX_LEFT = 2.0**-24 / 8


@dataclass(frozen=True)
class TruncationRow:
    """One kernel at one width.

    Attributes:
        inside: whether qubit 0 is a target.
        own, further: the fitted bias, as in `argand.gates.truncation.TruncationBias`.
        misfit: the largest misfit of the bias of one MMA.
        error, drift: relative error, and the norm's change, without compensation.
        error_left, drift_left: the same with that of `argand.gates.truncation`.
    """

    precision: str
    kind: str
    width: int
    inside: bool
    own: float
    further: float
    misfit: float
    error: float
    drift: float
    error_left: float
    drift_left: float


def main(argv: Sequence[str] | None = None) -> int:
    """Measure every kernel of split precisions that this device has."""
    arguments = _parser().parse_args(argv)
    device = chosen_device("cuda")
    table = Table(arguments.csv)
    for row in measured(device, arguments.qubits, arguments.seed):
        table.add(
            [row],
            f"{row.precision:7} {row.kind:6} {row.width} {'inside' if row.inside else 'outside':7} "
            f"bias {row.own:.2e} + {row.further:.2e} a further MMA (misfit {row.misfit:.0e}); "
            f"error {row.error:.2e} -> {row.error_left:.2e}, "
            f"norm {row.drift:+.2e} -> {row.drift_left:+.2e}",
        )
    return int(any(abs(row["drift_left"]) > _MAX_LEFT for row in table.rows))


def _parser() -> argparse.ArgumentParser:
    found = parser(__doc__)
    found.add_argument("--qubits", type=int, default=24, help="of the state")
    found.add_argument("--seed", type=int, default=1)
    return found


def measured(device: Device, qubits: int, seed: int) -> Iterator[TruncationRow]:
    """Yield a row for each precision, width, kernel and side of a chunk."""
    rng = np.random.default_rng(seed)
    for precision in PRECISIONS.values():
        if precision.terms == 1:
            continue
        for width in range(_MIN_WIDTH, min(MAX_WIDTH, widest_mma(precision)) + 1):
            for inside in (False, True):
                plans = mma_plans(
                    precision, device.require_arch(), width=width, targets_qubit0=inside
                )
                # Two kernels of a kind add the same products in the same order.
                for plan in {plan.kind: plan for plan in reversed(plans)}.values():
                    yield _row(plan, device, qubits, rng)


def _row(plan: GatePlan, device: Device, qubits: int, rng: np.random.Generator) -> TruncationRow:
    import cupy

    width, inside = plan.width, plan.targets_qubit0
    first = 0 if inside else qubits - width
    form = gate_form(qubits, random_unitary(rng, width), range(first, first + width))
    parts = cupy.random.default_rng(int(rng.integers(1 << 31))).standard_normal((2**qubits, 2))
    state = (parts.view(np.complex128)[:, 0] / 2.0 ** ((qubits + 1) / 2)).astype(np.complex64)
    columns = _columns(state, width, inside)
    expected = cupy.asarray(form.matrix) @ columns
    missing = expected - _columns(_applied(plan, device, form, form.matrix, state), width, inside)
    bias = _bias(form.matrix, columns, missing)
    fit = fitted(bias, k_tiles_of(plan))
    matrix = compensated(form.matrix, plan, truncation_bias(plan))
    left = _columns(_applied(plan, device, form, matrix, state), width, inside)
    size = float(cupy.linalg.norm(expected))
    found = k_tiles_of(plan)
    by_k_tile = np.array([bias[found == k_tile].mean() for k_tile in range(int(found.max()) + 1)])
    misfit = np.abs(by_k_tile - fit.own - fit.later * np.arange(len(by_k_tile))).max()
    return TruncationRow(
        plan.precision.name, plan.kind, width, inside, fit.own, fit.later, float(misfit),
        float(cupy.linalg.norm(missing)) / size,
        float(cupy.linalg.norm(expected - missing)) / size - 1,
        float(cupy.linalg.norm(expected - left)) / size, float(cupy.linalg.norm(left)) / size - 1,
    )  # fmt: skip


def _columns(state: Any, width: int, inside: bool) -> Any:
    """Return (2^width, columns) complex128, of the lowest qubits or of the highest."""
    order = 2**width
    view = state.reshape(-1, order).T if inside else state.reshape(order, -1)
    return view.astype(np.complex128)


def _applied(plan: GatePlan, device: Device, form: GateForm, matrix: Any, state: Any) -> Any:
    """Return the state after a plan's kernel with this matrix."""
    from argand.gates import gpu as cuda_gates
    from argand.gates.gate_launch import GateLaunch

    qubits = int(state.size).bit_length() - 1
    launch = GateLaunch(plan, qubits, form, device)
    found = state.copy()
    held = np.ascontiguousarray(matrix.astype(plan.precision.output))
    cuda_gates.PreparedGate(launch, form, plan.precision, held)(found)
    return found


def _bias(matrix: Any, columns: Any, missing: Any) -> Any:
    """Return the bias of the products of each column of the matrix: (2^width,), by least squares.

    With missing = sum over k of bias_k u_k x_k and x of independent components, the products of
    one k do not correlate with those of another.
    """
    together = (missing @ columns.conj().T).get()
    sizes = (abs(columns) ** 2).sum(axis=1).get()
    return (matrix.conj() * together).sum(axis=0).real / sizes / (abs(matrix) ** 2).sum(axis=0)


def fitted(bias: Any, k_tiles: Any) -> TruncationBias:
    """Return own and further bias of columns, by least squares over the MMAs that add them."""
    if k_tiles.max() == 0:
        return TruncationBias(float(bias.mean()), 0.0)
    further, own = np.polyfit(k_tiles, bias, 1)
    return TruncationBias(float(own), float(further))


if __name__ == "__main__":
    sys.exit(main())
