"""Detected beams of drawn or given arrays, bins and types of samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from argand import PRECISIONS, Device, Pairs, Precision, beam_power, gemm, pairs, to_pairs
from argand.beam_power.problem import DETECTIONS, EXACT, Detect, beam_power_problem

from benchmarks.harness.measuring import array_module, kernels_of
from benchmarks.harness.samples import on_host
from benchmarks.peers import Candidate, candidates
from benchmarks.peers._beam_power import detected as detect_beams
from benchmarks.sweep.case import Assess, Case, precision_row
from workflow.accuracy import Accuracy, worst_of
from workflow.accuracy.beam_power_accuracy import assess_beam_power, beam_power_reference
from workflow.threads import each

Input = Literal["complex64", "int8", "fp16", "bf16", "int8, weights too"]
_DRAWN: tuple[Input, ...] = ("complex64", "int8", "fp16")
_PRECISIONS: dict[Input, tuple[str, ...]] = {
    "complex64": ("tf32", "3xtf32", "bf16"), "int8": ("fp16",), "fp16": ("fp16",),
    "bf16": ("bf16",), "int8, weights too": (EXACT.name,),
}  # fmt: skip
"""Precisions measured for each type of samples, where none are given."""
_MAX_BYTES = {"cuda": 1 << 30, "cpu": 1 << 20}
"""Bytes of the complex beams of a case at most."""
_MAX_SAMPLES = 1 << 25
_CHECKED_TIMES = 256, 1024
"""Samples of the bins that are compared with fp64 at either end, at least one bin, of drawn and of
given sizes."""
ALONE = "argand product"
PRODUCT = "argand product, detected"
"""The names of our product, and of it with its beams squared and summed by CuPy or NumPy."""


class BeamCase(Case):
    """The detected beams of some channels, each with weights of its own.

    Without ``channels`` there are as many as there is room for. Where a file gave the sizes, the
    product alone is timed too.
    """

    def __init__(
        self, beams: int, antennas: int, integrate: int, detect: Detect, input: Input, times: int,
        channels: int | None = None, precisions: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        if times < integrate:
            raise ValueError(f"times must be at least {integrate}, those of a bin, got {times}")
        self._sizes, self._input, self._channels = (beams, antennas, times), input, channels
        self._precisions = [precision_row(name) for name in precisions or _PRECISIONS[input]]
        self._options: dict[str, Any] = {"detect": detect, "integrate": integrate}
        self.operation = "beam_power"
        self.shape = self._words = f"{beams} x {antennas} x {times} / {integrate}"
        self.kind = f"{input}, {detect}"
        self.flops = self.bytes_moved = 0.0

    def operands(self, device: Device, seed: int) -> tuple[Any, ...]:
        """Return normal weights, and samples of the type; integers and pairs as (..., 2)."""
        beams, antennas, times = self._sizes
        integrate, stokes = self._options["integrate"], self._options["detect"] == "stokes"
        polarizations = 2 if stokes else 1
        beam_bytes = 8 * polarizations * beams * times
        sample_bytes = polarizations * antennas * times
        room = min(_MAX_BYTES[device.backend] // beam_bytes, _MAX_SAMPLES // sample_bytes)
        channels = self._channels or max(1, room)
        self.shape = f"{channels} x {self._words}"
        outer = (channels, 2) if stokes else (channels,)
        arrays = array_module(device)
        rng = arrays.random.default_rng(seed)
        w, x = (
            rng.standard_normal((*outer, *size, 2), dtype=np.float32)
            for size in ((beams, antennas), (antennas, times))
        )
        integers = self._input.startswith("int8")
        if integers:
            x = arrays.clip(arrays.rint(20 * x), -128, 127).astype(np.int8)
        else:
            x = x.view(np.complex64)[..., 0]
        if integers and self._input != "int8":
            w = arrays.clip(arrays.rint(40 * w), -128, 127).astype(np.int8)
        else:
            w = w.view(np.complex64)[..., 0]
        if self._held:
            x = to_pairs(x, self._input).array
        self.flops = 8.0 * channels * polarizations * beams * antennas * times
        outputs = 4 if stokes else 1
        written = 4.0 * channels * outputs * beams * (times // integrate)
        self.bytes_moved = w.nbytes + x.nbytes + written
        return w, x

    @property
    def _held(self) -> bool:
        """Whether samples are pairs of halves: weights as complex64 would be rounded by a call."""
        return self._input in ("fp16", "bf16")

    def ours(self, device: Device) -> list[Candidate]:
        """Return `argand.beam_power` at the precisions of the type of samples."""

        def one(row: Precision) -> Candidate:
            call = partial(beam_power, precision=row.name, **self._options)

            return Candidate(
                "argand", row, "beam power", lambda w, x: (_argument(w), _argument(x)), call,
                input=self._input, output="real", chosen=kernels_of(call),
            )  # fmt: skip

        return [one(row) for row in self._precisions]

    def peers(self, device: Device) -> list[Candidate]:
        """Return our product, then detection, at the same precisions, and the libraries' beams.

        Exact sums of integers are those of a product at fp16.
        """
        arrays = array_module(device)

        def detect(beams: Any) -> Any:
            return detect_beams(arrays, beams, **self._options)

        def apart(row: Precision) -> list[Candidate]:
            product = partial(gemm, precision="fp16" if row == EXACT else row.name)

            def prepare(w: Any, x: Any) -> tuple[Any, Any]:
                held = self._held and row.name == self._input
                return (to_pairs(w, self._input) if held else _argument(w)), _argument(x)

            detected = Candidate(
                PRODUCT, row, "gemm, squares, sum", prepare, lambda w, x: detect(product(w, x)),
                input=self._input, output="real",
            )  # fmt: skip
            alone = replace(detected, name=ALONE, algorithm="gemm", compute=product, result=detect)
            return [alone, detected] if self.given else [detected]

        found = [one for row in self._precisions for one in apart(row)]
        libraries = candidates("beam_power", device.backend, **self._options)
        return found + [
            replace(one, prepare=partial(_of_floats, one.prepare))
            for one in libraries if one.precision.name in ("fp32", "tf32")
        ]  # fmt: skip

    def assessment(self, operands: Sequence[Any], device: Device) -> Assess:
        """Return a function that compares the first and the last bins of a channel with fp64."""
        w, x = operands
        integrate, times = self._options["integrate"], self._sizes[2]
        bins = times // integrate
        count = min(bins, max(1, self.sampled(*_CHECKED_TIMES) // integrate))
        places = {"first": (0, 0), "last": (len(w) - 1, bins - count)}
        references = {}
        for name, (channel, first) in places.items():
            some = slice(first * integrate, (first + count) * integrate)
            values = x[channel][..., some] if x.dtype.kind == "c" else x[channel][..., some, :]
            weights, values = (on_host(_complex(one)) for one in (w[channel], values))
            problem = beam_power_problem(
                weights.shape, values.shape, precision=PRECISIONS["fp32"], **self._options
            )
            references[name] = beam_power_reference(problem, weights, values)

        def assess(result: Any, candidate: Candidate) -> Accuracy:
            def part(name: str) -> Accuracy:
                channel, first = places[name]
                some = on_host(result[channel][..., first : first + count])
                return assess_beam_power(
                    references[name], some, candidate.precision, backend=device.backend
                )

            return worst_of(dict(zip(places, each(part, places), strict=True)))

        return assess


def _argument(x: Any) -> Any:
    """Return an operand as our calls take it: integers and pairs of halves as `Pairs`."""
    if x.dtype.kind == "c":
        return x
    return pairs(x, "bf16") if x.dtype == np.uint16 else pairs(x)


def _complex(x: Any) -> Any:
    """Return an operand as complex64."""
    given = _argument(x)
    return given.to_complex64() if isinstance(given, Pairs) else given


def _of_floats(prepare: Any, w: Any, x: Any) -> Any:
    """Return what a library's candidate prepares of operands of any type."""
    return prepare(_complex(w), _complex(x))


def draw(rng: np.random.Generator, cases: int, sizes: Any) -> list[Case]:
    """Draw 1 to 2048 beams, 16 to 512 antennas and bins of 1 to 256 samples, log-uniform.

    A row has 2^8 to 2^15 samples; a fifth has Stokes parameters. There are as many channels as
    their beams or samples leave room for.
    """
    found: list[Case] = []
    for _ in range(cases):
        beams, antennas, integrate, times = (
            int(sizes(rng, low, high, (1,))[0])
            for low, high in ((1, 2048), (16, 512), (1, 256), (1 << 8, 1 << 15))
        )
        detect = DETECTIONS[int(rng.random() < 0.2)]
        kind = _DRAWN[int(rng.integers(len(_DRAWN)))]
        found.append(BeamCase(beams, antennas, integrate, detect, kind, times))
    return found
