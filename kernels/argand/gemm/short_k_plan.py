"""Plans of the short-k family: products of a short k by wgmma, packed by none but their own blocks.

Nothing here needs a GPU or CuPy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from argand.gemm.precision_fields import precision_fields
from argand.gemm.sm80_plan import ARGUMENTS
from argand.multiprocessor import RESERVED_BYTES, SHARED_BYTES, WARPGROUP
from argand.precision import Precision
from argand.runtime.arguments import size_check
from argand.runtime.kernel_entry import kernel_entry
from argand.runtime.wgmma import wgmma_pair_function

SIDE = 64
"""Rows and columns of a tile, one for each row of a wgmma."""
MMA_K = 16
"""K of an MMA of 16 bits."""
THREADS = 2 * WARPGROUP
"""Threads of a block: a warpgroup for each part of a complex number."""
_ROW_BYTES, _ALIGNMENT = 64, 1024
_MOST_STEPS = 3
"""MMAs along a chunk of k: those that are promoted at once elsewhere, too."""
MAX_K = 144
"""Longest k of a candidate: of six drawn products of a k from 146 to 192 none was faster so."""


@dataclass(frozen=True)
class ShortKPlan:
    """One kernel of the family, for a tile of 64 x 64 a block.

    A candidate is the plan without arguments: a launch chooses them by the call.

    Attributes:
        k_steps: MMAs along a chunk of k, which is loaded at once and has scales of its own.
        chunks: of k.
        a_k_major, b_k_major: k is the operand's contiguous axis in memory.
        any_strides: an operand has no contiguous axis.
    """

    k_steps: int = 1
    chunks: int = 1
    a_k_major: bool = True
    b_k_major: bool = False
    any_strides: bool = False

    @property
    def chunk_k(self) -> int:
        """K of a chunk."""
        return MMA_K * self.k_steps

    @property
    def blocks(self) -> int:
        """Blocks of a multiprocessor, as registers and shared memory allow."""
        by_registers = 3 if self.chunks == 1 and self.k_steps <= 2 else 2
        return max(1, min(by_registers, SHARED_BYTES // (self.shared_bytes + RESERVED_BYTES)))

    @property
    def shared_bytes(self) -> int:
        """Bytes of dynamic shared memory of a block: planes, or the results, and scales."""
        planes = self.chunks * self.k_steps * 2 * 2 * SIDE * _ROW_BYTES
        results = 2 * 4 * SIDE * (SIDE + 8)
        return max(planes, results) + self.chunks * 2 * SIDE * 8 + _ALIGNMENT

    @property
    def name(self) -> str:
        """The plan in words, for a record's algorithm column."""
        return f"{SIDE}x{SIDE}"

    def of_k(self, k: int) -> ShortKPlan:
        """Return the plan with the chunks of a k; a chunk more takes as long as an MMA more."""

        def cost(steps: int) -> int:
            return -(-k // (MMA_K * steps)) * (steps + 1)

        steps = min(range(_MOST_STEPS, 0, -1), key=cost)
        return replace(self, k_steps=steps, chunks=-(-k // (MMA_K * steps)))


def short_k_plans(precision: Precision, k: int) -> tuple[ShortKPlan, ...]:
    """Return the plan of a product of this k: none of a precision that is not scaled and split."""
    split = precision.scaled and precision.terms == 2
    return (ShortKPlan(),) if split and 0 < k <= MAX_K else ()


def short_k_kernel_name(precision: Precision, plan: ShortKPlan) -> str:
    """Return the kernel's symbol."""
    layout = "".join("k" if x else "m" for x in (plan.a_k_major, plan.b_k_major))
    layout += "_any" * plan.any_strides
    return f"gemm_short_k_{precision.symbol}_{plan.chunk_k}x{plan.chunks}_{layout}"


def short_k_source(precision: Precision, plan: ShortKPlan) -> str:
    """Return the CUDA C++ of one kernel of the family."""
    products = precision.products
    fields = precision_fields(precision) | {
        "products": len(products),
        "product_a": "{" + ", ".join(str(x) for x, _ in products) + "}",
        "product_b": "{" + ", ".join(str(y) for _, y in products) + "}",
        "k_steps": plan.k_steps,
        "chunks": plan.chunks,
    }
    flags = ("a_k_major", "b_k_major", "any_strides")
    fields |= {x: str(getattr(plan, x)).lower() for x in flags}
    members = ", ".join(f".{name} = {value}" for name, value in fields.items())
    return (
        '#include "device/warpgroup.cuh"\n'
        + wgmma_pair_function(precision.operand, SIDE, rows_in_shared=True)
        + '#include "gemm/short_k_kernel.cuh"\n'
        f"{size_check('GemmArguments', ARGUMENTS)}"
        f"constexpr ShortKPlan kPlan{{{members}}};\n"
        + kernel_entry(
            short_k_kernel_name(precision, plan),
            "GemmArguments",
            "gemm_short_k<kPlan>(args);",
            THREADS,
            plan.blocks,
        )
    )
