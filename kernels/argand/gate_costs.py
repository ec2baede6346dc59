"""What a pass of a gate over a state takes on a device: a table by default, or measured.

`measure_gate_costs` writes a JSON file beside the cubins, one a device, driver and version of the
kernels, which `gate_costs` then finds.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from argand.atomic_files import atomic_path
from argand.device import Device
from argand.gate_forms import GateForm, gate_form
from argand.gate_plan import MOST_WIDTH
from argand.nvrtc import cache_folder, kernel_digest
from argand.precision import Precision, get_precision

Widths = tuple[tuple[float, float], ...]
"""For each width from 1 the cost without qubit 0 and with it, beside copying the state once."""


@dataclass(frozen=True)
class GateCosts:
    """Predicted times of passes over a state.

    Attributes:
        bytes_per_second: of a copy of the state, read and written.
        widths: of passes, in copies.
        call_seconds: that a pass takes however small the state is.
        measured: on this device; else the table's.
    """

    bytes_per_second: float
    widths: Widths
    call_seconds: float
    measured: bool

    def seconds(self, qubits: int, targets: Sequence[int], item: int) -> float:
        """Of a pass for a gate on these targets over 2^qubits amplitudes of so many bytes."""
        width = min(len(targets), len(self.widths))
        copies = self.widths[width - 1][0 in targets]
        # Wider than the table: products of `gemm` between transpositions.
        copies *= 2.0 ** (len(targets) - width)
        return self.call_seconds + copies * 2 * item * 2.0**qubits / self.bytes_per_second

    def of_form(self, qubits: int, form: GateForm, item: int) -> float:
        """Seconds of a pass for a gate at hand: it may have controls, or need no products."""
        if form.is_identity:
            return 0.0
        # What is not touched is not read either, but for amplitudes within a sector of 32 bytes.
        apart = sum(1 for control in form.controls if item << control >= _SECTOR)
        first = form.targets[:1] if form.monomial else form.targets
        return self.seconds(qubits - apart, first, item)


_TENSOR: Widths = (
    (1.08, 1.07), (1.08, 1.08), (1.10, 1.08), (1.11, 1.12), (1.13, 1.11), (1.13, 1.10),
    (1.32, 1.32),
)  # fmt: skip
_CORES: Widths = (*_TENSOR[:3], (1.13, 1.13), (1.69, 1.70), (3.9, 3.9), (8.0, 8.0))
_DEFAULT: Mapping[str, Widths] = MappingProxyType(
    {
        "fp64": _CORES, "fp32": _CORES, "3xfp16": _TENSOR,
        "fp16": (*_TENSOR[:6], (1.13, 1.15)), "bf16": (*_TENSOR[:6], (1.13, 1.15)),
        "tf32": (*_TENSOR[:5], (1.78, 1.75), (1.80, 1.79)),
        # Five qubits of 3xtf32 had half the blocks then.
        "3xtf32": (*_TENSOR[:4], (2.55, 2.63), (2.46, 2.43), (9.0, 9.0)),
    }
)  # fmt: skip
"""Measured on an H200."""
_CPU: Widths = tuple(
    (3 + 0.6 * 2.0**width, 3 + 0.6 * 2.0**width) for width in range(1, MOST_WIDTH + 1)
)
"""Two transposing copies and a product of BLAS; of one copy's time on two cores."""
_CPU_BYTES_PER_SECOND = 1e10
_SECTOR = 32
"""Bytes that are read from memory at once, at least."""
_GPU_COPY_FRACTION = 0.87
"""Of the memory's own rate: what copies reach on an H200."""
_CALL_SECONDS = 5e-6


def gate_costs(precision: Precision, device: Device) -> GateCosts:
    """The measured costs at a precision on a device, or else those of the table."""
    found = _kept(precision, device)
    if found is not None:
        return found
    if device.backend == "cpu":
        return GateCosts(_CPU_BYTES_PER_SECOND, _CPU, 1e-4, measured=False)
    return GateCosts(_memory_rate(device), _DEFAULT[precision.name], _CALL_SECONDS, measured=False)


def _memory_rate(device: Device) -> float:
    import cupy

    found = cupy.cuda.Device(device.index).attributes
    # Kilohertz, two transfers a cycle; bits.
    rate = 2e3 * found["MemoryClockRate"] * found["GlobalMemoryBusWidth"] / 8
    return float(_GPU_COPY_FRACTION * rate)


def measure_gate_costs(
    precision: str | Precision, device: Device, *, qubits: int = 26
) -> GateCosts:
    """Time random gates of each width on a state of so many qubits, and keep the costs.

    Takes three states' memory. Raises ValueError for fewer qubits than the widest gate has, and
    OSError where the file cannot be written.
    """
    if qubits < MOST_WIDTH:
        raise ValueError(f"qubits must be at least {MOST_WIDTH}, got {qubits}")
    row = get_precision(precision)
    if device.backend == "cpu":
        found = _measured(row, device, qubits, np)
    else:
        import cupy

        with cupy.cuda.Device(device.index):
            found = _measured(row, device, qubits, cupy)
    _keep(found, row, device)
    return found


def _measured(row: Precision, device: Device, qubits: int, module: Any) -> GateCosts:
    """The costs on the current device; ``module`` makes its arrays."""
    from argand.gates import prepared_gate

    rng = np.random.default_rng(1)
    state = module.full(2**qubits, 2.0 ** (-qubits / 2), row.output)
    copied = _seconds(lambda: state.copy(), device)
    widths = []
    for width in range(1, MOST_WIDTH + 1):
        normal = rng.standard_normal((2, 2**width, 2**width))
        matrix = np.linalg.qr(normal[0] + 1j * normal[1])[0]
        both = []
        for first in (qubits - width, 0):
            form = gate_form(qubits, matrix, range(first, first + width))
            both.append(_seconds(partial(prepared_gate(state, form, row), state), device))
        widths.append((both[0] / copied, both[1] / copied))
    least = state[:2]
    flip = prepared_gate(least, gate_form(1, np.eye(2)[::-1], [0]), row)
    call = _seconds(partial(flip, least), device)
    return GateCosts(2 * state.nbytes / copied, tuple(widths), call, measured=True)


def _seconds(call: Any, device: Device) -> float:
    """The median of five calls after one that is not counted."""
    call()
    if device.backend == "cuda":
        from argand.gpu_timing import queued_seconds

        return float(np.median(queued_seconds([call], 5)))
    times = []
    for _ in range(5):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return float(np.median(times))


def _measured_on(device: Device) -> dict[str, str]:
    return {"device": device.name, "driver": device.driver, "kernels": kernel_digest("gate")}


def _path(device: Device) -> Path:
    identity = json.dumps(_measured_on(device))
    return cache_folder() / f"gates-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.json"


def _read(device: Device) -> dict[str, Any]:
    """The device's file. Raises ValueError that names it where it is damaged."""
    path = _path(device)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ValueError(f"{path} holds no costs of gates ({error}): remove it") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path} holds no costs of gates: remove it")
    return found


def _kept(precision: Precision, device: Device) -> GateCosts | None:
    found = _read(device).get(precision.name)
    if found is None:
        return None
    widths = tuple((float(outside), float(inside)) for outside, inside in found["widths"])
    return GateCosts(
        float(found["bytes_per_second"]), widths, float(found["call_seconds"]), measured=True
    )


def _keep(costs: GateCosts, precision: Precision, device: Device) -> None:
    table = _read(device)
    table[precision.name] = {
        "bytes_per_second": costs.bytes_per_second, "widths": costs.widths,
        "call_seconds": costs.call_seconds,
    }  # fmt: skip
    with atomic_path(_path(device)) as temporary:
        temporary.write_text(json.dumps(_measured_on(device) | table, indent=1), encoding="utf-8")
