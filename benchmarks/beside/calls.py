"""Drawn calls of the argand that this process imported."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import numpy as np
from argand.runtime.compile.kernel_digest import kernel_digest

from benchmarks.beside.messages import Draw, Opened, Times
from benchmarks.harness.measuring import chosen_device, release
from benchmarks.sweep.compiling import compile_calls
from benchmarks.sweep.draws import drawn
from benchmarks.sweep.measuring import calls_of, sets_of, timed


class DrawnCalls:
    """The calls of drawn cases, one open at a time."""

    def __init__(self, draw: Draw) -> None:
        self._draw, self._device = draw, chosen_device(draw.device)
        self._cases = drawn(draw.sweep, draw.cases, draw.seed)
        self._calls: Sequence[Callable[[], object]] = ()

    def compile(self) -> str:
        """Compile what the calls need; return the device's name."""
        if self._device.backend == "cuda":
            compile_calls(self._draw.sweep, self._draw.cases, self._draw.seed)
        return self._device.name

    def labels(self, number: int) -> tuple[tuple[str, str, str], list[str]]:
        """Return operation, shape and kind of a case, and the precisions of its calls."""
        case = self._cases[number]
        precisions = [one.precision.name for one in case.ours(self._device)]
        return (case.operation, case.shape, case.kind), precisions

    def digest(self, number: int) -> str:
        """Return the digest of the code that computes a case."""
        return kernel_digest(self._cases[number].operation)

    def open(self, number: int, place: int) -> Opened:
        """Make one call of a case, which `time` then repeats."""
        self._calls = ()
        release(self._device)
        case = self._cases[number]
        candidate = case.ours(self._device)[place]
        operands = case.operands(self._device, self._draw.seed + number)
        inputs = candidate.prepare(*operands)
        digest = digest_of(candidate.result(candidate.compute(*inputs)))
        plan = candidate.chosen(*inputs)
        self._calls = calls_of(candidate, sets_of(case, operands), inputs)
        return Opened(plan, digest)

    def time(self) -> Times:
        """Return the times of the open call."""
        found = timed(self._calls, self._device)
        device, host = (1e6 * median(x) for x in (found.seconds, found.host_seconds))
        return Times(device, host)


def digest_of(result: Any) -> str:
    """Return the SHA-256 of an array's elements, wherever they lie."""
    host = result.get() if hasattr(result, "get") else np.asarray(result)
    return hashlib.sha256(np.ascontiguousarray(host).data).hexdigest()
