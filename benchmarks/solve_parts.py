"""The times of a solver's parts: panels, triangular systems, products, exchanges, refinement."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from argand import Device
from argand.runtime.complex_types import UNIT_ROUNDOFF
from argand.solve.cpu import CpuLibrary
from argand.solve.library import Exchanges, Library
from argand.solve.lu import Factorization
from argand.solve.refine import refined
from argand.solve.scaling import norm

from benchmarks.harness.measuring import array_module

PARTS = (
    "panels", "triangular", "products", "exchanges", "factorization", "solution", "refinement",
)  # fmt: skip


class _Spans:
    """Seconds of blocks by name; on a GPU between two events, asked for when it is done."""

    def __init__(self, arrays: Any) -> None:
        self._arrays = arrays
        self._found: dict[str, list[Callable[[], float]]] = {name: [] for name in PARTS}

    def timed(self, name: str, call: Callable[[], Any]) -> Any:
        """Make the call, add its span to those of the name, and return the call's result."""
        before = self._mark()
        result = call()
        after = self._mark()
        self._found[name].append(lambda: self._seconds(before, after))
        return result

    def _mark(self) -> Any:
        """Return the time now, or an event that is recorded now."""
        if not hasattr(self._arrays, "cuda"):
            return time.perf_counter()
        event = self._arrays.cuda.Event()
        event.record()
        return event

    def _seconds(self, before: Any, after: Any) -> float:
        if not hasattr(self._arrays, "cuda"):
            return float(after - before)
        after.synchronize()
        return 1e-3 * float(self._arrays.cuda.get_elapsed_time(before, after))

    def __str__(self) -> str:
        sums = {name: sum(span() for span in found) for name, found in self._found.items()}
        return ", ".join(f"{name} {seconds:.4f} s" for name, seconds in sums.items())


class _TimedLibrary:
    """A library whose calls are timed."""

    def __init__(self, library: Library, spans: _Spans) -> None:
        self._library, self._spans, self.arrays = library, spans, library.arrays

    def factor_panel(self, x: Any) -> Exchanges:
        """See `argand.solve.library.Library`."""
        found: Exchanges = self._spans.timed("panels", partial(self._library.factor_panel, x))
        return found

    def exchange(self, rows: Any, exchanges: Exchanges, first: int, last: int) -> None:
        """See `argand.solve.library.Library`."""
        exchange = partial(self._library.exchange, rows, exchanges, first, last)
        self._spans.timed("exchanges", exchange)

    def solve_triangular(self, t: Any, b: Any, *, unit_lower: bool) -> None:
        """See `argand.solve.library.Library`."""
        solve = partial(self._library.solve_triangular, t, b, unit_lower=unit_lower)
        self._spans.timed("triangular", solve)

    def residual(self, a: Any, x: Any, b: Any) -> Any:
        """See `argand.solve.library.Library`."""
        return self._library.residual(a, x, b)


class _TimedFactorization(Factorization):
    """A factorization whose products are timed."""

    def __init__(self, lu: Any, library: Library, spans: _Spans, **options: Any) -> None:
        self._spans = spans
        super().__init__(lu, _TimedLibrary(library, spans), **options)

    def _subtract(self, a: Any, b: Any, c: Any) -> None:
        self._spans.timed("products", partial(super()._subtract, a, b, c))


def parts_of(a: Any, b: Any, device: Device, *, precision: str, block: int, panel: int) -> str:
    """Return seconds of factorization, solution and refinement, and their parts, after one call.

    Triangular systems are those of all three; refinement has solutions of its own. What the
    factorization takes beside its parts, the GPU waits for the host.
    """
    arrays = array_module(device)
    library: Library = CpuLibrary()
    if device.backend == "cuda":
        from argand.solve.gpu import GpuLibrary

        library = GpuLibrary()
    options: dict[str, Any] = {"precision": precision, "block": block, "panel": panel}
    line = ""
    for _ in range(2):
        spans = _Spans(arrays)
        lu = arrays.array(a, order="C")
        factor = partial(_TimedFactorization, lu, library, spans, **options)
        factors = spans.timed("factorization", factor)
        spans.timed("solution", partial(factors.solve, b))
        refine = partial(
            refined, a, b, factors, norm=norm(a, arrays), library=library,
            unit_roundoff=UNIT_ROUNDOFF[str(a.dtype)],
        )  # fmt: skip
        spans.timed("refinement", refine)
        line = str(spans)
    return line
