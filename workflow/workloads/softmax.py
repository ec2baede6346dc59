"""Softmax over the last axis, of random logits, a file's, or the beam power of another workload."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from argand import Device, Precision, softmax
from argand.softmax.problem import SOFTMAX_PRECISIONS
from pydantic import Field, model_validator

from workflow.accuracy import Accuracy
from workflow.accuracy.references import SoftmaxReference, softmax_reference
from workflow.accuracy.softmax_accuracy import assess_softmax
from workflow.arrays.beam_power import beam_power, beams_of
from workflow.config.case import Case
from workflow.config.file_input import DatasetRef, FileInput, WorkloadInput
from workflow.data import Array, Coordinate, Product, Staged, blank
from workflow.drawn import Box, Drawn
from workflow.figures import pictures
from workflow.implementation import Implementation, Shape
from workflow.inputs import operands
from workflow.inputs.hdf5_operands import source_checksum
from workflow.inputs.operands import Operand
from workflow.inputs.provenance import of_products
from workflow.workloads.base import NOTHING, Workload, log_uniform, register
from workflow.workloads.baselines import implementations

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOGITS = Operand("x", ("axis_0", "axis_1", "row", "column"), real=True, free=True)
OPERATIONS = 5
"""Operations of an element: maximum, difference, exponential, sum, quotient."""
CURVES = 8
"""Rows that a picture shows."""
_MAX_DRAWN = 512
"""Beams, and times, of a picture; more are averaged in blocks."""


class SoftmaxInput(FileInput):
    """Logits in an HDF5 file."""

    x: DatasetRef


class SoftmaxCase(Case):
    """Softmax of each row.

    With ``input: {workload: name}`` the rows are the power of that workload's beams at each time,
    over the mean power of all, times ``scale``: the probability of each beam to hold the source.
    """

    precision_names: ClassVar[tuple[str, ...]] = SOFTMAX_PRECISIONS

    kind: Literal["softmax"]
    rows: int | None = Field(None, ge=1, le=1 << 30, description="Independent rows.")
    columns: int | None = Field(None, ge=1, le=1 << 28, description="Logits of a row.")
    scale: float = Field(
        1.0,
        gt=0,
        le=1e30,
        description="Standard deviation of random logits, or factor of another workload's beam "
        "power; a file's logits are taken as they are.",
    )
    axis: int | str | None = Field(
        None,
        description="The axis whose values sum to 1, by its name in `input.axes` or its place in "
        "the file; the last where not given. It is the last one of the product.",
    )
    input: SoftmaxInput | WorkloadInput | None = Field(
        None, description="Logits from a file, or from the beam power of another workload."
    )

    @model_validator(mode="after")
    def _sizes(self) -> SoftmaxCase:
        # Beam power is scaled too, a file's logits are taken as they are.
        drawn = () if isinstance(self.input, WorkloadInput) else ("scale",)
        self.check_sizes_or_input(("rows", "columns"), drawn)
        self.check_axis_of_input(SoftmaxInput)
        return self


@register
class Softmax(Workload):
    """Softmax of the rows of x."""

    kind: ClassVar[str] = "softmax"
    operation: ClassVar[str] = "softmax"
    caption: ClassVar[str] = (
        "Probabilities: of beams, over time, bright where the beam is the likeliest; else of some "
        "rows, sorted, so that a steep curve is a row that decides for few columns and a level one "
        "is unsure."
    )
    case_type: ClassVar[type[Case]] = SoftmaxCase
    small: ClassVar[Mapping[str, Any]] = {"rows": 7, "columns": 129, "scale": 5}
    common: ClassVar[Mapping[str, Any]] = {"rows": 512, "columns": 1000}
    result_like: ClassVar[str] = "x"
    reads: ClassVar[tuple[str, ...]] = ("beamforming",)
    splits: ClassVar[tuple[str, ...]] = LOGITS.axes[:-1]
    case: SoftmaxCase

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> dict[str, Any]:
        """See `Workload.drawn`."""
        scale = float(rng.choice([0.5, 1.0, 4.0]))
        return {
            "rows": log_uniform(rng, 2, 16), "columns": log_uniform(rng, 2, 4000), "scale": scale,
        }  # fmt: skip

    def split_axes(self, axes: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
        """Return the axes before the last; of beams the polarizations only after the times."""
        return tuple(sorted(axes["x"][:-1], key=lambda axis: axis == "polarization"))

    @property
    def _operands(self) -> list[Operand]:
        return [replace(LOGITS, along=self.case.axis)]

    def check(self, upstream: Mapping[str, Product] = NOTHING) -> None:
        """Raise InputError where there are no real logits, or no beams."""
        source = self.case.input
        if isinstance(source, SoftmaxInput):
            operands.headers(source, self._operands, upstream)
        elif source is not None:
            beams_of(upstream[source.workload], source.workload)

    def staging(self, upstream: Mapping[str, Path] = NOTHING) -> Staged:
        """Return operand x (..., columns); float32 when generated."""
        source = self.case.input
        if isinstance(source, WorkloadInput):
            return self._stage_beam_power(source, upstream[source.workload])
        if source is None:
            shape = (self.case.rows or 0, self.case.columns or 0)
            drawn = Drawn(shape, np.dtype(np.float32), self._logits)
            return Staged({}, {"x": LOGITS.axes[-2:]}, {}, {"seed": self.seed}, {"x": drawn})
        allow = self.case.lets_nonfinite_in
        return operands.staged(source, self._operands, upstream, allow_nonfinite=allow)

    def _logits(self, box: Box) -> Array:
        x = self.rng(*box.offset).standard_normal(box.shape, dtype=np.float32)
        x *= np.float32(self.case.scale)
        return x

    def outline(self, upstream: Mapping[str, Product] = NOTHING) -> Staged:
        """See `Workload.outline`."""
        source = self.case.input
        if isinstance(source, WorkloadInput):
            beams = beams_of(upstream[source.workload], source.workload)
            x = blank(beams.map.shape, np.float64)
            return Staged({"x": x}, {"x": beams.map.axes}, beams.coordinates())
        if source is not None:
            return operands.outline(source, self._operands, upstream)
        x = blank((self.case.rows or 0, self.case.columns or 0), np.float32)
        return Staged({"x": x}, {"x": LOGITS.axes[-x.ndim :]})

    def _stage_beam_power(self, source: WorkloadInput, upstream: Path) -> Staged:
        """Return x (frequency, polarization, time, beam) from a beamforming workload's product."""
        found = beam_power(upstream, source.workload, self.case.scale)
        attributes = {
            "source": f"beam power of {source.workload}",
            "source_sha256": source_checksum(upstream),
            "mean_power": found.mean,
            "nonfinite": {"x": found.nonfinite},
            **of_products({"x": upstream}),
        }
        return Staged({}, {"x": found.axes}, found.coordinates, attributes, {"x": found.x})

    def shape(self, staged: Staged, precision: Precision) -> Shape:
        """Return 5 operations an element; x read and the result written once."""
        x = staged.operands["x"]
        columns = x.shape[-1]
        return Shape(
            flops=float(OPERATIONS * x.size),
            bytes_moved=2.0 * x.size * np.dtype(precision.real_output).itemsize,
            rows=x.size // columns,
            columns=columns,
        )

    def argand(self, staged: Staged, precision: Precision, device: Device) -> Implementation:
        """Return an implementation by `argand.softmax`."""
        return Implementation.ours(
            precision,
            "one pass over tiles",
            partial(_of_logits, partial(softmax, precision=precision)),
            partial(operands.cast, precision=precision),
        )

    def baselines(self, staged: Staged, device: Device) -> list[Implementation]:
        """Return SciPy on the CPU; CuPy, and PyTorch where it is installed, on a GPU."""
        return implementations(self.case, device, "softmax", _of_logits)

    def reference(self, staged: Staged) -> SoftmaxReference:
        """Return the result of scipy.special.softmax in fp64 of the logits as they are."""
        return softmax_reference(staged.operands["x"])

    def assess(
        self,
        staged: Staged,
        reference: SoftmaxReference,
        result: Array,
        precision: Precision,
        device: str,
    ) -> Accuracy:
        """See `assess_softmax`."""
        return assess_softmax(reference, result, precision, backend=device)

    def product(self, staged: Staged, result: Array) -> Product:
        """Return the probabilities, on the axes of the logits."""
        axes = staged.axes["x"]
        coordinates: dict[str, Coordinate] = dict(staged.coordinates)
        return Product("probability", result, axes, coordinates, f"{self.name}: softmax")

    def picture(self, product: Product, axes: Axes) -> None:
        """Draw beams over time as an image; otherwise some rows, their columns by rank."""
        if product.axes[-1] == "beam":
            self._draw_beams(product, axes)
        else:
            self._draw_rows(product.data.reshape(-1, product.data.shape[-1]), axes)

    def _draw_beams(self, product: Product, axes: Axes) -> None:
        first = product.data.reshape(-1, *product.data.shape[-2:])[0].T
        times, label = np.arange(first.shape[1]), "time sample"
        if "time" in product.coordinates:
            along = product.coordinates["time"]
            times, label = pictures.labelled("time", along.values, along.units)
            times, label = pictures.of_equal_steps("time", times, label)
        along_axes = (times, np.arange(len(first)))
        edges = [pictures.edges_of_blocks(one, _MAX_DRAWN) for one in along_axes]
        blocks = pictures.block_means(first, _MAX_DRAWN)
        image = axes.imshow(
            blocks, aspect="auto", origin="lower", cmap="viridis", interpolation="nearest",
            extent=(*edges[0], *edges[1]),
        )  # fmt: skip
        axes.set_xlabel(label)
        axes.set_ylabel("beam number")
        pictures.label_whole(axes.yaxis)
        mean = "probability" if blocks.shape == first.shape else "mean probability"
        axes.figure.colorbar(image, ax=axes, label=f"{mean} (first channel)")

    def _draw_rows(self, rows: Array, axes: Axes) -> None:
        ranks = np.arange(1, rows.shape[-1] + 1)
        for row in rows[:CURVES]:
            axes.plot(ranks, np.sort(row)[::-1], lw=1)
        axes.set_xscale("log")
        if np.any(rows[:CURVES] > 0):  # a scale of nothing, as of NaN alone, has no ticks
            axes.set_yscale("log", nonpositive="mask")
        axes.set_xlabel(f"rank of the column (first {min(CURVES, len(rows))} rows)")
        axes.set_ylabel("probability")
        axes.grid(alpha=0.3)


def _of_logits(function: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    return function(given["x"])
