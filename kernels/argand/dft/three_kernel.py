"""The three-kernel plan: Bluestein convolutions too long for a block; tables. Needs no GPU."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import prod
from typing import ClassVar

import numpy as np

from argand.dft.butterfly import STAGES, ButterflyPlan, frequencies, stage_twiddles
from argand.dft.method import Method, bluestein, dense
from argand.dft.tables import Array, convolutions, roots
from argand.multiprocessor import REGISTERS, RESERVED_BYTES, SHARED_BYTES
from argand.precision import Precision
from argand.runtime.compile.cpp import constant
from argand.runtime.compile.kernel_entry import kernel_entry
from argand.runtime.launch.arguments import Fields, size_check

KERNELS = ("forward_columns", "convolve_lines", "inverse_columns")
"""The kernels of a plan, in order; their functions in ``cuda/dft`` are dft_three_kernel_NAME."""
ARGUMENTS: Fields = (
    ("const void*", "x"), ("void*", "out"), ("void*", "workspace"), ("const void*", "twiddles"),
    ("const void*", "spectrum"), ("const void*", "chirp"), ("int64", "rows"),
    ("int64", "x_stride"), ("int64", "out_stride"), ("float", "scale"),
)  # fmt: skip
"""Members of ``ThreeKernelArguments`` in ``cuda/dft/three_kernel.cuh``."""
LARGEST_LINE = 1 << 14
"""Largest length of a line, which a block holds."""
_MAX_BLOCKS = 8
"""Most blocks of a multiprocessor that a plan asks registers for."""


@dataclass(frozen=True)
class ThreeKernelPlan:
    """Transforms by Bluestein through global memory, in fp32 (``cuda/dft/three_kernel.cuh``).

    The convolution has length M = M1 M2, as M1 lines of M2 numbers. One kernel transforms columns,
    one convolves lines, one transforms columns back; each reads and writes M numbers.

    Attributes:
        length: N.
        columns: A and B, of M1 = A B.
        radices: radices of the stages of a line, whose product is M2.
        width: columns of a tile.
        tile_warps: warps of a tile.
        warps: warps of a line.
        groups: lines that a block works on at a time.
    """

    kind: ClassVar[str] = "three_kernel"
    wide_copies: ClassVar[bool] = False
    transforms: ClassVar[int] = 1
    roles: ClassVar[tuple[str, ...]] = KERNELS
    length: int
    columns: tuple[int, int]
    radices: tuple[int, ...]
    width: int
    tile_warps: int
    warps: int
    groups: int

    @property
    def line(self) -> ButterflyPlan:
        """The plan by which a block convolves lines."""
        return ButterflyPlan(prod(self.radices), False, self.radices, self.warps, self.groups)

    @property
    def lines(self) -> int:
        """M1, the number of lines of the convolution."""
        return prod(self.columns)

    @property
    def size(self) -> int:
        """M, the length of the convolution."""
        return self.lines * prod(self.radices)

    @property
    def threads(self) -> int:
        """Threads of the largest block."""
        return max(32 * self.tile_warps, self.line.threads)

    def kernel_threads(self, role: str) -> int:
        """Return the threads of a block of one of `KERNELS`."""
        return self.line.threads if role == "convolve_lines" else 32 * self.tile_warps

    def kernel_shared_bytes(self, role: str, precision: Precision) -> int:
        """Return the dynamic shared memory of a block of one of `KERNELS`."""
        return self._kernel_bytes(role)

    def _kernel_bytes(self, role: str) -> int:
        """Return these bytes, in fp32 at every precision."""
        if role == "convolve_lines":
            return self.line.block_bytes
        return 8 * self.lines * self.width

    def kernel_blocks(self, role: str) -> int:
        """Return the blocks of a multiprocessor that registers and shared memory allow."""
        by_memory = SHARED_BYTES // (self._kernel_bytes(role) + RESERVED_BYTES)
        by_registers = REGISTERS // (self.kernel_threads(role) * self.kernel_registers(role))
        return max(1, min(_MAX_BLOCKS, by_memory, by_registers))

    def grid_blocks(self, role: str, rows: int) -> int:
        """Return the grid size of one of `KERNELS` for ``rows`` transforms."""
        if role == "convolve_lines":
            return -(-rows * self.lines // self.groups)
        return rows * (self.line.size // self.width)

    def shared_bytes(self, precision: Precision) -> int:
        """Return the largest dynamic shared memory of a block, in fp32 at every precision."""
        return max(self.kernel_shared_bytes(role, precision) for role in KERNELS)

    @property
    def data_registers(self) -> int:
        """Registers of a thread that hold a butterfly."""
        return 2 * max(*self.columns, *self.radices)

    @property
    def other_registers(self) -> int:
        """Registers beside these, so that no kernel spills (the tests compile some)."""
        return max(self.kernel_registers(role) for role in KERNELS) - self.data_registers

    def kernel_registers(self, role: str) -> int:
        """Return the registers of a thread of one of `KERNELS`, so that it does not spill."""
        if role == "convolve_lines":
            largest = max(self.radices)
            if largest <= 12 and self.radices[-1] < 12:
                return 64
            return 80 if largest <= 16 else 128 if largest <= 24 else 144
        return 2 * max(self.columns) + 48

    @property
    def stages(self) -> str:
        """The stages as text."""
        return f"bluestein({' x '.join(map(str, (*self.columns, *self.radices)))}) in three kernels"

    @property
    def method(self) -> Method:
        """The method that it computes, with the convolution as one stage."""
        return bluestein(self.length, dense(self.size))


def three_kernel_name(plan: ThreeKernelPlan, role: str) -> str:
    """Return the symbol of one of `KERNELS`."""
    values = [getattr(plan, field.name) for field in fields(plan)]
    numbers = "_".join("x".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in values)
    return f"dft_three_kernel_{role}_{numbers}"


def three_kernel_source(plan: ThreeKernelPlan, precision: Precision) -> str:
    """Return the CUDA C++ of the three kernels, the same at every precision."""
    padded = (*plan.radices, *(1,) * (STAGES - len(plan.radices)))
    members = {
        "length": plan.length, "column_radices": plan.columns, "line_radices": padded,
        "tile_width": plan.width, "tile_warps": plan.tile_warps, "line_warps": plan.warps,
        "line_groups": plan.groups,
    }  # fmt: skip
    kernels = "".join(
        kernel_entry(
            three_kernel_name(plan, role),
            "ThreeKernelArguments",
            f"dft_three_kernel_{role}<kPlan>(args);",
            plan.kernel_threads(role),
            plan.kernel_blocks(role),
        )
        for role in KERNELS
    )
    return (
        '#include "dft/three_kernel.cuh"\n'
        f"{size_check('ThreeKernelArguments', ARGUMENTS)}"
        f"{constant('ThreeKernelPlan', members)}"
        "static_assert(kPlan.tile_bytes() == "
        f"{plan.kernel_shared_bytes('forward_columns', precision)}, "
        '"as the plan counts it");\n'
        "static_assert(kPlan.line_plan().shared_bytes() == "
        f"{plan.kernel_shared_bytes('convolve_lines', precision)}, "
        '"as the plan counts it");\n'
        f"{kernels}"
    )


def three_kernel_tables(plan: ThreeKernelPlan, *, inverse: bool) -> dict[str, Array]:
    """Return the members of ``ThreeKernelArguments`` by name, complex64.

    Twiddles: W_M1^(b k_A), (A, B); W_M^(n2 k_A), (A, M2); W_M^(n2 A k_B), (B, M2); those of a line.
    The spectrum of each line has the order of `butterfly_tables`. It has no scale: intermediate
    results grow no more than a transform of length M does.
    """
    (convolution,) = convolutions(plan.method, inverse=inverse)
    assert convolution.input_factors is not None
    (a, b), size, columns = plan.columns, plan.size, np.arange(plan.line.size)
    found = (
        roots(np.outer(np.arange(a), np.arange(b)), plan.lines),
        roots(np.outer(np.arange(a), columns), size),
        roots(np.outer(a * np.arange(b), columns), size),
        stage_twiddles(plan.radices),
    )
    spectrum = convolution.spectrum[frequencies((*plan.columns, *plan.radices))]
    spectrum = spectrum * 2.0**-convolution.exponent
    last = plan.radices[-1]
    spectrum = spectrum.reshape(plan.lines, -1, last).swapaxes(-1, -2)
    return {
        "twiddles": np.concatenate([part.ravel() for part in found]).astype(np.complex64),
        "spectrum": np.ascontiguousarray(spectrum, np.complex64),
        "chirp": convolution.input_factors.astype(np.complex64),
    }
