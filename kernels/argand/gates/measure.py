"""Measurement of the costs of gates' passes over a state on a device, for later plans."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from argand.device import Device
from argand.gates.api import prepared_gate, prepared_sequence
from argand.gates.canonical import GateForm, gate_form
from argand.gates.costs import (
    GateCosts,
    SequenceCosts,
    copy_rate,
    gate_costs,
    keep_costs,
    kept_costs,
)  # fmt: skip
from argand.gates.plan import MAX_WIDTH
from argand.gates.sequence_plan import (
    LOW_QUBITS,
    PHASE_QUBITS,
    TILES,
    WIDTH,
    SequencePlan,
    completed_tile,
    for_few_tiles,
    kernel_source,
    plan_sequence,
)
from argand.gates.source import gate_source
from argand.precision import Precision, get_precision
from argand.runtime.compile.compiler import compile_all

_MAX_QUBITS = 26
"""Qubits of the largest state that passes are timed on: beyond, times are proportional to the
size."""
_STATES = 4
"""Largest memory of a measurement, in states."""
_CALLS, _TIMES = 8, 7
"""Calls in a row of a measurement, and measurements, whose median is taken."""
SETTLE_SECONDS = 0.1
"""Calls before a pass is timed, in seconds: in circuits, without pauses, the power limit lowers an
H200's clock, and passes of 7 qubits take a fifth longer than after a rest; after longer rows they
take as long (docs/tables/gate-costs.md)."""
_MIN_COPIES = 1e-3
"""Least cost of a pass, in copies of the state: launches may take all of its time."""


def measured_costs(precision: Precision, device: Device, qubits: int) -> GateCosts:
    """Return costs for states of ``qubits`` qubits, measured on this GPU when first asked for.

    That compiles the kernels of all widths. The table's, or those of another size, where the GPU
    has no memory left for it, and on a CPU, where `measure_gate_costs` has to be asked.
    """
    size = max(MAX_WIDTH, min(_MAX_QUBITS, qubits))
    known = size in kept_costs(precision, device)
    if device.backend == "cpu" or known or not _fits(precision, device, size):
        return gate_costs(precision, device, size)
    return measure_gate_costs(precision, device, qubits=size)


def _fits(precision: Precision, device: Device, qubits: int) -> bool:
    import cupy

    with cupy.cuda.Device(device.index) as current:
        pool = cupy.get_default_memory_pool()
        free = current.mem_info[0] + pool.free_bytes()
        if pool.get_limit():
            free = min(free, pool.get_limit() - pool.used_bytes())
    return bool(_STATES * (np.dtype(precision.output).itemsize << qubits) <= free)


def measure_gate_costs(
    precision: str | Precision,
    device: Device,
    *,
    qubits: int = _MAX_QUBITS,
    settle: float = SETTLE_SECONDS,
) -> GateCosts:
    """Time random gates of each width on a state of ``qubits`` qubits, and keep the costs.

    Plans for states of about that size use them from then on, in later processes too, until the
    device, its driver or the kernels change. On a GPU a plan measures where no costs are kept.

    Passes are timed behind a held stream, as they follow each other in circuits, each after
    ``settle`` seconds of it, those that gates share in turn, so that a GPU whose power limits it
    has the clock that it has there; not where the last-level cache holds the state: power does not
    bound such passes. Takes four states' memory at most.

    Raises ValueError for fewer qubits than the widest gate has and for a negative ``settle``, and
    OSError where the table cannot be written.

    Example:
        >>> argand.measure_gate_costs("tf32", argand.device.gpu(0))  # doctest: +SKIP
    """
    if qubits < MAX_WIDTH:
        raise ValueError(f"qubits must be at least {MAX_WIDTH}, got {qubits}")
    if settle < 0:
        raise ValueError(f"settle must not be negative, got {settle}")
    row = get_precision(precision)
    if device.backend == "cpu":
        found = _measured(row, device, qubits, np, 0.0)
    else:
        import cupy

        with cupy.cuda.Device(device.index):
            found = _measured(row, device, qubits, cupy, settle)
    keep_costs(found, row, device, qubits)
    return found


def _measured(row: Precision, device: Device, qubits: int, module: Any, settle: float) -> GateCosts:
    """Measure the costs on the current device; ``module`` makes its arrays."""
    rng = np.random.default_rng(1)
    normal = module.random.default_rng(1).standard_normal((2**qubits, 2), dtype=np.float32)
    normal *= np.float32(2.0 ** (-(qubits + 1) / 2))
    state = normal.view(np.complex64)[:, 0].astype(row.output)
    del normal
    forms = []
    for width in range(1, MAX_WIDTH + 1):
        parts = rng.standard_normal((2, 2**width, 2**width))
        matrix = np.linalg.qr(parts[0] + 1j * parts[1])[0]
        forms += [
            gate_form(qubits, matrix, range(first, first + width)) for first in (qubits - width, 0)
        ]
    flip = gate_form(1, np.eye(2)[::-1], [0])
    if device.backend == "cuda":
        _compile(row, device, qubits, forms)
    least = state[:2].copy()
    (call,) = _seconds([partial(prepared_gate(least, flip, row), least)], device, 0.0)
    rate = copy_rate(device)
    if state.nbytes <= device.cache_bytes:
        settle = 0.0
    passes = [
        _seconds([partial(prepared_gate(state, form, row), state)], device, settle)[0]
        for form in forms
    ]
    copies = [max(_MIN_COPIES, (seconds - call) * rate / (2 * state.nbytes)) for seconds in passes]
    widths = tuple(zip(copies[::2], copies[1::2], strict=True))
    shared = []
    for size, calls in _sequences(row, device, qubits, state, rng):
        times = _seconds([partial(one, state) for one in calls], device, settle)
        *copies, mixed = [
            max(_MIN_COPIES, (one - call) * rate / (2 * state.nbytes)) for one in times
        ]
        # One gate alone, with phases, takes no less: memory bounds two.
        own = SequenceCosts(size, tuple(map(float, np.maximum.accumulate([copies[0], *copies]))))
        products, sets = _mixed_counts(own.gates)
        phases = (own.gates_of(mixed) - products) / sets
        shared.append(own._replace(phases=max(_MIN_COPIES, phases)))
    return GateCosts(rate, widths, call, measured=True, sequences=tuple(shared))


def _sequences(
    row: Precision, device: Device, qubits: int, state: Any, rng: np.random.Generator
) -> Iterator[tuple[int, list[Callable[[Any], None]]]]:
    """Yield each tile's qubits, and passes that two, three, up to the most gates share.

    Gates are random, on low to high qubits. The last pass has sets of phases between products.
    """
    if device.backend == "cpu":
        return
    for size, plan in _shared_plans(row, device, qubits):
        chosen = [round(place * (qubits - 1) / (size - 1)) for place in range(size)]
        tile = completed_tile(qubits, chosen[-(size - LOW_QUBITS) :], size)
        products = []
        for _ in range(plan.gates):
            parts = rng.standard_normal((2, 2**WIDTH, 2**WIDTH))
            matrix = np.linalg.qr(parts[0] + 1j * parts[1])[0]
            targets = [int(qubit) for qubit in rng.permutation(tile)[:WIDTH]]
            products.append(gate_form(qubits, matrix, targets))
        of_a_set = [
            gate_form(qubits, np.diag([1, 1j]), tile[-1:], [control])
            for control in tile[-PHASE_QUBITS:-1]
        ]
        mixed = products[:1]
        for product in products[1 : _mixed_counts(plan.gates)[0]]:
            mixed += [*of_a_set, product]
        passes = [products[:count] for count in range(2, plan.gates + 1)]
        found = [prepared_sequence(state, forms, row, tile) for forms in [*passes, mixed]]
        yield size, found


def _shared_plans(row: Precision, device: Device, qubits: int) -> list[tuple[int, SequencePlan]]:
    """Return the qubits of each tile that a state has room for, with the plan of its passes."""
    sizes = [size for size in TILES if size <= qubits]
    plans = [plan_sequence(row, device.require_arch(), size) for size in sizes]
    return [(size, plan) for size, plan in zip(sizes, plans, strict=True) if plan is not None]


def _mixed_counts(most: int) -> tuple[int, int]:
    """Return the products, and the sets of phases between them, of a pass that tells their cost."""
    products = most // 2
    return products, products - 1


def _compile(row: Precision, device: Device, qubits: int, forms: list[GateForm]) -> None:
    """Compile the kernels of all passes at once: one after another takes a minute."""
    from argand.gates.gpu import plan_for

    plans = [plan_for(qubits, form, row, device) for form in forms]
    sources = [gate_source(plan) for plan in plans if plan is not None]
    sources += [
        kernel_source(for_few_tiles(plan, qubits, device.sm_count))
        for _, plan in _shared_plans(row, device, qubits)
    ]
    compile_all((source, device.target) for source in sources)


def _seconds(calls: Sequence[Callable[[], object]], device: Device, settle: float) -> list[float]:
    """Return the seconds of each of some calls: medians of runs of several calls, after warm-up.

    The calls take turns, so that a card's power is what it is where passes like these follow each
    other.
    """
    runs = [partial(_repeated, call) for call in calls]
    for call in calls:
        call()
    if device.backend == "cuda":
        import cupy

        from argand.runtime.measuring.timing import call_for, queued

        call_for(runs, settle, cupy.cuda.get_current_stream().synchronize)
        times = queued(runs, _TIMES * len(runs), held=True).seconds
        return [float(np.median(times[first :: len(runs)])) / _CALLS for first in range(len(runs))]
    found = []
    for call in calls:
        taken = []
        for _ in range(_TIMES):
            started = time.perf_counter()
            call()
            taken.append(time.perf_counter() - started)
        found.append(float(np.median(taken)))
    return found


def _repeated(call: Callable[[], object]) -> None:
    for _ in range(_CALLS):
        call()
