"""Plans of the fma family: products of a short k in fp32 registers. Needs no GPU and no CuPy."""

from __future__ import annotations

from dataclasses import dataclass

from argand.gemm.precision_fields import precision_fields
from argand.gemm.sm80.source import GEMM_ARGUMENTS
from argand.multiprocessor import WARP
from argand.precision import Precision
from argand.runtime.compile.cpp import constant
from argand.runtime.compile.kernel_entry import kernel_entry
from argand.runtime.launch.arguments import size_check

MAX_K = 24
"""Longest k of one lane: tensor cores are faster from there on, whatever the other sizes."""
SHARED_K = range(9, 1025)
"""Values of k at which lanes may share a result. Within them the model of time chooses the plan."""
_WARPS = 8
"""Warps of a block."""


@dataclass(frozen=True)
class FmaPlan:
    """One kernel of the family: ``rows x columns`` of C a lane, of every 32nd column.

    The loads of ``unroll`` k are in flight at once. ``k_lanes`` lanes share each result: every
    lane takes one k of as many, and they add their sums in the end. ``any_strides`` takes sizes
    and strides that do not fit 32 bits.
    """

    rows: int
    columns: int
    unroll: int
    k_lanes: int = 1
    any_strides: bool = False

    @property
    def block_m(self) -> int:
        """Rows of C that a block computes."""
        return _WARPS * self.rows

    @property
    def block_n(self) -> int:
        """Columns of C that a block computes."""
        return WARP // self.k_lanes * self.columns

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return _WARPS * WARP

    @property
    def name(self) -> str:
        """The plan in words, for a record's algorithm column."""
        shared = f", {self.k_lanes} lanes along k" if self.k_lanes > 1 else ""
        return f"{self.block_m}x{self.block_n}{shared}"


FMA_PLANS = (FmaPlan(1, 1, 2), FmaPlan(1, 1, 8), FmaPlan(4, 2, 4), FmaPlan(1, 1, 8, k_lanes=32))
"""The first two are for small products, where latency counts; the first, for a k of 1 and 2,
computes no addresses of a longer one. The third is for large products, which are bound by loads,
and the last for few results of a long k."""


def fma_plans(precision: Precision, k: int) -> tuple[FmaPlan, ...]:
    """Return the plans of a product of this k; there are none for a long k or a scaled precision.

    Split operands stay fp32, which agrees with their model up to the model's own rounding, unless
    that is toward zero.
    """
    truncates = precision.terms > 1 and precision.roundings[0] == "toward_zero"
    if precision.scaled or truncates:
        return ()
    return tuple(plan for plan in FMA_PLANS if _takes(plan, k))


def _takes(plan: FmaPlan, k: int) -> bool:
    if plan.k_lanes > 1:
        return k in SHARED_K
    return 0 < k <= MAX_K and (plan.rows > 1 or (plan.unroll == 2) == (k <= 2))


def fma_kernel_name(precision: Precision, plan: FmaPlan) -> str:
    """Return the kernel's symbol."""
    strides = "_any" if plan.any_strides else ""
    shape = f"{plan.rows}x{plan.columns}x{plan.unroll}x{plan.k_lanes}"
    return f"gemm_fma_{precision.symbol}_{shape}{strides}"


def fma_source(precision: Precision, plan: FmaPlan) -> str:
    """Return the CUDA C++ of one kernel of the family."""
    fields = precision_fields(precision) | {
        "rows": plan.rows,
        "columns": plan.columns,
        "unroll": plan.unroll,
        "k_lanes": plan.k_lanes,
        "any_strides": plan.any_strides,
    }
    return (
        '#include "gemm/fma_kernel.cuh"\n'
        f"{size_check('GemmArguments', GEMM_ARGUMENTS)}"
        f"{constant('FmaPlan', fields)}"
        + kernel_entry(
            fma_kernel_name(precision, plan),
            "GemmArguments",
            "gemm_fma<kPlan>(args);",
            plan.threads,
        )
    )
