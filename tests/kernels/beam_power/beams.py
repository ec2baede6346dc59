"""Weights and samples of beams, their power by a direct sum in fp64, and its bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from argand import PRECISIONS, Pairs, Precision, pairs
from argand.beam_power.problem import EXACT, BeamPowerProblem, Detect, beam_power_problem

from workflow.accuracy.beam_power_bounds import allowed, detected

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Beams:
    """Arguments of `argand.beam_power`."""

    weights: Any
    samples: Any
    integrate: int
    detect: Detect = "power"

    @property
    def options(self) -> dict[str, Any]:
        return {"detect": self.detect, "integrate": self.integrate}

    def problem(self, precision: str) -> BeamPowerProblem:
        return beam_power_problem(
            self.weights.shape, self.samples.shape, precision=row_of(precision), **self.options
        )

    def power(self) -> Array:
        """The direct sum, by einsum."""
        w, x = (as_complex(one).astype(complex) for one in (self.weights, self.samples))
        z = np.einsum("...ba,...at->...bt", w, x)
        bins = z.shape[-1] // self.integrate
        z = z[..., : bins * self.integrate].reshape(*z.shape[:-1], bins, self.integrate)
        if self.detect == "power":
            return np.asarray((np.abs(z) ** 2).sum(-1))
        x, y = z[..., 0, :, :, :], z[..., 1, :, :, :]
        i, q = ((np.abs(x) ** 2 + sign * np.abs(y) ** 2).sum(-1) for sign in (1, -1))
        cross = 2 * (x.conj() * y).sum(-1)
        return np.stack([i, q, cross.real, cross.imag], axis=-3)

    def allowed(self, precision: str, backend: str) -> Array:
        """The bound of a power's error (`workflow.accuracy.beam_power_bounds`)."""
        problem, row = self.problem(precision), row_of(precision)
        w, x = as_complex(self.weights), as_complex(self.samples)
        held = detected(problem, w, x, row)
        found = allowed(problem, detected(problem, w, x), held, row, backend)
        return found.reshape(problem.shape)


def row_of(precision: str) -> Precision:
    return EXACT if precision == "exact" else PRECISIONS[precision]


def as_complex(x: Any) -> Array:
    return np.asarray(x.to_complex64()) if isinstance(x, Pairs) else np.asarray(x)


def beams(
    beam: int, antennas: int, samples: int, integrate: int = 1, *, detect: Detect = "power",
    leading: tuple[int, ...] = (), shared: bool = False, seed: int = 0, kind: str = "complex64",
    taken: str = "", weights: str = "",
) -> Beams:  # fmt: skip
    """Random operands: a wave on noise; with ``shared`` one matrix of weights for all.

    ``taken`` is the format of samples as `Pairs`, if any, ``weights`` that of weights: int8.
    """
    rng = np.random.default_rng(seed)
    outer = (*leading, 2) if detect == "stokes" else leading
    of_weights = () if shared else outer
    w = rng.standard_normal((*of_weights, beam, antennas, 2)).view(complex)[..., 0]
    x = rng.standard_normal((*outer, antennas, samples, 2))
    x += rng.standard_normal((*outer, 1, samples, 2))
    if taken == "int8":
        parts: Any = pairs(np.clip(np.rint(30 * x), -128, 127).astype(np.int8))
    elif taken == "fp16":
        parts = pairs(x.astype(np.float16))
    elif taken == "bf16":
        bits = (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        parts = pairs(bits, format="bf16")
    else:
        parts = np.ascontiguousarray(x).view(complex)[..., 0].astype(kind)
    if weights == "int8":
        bytes_of_w = np.clip(np.rint(60 * w[..., None].view(float)), -128, 127).astype(np.int8)
        return Beams(pairs(bytes_of_w), parts, integrate, detect)
    return Beams(w.astype(kind), parts, integrate, detect)


EXACT_CASES = {
    "exact": beams(64, 64, 2048, 16, leading=(3,), taken="int8", weights="int8", seed=30),
    "odd exact": beams(5, 37, 211, 7, leading=(2, 3), taken="int8", weights="int8", seed=31),
    "shared exact": beams(
        130, 300, 301, 1, leading=(2,), shared=True, taken="int8", weights="int8", seed=32
    ),
    "a long exact bin": beams(70, 150, 1900, 1900, taken="int8", weights="int8", seed=33),
    "exact stokes": beams(
        4, 33, 130, 8, detect="stokes", leading=(2,), taken="int8", weights="int8", seed=34
    ),
}
"""Weights and samples of int8."""
