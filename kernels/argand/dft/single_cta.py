"""Transforms that a block's threads hold: the plan and its table. Needs no GPU."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from argand.dft.tables import Array, roots
from argand.precision import Precision


@dataclass(frozen=True)
class WholePlan:
    """Transforms of N = R^2 Q in fp32, powers of two (``cuda/dft/single_cta.cuh``).

    Attributes:
        radix: R, of the first two stages: numbers that a thread holds.
        last: Q, of the last one.
    """

    kind: ClassVar[str] = "whole"
    wide: ClassVar[bool] = True
    groups: ClassVar[int] = 1
    transforms: ClassVar[int] = 1
    radix: int
    last: int

    @property
    def length(self) -> int:
        """N."""
        return self.radix**2 * self.last

    @property
    def stages(self) -> str:
        """In words."""
        return f"{self.radix} x {self.radix} x {self.last}"

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.radix * self.last

    @property
    def warps(self) -> int:
        """Of a transform."""
        return self.threads // 32

    def shared_bytes(self, precision: Precision) -> int:
        """Dynamic shared memory of a block; all precisions' are fp32."""
        exchanged = max(self.radix * (self.threads + 16), self.threads * (self.radix + 2))
        return 8 * self.length + 4 * exchanged + 16

    @property
    def sums(self) -> int:
        """Registers a thread that hold numbers."""
        return 2 * self.radix

    @property
    def besides(self) -> int:
        """Registers beside these, with which no kernel spills: half as many powers of a twiddle."""
        return self.radix + 32


@lru_cache(maxsize=16)
def whole_table(plan: WholePlan) -> Array:
    """W_N^(t 2^i) for all threads t, then W_(R Q)^(n 2^i) for n below Q, complex64; i up to R."""
    powers = 2 ** np.arange((plan.radix - 1).bit_length())
    found = (
        roots(np.outer(powers, np.arange(plan.threads)), plan.length),
        roots(np.outer(powers, np.arange(plan.last)), plan.threads),
    )
    return np.concatenate([part.ravel() for part in found]).astype(np.complex64)
