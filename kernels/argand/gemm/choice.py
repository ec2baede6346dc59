"""A plan of a product on a GPU, of whatever family. Needs no GPU and no CuPy."""

from __future__ import annotations

from dataclasses import dataclass

from argand.gemm.families import ChosenFamily
from argand.gemm.fma.plan import FmaPlan
from argand.gemm.in_tf32 import product_in_tf32
from argand.gemm.sm80.plan import MmaPlan
from argand.gemm.sm90.plan import WgmmaPlan
from argand.precision import Precision
from argand.runtime.plan import PlanError


@dataclass(frozen=True)
class GemmChoice:
    """A candidate plan of a product: kernel family, tile, roles of the operands, split-K slices.

    Attributes:
        wgmma: plan of the wgmma family; None where another family computes the product.
        swapped: wgmma computes C^T = B^T A^T, so that B is the row operand.
        split_k_slices: wgmma cuts k into so many.
        mma: plan of the mma.sync family. Where no family's plan is given, mma.sync computes the
            product and plans it itself.
        in_tf32: kernels of tf32 compute it (`product_in_tf32`).
        fma: plan of the fma family.
    """

    wgmma: WgmmaPlan | None = None
    swapped: bool = False
    split_k_slices: int = 1
    mma: MmaPlan | None = None
    in_tf32: bool = False
    fma: FmaPlan | None = None

    @property
    def family(self) -> ChosenFamily:
        """The family of the product's kernel."""
        if self.fma is not None:
            return "fma"
        return "mma.sync" if self.wgmma is None else "wgmma"

    @property
    def name(self) -> str:
        """The candidate in words, for tables; `gemm.names` names what a launch made of it."""
        in_tf32 = ", in tf32" if self.in_tf32 else ""
        if self.fma is not None:
            return f"fma {self.fma.name}{in_tf32}"
        if self.wgmma is None:
            return "mma.sync" + (f" {self.mma.name}" if self.mma else "") + in_tf32
        order = "B^T A^T" if self.swapped else "A B"
        slices = f", {self.split_k_slices} split-K slices" if self.split_k_slices > 1 else ""
        fused = ", fused packing" if self.wgmma.fused_pack else ""
        return f"wgmma {self.wgmma.name} {self.wgmma.storage}, {order}{slices}{fused}{in_tf32}"

    def computed_at(self, precision: Precision) -> Precision:
        """Return the precision whose kernels compute a product at ``precision``.

        Raises PlanError for ``in_tf32`` at a precision that has no kernels in tf32.
        """
        if not self.in_tf32:
            return precision
        row = product_in_tf32(precision)
        if row is None:
            raise PlanError(f"no kernel of tf32 computes {precision.name}")
        return row
