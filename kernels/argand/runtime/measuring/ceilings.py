"""Measured limits of a device: rates of copies and of real matrix products."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np

from argand.device import Device
from argand.operand_format import Format
from argand.precision import EXACT_PRECISIONS, PRECISIONS, Precision
from argand.runtime.measuring.timing import queued_seconds


@dataclass(frozen=True)
class Ceilings:
    """A device's measured limits.

    ``copy_gbytes_per_s`` counts bytes read and bytes written; ``tflops`` is the rate of a large
    real matrix product (2 m n k operations) by name of operand format.
    """

    device: str
    copy_gbytes_per_s: float
    tflops: Mapping[str, float]

    def limit_time_s(self, flops: float, moved_bytes: float, precision: Precision) -> float:
        """Return the shortest time for a computation at a precision, in seconds.

        Args:
            flops: nominal real operations (8 batch m n k for a complex product).
            moved_bytes: each operand read once and each result written once.
            precision: each of its products of terms takes the operations once more.

        It is the larger of the bytes at the copy rate and the operations at the real matrix rate (a
        complex product as four real ones; a form with three could be faster).
        """
        rate = 1e12 * self.tflops[precision.operand.name] / len(precision.products)
        return max(moved_bytes / (1e9 * self.copy_gbytes_per_s), flops / rate)

    def best(self, other: Self) -> Self:
        """Return the higher rate of each, of two measurements of one device."""
        return replace(
            self,
            copy_gbytes_per_s=max(self.copy_gbytes_per_s, other.copy_gbytes_per_s),
            tflops={name: max(rate, other.tflops[name]) for name, rate in self.tflops.items()},
        )

    def to_json(self) -> str:
        """Return the limits as JSON, for a file beside the results."""
        return json.dumps(asdict(self) | {"tflops": dict(self.tflops)}, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote. Raises ValueError for anything else."""
        try:
            found = json.loads(text)
            return cls(
                str(found["device"]),
                float(found["copy_gbytes_per_s"]),
                {str(name): float(rate) for name, rate in found["tflops"].items()},
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"these are not measured ceilings: {error!r}") from error


def operand_formats() -> list[str]:
    """Return the operand formats of all precisions, each once."""
    return list(dict.fromkeys(precision.operand.name for precision in PRECISIONS.values()))


def _format(name: str) -> Format:
    formats = (row.operand for row in (*PRECISIONS.values(), *EXACT_PRECISIONS.values()))
    return next(operand for operand in formats if operand.name == name)


def measure_ceilings(device: Device) -> Ceilings:
    """Measure a device: about a third of a second on two cores, a second on a GPU.

    On the CPU every format but fp64 is multiplied by sgemm, as our own backend does.
    """
    return _measure_gpu(device) if device.backend == "cuda" else _measure_cpu(device)


_CPU_COPY_BYTES = 128 << 20
"""Fewest bytes that a copy reads and writes together. It moves at least twice the last-level cache,
so nothing that it reads is cached, and no more, because the first touch of a byte takes as long as
three copies of it."""
_CPU_COPIES = 2
_CPU_SIDE = 1024
"""Copies, at least, and m = n = k of the real products that are timed."""
_CPU_SECONDS = 0.05
"""Seconds for which a measurement is repeated, beyond its least number of times."""


def cpu_copy_bytes(device: Device) -> int:
    """Return the bytes that a copy on a CPU reads and writes, all in memory at a time."""
    return max(_CPU_COPY_BYTES, 2 * device.cache_bytes)


def _measure_cpu(device: Device) -> Ceilings:
    copied = _cpu_copy_rate(cpu_copy_bytes(device) // 2)
    rates = {kind: _cpu_rate(kind) for kind in ("float32", "float64")}
    tflops = {name: rates["float64" if name == "fp64" else "float32"] for name in operand_formats()}
    return Ceilings(device.name, copied, tflops)


def _cpu_copy_rate(size: int) -> float:
    source, target = np.ones(size, np.uint8), np.empty(size, np.uint8)
    return 2 * size / _best(lambda: np.copyto(target, source), _CPU_COPIES) / 1e9


def _cpu_rate(dtype: str) -> float:
    rng = np.random.default_rng(1)
    a = rng.standard_normal((_CPU_SIDE, _CPU_SIDE)).astype(dtype)
    out = np.empty_like(a)
    return 2 * _CPU_SIDE**3 / _best(lambda: np.matmul(a, a, out=out), 3) / 1e12


def _best(call: Callable[[], object], repeats: int) -> float:
    """Return the shortest time of at least ``repeats`` calls after a first one, in seconds."""
    call()
    times: list[float] = []
    while len(times) < repeats or (sum(times) < _CPU_SECONDS and len(times) < 20):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return min(times)


_GPU_COPY_BYTES = 2 << 30
_GPU_SIDE = 8192
"""Most bytes of an array that is copied, and m = n = k of the real products."""


def _measure_gpu(device: Device) -> Ceilings:
    import cupy

    with cupy.cuda.Device(device.index):
        size = min(_GPU_COPY_BYTES, device.memory_bytes // 8)
        source, target = cupy.ones(size, cupy.uint8), cupy.empty(size, cupy.uint8)
        copied = _median_gpu(lambda: cupy.copyto(target, source))
        tflops = {name: _gpu_rate(cupy, name) for name in operand_formats()}
    return Ceilings(device.name, 2 * size / copied / 1e9, tflops)


def _gpu_rate(cupy: Any, name: str) -> float:
    multiply, flops = real_product(name)
    return flops / _median_gpu(multiply) / 1e12


def real_product(name: str) -> tuple[Callable[[], None], float]:
    """Return a call of cuBLAS's real product m = n = k = 8192 of a format, and its operations.

    On the current GPU, on random values: on zeros the card draws less power and runs faster. The
    format is that of a precision, or ``int8``, whose sums are s32.
    """
    import cupy
    from cupy.cuda import cublas

    kind, result, compute = _format(name).cublas
    side = _GPU_SIDE
    a = _operand(cupy, name, side)
    out = cupy.empty((side, side), {"fp64": "float64", "int8": "int32"}.get(name, "float32"))
    scalars = np.array([1, 0], out.dtype)

    def multiply() -> None:
        cublas.gemmEx(
            cupy.cuda.device.get_cublas_handle(), 1, 0, side, side, side, scalars.ctypes.data,
            a.data.ptr, kind, side, a.data.ptr, kind, side, scalars.ctypes.data + out.itemsize,
            out.data.ptr, result, side, compute, -1,
        )  # fmt: skip

    return multiply, 2.0 * side**3


def _operand(cupy: Any, name: str, side: int) -> Any:
    if name == "int8":
        return cupy.random.default_rng(1).integers(-128, 128, (side, side)).astype(cupy.int8)
    values = cupy.random.default_rng(1).standard_normal((side, side), dtype=cupy.float32)
    if name == "bf16":  # CuPy has no such type: its bits are the upper half of fp32's
        return (values.view(cupy.uint32) >> 16).astype(cupy.uint16)
    return values.astype({"fp64": cupy.float64, "fp16": cupy.float16}.get(name, cupy.float32))


def _median_gpu(call: Callable[[], object]) -> float:
    """Return the median time of ten queued calls, in seconds, not that of the first burst."""
    for _ in range(2):
        call()
    return float(np.median(queued_seconds([call], 10)))
