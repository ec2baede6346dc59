"""Dense complex systems of drawn or given sizes: ours, and LAPACK's or cuSOLVER's LU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, get_args

import numpy as np
from argand import PRECISIONS, Device, Precision, solve
from argand.precision import any_precision
from argand.runtime.complex_types import PRECISION, UNIT_ROUNDOFF
from argand.solve.problem import solve_problem

from benchmarks.harness.measuring import array_module
from benchmarks.peers import Candidate
from benchmarks.sweep.case import Assess, Case
from benchmarks.sweep.libraries import whole_calls
from benchmarks.sweep.systems import Input
from benchmarks.sweep.verdicts import by_bound
from workflow.accuracy import Accuracy

_MAX_EQUATIONS = {"cuda": 1 << 13, "cpu": 1 << 9}
"""Equations of a drawn system at most."""
_ROWS = 1024
"""Rows that are drawn, and residuals that are computed, at a time."""


class DenseCase(Case):
    """One system A x = b of normal A (n, n) and b (n, columns).

    Without ``precisions`` ours has its own choice; ``block`` and ``panel`` are those of
    `argand.solve`.
    """

    def __init__(
        self, n: int, columns: int, input: Input, precisions: Sequence[str] = (),
        block: int | None = None, panel: int | None = None,
    ) -> None:  # fmt: skip
        self._n, self._columns = n, columns
        self._precisions: list[str | None] = [*precisions] or [None]
        self._block, self._panel = block, panel
        self.operation, self.kind = "solve", input
        self.shape = f"{n} x {columns}"
        self.flops = self.bytes_moved = 0.0

    def operands(self, device: Device, seed: int) -> tuple[Any, ...]:
        """Return A and b, row-major."""
        n, columns, dtype = self._fitted(device), self._columns, np.dtype(self.kind)
        self.shape = f"{n} x {columns}"
        self.flops = 8 / 3 * n**3 + 8.0 * n**2 * columns
        self.bytes_moved = dtype.itemsize * float(n * n + 2 * n * columns)
        return random_system(n, columns, self.kind, seed, device)

    def _fitted(self, device: Device) -> int:
        """Return n, reduced to the room of the device."""
        self._n = int(min(self._n, self.room(_MAX_EQUATIONS, device)))
        return self._n

    def ours(self, device: Device) -> list[Candidate]:
        """Return `argand.solve`; its row has the block, the panel and the steps of refinement."""
        n, dtype = self._fitted(device), np.dtype(self.kind)
        found = []
        for name in self._precisions:
            problem = solve_problem(
                ((n, n), dtype), ((n, self._columns), dtype), device.backend, precision=name,
                block=self._block, panel=self._panel,
            )  # fmt: skip
            # Without a precision, solve may begin with one and fall back on another.
            call = partial(solve, precision=name, block=self._block, panel=self._panel)
            words = f"block {problem.block}, panel {problem.panel}"
            found.append(Candidate(
                "argand", any_precision(problem.precision), words, lambda a, b: (a, b), call,
                input=self.kind, output=self.kind, chosen=partial(_steps, words, call),
            ))  # fmt: skip
        return found

    def peers(self, device: Device) -> list[Candidate]:
        """Return the libraries' solutions, of operands in the layout that they work on."""
        row, arrays = PRECISIONS[PRECISION[self.kind]], array_module(device)

        def by_columns(*operands: Any) -> tuple[Any, ...]:
            return tuple(arrays.asfortranarray(x) for x in operands)

        return whole_calls("solve", device.backend, row, by_columns)

    def peer_class(self, precision: Precision) -> str:
        """Return the type of the system: whatever its products are at, x has its accuracy."""
        return self.kind

    def assessment(self, operands: Sequence[Any], device: Device) -> Assess:
        """Return a function that computes the backward error of every x in fp64."""
        a, b = operands

        def assess(result: Any, candidate: Candidate) -> Accuracy:
            error = backward_error(a, result, b)
            worst = error / accepted_error(self._n, self.kind)
            return by_bound(worst, error, self._n, "the backward error", reference="full")

        return assess


def _steps(words: str, call: Any, a: Any, b: Any) -> str:
    return f"{words}, {call(a, b, details=True).steps} steps"


def random_system(n: int, columns: int, dtype: str, seed: int, device: Device) -> tuple[Any, Any]:
    """Return normal A (n, n) and b (n, columns) on a device, drawn by blocks of rows."""
    arrays = array_module(device)
    rng = arrays.random.default_rng(seed)
    a, b = arrays.empty((n, n), dtype), arrays.empty((n, columns), dtype)
    for x in (a, b):
        for start in range(0, n, _ROWS):
            block = x[start : start + _ROWS]
            block[...] = rng.standard_normal((*block.shape, 2)).view(np.complex128)[..., 0]
    return a, b


def accepted_error(n: int, dtype: str) -> float:
    """Return the backward error that `argand.solve` accepts, in x of type ``dtype``."""
    return (4 * math.sqrt(n) + 1) * UNIT_ROUNDOFF[dtype]


def backward_error(a: Any, x: Any, b: Any) -> float:
    """Return the largest ||b - A x|| / (||A|| ||x|| + ||b||) over columns, in fp64."""
    found, sums, x = [], [], x.astype(np.complex128)
    for start in range(0, len(a), _ROWS):
        rows = slice(start, start + _ROWS)
        found.append(abs(b[rows] - a[rows].astype(np.complex128) @ x).max(axis=0).tolist())
        sums.append(float(abs(a[rows]).sum(axis=1, dtype=np.float64).max()))
    x_norms, b_norms = (np.array(abs(y).max(axis=0).tolist()) for y in (x, b))
    return float(np.max(np.max(found, axis=0) / (max(sums) * x_norms + b_norms)))


def draw(rng: np.random.Generator, cases: int, sizes: Any) -> list[Case]:
    """Draw 64 to 8192 equations and 1 to 64 right-hand sides, log-uniform.

    Every other system is of complex64.
    """
    found: list[Case] = []
    for number in range(cases):
        n, columns = (int(sizes(rng, low, high, (1,))[0]) for low, high in ((64, 8192), (1, 64)))
        found.append(DenseCase(n, columns, get_args(Input)[(number + 1) % 2]))
    return found
