"""Detected beams of drawn arrays, bins and types of samples."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from argand import PRECISIONS, Device, Pairs, beam_power, gemm, pairs, to_pairs
from argand.beam_power.problem import DETECTIONS, Detect, beam_power_problem

from benchmarks.harness.measuring import array_module, kernels_of
from benchmarks.harness.samples import on_host
from benchmarks.peers import Candidate, candidates
from benchmarks.peers._beam_power import detected as detect_beams
from benchmarks.sweep.case import Assess, Case
from workflow.accuracy import Accuracy, worst_of
from workflow.accuracy.beam_power_accuracy import assess_beam_power, beam_power_reference

_PRECISIONS = {
    "complex64": ("tf32", "3xtf32", "bf16"), "int8": ("fp16",), "fp16": ("fp16",),
}  # fmt: skip
"""Precisions measured for each type of samples."""
_MOST_BYTES = {"cuda": 1 << 30, "cpu": 1 << 20}
"""Bytes of the complex beams of a case at most."""
_MOST_SAMPLES = 1 << 25
_CHECKED_TIMES = 256
"""Samples of the bins that are compared with fp64 at either end, at least one bin."""
PRODUCT = "argand product, detected"
"""The name of our product whose beams CuPy or NumPy squares and sums."""


class BeamCase(Case):
    """The detected beams of some channels, each with weights of its own."""

    def __init__(
        self, beams: int, antennas: int, integrate: int, detect: Detect, kind: str, times: int
    ) -> None:
        self._sizes, self._input = (beams, antennas, times), kind
        self._options: dict[str, Any] = {"detect": detect, "integrate": integrate}
        self.operation = "beam_power"
        self.shape = self._words = f"{beams} x {antennas} x {times} / {integrate}"
        self.kind = f"{kind}, {detect}"
        self.flops = self.bytes_moved = 0.0

    def operands(self, device: Device, seed: int) -> tuple[Any, ...]:
        """Return normal weights, and samples of the type, integers as (..., 2)."""
        beams, antennas, times = self._sizes
        integrate, stokes = self._options["integrate"], self._options["detect"] == "stokes"
        polarizations = 2 if stokes else 1
        beam_bytes = 8 * polarizations * beams * times
        sample_bytes = polarizations * antennas * times
        channels = max(
            1, min(_MOST_BYTES[device.backend] // beam_bytes, _MOST_SAMPLES // sample_bytes)
        )
        self.shape = f"{channels} x {self._words}"
        outer = (channels, 2) if stokes else (channels,)
        arrays = array_module(device)
        rng = arrays.random.default_rng(seed)
        w, x = (
            rng.standard_normal((*outer, *size, 2), dtype=np.float32)
            for size in ((beams, antennas), (antennas, times))
        )
        w = w.view(np.complex64)[..., 0]
        if self._input == "int8":
            x = arrays.clip(arrays.rint(20 * x), -128, 127).astype(np.int8)
        elif self._input == "fp16":
            x = to_pairs(x.view(np.complex64)[..., 0], "fp16").array
        else:
            x = x.view(np.complex64)[..., 0]
        self.flops = 8.0 * channels * polarizations * beams * antennas * times
        outputs = 4 if stokes else 1
        written = 4.0 * channels * outputs * beams * (times // integrate)
        self.bytes_moved = w.nbytes + x.nbytes + written
        return w, x

    def _given(self, x: Any) -> Any:
        return x if x.dtype.kind == "c" else pairs(x)

    def ours(self, device: Device) -> list[Candidate]:
        """Return `argand.beam_power` at the precisions of the type of samples."""

        def one(precision: str) -> Candidate:
            call = partial(beam_power, precision=precision, **self._options)

            return Candidate(
                "argand", PRECISIONS[precision], "beam power",
                lambda w, x: (w, self._given(x)), call, input=self._input, output="real",
                chosen=kernels_of(call),
            )  # fmt: skip

        return [one(precision) for precision in _PRECISIONS[self._input]]

    def peers(self, device: Device) -> list[Candidate]:
        """Return our product, then detection, at the same precisions, and the libraries' beams."""
        arrays = array_module(device)

        def apart(precision: str) -> Candidate:
            def prepare(w: Any, x: Any) -> tuple[Any, Any]:
                return (to_pairs(w, "fp16") if self._input == "fp16" else w), self._given(x)

            def compute(w: Any, x: Any) -> Any:
                return detect_beams(arrays, gemm(w, x, precision=precision), **self._options)

            return Candidate(
                PRODUCT, PRECISIONS[precision], "gemm, squares, sum", prepare, compute,
                input=self._input, output="real",
            )  # fmt: skip

        found = [apart(precision) for precision in _PRECISIONS[self._input]]
        if self._input == "complex64":
            found += [
                one for one in candidates("beam_power", device.backend, **self._options)
                if one.precision.name in ("fp32", "tf32")
            ]  # fmt: skip
        return found

    def assessment(self, operands: Sequence[Any], device: Device) -> Assess:
        """Return a function that compares the first and the last bins of a channel with fp64."""
        w, x = operands
        integrate, times = self._options["integrate"], self._sizes[2]
        bins = times // integrate
        count = min(bins, max(1, _CHECKED_TIMES // integrate))
        places = {"first": (0, 0), "last": (len(w) - 1, bins - count)}
        references = {}
        for name, (channel, first) in places.items():
            some = slice(first * integrate, (first + count) * integrate)
            values = x[channel][..., some] if x.dtype.kind == "c" else x[channel][..., some, :]
            given = self._given(values)
            values = on_host(given.to_complex64() if isinstance(given, Pairs) else given)
            weights = on_host(w[channel])
            problem = beam_power_problem(
                weights.shape, values.shape, precision=PRECISIONS["fp32"], **self._options
            )
            references[name] = beam_power_reference(problem, weights, values)

        def assess(result: Any, candidate: Candidate) -> Accuracy:
            parts = {
                name: assess_beam_power(
                    references[name],
                    on_host(result[channel][..., first : first + count]),
                    candidate.precision, backend=device.backend,
                )
                for name, (channel, first) in places.items()
            }  # fmt: skip
            return worst_of(parts)

        return assess


def draw(rng: np.random.Generator, cases: int, sizes: Any) -> list[Case]:
    """Draw 1 to 2048 beams, 16 to 512 antennas and bins of 1 to 256 samples, log-uniform.

    A row has 2^8 to 2^15 samples; a fifth has Stokes parameters. There are as many channels as
    their beams or samples leave room for.
    """
    found: list[Case] = []
    kinds = list(_PRECISIONS)
    for _ in range(cases):
        beams, antennas, integrate, times = (
            int(sizes(rng, low, high, (1,))[0])
            for low, high in ((1, 2048), (16, 512), (1, 256), (1 << 8, 1 << 15))
        )
        detect = DETECTIONS[int(rng.random() < 0.2)]
        kind = kinds[int(rng.integers(len(kinds)))]
        found.append(BeamCase(beams, antennas, integrate, detect, kind, times))
    return found
