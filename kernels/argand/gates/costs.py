"""Costs of a gate's pass over a state on a device: measured there, or those of a table.

`argand.gates.measure` measures them. They are kept (`argand.runtime.plans.tuned_plans`) by
precision and by the qubits of the state, because states that fit in L2 have other costs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from argand.device import Device, cpu
from argand.gates.canonical import GateForm
from argand.gates.plan import MAX_WIDTH
from argand.gates.sequence_tables import count_gates
from argand.multiprocessor import SECTOR
from argand.precision import PRECISIONS, Precision
from argand.runtime.plans.tuned_plans import TunedPlans

Widths = tuple[tuple[float, float], ...]
"""For each width from 1 the cost without and with qubit 0, in copies of the state."""


class SequenceCosts(NamedTuple):
    """Cost of a pass that gates of four qubits share, in copies of the state.

    Its tile has ``qubits`` qubits. ``passes`` are the costs of passes with one gate, two and so on,
    up to the most that have products. A set of phases (`in_rows`) counts as ``phases`` gates.
    """

    qubits: int
    passes: tuple[float, ...]
    phases: float = 1.0

    @property
    def gates(self) -> int:
        """The most gates with products that a pass has."""
        return len(self.passes)

    def copies(self, gates: int, sets: int = 0) -> float:
        """Return the cost of a pass with ``gates`` products and ``sets``, in copies of the state.

        Between numbers of gates it is linear, and beyond the most as from the middle of them on.
        """
        count, most = gates + self.phases * sets, self.gates
        each = (self.passes[-1] - self.passes[most // 2]) / max(1, most - 1 - most // 2)
        within = np.interp(count, range(1, most + 1), self.passes)
        return float(within) + max(0.0, count - most) * each

    def gates_of(self, copies: float) -> float:
        """Return how many gates with products take as long, at most one beyond the most."""
        longer = self.copies(self.gates + 1)
        return float(np.interp(copies, [*self.passes, longer], range(1, self.gates + 2)))


@dataclass(frozen=True)
class GateCosts:
    """Predicted times of passes over a state, of a card at the clock that such passes leave it.

    Attributes:
        bytes_per_second: the rate of a copy of the state, read and written (`copy_rate`).
        widths: the costs of passes by width, in such copies.
        call_seconds: the time of a pass over the smallest state.
        measured: whether the costs were measured on this device; else they are the table's.
        sequences: the costs of passes that several gates share, for each size of a tile that there
            is.
    """

    bytes_per_second: float
    widths: Widths
    call_seconds: float
    measured: bool
    sequences: tuple[SequenceCosts, ...] = ()

    def seconds(self, qubits: int, targets: Sequence[int], item: int) -> float:
        """Return the seconds of a pass for a gate on targets; an amplitude has ``item`` bytes."""
        width = min(len(targets), len(self.widths))
        copies = self.widths[width - 1][0 in targets]
        # Wider than the table: products of `gemm` between transpositions.
        copies *= 2.0 ** (len(targets) - width)
        return self.call_seconds + copies * 2 * item * 2.0**qubits / self.bytes_per_second

    def of_form(self, qubits: int, form: GateForm, item: int) -> float:
        """Return the seconds of a pass for a gate with its controls, or without products."""
        if form.is_identity:
            return 0.0
        # Amplitudes that a control excludes are not read, unless they share a sector of 32 bytes.
        apart = sum(1 for control in form.controls if item << control >= SECTOR)
        first = form.targets[:1] if form.monomial else form.targets
        return self.seconds(qubits - apart, first, item)

    def of_group(
        self, qubits: int, forms: Sequence[GateForm], tile: Sequence[int], item: int
    ) -> float:
        """Return the seconds of a pass that gates share, or of a gate's own."""
        own = [form for form in forms if not form.is_identity]
        if len(own) < 2:
            return sum(self.of_form(qubits, form, item) for form in own)
        (costs,) = (one for one in self.sequences if one.qubits == len(tile))
        copies = costs.copies(*count_gates(own, tile))
        return self.call_seconds + copies * 2 * item * 2.0**qubits / self.bytes_per_second


_DEFAULT: Mapping[str, Widths] = MappingProxyType(
    {
        "fp64": (
            (1.05, 1.05), (1.06, 1.05), (1.07, 1.08), (1.18, 1.23), (1.94, 1.87),
            (4.17, 4.25), (8.18, 8.08),
        ),
        "fp32": (
            (1.05, 1.03), (1.05, 1.04), (1.09, 1.07), (1.15, 1.14), (1.75, 1.81),
            (3.87, 3.86), (8.09, 7.96),
        ),
        "tf32": (
            (0.98, 1.02), (0.99, 1.05), (1.03, 1.07), (1.09, 1.07), (1.12, 1.08),
            (1.13, 1.09), (1.22, 1.2),
        ),
        "3xtf32": (
            (1.05, 1.03), (1.04, 1.04), (1.07, 1.04), (1.24, 1.21), (1.87, 1.88),
            (2.66, 2.68), (3.93, 17.89),
        ),
        "3xfp16": (
            (0.98, 1.02), (0.99, 1.05), (1.0, 1.07), (1.1, 1.07), (1.21, 1.24),
            (1.31, 1.33), (1.57, 1.58),
        ),
        "fp16": (
            (1.04, 1.02), (1.05, 1.03), (1.07, 1.04), (1.06, 1.05), (1.1, 1.07),
            (1.17, 1.13), (1.22, 1.06),
        ),
        "bf16": (
            (1.05, 1.04), (1.05, 1.04), (1.07, 1.05), (1.07, 1.05), (1.09, 1.06),
            (1.17, 1.12), (1.19, 1.06),
        ),
    }
)  # fmt: skip
"""Costs for a state of 26 qubits on an H200, by `benchmarks.gates.costs`."""
_CPU: Widths = tuple(
    (3 + 0.6 * 2.0**width, 3 + 0.6 * 2.0**width) for width in range(1, MAX_WIDTH + 1)
)
"""Two transposing copies and a BLAS product, in copies on two cores."""
_CPU_BYTES_PER_SECOND = 1e10
"""Rate of a copy on a CPU where nothing was measured."""
_GPU_BYTES_PER_SECOND = 4.28e12
"""The rate of a copy on an H200, 0.89 of its memory's peak."""
_CALL_SECONDS = 5e-6
"""Time of a launch where nothing was measured, in seconds."""


def gate_costs(precision: Precision, device: Device, qubits: int) -> GateCosts:
    """Return costs for states of ``qubits`` qubits: of the nearest measured size or the table."""
    found = kept_costs(precision, device)
    if found:
        return found[min(found, key=lambda size: (abs(size - qubits), size))]
    return table_costs(precision, device)


def table_costs(precision: Precision, device: Device) -> GateCosts:
    """Return the costs without a measurement: those of an H200, in copies of this device."""
    if device.backend == "cpu":
        return GateCosts(copy_rate(device), _CPU, 1e-4, measured=False)
    widths = _DEFAULT[_alike(precision)]
    return GateCosts(copy_rate(device), widths, _CALL_SECONDS, measured=False)


def _alike(precision: Precision) -> str:
    """Return the precision of the table that costs most nearly the same: itself where it is there.

    Else that of as many terms, or the nearest number, whose operands take the nearest bytes.
    """

    def distance(name: str) -> tuple[bool, bool, int, int]:
        row = PRECISIONS[name]
        return (
            name != precision.name,
            row.exact_operands != precision.exact_operands,
            abs(row.terms - precision.terms),
            abs(row.operand.bytes - precision.operand.bytes),
        )

    return min(_DEFAULT, key=distance)


def copy_rate(device: Device) -> float:
    """Return the bytes a second, read and written, that costs are counted by: about a copy's."""
    if device.backend == "cpu":
        return _CPU_BYTES_PER_SECOND
    return _GPU_BYTES_PER_SECOND * device.relative_memory


def _entry(name: str, row: dict[str, Any], device: Device) -> GateCosts:
    """Return a kept entry. Raises ValueError, TypeError or KeyError where it is none."""
    _named(name)
    widths = tuple((float(outside), float(inside)) for outside, inside in row["widths"])
    rate, call = float(row["bytes_per_second"]), float(row["call_seconds"])
    shared = tuple(
        SequenceCosts(int(size), tuple(map(float, passes)), float(phases))
        for size, passes, phases in row["sequences"]
    )
    if (
        len(widths) != MAX_WIDTH
        or not min(rate, *(min(both) for both in widths)) > 0
        or not all(min(*one.passes, one.phases) > 0 for one in shared)
    ):
        raise ValueError(f"{row} are not costs of gates")
    return GateCosts(rate, widths, call, measured=True, sequences=shared)


_WITHOUT = "circuits are planned by a table's costs until `argand.measure_gate_costs`"
_GPUS = TunedPlans("gate", "gates", _entry, _WITHOUT)
_CPU_TABLE = TunedPlans("gate", "gates", _entry, _WITHOUT, lambda _: cpu())


def _table(device: Device) -> TunedPlans[GateCosts]:
    return _CPU_TABLE if device.backend == "cpu" else _GPUS


def kept_costs(precision: Precision, device: Device) -> dict[int, GateCosts]:
    """Return the costs measured on a device, by the qubits of the state."""
    found = {}
    for name, costs in _table(device).all(device.index).items():
        owner, qubits = _named(name)
        if owner == precision.name:
            found[qubits] = costs
    return found


def _named(name: str) -> tuple[str, int]:
    """Return the precision and the qubits that an entry's name consists of."""
    owner, qubits = name.split()
    return owner, int(qubits)


def keep_costs(costs: GateCosts, precision: Precision, device: Device, qubits: int) -> None:
    """Add to a device's table. Raises OSError where it cannot be written."""
    _table(device).keep(device.index, {f"{precision.name} {qubits}": costs})
