"""Fourier transforms of drawn lengths."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from argand import PRECISIONS, Device
from argand.device import gpu
from argand.dft.plan import Plan
from argand.dft.tune import candidate_plans

from benchmarks.dft import check as dft_check
from benchmarks.dft import ours as dft_ours
from benchmarks.dft.cases import Case as Lengths
from benchmarks.dft.cases import samples
from benchmarks.harness.samples import on_host, sampled_rows
from benchmarks.peers import Candidate, candidates
from benchmarks.sweep.case import Assess, Case
from workflow.accuracy.references import spectrum_reference

_PRECISIONS = ("3xfp16", "tf32")
_CHECKED_VALUES = 1 << 16
_VALUES = 1 << 24


@dataclass(frozen=True)
class _Taken:
    """A plan in place of the chosen one; None is cuFFT."""

    plan: Plan | None

    @property
    def name(self) -> str:
        """The plan in words."""
        return "cufft" if self.plan is None else str(self.plan)


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
        """Return a function that compares sampled rows with SciPy in fp64."""
        (x,), case = operands, self._lengths
        rows = sampled_rows(case.batch, max(2, _CHECKED_VALUES // case.length))
        reference = spectrum_reference(on_host(x[rows]))
        ran = partial(dft_ours.ran, device, case, False)
        return partial(dft_check.check, reference, rows, device.backend, ran)

    def plans(self, candidate: Candidate, inputs: tuple[Any, ...]) -> list[_Taken]:
        """Return the best plans of each kind, and cuFFT."""
        case, device = self._lengths, gpu(inputs[0].device.id)
        found = candidate_plans(case.batch, case.length, candidate.precision, device)
        return [_Taken(plan) for plan in found]

    def with_plan(self, plan: _Taken) -> AbstractContextManager[object]:
        """Return a context in which transforms take this plan."""
        from argand.dft.gpu import PLAN_OVERRIDE

        return PLAN_OVERRIDE.use(plan.plan)


def draw(rng: np.random.Generator, cases: int, sizes: Any) -> list[Case]:
    """Draw lengths of 8 to 2^20, log-uniform, 2^24 numbers."""
    lengths = sizes(rng, 8, 1 << 20, (cases,)).tolist()
    return [TransformCase(max(1, _VALUES // length), length) for length in lengths]


def draw_small(rng: np.random.Generator, sizes: Any) -> Case:
    """Draw 1 to 512 transforms of length 1 to 512."""
    batch, length = sizes(rng, 1, 512, (2,)).tolist()
    return TransformCase(batch, length)
