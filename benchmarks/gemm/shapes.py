"""The sizes of the products that are measured: one notation, and the only list of suites."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self


@dataclass(frozen=True)
class Shape:
    """``batch`` products, C (m, n) = A (m, k) B (k, n)."""

    m: int
    n: int
    k: int
    batch: int = 1

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return ``MxNxK``, or ``BATCHxMxNxK``. Raises ArgumentTypeError for anything else."""
        parts = text.split("x")
        if len(parts) not in (3, 4) or not all(p.isdecimal() and int(p) > 0 for p in parts):
            raise ArgumentTypeError(
                f"shape must be MxNxK or BATCHxMxNxK of positive numbers, got {text!r}"
            )
        *batch, m, n, k = (int(part) for part in parts)
        return cls(m, n, k, *batch)

    def __str__(self) -> str:
        """Return the text that `parse` reads."""
        sizes = (self.m, self.n, self.k)
        return "x".join(map(str, sizes if self.batch == 1 else (self.batch, *sizes)))

    @property
    def leading(self) -> tuple[int, ...]:
        """The axes before an operand's last two: none where there is one product."""
        return () if self.batch == 1 else (self.batch,)

    @property
    def flops(self) -> int:
        """8 batch m n k: four real multiplications and four additions a complex one."""
        return 8 * self.batch * self.m * self.n * self.k


_LARGE = (
    *(Shape(side, side, side) for side in (4096, 8192)),
    Shape(3456, 4096, 4096),  # CUTLASS's complex 3xTF32 example
)
_BATCHED = (
    Shape(64, 4096, 64, batch=256),
    Shape(256, 4096, 256, batch=256),
    Shape(512, 8192, 512, batch=64),
    Shape(1024, 1024, 1024, batch=256),
)
_SMALL = tuple(Shape(side, side, side) for side in (256, 512, 1024, 2048))
# More tiles than multiprocessors: else a long k is split, and the sums of each slice are short.
_GROWTH = tuple(Shape(2112, 2048, k) for k in (64, 256, 1024, 4096, 8192, 16384))
# For exact products, whose planes take memory: from sizes that fill no card to many panels.
_EXACT = (
    *(Shape(side, side, side) for side in (1024, 2048, 4096, 8192, 16384)),
    Shape(3456, 4096, 4096),
    Shape(1024, 1024, 1024, batch=64),
)
SUITES: Mapping[str, tuple[Shape, ...]] = MappingProxyType(
    {
        "gemm": (*_LARGE, *_BATCHED, *_SMALL),
        "gemm-large": _LARGE,
        "gemm-batched": _BATCHED,
        "gemm-small": _SMALL,
        "gemm-growth": _GROWTH,
        "gemm-exact": _EXACT,
    }
)
"""Suites that ``--suite`` names: large, batched thin to square, and small products, or all of them;
those that show how errors grow with k, and those of exact products (`benchmarks.exact`)."""
