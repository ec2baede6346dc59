"""Transfers between host and device: where chunks are computed, and what is copied for them.

`OnCpu` and `OnGpu` have the same methods, so that one loop (`steps.chunk_loop`) drives both.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from argand import Device

Array = npt.NDArray[Any]
Compute = Callable[[Mapping[str, Any]], Any]
WRITES = 2
"""Results that may wait for being written."""


class PendingChunk(Protocol):
    """One chunk on its way through the device."""

    def wait(self) -> tuple[Array, float]:
        """Return the result in host memory, once it is there, and the seconds that it computed."""

    def release(self) -> None:
        """Give back the memory of the result, which has been used."""


class Transfer(Protocol):
    """Chunks to a device and back; ``most_pending`` may be under way at once."""

    most_pending: int

    def empty(self, size: int) -> Array:
        """Return ``size`` bytes of host memory that the device reads at its best rate."""

    def keep(self, operands: Mapping[str, Array]) -> None:
        """Bring operands that all chunks share to the device."""

    def start(self, compute: Compute, inputs: Mapping[str, Array]) -> PendingChunk:
        """Begin with a chunk; the inputs must stay until its `PendingChunk` has been waited for.

        Raises MemoryError where the device has no room.
        """

    def drop(self) -> None:
        """Free what earlier chunks took on the device, when none is under way."""


class _CpuChunk:
    def __init__(self, result: Array, seconds: float) -> None:
        self._found = result, seconds

    def wait(self) -> tuple[Array, float]:
        return self._found

    def release(self) -> None:
        del self._found


class OnCpu:
    """The CPU computes where the data are: nothing is copied."""

    most_pending = 1

    def __init__(self) -> None:
        self._kept: dict[str, Array] = {}

    def empty(self, size: int) -> Array:
        """Return plain memory."""
        return np.empty(size, np.uint8)

    def keep(self, operands: Mapping[str, Array]) -> None:
        """Keep the operands where they are."""
        self._kept = dict(operands)

    def start(self, compute: Compute, inputs: Mapping[str, Array]) -> PendingChunk:
        """Compute it now; reading and writing go on in their threads."""
        started = time.perf_counter()
        result = np.asarray(compute({**self._kept, **inputs}))
        return _CpuChunk(result, time.perf_counter() - started)

    def drop(self) -> None:
        """Drop nothing: nothing was kept."""


class _GpuChunk:
    def __init__(
        self, out: Array, block: Array, free: SimpleQueue[Array], events: list[Any], held: Any
    ) -> None:
        self._out, self._block, self._free, self._events, self._held = (
            out, block, free, events, held,
        )  # fmt: skip

    def wait(self) -> tuple[Array, float]:
        import cupy

        before, after, there = self._events
        there.synchronize()
        self._held = None  # the result on the device, which was copied until now
        return self._out, 1e-3 * float(cupy.cuda.get_elapsed_time(before, after))

    def release(self) -> None:
        self._free.put(self._block)


class OnGpu:
    """A GPU with three streams: copies to it, computing, copies from it, all at the same time.

    Host memory is pinned, since only from there a copy runs beside the rest. Chunks take turns in
    sets of inputs on the device; results are allocated by what computes them.
    """

    most_pending = 2
    """One is computed while the next arrives and the last leaves."""

    def __init__(self, device: Device) -> None:
        import cupy

        self._cupy, self._device = cupy, cupy.cuda.Device(device.index)
        with self._device:
            self._up, self._compute, self._down = (
                cupy.cuda.Stream(non_blocking=True) for _ in range(3)
            )
        self._kept: dict[str, Any] = {}
        self._inputs: list[dict[str, Any]] = [{} for _ in range(self.most_pending)]
        self._place = 0
        self._free: SimpleQueue[Array] = SimpleQueue()
        self._block = 0

    def empty(self, size: int) -> Array:
        """Return pinned memory."""
        import cupyx

        return np.asarray(cupyx.empty_pinned(size, np.uint8))

    def keep(self, operands: Mapping[str, Array]) -> None:
        """Copy the operands to the device once."""
        with self._device, self._compute:
            self._kept = {name: self._cupy.asarray(data) for name, data in operands.items()}
            self._compute.synchronize()

    def start(self, compute: Compute, inputs: Mapping[str, Array]) -> PendingChunk:
        """Queue copy, computation and copy back, and return."""
        cupy = self._cupy
        with self._device:
            arrived, before, after = (cupy.cuda.Event() for _ in range(3))
            there = cupy.cuda.Event(block=True)
            # In memory of this stream's: what the other one frees its kernels may still write to.
            with self._up:
                targets = self._targets(inputs)
            for name, source in inputs.items():
                targets[name].data.copy_from_host_async(source.ctypes.data, source.nbytes, self._up)
            arrived.record(self._up)
            self._compute.wait_event(arrived)
            try:
                with self._compute:
                    before.record()
                    result = cupy.ascontiguousarray(compute({**self._kept, **targets}))
                    after.record()
            except BaseException:
                self._up.synchronize()  # the inputs are the caller's again
                raise
            self._down.wait_event(after)
            block = self._result_block(result.nbytes)
            out = block[: result.nbytes].view(result.dtype).reshape(result.shape)
            result.data.copy_to_host_async(out.ctypes.data, out.nbytes, self._down)
            there.record(self._down)
        self._place = (self._place + 1) % self.most_pending
        return _GpuChunk(out, block, self._free, [before, after, there], result)

    def _targets(self, inputs: Mapping[str, Array]) -> dict[str, Any]:
        """Return the chunk's inputs on the device.

        The chunk that had them before has been waited for.
        """
        mine = self._inputs[self._place]
        found = {}
        for name, source in inputs.items():
            if name not in mine or mine[name].nbytes < source.nbytes:
                mine.pop(name, None)
                mine[name] = self._cupy.empty(source.nbytes, np.uint8)
            found[name] = mine[name][: source.nbytes].view(source.dtype).reshape(source.shape)
        return found

    def _result_block(self, size: int) -> Array:
        """Return pinned memory for a result: there are as many as may be under way or wait."""
        if size > self._block:
            self._block, self._free = size, SimpleQueue()
            for _ in range(self.most_pending + WRITES + 1):
                self._free.put(self.empty(size))
        return self._free.get()

    def drop(self) -> None:
        """Free the inputs on the device, and what the pool holds."""
        with self._device:
            for stream in (self._up, self._compute, self._down):
                stream.synchronize()
            self._inputs = [{} for _ in range(self.most_pending)]
            self._cupy.get_default_memory_pool().free_all_blocks()


def transfer_to(device: Device) -> Transfer:
    """Return the transfer of chunks to this device and back."""
    return OnGpu(device) if device.backend == "cuda" else OnCpu()
