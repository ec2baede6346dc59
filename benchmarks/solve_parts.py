"""What a factorization of ours spends in panels and in triangular systems."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from argand import Device
from argand.solve.cpu import CpuLibrary
from argand.solve.library import Library, Pivots
from argand.solve.lu import Factorization

from benchmarks.harness.measuring import array_module

Span = Callable[[], float]


class _TimedLibrary:
    """A library whose calls are timed, by events on a GPU."""

    def __init__(self, library: Library) -> None:
        self._library, self.arrays = library, library.arrays
        self.spans: dict[str, list[Span]] = {"panels": [], "triangular": []}

    def factor_panel(self, x: Any) -> tuple[Pivots, int]:
        """See `argand.solve.library.Library`."""
        with _Timed(self.arrays, self.spans["panels"]):
            return self._library.factor_panel(x)

    def solve_triangular(self, t: Any, b: Any, *, unit_lower: bool) -> None:
        """See `argand.solve.library.Library`."""
        with _Timed(self.arrays, self.spans["triangular"]):
            self._library.solve_triangular(t, b, unit_lower=unit_lower)


class _Timed:
    """Appends what a block takes, in seconds, to a list; to be asked for when the GPU is done."""

    def __init__(self, arrays: Any, spans: list[Span]) -> None:
        self._arrays, self._spans = arrays, spans

    def __enter__(self) -> None:
        self._before = _mark(self._arrays)

    def __exit__(self, *_: object) -> None:
        before, after, arrays = self._before, _mark(self._arrays), self._arrays
        self._spans.append(lambda: _seconds(arrays, before, after))


def _mark(arrays: Any) -> Any:
    """The time now, or an event that is recorded now."""
    if not hasattr(arrays, "cuda"):
        return time.perf_counter()
    event = arrays.cuda.Event()
    event.record()
    return event


def _seconds(arrays: Any, before: Any, after: Any) -> float:
    if not hasattr(arrays, "cuda"):
        return float(after - before)
    after.synchronize()
    return 1e-3 * float(arrays.cuda.get_elapsed_time(before, after))


def parts_of(a: Any, b: Any, device: Device, *, precision: str, block: int, panel: int) -> str:
    """Seconds of one factorization and solution, after one that warms up: the whole and its parts.

    The rest of the factorization is products, exchanges of rows, and what the GPU waits for the
    host.
    """
    arrays = array_module(device)
    library: Library = CpuLibrary()
    if device.backend == "cuda":
        from argand.solve.gpu import GpuLibrary

        library = GpuLibrary()
    line = ""
    for _ in range(2):
        timed, spans = _TimedLibrary(library), dict[str, list[Span]]()
        spans["factorization"], spans["solution"] = [], []
        lu = arrays.array(a, order="C")
        with _Timed(arrays, spans["factorization"]):
            factors = Factorization(lu, timed, precision=precision, block=block, panel=panel)
        spans |= {name: list(found) for name, found in timed.spans.items()}
        with _Timed(arrays, spans["solution"]):
            factors.solve(b)
        line = ", ".join(
            f"{name} {sum(span() for span in found):.4f} s" for name, found in spans.items()
        )
    return line
