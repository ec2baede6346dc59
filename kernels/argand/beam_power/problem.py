"""A call of `argand.beam_power` as one value, without its data."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, get_args

from argand.checks import check_one_of, is_integer
from argand.gemm.problem import gemm_problem
from argand.precision import PRECISIONS, Precision

Detect = Literal["power", "stokes"]
"""Quantity that is summed over time: |z|^2 of a beam z, or I, Q, U, V of two polarizations."""
DETECTIONS: tuple[Detect, ...] = get_args(Detect)
LONGEST_SUM = 4096
"""Most samples that are added one after another; the sums of longer bins' parts are added then."""
EXACT = replace(PRECISIONS["fp32"], name="exact", summary="sums of int8, squared in fp32")
"""Beams of weights and samples of int8 that are exact; their powers are sums in fp32."""
STOKES = ("I", "Q", "U", "V")
"""The order along the axis of Stokes parameters."""


@dataclass(frozen=True)
class BeamPowerProblem:
    """A call of `argand.beam_power` without its data: sizes, detection and precision.

    Attributes:
        batch_shape: leading axes that weights and samples broadcast to, without polarizations.
        beams, antennas, samples: the sizes of one product; ``samples`` lie along time.
        integrate: samples of a bin.
        detect: with ``stokes`` each batch has two products, one a polarization.
        precision: what operands are rounded to.
    """

    batch_shape: tuple[int, ...]
    beams: int
    antennas: int
    samples: int
    integrate: int
    detect: Detect
    precision: Precision

    @property
    def polarizations(self) -> int:
        """Products that one result is of."""
        return 2 if self.detect == "stokes" else 1

    @property
    def outputs(self) -> int:
        """Results of a beam and a bin: 4 Stokes parameters, or its power."""
        return len(STOKES) if self.detect == "stokes" else 1

    @property
    def bins(self) -> int:
        """Bins of time; samples after the last whole one are not read."""
        return self.samples // self.integrate

    @property
    def batch(self) -> int:
        """Number of results over the leading axes."""
        return math.prod(self.batch_shape)

    @property
    def operand_batch(self) -> tuple[int, ...]:
        """Leading axes of the products."""
        return (*self.batch_shape, 2) if self.detect == "stokes" else self.batch_shape

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        parameters = (self.outputs,) if self.detect == "stokes" else ()
        return (*self.batch_shape, *parameters, self.beams, self.bins)

    @property
    def dtype(self) -> str:
        """The type of the result."""
        return self.precision.real_output

    @property
    def roundings(self) -> int:
        """Most roundings that a square meets until it is in a result, in any backend.

        Its own, those of the sum of both parts of every polarization and sample of a part of a bin,
        one for each further part, and two of Stokes parameters.
        """
        part = min(self.integrate, LONGEST_SUM)
        return 2 * self.polarizations * part + -(-self.integrate // LONGEST_SUM) + 3

    @property
    def flops(self) -> int:
        """Those of the products, 8 a complex multiply-add; detection is a few a beam and sample."""
        products = self.batch * self.polarizations
        return 8 * products * self.beams * self.antennas * self.bins * self.integrate


def beam_power_problem(
    weights: tuple[int, ...],
    samples: tuple[int, ...],
    *,
    detect: Detect,
    integrate: int,
    precision: Precision,
) -> BeamPowerProblem:
    """Return the problem of operands of these shapes.

    Raises ValueError for an unknown detect, an ``integrate`` that is not a positive integer, shapes
    that do not make a product, and Stokes parameters without two polarizations.
    """
    check_one_of("detect", detect, DETECTIONS)
    if not is_integer(integrate) or integrate < 1:
        raise ValueError(f"integrate must be an integer of 1 or more, got {integrate!r}")
    for name, shape, axes in (
        ("weights", weights, "(..., beam, antenna)"), ("samples", samples, "(..., antenna, time)")
    ):  # fmt: skip
        if len(shape) < 2:
            raise ValueError(f"{name} must have shape {axes}, got {shape}")
    if weights[-1] != samples[-2]:
        raise ValueError(
            f"weights {weights} (..., beam, antenna) and samples {samples} (..., antenna, time) "
            f"must have the same antennas, got {weights[-1]} and {samples[-2]}"
        )
    try:
        product = gemm_problem(weights, samples)
    except ValueError:
        raise ValueError(
            f"leading axes of weights {weights[:-2]} and samples {samples[:-2]} do not broadcast"
        ) from None
    batch_shape = product.batch_shape
    if detect == "stokes":
        if not batch_shape or batch_shape[-1] != 2:
            raise ValueError(
                "detect stokes needs two polarizations, the axis before beams and antennas, got "
                f"weights {weights} and samples {samples}"
            )
        batch_shape = batch_shape[:-1]
    return BeamPowerProblem(
        batch_shape, product.m, product.k, product.n, int(integrate), detect, precision
    )
