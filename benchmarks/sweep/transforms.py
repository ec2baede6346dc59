"""Fourier transforms of drawn lengths."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from argand import PRECISIONS, Device, Precision

from benchmarks.dft import check as dft_check
from benchmarks.dft import ours as dft_ours
from benchmarks.dft.cases import Case as Lengths
from benchmarks.dft.cases import samples
from benchmarks.harness.samples import on_host, sampled_rows
from benchmarks.peers import Candidate, candidates
from benchmarks.sweep.case import Assess, Case, Measured
from workflow.accuracy.references import spectrum_reference

_PRECISIONS = ("3xfp16", "tf32")
_CHECKED_VALUES = 1 << 16
_VALUES = 1 << 24


class TransformCase(Case):
    """Transforms of one length along contiguous rows."""

    def __init__(self, batch: int, length: int) -> None:
        self._lengths = Lengths(batch, length)
        self.operation, self.shape, self.kind = "dft", f"{batch}x{length}", "forward"
        self.flops = 5.0 * batch * length * np.log2(max(2, length))
        self.bytes_moved = 16 * batch * length

    def operands(self, device: Device, seed: int) -> tuple[Any, ...]:
        """Return normal complex64 rows."""
        return (samples(self._lengths, seed, device),)

    def ours(self, device: Device) -> list[Candidate]:
        """Return `argand.dft` at its default precision and at tf32."""
        return [dft_ours.candidate(PRECISIONS[x], device, self._lengths) for x in _PRECISIONS]

    def peers(self, device: Device) -> list[Candidate]:
        """Return the libraries' transforms in fp32."""
        found = candidates("dft", device.backend)
        return [one for one in found if one.precision.name == "fp32"]

    def assessment(self, operands: Sequence[Any], device: Device) -> Assess:
        """Return what compares sampled rows with SciPy in fp64."""
        (x,), case = operands, self._lengths
        rows = sampled_rows(case.batch, max(2, _CHECKED_VALUES // case.length))
        reference = spectrum_reference(on_host(x[rows]))
        ran = partial(dft_ours.ran, device, case, False)
        return partial(dft_check.check, reference, rows, device.backend, ran)

    def plan_times(self, precision: Precision) -> Measured:
        """Time the best plans of each kind, and cuFFT."""
        from argand.dft.tune import tune_dft

        case = self._lengths
        return tune_dft(case.batch, case.length, precision=precision, keep=False)


def draw(rng: np.random.Generator, cases: int, sizes: Any) -> list[Case]:
    """Draw lengths of 8 to 2^20, log-uniform, 2^24 numbers."""
    lengths = sizes(rng, 8, 1 << 20, (cases,)).tolist()
    return [TransformCase(max(1, _VALUES // length), length) for length in lengths]


def draw_small(rng: np.random.Generator, sizes: Any) -> Case:
    """Draw 1 to 512 transforms of length 1 to 512."""
    batch, length = sizes(rng, 1, 512, (2,)).tolist()
    return TransformCase(batch, length)
