"""Plain complex matrix products: C = alpha op(A) op(B) + beta C."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from argand import PRECISIONS, Device, GemmProblem, Precision
from argand.gemm.operands import Op
from argand.gemm.problem import gemm_problem
from pydantic import BeforeValidator, Field, model_validator

from workflow.accuracy.references import ProductReference, product_reference
from workflow.config.case import Case
from workflow.config.file_input import DatasetRef, FileInput
from workflow.config.matrix_product_case import MatrixProductCase
from workflow.data import SELECTED, Array, Product, Staged, blank
from workflow.drawn import Box, Drawn
from workflow.figures import pictures
from workflow.files.units import times
from workflow.implementation import Implementation, Shape
from workflow.inputs import operands
from workflow.inputs.operands import Operand
from workflow.storage.noise import Init, draw
from workflow.workloads import matrix_product
from workflow.workloads.base import NOTHING, log_uniform, register
from workflow.workloads.matrix_product import MatrixProduct

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _pair(value: Any) -> Any:
    """Return a plain number as a complex one without imaginary part."""
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(value, list):
        return tuple(value)  # strict validation takes no list for a tuple behind this function
    if not plain and not isinstance(value, tuple):
        raise ValueError(f"must be a number or [re, im], got {value!r}")
    return (value, 0.0) if plain else value


Scalar = Annotated[
    tuple[float, float], BeforeValidator(_pair, json_schema_input_type=float | tuple[float, float])
]
"""A complex number as [re, im]; a plain number is allowed."""


class GemmInput(FileInput):
    """Operands of a product in an HDF5 file."""

    a: DatasetRef
    b: DatasetRef
    c: DatasetRef | None = Field(None, description="Path of C; needed where beta is not 0.")


class GemmCase(MatrixProductCase):
    """C = alpha op(A) op(B) + beta C, for a batch of matrices.

    A is stored as (batch, m, k) or, where op_a is T or C, (batch, k, m); B as (batch, k, n) or
    (batch, n, k).
    """

    needs_value: ClassVar[Mapping[str, tuple[str, str]]] = {
        **MatrixProductCase.needs_value, "phi": ("init", "lognormal"),
    }  # fmt: skip

    kind: Literal["gemm"]
    m: int | None = Field(None, ge=1, le=1 << 20, description="Rows of C.")
    n: int | None = Field(None, ge=1, le=1 << 20, description="Columns of C.")
    k: int | None = Field(None, ge=1, le=1 << 20, description="Length of the contraction.")
    batch: int = Field(1, ge=1, le=1 << 20, description="Number of products.")
    alpha: Scalar = Field((1.0, 0.0), description="Factor of the product, [re, im] or a number.")
    beta: Scalar = Field((0.0, 0.0), description="Factor of C, [re, im] or a number.")
    op_a: Op = Field("N", description="A as it is (N), transposed (T) or conjugate transposed (C).")
    op_b: Op = Field("N", description="B as it is (N), transposed (T) or conjugate transposed (C).")
    init: Init = Field(
        "normal",
        description="Distribution of the parts; lognormal is (rand - 0.5) exp(phi randn).",
    )
    phi: float = Field(1.0, ge=0, le=10, description="Spread of inputs of `init: lognormal`.")
    input: GemmInput | None = Field(None, description="Matrices from a file instead.")

    @model_validator(mode="after")
    def _sizes(self) -> GemmCase:
        self.check_sizes_or_input(("m", "n", "k", "batch"), ("init", "phi"))
        if self.input is not None and (self.input.c is not None) != (self.beta != (0.0, 0.0)):
            raise ValueError("input.c must be given where beta is not 0, and only there")
        return self


AXES = frozenset(("batch", "m", "n"))
"""Axes of the result; k is summed over."""


@register
class Gemm(MatrixProduct):
    """One product, or a batch of them."""

    kind: ClassVar[str] = "gemm"
    operation: ClassVar[str] = "gemm"
    caption: ClassVar[str] = (
        "Modulus of each element of the first product, row by column, in blocks where it is larger "
        "than the page. Bright rows or columns come from those of the operands."
    )
    case_type: ClassVar[type[Case]] = GemmCase
    small: ClassVar[Mapping[str, Any]] = {
        "m": 33, "n": 17, "k": 65, "batch": 3, "alpha": [0.5, -1], "beta": 2, "op_a": "C",
    }  # fmt: skip
    common: ClassVar[Mapping[str, Any]] = {"m": 512, "n": 512, "k": 512, "batch": 1}
    splits: ClassVar[tuple[str, ...]] = ("batch", "m")
    case: GemmCase

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> dict[str, Any]:
        """See `Workload.drawn`."""
        return {
            "m": log_uniform(rng, 4, 48), "n": log_uniform(rng, 4, 48),
            "k": log_uniform(rng, 1, 400),
            "batch": int(rng.integers(1, 4)), "op_a": str(rng.choice(["N", "T", "C"])),
            "alpha": [1.0, 0.0] if rng.random() < 0.5 else [0.5, -1.5],
            "init": str(rng.choice(["normal", "lognormal"])),
        }  # fmt: skip

    @property
    def layout(self) -> list[Operand]:
        """The operands in the layout that their op reads."""
        return [
            Operand("a", ("batch", "m", "k") if self.case.op_a == "N" else ("batch", "k", "m")),
            Operand("b", ("batch", "k", "n") if self.case.op_b == "N" else ("batch", "n", "k")),
            Operand("c", ("batch", "m", "n")),
        ]

    @property
    def scalars(self) -> dict[str, Any]:
        """The keywords of `argand.gemm` that the case fixes."""
        case = self.case
        return {
            "alpha": complex(*case.alpha),
            "beta": complex(*case.beta),
            "op_a": case.op_a,
            "op_b": case.op_b,
        }

    def check(self, upstream: Mapping[str, Product] = NOTHING) -> None:
        """Raise InputError or ValueError where the file's matrices do not fit together."""
        if self.case.input is not None:
            found = operands.headers(self.case.input, self.layout, upstream)
            shapes = {name: header.shape for name, header in found.items()}
            matrix_product.check_shapes(self.layout, shapes, **self.scalars)

    def staging(self, upstream: Mapping[str, Path] = NOTHING) -> Staged:
        """Return the operands a, b and, where beta is not 0, c; complex64 when generated."""
        case = self.case
        if case.input is not None:
            return self.staged_input(self.layout, upstream)
        drawn = {
            name: Drawn(operand.shape, operand.dtype, partial(self._drawn, index))
            for index, (name, operand) in enumerate(self.outline().operands.items())
        }
        attributes = {"seed": self.seed, "init": case.init}
        return Staged({}, self._axes(drawn), {}, attributes, drawn)

    def _drawn(self, index: int, box: Box) -> Array:
        return draw(self.rng(index, *box.offset), box.shape, self.case.init, self.case.phi)

    def outline(self, upstream: Mapping[str, Product] = NOTHING) -> Staged:
        """See `Workload.outline`."""
        case = self.case
        if case.input is not None:
            return operands.outline(case.input, self.layout, upstream)
        sizes = {"batch": case.batch, "m": case.m or 0, "n": case.n or 0, "k": case.k or 0}
        layouts = self.layout[: 3 if case.beta != (0.0, 0.0) else 2]
        data = {
            one.name: blank(tuple(sizes[axis] for axis in one.axes), np.complex64)
            for one in layouts
        }
        return Staged(data, self._axes(data))

    def result_shape(self, outline: Staged) -> tuple[int, ...]:
        """Return (batch, m, n)."""
        return self._problem(outline, PRECISIONS["fp64"]).shape

    def _axes(self, data: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
        return {one.name: one.axes for one in self.layout if one.name in data}

    def _problem(self, staged: Staged, precision: Precision) -> GemmProblem:
        given = staged.operands
        c = given["c"].shape if "c" in given else None
        return gemm_problem(
            given["a"].shape, given["b"].shape, c, **self.scalars, precision=precision
        )

    def shape(self, staged: Staged, precision: Precision) -> Shape:
        """Return 8 batch m n k operations.

        A, B, C (where beta is not 0) read, the result written.
        """
        problem = self._problem(staged, precision)
        return matrix_product.shape(problem, staged.operands.values())

    def argand(self, staged: Staged, precision: Precision, device: Device) -> Implementation:
        """Return an implementation by `argand.gemm`."""
        return matrix_product.ours(self.case, precision, device, ("a", "b", "c"), self.scalars)

    def baselines(self, staged: Staged, device: Device) -> list[Implementation]:
        """Return NumPy on the CPU, cuBLAS on a GPU."""
        return matrix_product.peers(self.case, device, ("a", "b", "c"), self.scalars)

    def reference(self, staged: Staged) -> ProductReference:
        """Return the result of SciPy's zgemm, sampled where it is large."""
        given = staged.operands
        return product_reference(
            given["a"], given["b"], given.get("c"), **self.scalars, seed=self.seed
        )

    def product(self, staged: Staged, result: Array) -> Product:
        """Return C with the coordinates of its rows and columns, and of entries that were selected.

        Those are the entries that both operands are of, such as one time.
        """
        found = {
            name: one
            for name, one in staged.coordinates.items()
            if set(one.of(name)[:1]) <= AXES or name.startswith(SELECTED)
        }
        units = times(staged.units, ("a", "b")) or staged.units.get("c", "")
        title = f"{self.name}: matrix product"
        return Product("c", result, ("batch", "m", "n"), found, title, units)

    def picture(self, product: Product, axes: Axes) -> None:
        """Draw |C| of the first product as an image, in blocks where it is larger than the page."""
        magnitude = abs(product.data.reshape(-1, *product.data.shape[-2:])[0])
        rows, columns = magnitude.shape
        blocks = pictures.block_means(magnitude, 512)
        image = axes.imshow(
            blocks, aspect="auto", cmap="viridis", interpolation="nearest", vmin=0,
            extent=(-0.5, columns - 0.5, rows - 0.5, -0.5),
        )  # fmt: skip
        axes.set(xlabel="column n", ylabel="row m", title=pictures.title_of(product, 1))
        pictures.label_whole(axes.xaxis, axes.yaxis)
        label = "|C|" if blocks.shape == magnitude.shape else "mean |C| of a block"
        axes.figure.colorbar(image, ax=axes, label=label)
