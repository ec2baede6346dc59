"""The times of a solver's parts: panels, triangular systems, products, exchanges, refinement.

    python -m benchmarks.solve_parts --n 32768
    python -m benchmarks.solve_parts --n 32768 --precisions 15xint8 12xint8 --blocks 512 --panels 64

Those of one factorization of ours, on a GPU by events. What settings take whole stands in a file of
``python -m benchmarks.sweep solve --sizes FILE``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from argand import Device
from argand.runtime.complex_types import UNIT_ROUNDOFF
from argand.solve.cpu import CpuLibrary
from argand.solve.library import Exchanges, Library
from argand.solve.lu import Factorization
from argand.solve.problem import solve_problem
from argand.solve.refine import refined
from argand.solve.scaling import norm

from benchmarks.harness.measuring import array_module, chosen_device
from benchmarks.sweep.dense import random_system

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


def main(argv: Sequence[str] | None = None) -> int:
    """Print the parts of each system at each setting."""
    arguments = _parser().parse_args(argv)
    device, kind = chosen_device(arguments.device), np.dtype(arguments.input)
    for n in arguments.n:
        a, b = random_system(n, arguments.columns, arguments.input, arguments.seed, device)
        for precision, block, panel in product(
            arguments.precisions, arguments.blocks, arguments.panels
        ):
            taken = solve_problem(
                (a.shape, kind), (b.shape, kind), device.backend, precision=precision, block=block,
                panel=panel,
            )  # fmt: skip
            parts = parts_of(
                a, b, device, precision=taken.precision, block=taken.block, panel=taken.panel
            )
            words = f"{n:6} {taken.precision} block {taken.block} panel {taken.panel}"
            print(f"{words}: {parts}", flush=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    found.add_argument("--n", type=int, nargs="+", required=True)
    found.add_argument("--columns", type=int, default=1, help="right-hand sides")
    found.add_argument("--input", choices=list(UNIT_ROUNDOFF), default="complex128")
    found.add_argument(
        "--precisions", nargs="+", default=[None], help="of the products, as of argand.solve"
    )
    found.add_argument("--blocks", type=int, nargs="+", default=[None], help="depths of products")
    found.add_argument("--panels", type=int, nargs="+", default=[None], help="columns of panels")
    found.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    found.add_argument("--seed", type=int, default=1)
    return found


if __name__ == "__main__":
    sys.exit(main())
