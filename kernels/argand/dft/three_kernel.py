"""Convolutions with a chirp too long for a block, in three kernels: plan, tables. Needs no GPU."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import prod
from typing import ClassVar

import numpy as np

from argand.dft.butterfly import STAGES, ButterflyPlan, frequencies, stage_twiddles
from argand.dft.method import Method, bluestein, dense
from argand.dft.tables import Array, convolutions, roots
from argand.precision import Precision
from argand.runtime.arguments import Fields, size_check

PASSES = ("there", "lines", "back")
"""The kernels of a plan, in order."""
_CUDA_PASSES = {"there": "forward_columns", "lines": "convolve_lines", "back": "inverse_columns"}
"""What follows ``dft_three_kernel_`` in the names of their functions in ``cuda/dft``."""
ARGUMENTS: Fields = (
    ("const void*", "x"), ("void*", "out"), ("void*", "workspace"), ("const void*", "twiddles"),
    ("const void*", "spectrum"), ("const void*", "chirp"), ("int64", "rows"),
    ("int64", "x_stride"), ("int64", "out_stride"), ("float", "scale"),
)  # fmt: skip
"""Members of ``ThreeKernelArguments`` in ``cuda/dft/three_kernel.cuh``."""
LARGEST_LINE = 1 << 14
"""Numbers of a line, which a block holds."""
_SHARED = 228 * 1024
_MOST_BLOCKS = 8


@dataclass(frozen=True)
class PassesPlan:
    """Transforms by Bluestein through global memory, in fp32 (``cuda/dft/three_kernel.cuh``).

    The convolution of length M = M1 M2 lies in M1 lines of M2 numbers, and its columns and its
    lines are transformed by kernels of their own, which read and write M numbers each.

    Attributes:
        length: N.
        columns: A and B, of M1 = A B.
        radices: of the stages of a line, whose product is M2.
        width: columns of a tile.
        tile_warps: of a tile.
        warps: of a line.
        groups: lines that a block works on at a time.
    """

    kind: ClassVar[str] = "passes"
    wide: ClassVar[bool] = False
    transforms: ClassVar[int] = 1
    length: int
    columns: tuple[int, int]
    radices: tuple[int, ...]
    width: int
    tile_warps: int
    warps: int
    groups: int

    @property
    def line(self) -> ButterflyPlan:
        """How lines are convolved."""
        return ButterflyPlan(prod(self.radices), False, self.radices, self.warps, self.groups)

    @property
    def lines(self) -> int:
        """M1."""
        return prod(self.columns)

    @property
    def size(self) -> int:
        """M, of the convolution."""
        return self.lines * self.line.size

    @property
    def threads(self) -> int:
        """Of the largest block."""
        return max(32 * self.tile_warps, self.line.threads)

    def pass_threads(self, which: str) -> int:
        """Of a block of one of `PASSES`."""
        return self.line.threads if which == "lines" else 32 * self.tile_warps

    def pass_bytes(self, which: str, precision: Precision) -> int:
        """Dynamic shared memory of a block of one of `PASSES`."""
        return (
            self.line.shared_bytes(precision) if which == "lines" else 8 * self.lines * self.width
        )

    def pass_blocks(self, which: str, rows: int) -> int:
        """The grid of one of `PASSES` for so many transforms."""
        if which == "lines":
            return -(-rows * self.lines // self.groups)
        return rows * (self.line.size // self.width)

    def shared_bytes(self, precision: Precision) -> int:
        """Dynamic shared memory of the block that takes most; all precisions' are fp32."""
        return max(self.pass_bytes(which, precision) for which in PASSES)

    @property
    def sums(self) -> int:
        """Registers a thread that hold a butterfly."""
        return 2 * max(*self.columns, *self.radices)

    @property
    def besides(self) -> int:
        """Registers beside these, with which no kernel spills (the tests compile some)."""
        return max(self.pass_registers(which) for which in PASSES) - self.sums

    def pass_registers(self, which: str) -> int:
        """A thread of one of `PASSES` needs, with which it does not spill."""
        if which == "lines":
            largest = max(self.radices)
            return 2 * largest + (64 if largest <= 16 else 80 if largest == 32 else 96)
        return 2 * max(self.columns) + 48

    @property
    def stages(self) -> str:
        """In words."""
        return f"bluestein({' x '.join(map(str, (*self.columns, *self.radices)))}) in three passes"

    @property
    def method(self) -> Method:
        """What it computes, of a convolution without stages of its own."""
        return bluestein(self.length, dense(self.size))


def passes_kernel_name(plan: PassesPlan, which: str) -> str:
    """The symbol of one of `PASSES`."""
    values = [getattr(plan, field.name) for field in fields(plan)]
    numbers = "_".join("x".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in values)
    return f"dft_passes_{which}_{numbers}"


def passes_source(plan: PassesPlan, precision: Precision) -> str:
    """The CUDA C++ of the three kernels; all precisions' are the same."""
    padded = (*plan.radices, *(1,) * (STAGES - len(plan.radices)))
    members = (
        f".length = {plan.length}, .column_radices = {{{plan.columns[0]}, {plan.columns[1]}}}, "
        f".line_radices = {{{', '.join(map(str, padded))}}}, .tile_width = {plan.width}, "
        f".tile_warps = {plan.tile_warps}, .line_warps = {plan.warps}, "
        f".line_groups = {plan.groups}"
    )
    kernels = "".join(
        f'extern "C" __global__ void __launch_bounds__({plan.pass_threads(which)}, '
        f"{_blocks(plan, which, precision)})\n"
        f"{passes_kernel_name(plan, which)}(const __grid_constant__ ThreeKernelArguments args) {{\n"
        f"    dft_three_kernel_{_CUDA_PASSES[which]}<kPlan>(args);\n"
        "}\n"
        for which in PASSES
    )
    return (
        '#include "dft/three_kernel.cuh"\n'
        f"{size_check('ThreeKernelArguments', ARGUMENTS)}"
        f"constexpr ThreeKernelPlan kPlan{{{members}}};\n"
        f"static_assert(kPlan.tile_bytes() == {plan.pass_bytes('there', precision)}, "
        '"as the plan counts it");\n'
        f"static_assert(kPlan.line_plan().shared_bytes() == {plan.pass_bytes('lines', precision)}, "
        '"as the plan counts it");\n'
        f"{kernels}"
    )


def _blocks(plan: PassesPlan, which: str, precision: Precision) -> int:
    """Of a multiprocessor, for which there are registers and memory."""
    threads = plan.pass_threads(which)
    by_memory = _SHARED // (plan.pass_bytes(which, precision) + 1024)
    by_registers = 65_536 // (threads * plan.pass_registers(which))
    return max(1, min(_MOST_BLOCKS, by_memory, by_registers))


def passes_tables(plan: PassesPlan, *, inverse: bool) -> dict[str, Array]:
    """Members of ``ThreeKernelArguments`` by name, complex64.

    Twiddles: W_M1^(b k_A), (A, B); W_M^(n2 k_A), (A, M2); W_M^(n2 A k_B), (B, M2); a line's. The
    spectrum of each line lies as `butterfly_tables` has one. Its scale is not changed: what passes
    grows no more than a transform of length M does.
    """
    (made,) = convolutions(plan.method, inverse=inverse)
    assert made.before is not None
    (a, b), size, columns = plan.columns, plan.size, np.arange(plan.line.size)
    found = (
        roots(np.outer(np.arange(a), np.arange(b)), plan.lines),
        roots(np.outer(np.arange(a), columns), size),
        roots(np.outer(a * np.arange(b), columns), size),
        stage_twiddles(plan.radices),
    )
    spectrum = made.spectrum[frequencies((*plan.columns, *plan.radices))] * 2.0**-made.exponent
    last = plan.radices[-1]
    spectrum = spectrum.reshape(plan.lines, -1, last).swapaxes(-1, -2)
    return {
        "twiddles": np.concatenate([part.ravel() for part in found]).astype(np.complex64),
        "spectrum": np.ascontiguousarray(spectrum, np.complex64),
        "chirp": made.before.astype(np.complex64),
    }
