"""Calls of a crowd on one GPU: their operands, their results alone, and comparisons of bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from benchmarks.crowd.calls import LAYOUTS, Call

_SPIN = r"""
extern "C" __global__ void spin(long long cycles) {
  for (long long start = clock64(); clock64() - start < cycles;) {}
}
"""
_COMPARED = r"""
const unsigned char* p = reinterpret_cast<const unsigned char*>(&x);
const unsigned char* q = reinterpret_cast<const unsigned char*>(&y);
bool same = true;
for (int i = 0; i < static_cast<int>(sizeof(T)); ++i) same = same && p[i] == q[i];
if (!same) atomicAdd(&wrong[place], 1u);
"""


@cache
def _spin() -> Any:
    import cupy

    return cupy.RawKernel(_SPIN, "spin")


@cache
def _compare() -> Any:
    import cupy

    return cupy.ElementwiseKernel(
        "T x, T y, int32 place", "raw uint32 wrong", _COMPARED, "argand_crowd_compare"
    )


def behind(cycles: int) -> None:
    """Hold the current stream for so many cycles of the GPU."""
    import numpy as np

    _spin()((1,), (1,), (np.int64(cycles),))


class Counts:
    """Counts of elements that differ, in the GPU's memory, each with a description."""

    def __init__(self, size: int) -> None:
        import cupy

        self._wrong = cupy.zeros(size, cupy.uint32)
        cupy.cuda.get_current_stream().synchronize()
        self._names: list[str] = []

    def is_full(self, more: int = 1) -> bool:
        """Return whether there is no place left for some more."""
        return len(self._names) + more > int(self._wrong.size)

    def place(self, name: str) -> int:
        """Return the place of a further count."""
        self._names.append(name)
        return len(self._names) - 1

    def compare(self, place: int, found: Any, expected: Any) -> None:
        """Count the elements whose bytes differ, in the current stream's order."""
        _compare()(found, expected, place, self._wrong)

    def faults(self) -> list[str]:
        """Return the differences so far, once the current stream is done, and begin again."""
        counts = self._wrong.get()
        found = [
            f"{name}: {n} numbers differ" for name, n in zip(self._names, counts, strict=False) if n
        ]
        self._names.clear()
        self._wrong.fill(0)
        return found


class CardCall:
    """A call on a GPU: its operands there, and its result alone."""

    def __init__(self, call: Call, device: int) -> None:
        import cupy

        self.call, self.device = call, device
        self._masters = [cupy.asarray(x) for x in call.operands]
        cupy.cuda.get_current_stream().synchronize()
        found = call.run(*self.operands(), out=None)
        self._shape, self._dtype = found.shape, found.dtype
        self.expected = self.made(self.operands(), self.result()).copy()
        cupy.cuda.get_current_stream().synchronize()

    def operands(self) -> list[Any]:
        """Return copies of the operands, in the current stream's order."""
        return [x.copy() for x in self._masters]

    def refill(self, operands: Sequence[Any]) -> None:
        """Copy the operands into arrays of theirs."""
        for into, x in zip(operands, self._masters, strict=True):
            into[...] = x

    def spoil(self, arrays: Sequence[Any]) -> None:
        """Overwrite arrays, in the current stream's order."""
        for x in arrays:
            if x is not None:
                x.fill(113)

    def result(self) -> Any:
        """Return memory for a given result, overwritten; None where the call is given none."""
        import cupy

        if not self.call.layout:
            return None
        out = LAYOUTS[self.call.layout](cupy, self._shape, self._dtype)
        self.spoil([out])
        return out

    def made(self, operands: Sequence[Any], out: Any) -> Any:
        """Return the call's result of these operands."""
        found = self.call.run(*operands, out=out)
        if out is not None and found is not out:
            raise AssertionError("out is not what is returned")
        return found

    def alone(self, counts: Counts) -> list[str]:
        """Compare calls by themselves: at new addresses, at the same ones, and in a graph.

        Return why the call cannot be captured, if it cannot.
        """
        import cupy

        operands, out = self.operands(), self.result()
        for time in range(5):
            self.refill(operands)
            found = self.made(operands, out)
            counts.compare(
                counts.place(f"alone, {time + 1} times: {self.call.name}"), found, self.expected
            )
        place = counts.place(f"alone, in a graph: {self.call.name}")
        operands, out = self.operands(), self.result()
        try:
            graph = captured(lambda: self.compared(operands, out, counts, place))
        except CaptureError as error:
            return [f"alone: {error}: {self.call.name}"]
        for _ in range(2):
            self.spoil([*operands, out])
            graph.launch()
        cupy.cuda.get_current_stream().synchronize()
        return []

    def compared(self, operands: Sequence[Any], out: Any, counts: Counts, place: int) -> Any:
        """Copy the operands in, make the call, compare its result, and spoil the operands."""
        self.refill(operands)
        found = self.made(operands, out)
        counts.compare(place, found, self.expected)
        self.spoil(operands)
        return found


class CaptureError(Exception):
    """A capture that failed, by its own calls or those of others."""


def captured(queue: Callable[[], object]) -> Any:
    """Return the graph of what is queued on the current stream. Raises CaptureError."""
    import cupy

    stream, reasons = cupy.cuda.get_current_stream(), []
    stream.begin_capture(cupy.cuda.runtime.streamCaptureModeRelaxed)
    try:
        queue()
    except Exception as error:  # the capture has to be ended, whatever it is
        reasons.append(f"{type(error).__name__}: {error}")
    try:
        graph = stream.end_capture()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        reasons.append(f"the end of the capture: {error}")
    if reasons:
        raise CaptureError("; ".join(reasons))
    return graph
