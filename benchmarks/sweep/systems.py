"""Small Hermitian systems of drawn or given sizes, in both types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from argand import PRECISIONS, Device, solve_hermitian
from argand.hermitian.bounds import residual_bound
from argand.runtime.complex_types import PRECISION

from benchmarks.harness.measuring import array_module, kernels_of
from benchmarks.harness.samples import on_host, sampled_rows
from benchmarks.peers import Candidate, candidates
from benchmarks.sweep.case import Assess, Case
from benchmarks.sweep.verdicts import by_bound
from workflow.accuracy import Accuracy

Input = Literal["complex64", "complex128"]
_MAX_BYTES = {"cuda": 1 << 28, "cpu": 1 << 20}
"""Bytes of matrices, right-hand sides and solutions together."""
_CHECKED_SYSTEMS = 128, 512
"""Systems whose residuals are computed, of drawn and of given sizes."""


class SystemCase(Case):
    """Systems R x = b of one size."""

    def __init__(self, systems: int, n: int, columns: int, input: Input) -> None:
        self._sizes = systems, n, columns
        self.operation, self.kind = "hermitian", input
        self.shape = f"{systems}x{n}x{columns}"
        self.flops = self.bytes_moved = 0.0

    def operands(self, device: Device, seed: int) -> tuple[Any, ...]:
        """Return sample covariances of n + 3 vectors and normal right-hand sides."""
        systems, n, columns = self._sizes
        dtype = np.dtype(self.kind)
        each = (n * n + 2 * n * columns) * dtype.itemsize
        systems = max(1, int(min(systems, self.room(_MAX_BYTES, device) / each)))
        self.shape = f"{systems}x{n}x{columns}"
        self.flops = systems * (4 / 3 * n**3 + 8.0 * n**2 * columns)
        self.bytes_moved = float(systems * each)
        rng = array_module(device).random.default_rng(seed)

        def normal(*shape: int) -> Any:
            found = rng.standard_normal((*shape, 2), dtype=dtype.type().real.dtype)
            return found.view(dtype)[..., 0]

        v = normal(systems, n, n + 3)
        return v @ v.conj().swapaxes(-1, -2), normal(systems, n, columns).copy()

    def ours(self, device: Device) -> list[Candidate]:
        """Return `argand.solve_hermitian`."""
        return [
            Candidate(
                "argand", PRECISIONS[PRECISION[self.kind]], "L D L^H", lambda r, b: (r, b),
                solve_hermitian, input=self.kind, output=self.kind,
                chosen=kernels_of(solve_hermitian),
            )
        ]  # fmt: skip

    def peers(self, device: Device) -> list[Candidate]:
        """Return the libraries' solutions in the type of the operands."""
        found = candidates("hermitian", device.backend)
        return [one for one in found if one.precision.name == PRECISION[self.kind]]

    def assessment(self, operands: Sequence[Any], device: Device) -> Assess:
        """Return a function that computes residuals of sampled systems in fp64."""
        rows = sampled_rows(len(operands[0]), self.sampled(*_CHECKED_SYSTEMS))
        r, b = (on_host(x[rows]).astype(complex) for x in operands)

        def assess(result: Any, candidate: Candidate) -> Accuracy:
            x = on_host(result[rows]).astype(complex)
            residual = np.linalg.norm(b - r @ x, axis=-2)
            worst = float((residual / residual_bound(r, b, x, self.kind)).max())
            error = float(np.linalg.norm(residual) / np.linalg.norm(b))
            return by_bound(worst, error, len(rows), "a residual")

        return assess


def draw(rng: np.random.Generator, cases: int, sizes: Any) -> list[Case]:
    """Draw 16 to 2^18 systems of 1 to 128 rows and 1 to 256 right-hand sides, log-uniform.

    Every other case is of complex128; there are fewer systems where they would not fit.
    """
    found: list[Case] = []
    for number in range(cases):
        systems, n, columns = (
            int(sizes(rng, low, high, (1,))[0]) for low, high in ((16, 1 << 18), (1, 128), (1, 256))
        )
        found.append(SystemCase(systems, n, columns, get_args(Input)[number % 2]))
    return found
