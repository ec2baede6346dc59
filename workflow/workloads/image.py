"""Images: power over a grid of directions, from covariances of an antenna array."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from argand import Device, Precision, image

from benchmarks.peers import bytes_of_image
from workflow.accuracy import Accuracy
from workflow.accuracy.image_accuracy import ImageReference, assess_image, image_reference
from workflow.arrays import sky
from workflow.arrays.antenna_places import (
    added_twice,
    channel_centres,
    check_near,
    in_hz_or_m,
    mirrored,
    unresolved,
)
from workflow.arrays.covariances import (
    COVARIANCES,
    check_added,
    check_covariances,
    checked_values,
    placed,
)
from workflow.config.case import Case
from workflow.config.formats import FORMATS
from workflow.config.image_case import ImageCase
from workflow.data import PLACES, Array, Coordinate, Product, Staged, along, blank, places, summed
from workflow.figures import pictures
from workflow.implementation import Implementation, OtherWork, Shape
from workflow.inputs import operands
from workflow.workloads.base import NOTHING, Workload, log_uniform, register
from workflow.workloads.baselines import implementations

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AXES = ("time", "polarization", "m", "l")
"""Axes of the image."""
_SUMMED = {"frequency": "channel", "time": "integration", "polarization": "feed"}
"""Axes of what an image is the sum of, which the image itself has not."""
FAINTEST_DB = 30
"""Range of a picture's colours."""


@register
class Image(Workload):
    """Images of an array's sky, one for each time and polarization."""

    kind: ClassVar[str] = "image"
    operation: ClassVar[str] = "image"
    caption: ClassVar[str] = (
        "Power of the first image over the direction cosines l (east) and m (north), in dB below "
        "the brightest direction; circles are the sources of a simulation. A source is a peak as "
        "wide as the array resolves, with side lobes about it. Without autocorrelations directions "
        "of no positive power are blank."
    )
    case_type: ClassVar[type[Case]] = ImageCase
    small: ClassVar[Mapping[str, Any]] = {
        "antennas": 5, "directions": {"n": 9, "field_of_view_deg": 30},
    }  # fmt: skip
    common: ClassVar[Mapping[str, Any]] = {
        "antennas": 64, "directions": {"n": 64, "field_of_view_deg": 60},
    }  # fmt: skip
    splits: ClassVar[tuple[str, ...]] = ("time", "polarization")
    reference_flops: ClassVar[float | None] = 1.5
    real_result: ClassVar[bool] = True
    peers_hold_batch: ClassVar[bool] = False
    case: ImageCase

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> dict[str, Any]:
        """See `Workload.drawn`."""
        grid = {"n": log_uniform(rng, 1, 24), "field_of_view_deg": 30}
        return {
            "antennas": log_uniform(rng, 1, 40), "channels": int(rng.integers(1, 4)),
            "directions": grid,
        }  # fmt: skip

    def split_axes(self, axes: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
        """Return the times and polarizations, without those that are added up."""
        return tuple(axis for axis in self.splits if axis not in self.case.sum)

    def check(self, upstream: Mapping[str, Product] = NOTHING) -> None:
        """Raise InputError where the covariances are none, or nothing says where antennas are."""
        found, given = self.outline(upstream), self.case.input
        if given is not None:
            check_covariances(found, FORMATS[given.format].covariance)
            if "polarization" in self.case.sum:
                check_added(found)
        how = "take others by input.select" if given else "make it smaller, or frequencies.start_hz"
        check_near(found.coordinates, "input.covariances" if given else "radius_m", how)

    def staging(self, upstream: Mapping[str, Path] = NOTHING) -> Staged:
        """Return the operand covariances; complex64 where it is simulated."""
        case = self.case
        if case.input is not None:
            return checked_values(placed(self.staged_input((COVARIANCES,), upstream)), silent=True)
        frequencies, where = self.case.frequencies.centres(self.case.channels), self._places()
        found = sky.covariances(
            frequencies, where, case.sources, case.noise, case.samples, self.rng
        )
        return replace(
            self.outline(), operands={"covariances": found}, attributes={"seed": self.seed}
        )

    def outline(self, upstream: Mapping[str, Product] = NOTHING) -> Staged:
        """See `Workload.outline`."""
        case = self.case
        if case.input is not None:
            return placed(operands.outline(case.input, (COVARIANCES,), upstream))
        shape = (1, 1, case.channels, case.antennas or 0, case.antennas or 0)
        centres = channel_centres(case.frequencies.centres(case.channels))
        coordinates = {"frequency": centres, **places(self._places())}
        axes = {"covariances": COVARIANCES.axes}
        return Staged({"covariances": blank(shape, np.complex64)}, axes, coordinates)

    def remark(self, staged: Staged) -> str:
        """See `Workload.remark`: a grid that is too coarse, directions that may be mirrored."""
        there = staged.coordinates
        where = np.stack([in_hz_or_m(there, name) for name in PLACES if name in there], axis=-1)
        hertz, across = in_hz_or_m(there, "frequency"), float(np.ptp(where[:, :2], axis=0).max())
        coarse = self.case.directions.coarseness(across, float(hertz.max()))
        said = (coarse, unresolved(where, hertz), mirrored(there), added_twice(there))
        return "; ".join(filter(None, said))

    def _places(self) -> Array:
        case = self.case
        return sky.scattered(case.antennas or 0, case.radius_m, self.rng(1 << 20))

    def result_shape(self, outline: Staged) -> tuple[int, ...]:
        """Return (time, polarization, m, l)."""
        shape = outline.operands["covariances"].shape
        n = self.case.directions.n
        kept = (1 if axis in self.case.sum else shape[at] for at, axis in enumerate(AXES[:2]))
        return (*kept, n, n)

    def shape(self, staged: Staged, precision: Precision) -> Shape:
        """Return 8 antennas^2 operations a channel, direction and image, for n directions."""
        r = staged.operands["covariances"]
        found = self.result_shape(staged)
        images, directions = found[0] * found[1], found[2] * found[3]
        channels, antennas = r.shape[2:4]
        real = np.dtype(precision.real_output).itemsize
        return Shape(
            flops=8.0 * images * channels * antennas**2 * directions,
            bytes_moved=float(2 * real * r.size + real * images * directions),
            batch=images * channels,
            m=antennas,
            n=directions,
            k=antennas,
        )

    def other_work(self, outline: Staged) -> OtherWork:
        """Return weights of channels, antennas and directions, and what steps over R w take."""
        channels, antennas = outline.operands["covariances"].shape[2:4]
        found = self.result_shape(outline)
        weights = float(channels * antennas * found[2] * found[3])
        images = found[0] * found[1]
        return OtherWork(weights, weights * images, bytes_of_image(weights, images))

    def argand(self, staged: Staged, precision: Precision, device: Device) -> Implementation:
        """Return an implementation by `argand.image`."""
        own = device.backend == "cuda" and not precision.exact_operands
        how = "weights made in the kernel, mma.sync" if own else "weights in blocks, real products"
        return Implementation.ours(
            precision, how,
            partial(self._imaged, partial(image, precision=precision.name), self._place(staged)),
            partial(operands.cast, precision=precision),
        )  # fmt: skip

    def baselines(self, staged: Staged, device: Device) -> list[Implementation]:
        """Return NumPy on the CPU, CuPy on a GPU, with the weights in memory."""
        place = self._place(staged)

        def call(compute: Callable[..., Any], given: Mapping[str, Any]) -> Any:
            return self._imaged(compute, place, given)

        return implementations(self.case, device, "image", call)

    def _imaged(
        self, function: Callable[..., Any], place: tuple[Array, Array], given: Mapping[str, Any]
    ) -> Any:
        r, n = given["covariances"], self.case.directions.n
        for axis in self.case.sum:
            r = r.sum(axis=AXES.index(axis), keepdims=True)
        if not self.case.autocorrelations:
            r = r.copy()
            r.reshape(-1, r.shape[-1] ** 2)[:, :: r.shape[-1] + 1] = 0
        return function(r, *place, self.case.directions.cosines).reshape(*r.shape[:2], n, n)

    def _place(self, staged: Staged) -> tuple[Array, Array]:
        """Return the positions (antenna, 3) about their centre in m, and frequencies in Hz."""
        there, antennas = staged.coordinates, staged.operands["covariances"].shape[3]
        east, north, up = (
            in_hz_or_m(there, name) if name in there else np.zeros(antennas) for name in PLACES
        )
        where = np.stack([east, north, up], axis=-1).astype(float)
        if len(where):
            where = where - (where.min(axis=0) / 2 + where.max(axis=0) / 2)  # a sum may overflow
        return where, np.asarray(in_hz_or_m(there, "frequency"), float)

    def reference(self, staged: Staged) -> ImageReference:
        """Return the result of NumPy's zgemm with complex weights."""
        r = staged.operands["covariances"]
        summed = [AXES.index(axis) for axis in self.case.sum]
        kept = [axis for axis in (0, 1) if axis not in summed]
        shape = [int(np.prod([r.shape[axis] for axis in axes])) for axes in (kept, summed)]
        terms = r.transpose(*kept, *summed, 2, 3, 4).reshape(*shape, *r.shape[2:])
        n = self.case.directions.n
        if not self.case.autocorrelations:
            terms = np.where(np.eye(r.shape[-1], dtype=bool), 0, terms)
        return image_reference(terms, *self._place(staged), self.case.directions.cosines, (n, n))

    def assess(
        self,
        staged: Staged,
        reference: ImageReference,
        result: Array,
        precision: Precision,
        device: str,
    ) -> Accuracy:
        """See `assess_image`."""
        return assess_image(
            reference, result.reshape(-1, *result.shape[2:]), precision, backend=device
        )

    def product(self, staged: Staged, result: Array) -> Product:
        """Return the images over m and l, with azimuth, elevation and what was summed beside."""
        grid = self.case.directions
        cosines = grid.cosines.reshape(grid.n, grid.n, 3)
        azimuth = np.degrees(np.arctan2(cosines[..., 0], cosines[..., 1])) % 360
        elevation = np.degrees(np.arcsin(cosines[..., 2]))
        return self._product(staged, result, azimuth, elevation)

    def product_outline(self, outline: Staged) -> Product:
        """See `Workload.product_outline`; angles of millions of directions are not computed."""
        n = self.case.directions.n
        angle = blank((n, n), np.float64)
        return self._product(outline, blank(self.result_shape(outline), np.float64), angle, angle)

    def _product(self, staged: Staged, result: Array, azimuth: Array, elevation: Array) -> Product:
        grid = self.case.directions
        l, m = grid.axes  # noqa: E741
        kept = along(staged.coordinates, set(AXES[:2]) - set(self.case.sum))
        there = staged.coordinates
        for name in ("antenna", "antenna_name"):
            if (one := there.get(name)) is not None:
                kept[name] = replace(one, axes=("antenna",))
        over = {axis: _SUMMED[axis] for axis in ("frequency", *self.case.sum)}
        coordinates = {
            **kept,
            **summed(staged.coordinates, over, "image"),
            "m": Coordinate(m, "", "direction cosine m (north)"),
            "l": Coordinate(l, "", "direction cosine l (east)"),
            "azimuth": Coordinate(azimuth, "deg", "from north through east", ("m", "l")),
            "elevation": Coordinate(elevation, "deg", "above the horizon", ("m", "l")),
            "antenna_position": Coordinate(
                self._place(staged)[0], "m", "east, north and up of the array's centre",
                ("antenna", "east_north_up"),
            ),
        }  # fmt: skip
        units = staged.units.get("covariances", "")
        title = f"{self.name}: power over directions"
        return Product("power", result, AXES, coordinates, title, units)

    def picture(self, product: Product, axes: Axes) -> None:
        """Draw the first image over l and m, in dB, with its grid."""
        l, m = (product.coordinates[name].values for name in ("l", "m"))  # noqa: E741
        half = self.case.directions.cell / 2 or 0.5
        shown_db = pictures.decibels(product.data[0, 0])
        faintest = np.min(shown_db, initial=0, where=np.isfinite(shown_db))
        shown = axes.imshow(
            shown_db, origin="lower", cmap="viridis", aspect="equal", interpolation="nearest",
            vmin=max(float(faintest), -FAINTEST_DB) or -1.0, vmax=0,
            extent=(l[0] - half, l[-1] + half, m[0] - half, m[-1] + half),
        )  # fmt: skip
        for source in self.case.sources if self.case.input is None else ():
            at = source.direction
            if l[0] <= at[0] <= l[-1] and m[0] <= at[1] <= m[-1]:
                axes.plot(*at, marker="o", ms=10, mfc="none", mec="white", mew=1.5)
        axes.grid(alpha=0.3, color="white", lw=0.5)
        axes.locator_params(nbins=7)  # labels of small fields of view are long
        axes.set(xlabel="l (east)", ylabel="m (north)", title=pictures.title_of(product, 2))
        axes.figure.colorbar(shown, ax=axes, label="power, dB relative to the brightest")
