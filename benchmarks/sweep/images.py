"""Images of drawn or given antennas, channels and directions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from argand import Device, ImagePlan, Precision, image
from argand.image.problem import SPEED_OF_LIGHT
from argand.precision import any_precision

from benchmarks.harness.measuring import array_module, kernels_of
from benchmarks.harness.samples import on_host, sampled_rows
from benchmarks.peers import Candidate, candidates
from benchmarks.sweep.case import Assess, Case
from workflow.accuracy import Accuracy
from workflow.accuracy.image_bounds import image_bound
from workflow.threads import each

_PRECISIONS = ("tf32", "3xtf32", "3xfp16", "fp16")
_MAX_TERMS = {"cuda": 1 << 36, "cpu": 1 << 20}
"""Products of a case at most: images, channels, antennas squared and directions."""
_MIN_DIRECTIONS = 64
_RADIUS_M = 500.0
_CHECKED_DIRECTIONS = 128, 2048
"""Directions of the first and last image that are compared with fp64, of drawn and given sizes."""


class ImageCase(Case):
    """Images of the same directions from covariances of some channels each."""

    def __init__(
        self, images: int, channels: int, antennas: int, directions: int,
        precisions: Sequence[str] = _PRECISIONS,
    ) -> None:  # fmt: skip
        self._sizes, self._precisions = (images, channels, antennas, directions), precisions
        self.operation, self.kind = "image", "complex64"
        self.shape = self._words = f"{images} x {channels} channels x {antennas} antennas"
        self.flops = self.bytes_moved = 0.0

    def operands(self, device: Device, seed: int) -> tuple[Any, ...]:
        """Return covariances, positions, frequencies and unit vectors."""
        images, channels, antennas, directions = self._sizes
        pairs = images * channels * antennas**2
        most = self.room(_MAX_TERMS, device) / pairs
        directions = int(min(directions, max(_MIN_DIRECTIONS, most)))
        self.shape = f"{self._words}, {directions} directions"
        self.flops = 8.0 * pairs * directions
        self.bytes_moved = 8.0 * pairs + 24.0 * directions + 4.0 * images * directions
        arrays = array_module(device)
        rng = arrays.random.default_rng(seed)
        v = rng.standard_normal((images, channels, antennas, antennas + 3, 2), dtype=np.float32)
        v = v.view(np.complex64)[..., 0]
        r = v @ v.conj().swapaxes(-1, -2) / np.float32(antennas + 3)
        places = np.random.default_rng(seed)
        l, m = places.uniform(-0.5, 0.5, (2, directions))  # noqa: E741
        s = np.stack([l, m, np.sqrt(1 - l**2 - m**2)], axis=-1)
        x = _RADIUS_M * places.uniform(-1, 1, (antennas, 3))
        return r, x - x.mean(axis=0), 150e6 + 200e3 * np.arange(channels), arrays.asarray(s)

    def ours(self, device: Device) -> list[Candidate]:
        """Return `argand.image` at each precision, and of drawn sizes calls of `ImagePlan`."""

        def typed(r: Any, row: Precision) -> Any:
            return r.astype(row.output, copy=False)

        def one(row: Precision) -> Candidate:
            call = partial(image, precision=row.name)

            return Candidate(
                "argand", row, "image", lambda r, *place: (typed(r, row), *place), call,
                output="real", chosen=kernels_of(call),
            )  # fmt: skip

        def planned(row: Precision) -> Candidate:
            def prepare(r: Any, *place: Any) -> tuple[Any, ...]:
                given = typed(r, row), *place
                return ImagePlan(*given, precision=row.name), *given

            return Candidate(
                "argand plan", row, "image", prepare, lambda plan, *given: plan(*given),
                output="real",
            )  # fmt: skip

        ways = (one,) if self.given else (one, planned)
        return [way(any_precision(name)) for way in ways for name in self._precisions]

    def peers(self, device: Device) -> list[Candidate]:
        """Return the libraries' images in fp32."""
        found = candidates("image", device.backend)
        return [one for one in found if one.precision.name == "fp32"]

    def assessment(self, operands: Sequence[Any], device: Device) -> Assess:
        """Return a function that compares directions of two images with a direct sum in fp64."""
        r, (x, f) = operands[0], operands[1:3]
        images, channels, antennas, _ = self._sizes
        s = on_host(operands[3])
        rows = sampled_rows(len(s), self.sampled(*_CHECKED_DIRECTIONS))
        truths, sizes = {}, {}
        for place in {0, images - 1}:
            given = on_host(r[place]).astype(complex)
            truths[place] = direct_power(given, x, f, s[rows])
            sizes[place] = float((np.abs(given.real) + np.abs(given.imag)).sum())
        turns = most_turns(x, f)

        def assess(result: Any, candidate: Candidate) -> Accuracy:
            bound = image_bound(candidate.precision, antennas, channels, turns, device.backend)
            errors = {
                place: np.abs(on_host(result[place])[rows] - truth)
                for place, truth in truths.items()
            }
            worst = max(float(error.max()) / sizes[place] for place, error in errors.items())
            right = worst <= bound
            return Accuracy(
                rel_frobenius=max(
                    float(np.linalg.norm(error) / np.linalg.norm(truths[place]))
                    for place, error in errors.items()
                ),
                ratio=bound / worst if worst else None, componentwise_re=worst,
                verdict="verified" if right else "wrong", verified=right,
                reason="" if right else f"a direction is off by {worst:.3g} > {bound:.3g} of |R|",
                reference="sampled", reference_rows=len(rows) * len(truths),
            )  # fmt: skip

        return assess


def direct_power(r: Any, x: Any, f: Any, s: Any) -> Any:
    """Return power (direction,) of (channel, antenna, antenna) covariances by a direct sum in fp64.

    ``x`` are positions in m, ``f`` frequencies in Hz and ``s`` unit vectors, all of them NumPy's.
    """

    def of_channel(channel: tuple[Any, Any]) -> Any:
        matrix, frequency = channel
        w = np.exp(2j * np.pi * frequency / SPEED_OF_LIGHT * (x @ s.T))
        return (w.conj() * (matrix @ w)).real.sum(axis=0)

    return sum(each(of_channel, zip(r, f, strict=True)), np.zeros(len(s)))


def most_turns(x: Any, f: Any) -> float:
    """Return a bound on the wavelengths from the centre to an antenna, at the origin."""
    return float(2 * np.sqrt((x**2).sum(axis=1)).max() * f.max() / SPEED_OF_LIGHT)


def draw(rng: np.random.Generator, cases: int, sizes: Any) -> list[Case]:
    """Draw 2 to 512 antennas, 1 to 64 channels, 2^8 to 2^18 directions and 1 to 8 images.

    All are log-uniform; there are fewer directions where the products would be too many.
    """
    found: list[Case] = []
    for _ in range(cases):
        images, channels, antennas, directions = (
            int(sizes(rng, low, high, (1,))[0])
            for low, high in ((1, 8), (1, 64), (2, 512), (1 << 8, 1 << 18))
        )
        found.append(ImageCase(images, channels, antennas, directions))
    return found
