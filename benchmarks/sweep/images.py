"""Images of drawn antennas, channels and directions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from argand import PRECISIONS, Device, ImagePlan, image

from benchmarks.harness.measuring import array_module, kernels_of
from benchmarks.harness.samples import on_host, sampled_rows
from benchmarks.image import direct_power, most_turns
from benchmarks.peers import Candidate, candidates
from benchmarks.sweep.case import Assess, Case
from workflow.accuracy import Accuracy
from workflow.accuracy.image_bounds import image_bound

_PRECISIONS = ("tf32", "3xtf32", "3xfp16", "fp16")
_MOST_TERMS = {"cuda": 1 << 36, "cpu": 1 << 20}
"""Products of a case at most: images, channels, antennas squared and directions."""
_FEWEST_DIRECTIONS = 64
_RADIUS_M = 500.0
_CHECKED_DIRECTIONS = 128
"""Directions of the first and the last image that are compared with fp64."""


class ImageCase(Case):
    """Images of the same directions from covariances of some channels each."""

    def __init__(self, images: int, channels: int, antennas: int, directions: int) -> None:
        self._sizes = images, channels, antennas, directions
        self.operation, self.kind = "image", "complex64"
        self.shape = self._words = f"{images} x {channels} channels x {antennas} antennas"
        self.flops = self.bytes_moved = 0.0

    def operands(self, device: Device, seed: int) -> tuple[Any, ...]:
        """Return covariances, positions, frequencies and unit vectors."""
        images, channels, antennas, directions = self._sizes
        pairs = images * channels * antennas**2
        most = _MOST_TERMS[device.backend] // pairs
        directions = max(_FEWEST_DIRECTIONS, min(directions, most))
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
        """Return `argand.image` at each precision, and calls of `argand.ImagePlan`."""

        def one(precision: str) -> Candidate:
            call = partial(image, precision=precision)

            return Candidate(
                "argand", PRECISIONS[precision], "image", lambda *given: given, call,
                output="real", chosen=kernels_of(call),
            )  # fmt: skip

        def planned(precision: str) -> Candidate:
            return Candidate(
                "argand plan", PRECISIONS[precision], "image",
                lambda *given: (ImagePlan(*given, precision=precision), *given),
                lambda plan, *given: plan(*given), output="real",
            )  # fmt: skip

        return [way(precision) for way in (one, planned) for precision in _PRECISIONS]

    def peers(self, device: Device) -> list[Candidate]:
        """Return the libraries' images in fp32."""
        found = candidates("image", device.backend)
        return [one for one in found if one.precision.name == "fp32"]

    def assessment(self, operands: Sequence[Any], device: Device) -> Assess:
        """Return a function that compares directions of two images with a direct sum in fp64."""
        r, (x, f) = operands[0], operands[1:3]
        images, channels, antennas, _ = self._sizes
        s = on_host(operands[3])
        rows = sampled_rows(len(s), _CHECKED_DIRECTIONS)
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
                componentwise_re=worst, verdict="verified" if right else "wrong", verified=right,
                reason="" if right else f"a direction is off by {worst:.3g} > {bound:.3g} of |R|",
                reference="sampled", reference_rows=len(rows) * len(truths),
            )  # fmt: skip

        return assess


def draw(rng: np.random.Generator, cases: int, sizes: Any) -> list[Case]:
    """Draw 2 to 512 antennas, 1 to 64 channels, 2^8 to 2^18 directions and 1 to 8 images.

    All are log-uniform; there are fewer directions where the products would be too many.
    """
    found: list[Case] = []
    for _ in range(cases):
        drawn = (
            int(sizes(rng, low, high, (1,))[0])
            for low, high in ((1, 8), (1, 64), (2, 512), (1 << 8, 1 << 18))
        )
        found.append(ImageCase(*drawn))
    return found
