"""A product as the wgmma family computes it: row operand X and column operand Y, in this order."""

from __future__ import annotations

from dataclasses import dataclass

from argand.runtime.calls.layout import Layout


@dataclass(frozen=True)
class WgmmaProblem:
    """Z = alpha X Y^T + beta C, in batches.

    Attributes:
        rows, columns, k: X has ``rows`` by k, Y ``columns`` by k.
        batch: number of products.
        x_batched, y_batched: each product has its own X, its own Y.
        alpha, beta: the scalars.
        conjugate_result: X Y^T is conjugated before it is multiplied by alpha.
        split_k_slices: each of so many slices of k has a result of its own.
        mirror: the upper triangle is stored beside the lower one.
    """

    rows: int
    columns: int
    k: int
    batch: int
    x_batched: bool
    y_batched: bool
    alpha: complex = 1
    beta: complex = 0
    conjugate_result: bool = False
    split_k_slices: int = 1
    mirror: bool = False


@dataclass(frozen=True)
class WgmmaLayouts:
    """The layouts of a product's arrays, for a kernel that reads and writes them in place.

    Attributes:
        x: the layout of an interleaved row operand, which is `tma_addressable` or `has_odd_pitch`;
            None for planes.
        y: the layout of a column operand for fused packing, None for planes.
        c: the layout of C, that of out where there is none.
        out: the layout of the result, complex64, or uint32 pairs of 16 bits with ``half_output``.
    """

    x: Layout | None
    y: Layout | None
    c: Layout
    out: Layout
