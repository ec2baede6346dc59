"""Dense and two-factor plans of transforms, and the CUDA C++ of every plan. Needs no GPU."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

from argand.dft.butterfly import STAGES, ButterflyPlan
from argand.dft.cluster import ClusterPlan
from argand.dft.hankel import HankelPlan
from argand.dft.mixed_radix import MIXED_STAGES, MixedRadixPlan
from argand.dft.single_cta import SingleCtaPlan
from argand.dft.three_kernel import KERNELS, ThreeKernelPlan, three_kernel_name, three_kernel_source
from argand.dft.two_pass import PASSES, TwoPassPlan, two_pass_name, two_pass_source
from argand.multiprocessor import WARP, registers
from argand.precision import Precision
from argand.runtime.compile.cpp import constant, literal, roundings
from argand.runtime.compile.kernel_entry import kernel_entry
from argand.runtime.compile.wgmma import wgmma_function
from argand.runtime.launch.arguments import Fields, size_check

_ELEMENT_BYTES = 8

ARGUMENTS: Fields = (
    ("const void*", "x"), ("void*", "out"), ("const void*", "table"), ("const void*", "twiddles"),
    ("const void*", "mirror_twiddles"), ("const void*", "spectrum"), ("const void*", "chirp"),
    ("const void*", "gather_offsets"), ("const void*", "scatter_offsets"),
    ("void*", "tile_counter"), ("int64", "rows"), ("int64", "x_stride"), ("int64", "out_stride"),
    ("float", "scale"), ("float", "alternate_scale"), ("float", "sign"), ("float", "bias_step"),
)  # fmt: skip
"""Members of ``DftArguments`` in ``cuda/dft/plan.cuh``."""


def padded(width: int) -> int:
    """Return the pitch of lines in shared memory in elements, as ``padded`` of dft/plan.cuh."""
    return width if width % 2 else (width + 11) // 8 * 8 - 4


def _aligned_bytes(elements: int) -> int:
    """Return the bytes of ``elements`` complex64, rounded up to 128."""
    return -(-elements * _ELEMENT_BYTES // 128) * 128


@dataclass(frozen=True)
class DensePlan:
    """Transforms of one length by one product each (``cuda/dft/dense.cuh``).

    Attributes:
        length: L.
        warps: warps that share the columns of a tile.
        m_tiles: m-tiles of a tile, 16 transforms each.
        groups: tiles that a block works on at a time.
        buffers: buffers of tiles in shared memory for each group: one in work, others being copied.
        table_in_shared: the table is in shared memory; else it is read through L2.
        wide_copies: tiles are copied 16 bytes at a time, by TMA where it can.
    """

    kind: ClassVar[str] = "dense"
    length: int
    warps: int
    m_tiles: int
    groups: int
    buffers: int
    table_in_shared: bool
    wide_copies: bool

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.groups * self.warps * WARP

    @property
    def pitch(self) -> int:
        """Elements from row to row in shared memory."""
        return self.length + 4 * (self.length % 8 == 0)

    def shared_bytes(self, precision: Precision) -> int:
        """Return the dynamic shared memory of a block."""
        table = folded_bytes(self.length, self.warps, precision) if self.table_in_shared else 0
        tile = _aligned_bytes(16 * self.m_tiles * self.pitch)
        scratch = 12 * 16 * self.m_tiles * self.warps if self.folds_in_shared(precision) else 0
        return table + self.groups * (self.buffers * (tile + 8) + scratch)

    def folds_in_shared(self, precision: Precision) -> bool:
        """Return whether a tile's warps fold it once in shared memory (``folds_in_shared``)."""
        return self.warps > 2 and precision.operand.bytes == 2

    @property
    def data_registers(self) -> int:
        """Accumulators of a thread, in registers."""
        return 16 * folded_tiles(self.length, self.warps) * self.m_tiles

    @property
    def unrolled_tiles(self) -> int:
        """Largest column tiles, of 8, for which registers allow to unroll the mainloop."""
        return (registers(self.threads) - 128) // 16

    @property
    def transforms(self) -> int:
        """Transforms that a block works on at a time."""
        return 16 * self.m_tiles * self.groups


@dataclass(frozen=True)
class TwoFactorPlan:
    """Transforms of length N1 N2 by two fused stages (``cuda/dft/two_factor.cuh``).

    Attributes:
        n1, n2: N1 and N2.
        warps: warps that share a transform.
        m_tiles: m-tiles of 16 n2 that a warp holds in the first stage.
        groups: transforms that a block works on at a time.
        buffers, wide_copies: as in `DensePlan`.
    """

    kind: ClassVar[str] = "two_factor"
    n1: int
    n2: int
    warps: int
    m_tiles: int
    groups: int
    buffers: int
    wide_copies: bool

    @property
    def length(self) -> int:
        """N, the length of a transform."""
        return self.n1 * self.n2

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.groups * self.warps * WARP

    def table_bytes(self, precision: Precision) -> int:
        """Return the bytes of the folded tables."""
        return sum(folded_bytes(n, 1, precision) for n in {self.n1, self.n2})

    def shared_bytes(self, precision: Precision) -> int:
        """Return the dynamic shared memory of a block."""
        tile = max(
            _aligned_bytes(self.n1 * padded(self.n2)),
            _aligned_bytes(self.n2 * padded(self.n1)),
        )
        own = self.buffers * (tile + 8) + 4 * self.warps
        return self.table_bytes(precision) + self.groups * own

    @property
    def data_registers(self) -> int:
        """Accumulators of a thread in registers, of the stage that has more."""
        return 16 * max(folded_tiles(self.n1, 1) * self.m_tiles, folded_tiles(self.n2, 1))

    @property
    def transforms(self) -> int:
        """Transforms that a block works on at a time."""
        return self.groups


KernelPlan = (
    DensePlan | HankelPlan | TwoFactorPlan | ButterflyPlan | MixedRadixPlan | ClusterPlan
    | SingleCtaPlan
)  # fmt: skip
"""Plans of one kernel."""
Fp32Plan = (
    ButterflyPlan | MixedRadixPlan | SingleCtaPlan | ClusterPlan | ThreeKernelPlan | TwoPassPlan
)
"""Plans whose sums are fp32's."""
Plan = KernelPlan | ThreeKernelPlan | TwoPassPlan


def folded_tiles(length: int, warps: int) -> int:
    """Return how many column tiles, of 8 columns, of a table each of ``warps`` has."""
    columns = length // 2
    return -(-columns // (8 * warps))


def folded_bytes(length: int, warps: int, precision: Precision) -> int:
    """Return the bytes of a table; ``FoldedTable`` in ``cuda/dft/plan.cuh``."""
    num_k_tiles = -(-(length // 2) // precision.operand.mma_k)
    return num_k_tiles * folded_tiles(length, warps) * warps * precision.terms * WARP * 16


def kernel_name(plan: KernelPlan, precision: Precision) -> str:
    """Return the kernel's symbol."""
    values = [getattr(plan, field.name) for field in fields(plan)]
    numbers = "_".join(
        "x".join(map(str, value)) if isinstance(value, tuple) else str(int(value))
        for value in values
    )
    return f"dft_{plan.kind}_{precision.symbol}_{numbers}"


def kernel_names(plan: Plan, precision: Precision) -> tuple[str, ...]:
    """Return the symbols of all kernels that a plan launches."""
    if isinstance(plan, ThreeKernelPlan):
        return tuple(three_kernel_name(plan, role) for role in KERNELS)
    if isinstance(plan, TwoPassPlan):
        return tuple(two_pass_name(plan, role) for role in PASSES)
    return (kernel_name(plan, precision),)


def dft_source(plan: Plan, precision: Precision) -> str:
    """Return the CUDA C++ of a plan's kernel, or of its kernels."""
    if isinstance(plan, ThreeKernelPlan):
        return three_kernel_source(plan, precision)
    if isinstance(plan, TwoPassPlan):
        return two_pass_source(plan, precision)
    members: dict[str, Any] = {field.name: getattr(plan, field.name) for field in fields(plan)}
    if isinstance(plan, DensePlan):
        members["max_unrolled_tiles"] = plan.unrolled_tiles
    before = ""
    if isinstance(plan, HankelPlan):
        function = wgmma_function(precision.operand, plan.columns)
        before = f'#include "device/warpgroup.cuh"\n{function}'
        members["cached_k_tiles"] = plan.cached_k_tiles(precision)
        members["promotion_k_tile"] = plan.promotion_k_tile(precision)
    blocks: int | str = 1
    cluster = 1
    if isinstance(plan, ButterflyPlan):
        members["radices"] = (*plan.radices, *(1,) * (STAGES - len(plan.radices)))
    elif isinstance(plan, MixedRadixPlan):
        absent = (1,) * (MIXED_STAGES - len(plan.radices))
        members = {
            "radices": (*plan.radices, *absent), "pitches": (*plan.pitches, *absent),
            "stages": len(plan.radices), "transforms": plan.transforms, "warps": plan.warps,
        }  # fmt: skip
        # After Hopper, where threads of as many blocks would spill, the assembler decides.
        older = f"__CUDA_ARCH__ < 900 ? {plan.blocks_before_hopper} : {plan.blocks_per_sm}"
        blocks = f"__CUDA_ARCH__ < 1000 ? ({older}) : 1"
    elif isinstance(plan, SingleCtaPlan):
        pass
    elif isinstance(plan, ClusterPlan):
        blocks, cluster = plan.blocks_per_sm, plan.cluster_size
    else:
        operand = f"Operand::{precision.operand.name}"
        form = operand, precision.terms, roundings(precision), precision.scaled
        members = {"precision": form, **members}
    checks = ""
    if isinstance(plan, ButterflyPlan | MixedRadixPlan):
        few = literal(plan.multiplied_twiddles > 0)
        checks = f'static_assert(kPlan.loads_few_twiddles() == {few}, "as the plan counts it");\n'
    return (
        f'{before}#include "dft/{plan.kind}.cuh"\n'
        f"{size_check('DftArguments', ARGUMENTS)}"
        f"{constant(type(plan).__name__, members)}"
        f"static_assert(kPlan.shared_bytes() == {plan.shared_bytes(precision)}, "
        '"as the plan counts it");\n'
        + checks
        + kernel_entry(
            kernel_name(plan, precision),
            "DftArguments",
            f"dft_{plan.kind}<kPlan>(args);",
            plan.threads,
            blocks,
            cluster=cluster,
        )
    )
