"""The single-CTA plan: transforms in the registers of a block; its table. Needs no GPU."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from argand.dft.tables import Array, roots
from argand.precision import Precision


@dataclass(frozen=True)
class SingleCtaPlan:
    """Transforms of N = R^2 Q in fp32, powers of two (``cuda/dft/single_cta.cuh``).

    Attributes:
        radix: R, of the first two stages; a thread holds as many numbers.
        last_radix: Q, of the last stage.
    """

    kind: ClassVar[str] = "single_cta"
    wide_copies: ClassVar[bool] = True
    groups: ClassVar[int] = 1
    transforms: ClassVar[int] = 1
    radix: int
    last_radix: int

    @property
    def length(self) -> int:
        """N, the length of a transform."""
        return self.radix**2 * self.last_radix

    @property
    def stages(self) -> str:
        """The stages as text."""
        return f"{self.radix} x {self.radix} x {self.last_radix}"

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.radix * self.last_radix

    @property
    def warps(self) -> int:
        """Warps of a transform."""
        return self.threads // 32

    def shared_bytes(self, precision: Precision) -> int:
        """Return the dynamic shared memory of a block, in fp32 at every precision."""
        exchanged = max(self.radix * (self.threads + 16), self.threads * (self.radix + 2))
        return 8 * self.length + 4 * exchanged + 16

    @property
    def data_registers(self) -> int:
        """Registers of a thread that hold its numbers."""
        return 2 * self.radix

    @property
    def other_registers(self) -> int:
        """Registers beside these, so that no kernel spills; many hold powers of a twiddle."""
        return self.radix + 32


@lru_cache(maxsize=16)
def single_cta_table(plan: SingleCtaPlan) -> Array:
    """Return complex64 W_N^(t 2^i) of all threads t, then W_(R Q)^(n 2^i) of n < Q, for i to R."""
    powers = 2 ** np.arange((plan.radix - 1).bit_length())
    found = (
        roots(np.outer(powers, np.arange(plan.threads)), plan.length),
        roots(np.outer(powers, np.arange(plan.last_radix)), plan.threads),
    )
    return np.concatenate([part.ravel() for part in found]).astype(np.complex64)
