"""The two-pass plan: long transforms by two kernels through a workspace; tables. Needs no GPU.

The times that constants are fitted to are in docs/experiments/2026-11-30-fitted-constants.md.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from math import prod
from typing import ClassVar

import numpy as np

from argand.dft.method import is_prime
from argand.dft.tables import Array, roots
from argand.multiprocessor import RESERVED_BYTES, SHARED_BYTES, registers
from argand.precision import Precision
from argand.runtime.compile.kernel_entry import kernel_entry
from argand.runtime.launch.arguments import Fields, size_check

PASSES = ("transform_columns", "transform_lines")
"""The kernels of a plan, in order; their functions in ``cuda/dft`` are dft_two_pass_NAME."""
PASS_ARGUMENTS: Fields = (
    ("const void*", "x"), ("void*", "out"), ("void*", "workspace"), ("const void*", "twiddles"),
    ("const void*", "column_roots"), ("const void*", "line_roots"), ("int64", "x_stride"),
    ("int64", "out_stride"), ("float", "scale"), ("float", "sign"),
)  # fmt: skip
"""Members of ``TwoPassArguments`` in ``cuda/dft/two_pass.cuh``."""
TILE_WIDTHS = (16, 32)
"""Columns of a tile: 128 and 256 bytes of a line."""
LARGEST_BUTTERFLY = 40
"""Largest radix of a butterfly in registers."""
MIN_SHARED_PRIME = 17
"""The smallest prime whose last stage sums shares of its results from shared memory."""
LARGEST_SHARED_PRIME = 127
"""The largest such prime."""
_MAX_BLOCKS = 8
"""Most blocks of a multiprocessor that a plan asks registers for."""
_MAX_PAIRS = 8
"""Most X_n and X_(P-n) of a share: more take registers of threads that hide latencies."""


@dataclass(frozen=True)
class TwoPassPlan:
    """Transforms of a length N = N1 N2 in fp32, by columns and lines (``cuda/dft/two_pass.cuh``).

    Attributes:
        length: N.
        columns: A and B, of N1 = A B: a first stage of butterflies, 1 for none, and a last stage.
        lines: C and D, of N2 = C D, likewise.
        widths: columns of a tile, and lines of one.
        block_warps: warps of a block of columns, and of one of lines.
    """

    kind: ClassVar[str] = "two_pass"
    wide_copies: ClassVar[bool] = False
    transforms: ClassVar[int] = 1
    groups: ClassVar[int] = 1
    roles: ClassVar[tuple[str, ...]] = PASSES
    length: int
    columns: tuple[int, int]
    lines: tuple[int, int]
    widths: tuple[int, int]
    block_warps: tuple[int, int]

    @property
    def warps(self) -> int:
        """Warps of the larger block."""
        return max(self.block_warps)

    @property
    def pitch(self) -> int:
        """Elements from line to line of the workspace, where lines begin on 128 bytes."""
        return -(-prod(self.lines) // 16) * 16

    @property
    def size(self) -> int:
        """Elements of a transform in the workspace."""
        return prod(self.columns) * self.pitch

    @property
    def threads(self) -> int:
        """Threads of the larger block."""
        return 32 * self.warps

    def radices(self, role: str) -> tuple[int, int]:
        """Return the radices of one of `PASSES`."""
        return (self.columns, self.lines)[PASSES.index(role)]

    def kernel_threads(self, role: str) -> int:
        """Return the threads of a block of one of `PASSES`."""
        return 32 * self.block_warps[PASSES.index(role)]

    def kernel_shared_bytes(self, role: str, precision: Precision) -> int:
        """Return the dynamic shared memory of a block of one of `PASSES`."""
        index = PASSES.index(role)
        return pass_bytes(self.radices(role), self.widths[index], in_lines=index == 1)

    def kernel_blocks(self, role: str) -> int:
        """Return the blocks of one of `PASSES` on a multiprocessor."""
        index = PASSES.index(role)
        width, warps = self.widths[index], self.block_warps[index]
        return pass_blocks(self.radices(role), width, warps, in_lines=index == 1)

    def grid_blocks(self, role: str, rows: int) -> int:
        """Return the grid size of one of `PASSES` for ``rows`` transforms."""
        across = self.lines if role == "transform_columns" else self.columns
        return rows * -(-prod(across) // self.widths[PASSES.index(role)])

    def shared_bytes(self, precision: Precision) -> int:
        """Return the largest dynamic shared memory of a block, in fp32 at every precision."""
        return max(self.kernel_shared_bytes(role, precision) for role in PASSES)

    @property
    def data_registers(self) -> int:
        """Registers of a thread that hold a butterfly or the sums of a share."""
        held = ((first, 2 * pairs_of(last) or last) for first, last in map(self.radices, PASSES))
        return 2 * max(max(one) for one in held)

    @property
    def other_registers(self) -> int:
        """Registers beside these, so that no kernel spills (the tests compile some)."""
        return max(self.kernel_registers(role) for role in PASSES) - self.data_registers

    def kernel_registers(self, role: str) -> int:
        """Return the registers of a thread of one of `PASSES`, so that it does not spill."""
        return pass_registers(self.radices(role), in_lines=role == "transform_lines")

    @property
    def stages(self) -> str:
        """The stages as text."""
        first, second = (" x ".join(map(str, self.radices(role))) for role in PASSES)
        return f"({first}) x ({second}) in two passes"


def pass_bytes(radices: tuple[int, int], width: int, *, in_lines: bool) -> int:
    """Return the shared memory of a tile of columns, or of lines, which have a gap each."""
    return 8 * prod(radices) * (width + in_lines)


def pass_blocks(radices: tuple[int, int], width: int, warps: int, *, in_lines: bool) -> int:
    """Return the blocks of a multiprocessor that registers and shared memory allow."""
    most = min(
        _MAX_BLOCKS,
        SHARED_BYTES // (pass_bytes(radices, width, in_lines=in_lines) + RESERVED_BYTES),
    )
    needed = pass_registers(radices, in_lines=in_lines)
    every = range(most, 1, -1)
    return next((blocks for blocks in every if registers(32 * warps * blocks) >= needed), 1)


def pairs_of(radix: int) -> int:
    """Return how many X_n and X_(P-n) a share of a last stage has; 0 for one in registers.

    An even number up to `_MAX_PAIRS`, as roots are read by two.
    """
    if radix < MIN_SHARED_PRIME or not is_prime(radix):
        return 0
    shares = -(-(radix // 2) // _MAX_PAIRS)
    return -(-(radix // 2) // (2 * shares)) * 2


@lru_cache(maxsize=4096)
def pass_registers(radices: tuple[int, int], *, in_lines: bool) -> int:
    """Return the registers of a thread, so that no kernel spills (the tests compile some).

    In columns the twiddles of a last stage are loaded beside its numbers.
    """
    first, last = radices
    pairs = pairs_of(last)
    if in_lines:
        needed = [_lines_registers(first), 0 if pairs else _lines_registers(last)]
    else:
        needed = [2 * first + 48 if first <= 20 else 128 if first <= 32 else 168]
        needed.append(0 if pairs else 2 * last + 48 if last <= 16 else 128 if last <= 28 else 168)
    return max(*needed, (8 * pairs + 32) * (pairs > 0))


def _lines_registers(radix: int) -> int:
    return min(2 * radix + 48, 96 if radix <= 32 else 128)


def two_pass_name(plan: TwoPassPlan, role: str) -> str:
    """Return the symbol of one of `PASSES`."""
    values = [getattr(plan, field.name) for field in fields(plan)]
    numbers = "_".join("x".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in values)
    return f"dft_two_pass_{role}_{numbers}"


def two_pass_source(plan: TwoPassPlan, precision: Precision) -> str:
    """Return the CUDA C++ of the two kernels, the same at every precision."""
    columns, lines = (
        f".first = {first}, .last = {last}, .width = {width}, .warps = {warps}, "
        f".pairs = {pairs_of(last)}"
        for (first, last), width, warps in zip(
            (plan.columns, plan.lines), plan.widths, plan.block_warps, strict=True
        )
    )
    members = f".length = {plan.length}, .columns = {{{columns}}}, .lines = {{{lines}}}"
    kernels = "".join(
        kernel_entry(
            two_pass_name(plan, role),
            "TwoPassArguments",
            f"dft_two_pass_{role}<kPlan>(args);",
            plan.kernel_threads(role),
            plan.kernel_blocks(role),
        )
        for role in PASSES
    )
    return (
        '#include "dft/two_pass.cuh"\n'
        f"{size_check('TwoPassArguments', PASS_ARGUMENTS)}"
        f"constexpr TwoPassPlan kPlan{{{members}}};\n"
        "static_assert(kPlan.column_bytes() == "
        f"{plan.kernel_shared_bytes('transform_columns', precision)}, "
        '"as the plan counts it");\n'
        "static_assert(kPlan.line_bytes() == "
        f"{plan.kernel_shared_bytes('transform_lines', precision)}, "
        '"as the plan counts it");\n'
        f'static_assert(kPlan.size() == {plan.size}, "as the plan counts it");\n'
        f"{kernels}"
    )


def two_pass_tables(plan: TwoPassPlan) -> dict[str, Array]:
    """Return the members of ``TwoPassArguments`` by name.

    Twiddles: W_N1^(b k_A), (A, B); W_N^(n2 k_A), (A, N2); W_N^(n2 A k_B), (B, N2); W_N2^(d k_C),
    (C, D); complex64. Roots of a large last radix P: (cos, sin)(2 pi k n / P) of k to P / 2 by n,
    padded to whole shares.
    """
    (a, b), (c, d) = plan.columns, plan.lines
    columns = np.arange(c * d)
    found = (
        roots(np.outer(np.arange(a), np.arange(b)), a * b),
        roots(np.outer(np.arange(a), columns), plan.length),
        roots(np.outer(a * np.arange(b), columns), plan.length),
        roots(np.outer(np.arange(c), np.arange(d)), c * d),
    )
    twiddles = np.concatenate([part.ravel() for part in found]).astype(np.complex64)
    tables = {"twiddles": twiddles}
    for name, radix in (("column_roots", b), ("line_roots", d)):
        if pairs_of(radix):
            tables[name] = prime_roots(radix)
    return tables


@lru_cache(maxsize=64)
def prime_roots(prime: int) -> Array:
    """Return the roots of a large last radix (`two_pass_tables`), complex64: cos + i sin."""
    half, pairs = prime // 2, pairs_of(prime)
    numbers = np.arange(1, half + 1)
    found = np.zeros((half, -(-half // pairs) * pairs), np.complex64)
    found[:, :half] = np.conj(roots(np.outer(numbers, numbers), prime))
    return found
