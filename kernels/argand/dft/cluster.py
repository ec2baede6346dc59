"""The cluster plan: transforms of large powers of two; its table. Needs no GPU."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import ClassVar

import numpy as np

from argand.dft.tables import Array, roots
from argand.precision import Precision

LARGEST_STAGE = 32
"""Largest radix of a stage."""


@dataclass(frozen=True)
class ClusterPlan:
    """Transforms of a power of two in fp32 (``cuda/dft/cluster.cuh``).

    Attributes:
        radices: A, B, D and E, of N1 = A B and N2 = D E.
        cluster_size: blocks that share a transform.
        warps: warps of a block.
        blocks_per_sm: blocks per multiprocessor.
    """

    kind: ClassVar[str] = "cluster"
    wide_copies: ClassVar[bool] = True
    radices: tuple[int, int, int, int]
    cluster_size: int
    warps: int
    blocks_per_sm: int

    @property
    def length(self) -> int:
        """N, the length of a transform."""
        return prod(self.radices)

    @property
    def n1(self) -> int:
        """N1, the first factor of N."""
        return self.radices[0] * self.radices[1]

    @property
    def n2(self) -> int:
        """N2, the second factor of N."""
        return self.radices[2] * self.radices[3]

    @property
    def stages(self) -> str:
        """The stages as text."""
        return f"{' x '.join(map(str, self.radices))} by {self.cluster_size} blocks"

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * self.warps

    @property
    def groups(self) -> int:
        """Transforms of a block at a time."""
        return 1

    @property
    def transforms(self) -> int:
        """Transforms of a tile."""
        return 1

    def shared_bytes(self, precision: Precision) -> int:
        """Return the dynamic shared memory of a block, in fp32 at every precision."""
        lines = self.n1 // self.cluster_size
        exchanged = max(lines * (self.n2 + 16), self.n2 * (lines + 2))
        return self.length // self.cluster_size * 8 + 4 * exchanged + 16

    @property
    def data_registers(self) -> int:
        """Registers of a thread that hold its numbers."""
        return 2 * self.length // self.cluster_size // self.threads

    @property
    def other_registers(self) -> int:
        """Registers beside these, so that no kernel spills."""
        return 64


@lru_cache(maxsize=16)
def cluster_tables(radices: tuple[int, int, int, int]) -> Array:
    """Return all twiddles, complex64: within N1, between N1 and N2 in two parts, within N2.

    W_N1^(b k_A), (A - 1, B); W_N^(n2 k_A), (A, N2); W_N^(n2 A k_B), (B - 1, N2); W_N2^(e k_D),
    (D - 1, E).
    """
    a, b, d, e = radices
    size, second = a * b * d * e, d * e
    columns = np.arange(second)
    found = (
        roots(np.outer(np.arange(1, a), np.arange(b)), a * b),
        roots(np.outer(np.arange(a), columns), size),
        roots(np.outer(a * np.arange(1, b), columns), size),
        roots(np.outer(np.arange(1, d), np.arange(e)), second),
    )
    return np.concatenate([part.ravel() for part in found]).astype(np.complex64)
