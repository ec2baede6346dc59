"""Dense complex systems A x = b: random ones, a file's, or a wave on a conducting cylinder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from argand import Device, Precision, solve
from argand.device import array_module

from workflow import cylinder
from workflow.accuracy import Accuracy
from workflow.accuracy.solution_accuracy import (
    SolutionReference,
    assess_solution,
    solution_reference,
)
from workflow.config.case import Case
from workflow.config.solve_case import SolveCase
from workflow.data import Array, Coordinate, Product, Staged, along, blank
from workflow.drawn import Box, Drawn
from workflow.figures import pictures
from workflow.files.input_error import InputError
from workflow.files.units import over
from workflow.implementation import Implementation, NoResultError, Shape
from workflow.inputs import operands
from workflow.inputs.operands import Operand
from workflow.storage.noise import draw
from workflow.workloads.base import NOTHING, Workload, log_uniform, register
from workflow.workloads.baselines import implementations

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AXES = ("batch", "unknown", "rhs")
"""Axes of the solution."""
OPERANDS = (
    Operand("a", ("batch", "equation", "unknown")),
    Operand("b", ("batch", "equation", "rhs")),
    Operand("expected", AXES),
)
CURVES = 4
"""Right-hand sides that a picture shows."""


@register
class Solve(Workload):
    """Systems of equations, each factored once for all of its right-hand sides."""

    kind: ClassVar[str] = "solve"
    operation: ClassVar[str] = "solve"
    caption: ClassVar[str] = (
        "Modulus of the solutions of the first system for some right-hand sides. Of a wave on a "
        "cylinder it is the surface current over the angle, with dots at the Mie series: bright "
        "where the wave arrives, faint in the shadow."
    )
    case_type: ClassVar[type[Case]] = SolveCase
    small: ClassVar[Mapping[str, Any]] = {"n": 19, "rhs": 3, "batch": 2}
    common: ClassVar[Mapping[str, Any]] = {"n": 512, "rhs": 4}
    splits: ClassVar[tuple[str, ...]] = ("batch", "rhs")
    reference_copies: ClassVar[float] = 3.0  # factors, moduli of the inverse and of A
    reference_flops: ClassVar[float | None] = 7.0  # LU, the inverse, its product with A
    case: SolveCase

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> dict[str, Any]:
        """See `Workload.drawn`."""
        if rng.random() < 0.3:
            half, rhs = log_uniform(rng, 10, 40), log_uniform(rng, 1, 8)
            return {"source": "cylinder", "ka": 0.2 * half, "n": 2 * half, "rhs": rhs}
        return {
            "n": log_uniform(rng, 2, 80), "rhs": log_uniform(rng, 1, 8),
            "batch": int(rng.integers(1, 3)),
        }  # fmt: skip

    def check(self, upstream: Mapping[str, Product] = NOTHING) -> None:
        """Raise InputError where the file's matrices and right-hand sides do not fit together."""
        if self.case.input is not None:
            found = operands.headers(self.case.input, OPERANDS, upstream)
            check_shapes({name: header.shape for name, header in found.items()})

    def staging(self, upstream: Mapping[str, Path] = NOTHING) -> Staged:
        """Return the operands a and b, and where there is one the expected solution.

        Normal numbers are complex64, the cylinder's complex128.
        """
        case = self.case
        if case.input is not None:
            return self.staged_input(OPERANDS, upstream)
        outline = self.outline()
        makers = self._makers()
        drawn = {
            name: Drawn(data.shape, data.dtype, makers[name])
            for name, data in outline.operands.items()
        }
        attributes = {"seed": self.seed, "source": case.source}
        return Staged({}, outline.axes, self._coordinates(held=True), attributes, drawn)

    def _makers(self) -> dict[str, Callable[[Box], Array]]:
        if self.case.source == "normal":
            return {name: partial(self._normal, index) for index, name in enumerate(("a", "b"))}
        ka, points = float(self.case.ka or 0), self.case.n or 0
        angles = cylinder.directions(self.case.rhs)

        def of(make: Callable[..., Array], *arguments: Any) -> Callable[[Box], Array]:
            return lambda box: make(ka, points, *arguments, box.along(1), box.along(2))[None]

        return {
            "a": of(cylinder.matrix),
            "b": of(cylinder.incident, angles),
            "expected": of(cylinder.mie_series, angles),
        }

    def _normal(self, index: int, box: Box) -> Array:
        return draw(self.rng(index, *box.offset), box.shape, "normal", 0.0)

    def run_copies(self, outline: Staged) -> float:
        """See `Workload.run_copies`.

        A in complex64 and complex128, as staged and as cast, takes 1.5. A call, of one system at a
        time, allocates 1.5 by NumPy's count for the factors and what refines them. From 52 to 144
        MB the peak of one system grew by 3.2, which is 0.2 more.
        """
        systems = max(1, len(outline.operands["a"]) // self.case.shards)
        return max(super().run_copies(outline), 1.5 + 1.7 / systems)

    def outline(self, upstream: Mapping[str, Product] = NOTHING) -> Staged:
        """See `Workload.outline`."""
        case = self.case
        if case.input is not None:
            return operands.outline(case.input, OPERANDS, upstream)
        n, wave = case.n or 0, case.source == "cylinder"
        sizes = {"batch": case.batch, "equation": n, "unknown": n, "rhs": case.rhs}
        there = OPERANDS if wave else OPERANDS[:2]
        kind = np.complex128 if wave else np.complex64
        data = {one.name: blank(tuple(sizes[x] for x in one.axes), kind) for one in there}
        axes = {one.name: one.axes for one in there}
        return Staged(data, axes, self._coordinates(held=False))

    def _coordinates(self, *, held: bool) -> dict[str, Coordinate]:
        """Return angles of the cylinder's points and of incidence, and the series' modulus."""
        if self.case.source != "cylinder":
            return {}
        ka, points, rhs = float(self.case.ka or 0), self.case.n or 0, self.case.rhs
        angle, incidence = cylinder.surface(points)[1], cylinder.directions(rhs)
        series = blank((points, rhs), np.float64)
        if held:
            series = np.abs(cylinder.mie_series(ka, points, incidence))
        return {
            "angle": Coordinate(angle, "rad", "angle on the cylinder", ("unknown",)),
            "incidence": Coordinate(incidence, "rad", "direction of the wave", ("rhs",)),
            "series": Coordinate(series, "", "current of the Mie series", ("unknown", "rhs")),
        }

    def result_shape(self, outline: Staged) -> tuple[int, ...]:
        """Return (batch, unknown, rhs)."""
        a, b = (outline.operands[name].shape for name in ("a", "b"))
        return max(a[0], b[0]), a[2], b[2]

    def shape(self, staged: Staged, precision: Precision) -> Shape:
        """Return 8/3 n^3 operations a matrix, 8 n^2 a right-hand side.

        The sizes are m unknowns and n right-hand sides.
        """
        a, b = (staged.operands[name] for name in ("a", "b"))
        batch, n, rhs = self.result_shape(staged)
        return Shape(
            flops=8 / 3 * n**3 * len(a) + 8.0 * n**2 * rhs * batch,
            bytes_moved=float(
                (a.size + b.size + batch * n * rhs) * operands.complex_bytes(precision)
            ),
            batch=batch,
            m=n,
            n=rhs,
        )

    def argand(self, staged: Staged, precision: Precision, device: Device) -> Implementation:
        """Return an implementation by `argand.solve` of each system."""
        library = "LAPACK" if device.backend == "cpu" else "cuSOLVER"
        products = "" if precision.exact_operands else f", {precision.name} products"
        return Implementation.ours(
            precision,
            f"LU, panels by {library}{products}, refined in fp64",
            partial(_solved, partial(solve, precision=precision.name)),
            partial(_cast, precision=precision),
        )

    def baselines(self, staged: Staged, device: Device) -> list[Implementation]:
        """Return NumPy on the CPU, cuSOLVER on a GPU."""
        return implementations(self.case, device, "solve", _solved, _cast)

    def reference(self, staged: Staged) -> SolutionReference:
        """Return the result of LAPACK's zgesv through SciPy, and each matrix's inverse."""
        given = staged.operands
        return solution_reference(given["a"], given["b"], given.get("expected"))

    def assess(
        self,
        staged: Staged,
        reference: SolutionReference,
        result: Array,
        precision: Precision,
        device: str,
    ) -> Accuracy:
        """See `assess_solution`."""
        return assess_solution(reference, result, precision)

    def product(self, staged: Staged, result: Array) -> Product:
        """Return solutions with what stands along unknowns and right-hand sides, or numbers."""
        found = along(staged.coordinates, AXES)
        wave = self.case.source == "cylinder"
        what = "surface current" if wave else "solution of a dense system"
        name, units = "current" if wave else "x", over(staged.units, "b", "a")
        return Product(name, result, AXES, found, f"{self.name}: {what}", units)

    def picture(self, product: Product, axes: Axes) -> None:
        """Draw |x| of the first system over its unknowns, with the series where there is one."""
        first = np.abs(product.data.reshape(-1, *product.data.shape[-2:])[0])
        angle = product.coordinates.get("angle" if "series" in product.coordinates else "unknown")
        where = np.arange(len(first)) if angle is None else angle.values
        for side in range(min(CURVES, first.shape[1])):
            axes.plot(where, first[:, side], lw=1, label=self._name(product, side))
        if "series" in product.coordinates:
            series, step = product.coordinates["series"].values, -(-len(first) // 100)
            axes.plot(
                where[::step], series[::step, :CURVES], ls="", marker=".", ms=4, color="black"
            )
            axes.set_xlabel("angle on the cylinder (rad); dots: Mie series")
            axes.set_ylabel("|surface current|")
        else:
            axes.set_xlabel("number of the unknown" if angle is None else "unknown")
            axes.set_ylabel("|x|")
            if angle is None:
                pictures.label_whole(axes.xaxis)
        shown = axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, fontsize="small")
        rows = -(-len(shown.get_texts()) // 2)
        axes.set_title(pictures.title_of(product), pad=10 + 16 * rows)  # above the legend
        axes.grid(alpha=0.3)

    def _name(self, product: Product, side: int) -> str:
        incidence = product.coordinates.get("incidence")
        if incidence is None:
            return f"right-hand side {side}"
        return f"wave toward {incidence.values[side]:.2f} rad"


def check_shapes(shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise InputError where a, b and the expected solution are not those of systems."""
    a, b = shapes["a"], shapes["b"]
    if a[1] != a[2]:
        raise InputError(
            f"input.a must be square, got {a[1]} equations of {a[2]} unknowns (shape {a})"
        )
    if b[1] != a[1]:
        raise InputError(
            f"input.b must have {a[1]} equations as a does, got shape {b}; one right-hand side "
            "alone needs input.axes: {b: [equation]}"
        )
    if a[0] != b[0] and 1 not in (a[0], b[0]):
        raise InputError(f"input.b must have a batch of {a[0]} or 1 as a does, got {b[0]}")
    expected, found = shapes.get("expected"), (max(a[0], b[0]), a[2], b[2])
    if expected not in (None, found, (1, *found[1:])):
        raise InputError(f"input.expected must have the solution's shape {found}, got {expected}")


def _cast(given: Mapping[str, Array], precision: Precision) -> dict[str, Array]:
    """Return a and b in the type of a precision; what is expected stays on the host."""
    with np.errstate(over="ignore"):  # `_solved` reports infinities
        return operands.cast({name: given[name] for name in ("a", "b")}, precision)


def _solved(function: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    """Return the solution of each system.

    Raises NoResultError where one has none at this precision.
    """
    a, b = given["a"], given["b"]
    if len(a) == 1 < len(b):  # one matrix, which is factored once
        beside = b.swapaxes(0, 1).reshape(1, b.shape[1], -1)
        found = _solved(function, {"a": a, "b": beside})[0]
        return found.reshape(a.shape[2], len(b), -1).swapaxes(0, 1).copy()
    out = array_module(a).empty((len(a), a.shape[2], b.shape[2]), a.dtype)
    for index, matrix in enumerate(a):
        try:
            out[index] = function(matrix, b[min(index, len(b) - 1)])
        except np.linalg.LinAlgError as error:
            raise NoResultError(f"system {index}: {error}") from None
        except ValueError as error:
            # Staged operands are finite, so the type of the precision cannot hold it.
            if "must be finite" not in str(error):
                raise
            raise NoResultError(f"system {index}: {a.dtype} cannot hold it") from None
    return out
