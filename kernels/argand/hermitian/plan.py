"""The kernel of small Hermitian systems: its plans, source and sizes. Nothing here needs a GPU."""

from __future__ import annotations

from dataclasses import dataclass

from argand.device import HOPPER, Arch
from argand.multiprocessor import REGISTERS, RESIDENT_THREADS, WARP, WARPGROUP
from argand.runtime.compile.cpp import constant
from argand.runtime.compile.kernel_entry import kernel_entry
from argand.runtime.complex_types import ITEM, REAL
from argand.runtime.launch.arguments import size_check
from argand.runtime.plan import PlanError

LARGEST_N = 128
"""Rows of a matrix at most."""
_NEWER_REGISTERS = 8
"""Registers that compilers for newer architectures take beside those for Hopper."""
_MAX_WARPS = 16
"""Warps of a quarter."""
_THREADS = 128
"""Threads of a block that holds several groups."""
_MAX_PARTS = 8
"""Rows of a thread at most: more do not leave registers for a matrix."""
_LARGEST_SIDE = 16
"""Largest side of the square of threads that share a system."""
_EXCHANGED = 8
"""Rows of right-hand sides that threads exchange at a time, at most."""
_FUSED_PARTS = {"complex64": 8, "complex128": 5}
"""Rows of a thread at most that leave registers for right-hand sides beside the matrix."""
# HermitianArguments of cuda/hermitian/plan.cuh.
ARGUMENTS = (
    ("const void*", "r"), ("const void*", "b"), ("void*", "x"), ("int*", "info"),
    ("void*", "factors"), ("int64", "r_batch"), ("int64", "b_batch"), ("int64", "x_batch"),
    ("int64", "systems"), ("int64", "columns"),
)  # fmt: skip


@dataclass(frozen=True)
class HermitianPlan:
    """A plan of the kernel for systems of ``n`` rows.

    Attributes:
        side: side x side threads, a group, solve a system: 2, 4, 8 or 16.
        rhs: right-hand sides of a thread at a time.
        groups: groups of a block; one where a group is more than a warp.
        fused: whether L y = b is solved beside the factorization, not after it.
        in_global: whether factors are in global memory, where shared memory is too small.
        blocks: fewest blocks per multiprocessor, which limit a thread's registers.
    """

    n: int
    side: int
    rhs: int
    groups: int
    fused: bool
    in_global: bool
    blocks: int

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.groups * self.side**2

    @property
    def parts(self) -> int:
        """Rows of a thread."""
        return -(-self.n // self.side)

    @property
    def packed(self) -> int:
        """Elements of a system's factors."""
        return self.n * (self.n + 1) // 2

    def shared_bytes(self, dtype: str) -> int:
        """Return the dynamic shared memory of a block (`group_elements` of the header)."""
        exchanged = min(self.side, _EXCHANGED) * self.side * self.rhs
        used = exchanged + (0 if self.in_global else self.packed)
        return self.groups * (used + (18 - used % 16) % 16) * ITEM[dtype]


def check_plan(plan: HermitianPlan, dtype: str, arch: Arch) -> None:
    """Raise PlanError where a kernel with this plan cannot be compiled or launched."""
    if not 1 <= plan.n <= LARGEST_N:
        raise PlanError(f"n must be from 1 to {LARGEST_N}, got {plan.n}")
    if plan.side not in (2, 4, 8, 16):
        raise PlanError(f"side must be 2, 4, 8 or 16, got {plan.side}")
    group = plan.side**2
    if plan.groups < 1 or plan.threads % WARP or (group > WARP and plan.groups > 1):
        raise PlanError(f"groups of {group} threads do not make whole warps: {plan.groups}")
    if plan.rhs < 1 or plan.blocks < 1 or plan.blocks * plan.threads > RESIDENT_THREADS:
        raise PlanError(f"rhs and blocks of {plan.threads} threads do not fit: {plan}")
    if plan.shared_bytes(dtype) > arch.shared_bytes:
        raise PlanError(f"{plan} takes more shared memory than the {arch.shared_bytes} bytes")


def plan_hermitian(n: int, columns: int, dtype: str, arch: Arch) -> HermitianPlan:
    """Return the plan for matrices of n rows and ``columns`` right-hand sides."""
    side = 2
    while -(-n // side) > _MAX_PARTS and side < _LARGEST_SIDE:
        side *= 2
    parts = -(-n // side)
    groups = _THREADS // side**2 if side**2 < WARP else 1
    rhs = min(2, -(-columns // side)) if side == 2 else 1
    fused = parts <= _FUSED_PARTS[dtype]
    threads = groups * side**2
    registers = _registers(side, parts, rhs, dtype, fused=fused)
    registers += _NEWER_REGISTERS if arch.sm > HOPPER else 0
    warps = 4 * min(_MAX_WARPS, REGISTERS // (WARPGROUP * registers))
    blocks = max(1, warps * WARP // threads)
    plan = HermitianPlan(n, side, rhs, groups, fused, False, blocks)
    if plan.shared_bytes(dtype) > arch.shared_bytes:
        plan = HermitianPlan(n, side, rhs, groups, fused, True, blocks)
    check_plan(plan, dtype, arch)
    return plan


def _registers(side: int, parts: int, rhs: int, dtype: str, *, fused: bool) -> int:
    """Return the registers of a thread: elements, a column of L or a block of rows, and others."""
    factorization = parts * (parts + 1) // 2 + parts * (1 + rhs * fused)
    substitution = (min(side, _EXCHANGED) + parts) * rhs + min(side, _EXCHANGED) // 2
    return min(255, max(factorization, substitution) * ITEM[dtype] // 4 + 48)


def kernel_name(plan: HermitianPlan, dtype: str) -> str:
    """Return the kernel's name."""
    fused, where = "fused" if plan.fused else "apart", "_global" if plan.in_global else ""
    return f"hermitian_{dtype}_{plan.n}_{plan.side}x{plan.rhs}_{fused}{where}"


_MEMBERS = ("n", "side", "rhs", "groups", "fused", "in_global")
"""Members of a plan that its structure in CUDA C++ has, in their order there."""


def kernel_source(plan: HermitianPlan, dtype: str) -> str:
    """Return the CUDA C++ of the kernel."""
    real = REAL[dtype]
    return (
        '#include "hermitian/kernel.cuh"\n'
        f"{size_check(f'HermitianArguments<{real}>', ARGUMENTS)}"
        + constant("HermitianPlan", {name: getattr(plan, name) for name in _MEMBERS})
        + kernel_entry(
            kernel_name(plan, dtype),
            f"HermitianArguments<{real}>",
            f"solve_hermitian<{real}, kPlan>(args);",
            plan.threads,
            plan.blocks,
        )
    )
