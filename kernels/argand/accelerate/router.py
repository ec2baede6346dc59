"""The choice of complex products that argand makes in a library's place: those it is faster at."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from threading import Lock
from typing import Any

from argand.accelerate.report import Report, RoutedForm
from argand.device import DeviceError
from argand.gemm.api import gemm
from argand.precision import Precision, get_precision
from argand.runtime.compile.nvrtc import CompileError
from argand.runtime.plan import PlanError

Product = Callable[[Any, Any], Any]
Timer = Callable[[Product, Any, Any], float]
"""Seconds of a product of two operands, of a call in a row."""
_CLEARLY = 0.95
"""Times below this part of the library's are clearly less: clocks differ by less between calls."""
_TURNS, _CALLS = 3, 8
"""Measurements of either in turn, and calls of each."""


def measured(product: Product, a: Any, b: Any) -> float:
    """Return the seconds from one call to the next, of host and device, whatever their stream."""
    import cupy

    from argand.runtime.launch.captured_graph import CAPTURING

    device = cupy.cuda.Device(a.device.index if hasattr(a.device, "index") else a.device.id)

    def wait() -> None:
        with CAPTURING:
            device.synchronize()

    product(a, b)
    wait()
    started = time.perf_counter()
    for _ in range(_CALLS):
        product(a, b)
    wait()
    return (time.perf_counter() - started) / _CALLS


class Router:
    """Makes products by argand or by a library, and keeps count.

    Args:
        tolerance, precision: as in `argand.gemm`; both None is its default for the operands.
        timer: measures a product.
    """

    def __init__(
        self,
        tolerance: float | None,
        precision: str | Precision | None,
        timer: Timer = measured,
    ) -> None:
        self._tolerance, self._precision = tolerance, precision
        accuracy = "at the accuracy of their data"
        if precision is not None:
            accuracy = f"at {get_precision(precision, exact=True).name}"
        if tolerance is not None:
            accuracy = f"within {tolerance:g}"
        self.report = Report(accuracy)
        self._forms: dict[Any, RoutedForm] = {}
        self._timer = timer
        self._lock = Lock()

    def product(self, library: str, original: Product, a: Any, b: Any, form: Any) -> Any:
        """Return a @ b. ``form`` is what calls that one decision is for have in common."""
        with self._lock:
            row = self._forms.get((library, form))
            if row is None:
                row = self._forms[library, form] = self._decided(library, original, a, b)
                self.report.forms.append(row)
            row.calls += 1
            call, ours = row.calls, row.by_argand
            row.argand_calls += ours
        if ours:
            try:
                return self._ours(a, b)
            except (MemoryError, RuntimeError) as error:
                if not _is_out_of_memory(error):
                    raise
                with self._lock:
                    row.argand_calls -= 1
                    row.by_argand, row.reason = False, f"argand had no memory for call {call}"
        return original(a, b)

    def _ours(self, a: Any, b: Any) -> Any:
        return gemm(a, b, tolerance=self._tolerance, precision=self._precision)

    def _decided(self, library: str, original: Product, a: Any, b: Any) -> RoutedForm:
        """Measure both, in turn, and keep the one that is clearly faster."""
        form = f"{a.dtype} {tuple(a.shape)} @ {b.dtype} {tuple(b.shape)}".replace("torch.", "")
        times: dict[bool, list[float]] = {True: [], False: []}
        try:
            made = self._ours(a, b)
            if made.dtype != a.dtype or made.dtype != b.dtype:
                return RoutedForm(library, form, False, f"argand's result would be {made.dtype}")
            del made  # the library's product needs room for its own
            for _ in range(_TURNS):
                for ours, product in ((False, original), (True, self._ours)):
                    times[ours].append(self._timer(product, a, b))
        except (PlanError, CompileError, DeviceError, ValueError) as error:
            return RoutedForm(library, form, False, f"argand refused it ({error})")
        except (MemoryError, RuntimeError) as error:
            if not _is_out_of_memory(error):
                raise
            return RoutedForm(library, form, False, "argand had no memory for it")
        theirs, ours_seconds = median(times[False]), median(times[True])
        faster = ours_seconds < _CLEARLY * theirs
        reason = "which is faster" if faster else "argand is not clearly faster"
        return RoutedForm(library, form, faster, reason, theirs, ours_seconds)


def _is_out_of_memory(error: Exception) -> bool:
    """Return whether a library had no memory: torch's OutOfMemoryError is a RuntimeError."""
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
