"""Transforms of large powers of two by clusters of blocks: plan and tables. Needs no GPU."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import ClassVar

import numpy as np

from argand.dft.tables import Array, roots
from argand.precision import Precision

LARGEST_CLUSTER = 8
"""Blocks, on any device that has clusters."""
LARGEST_STAGE = 32
"""Numbers of a butterfly."""


@dataclass(frozen=True)
class ClusterPlan:
    """Transforms of a power of two in fp32 (``cuda/dft/cluster.cuh``).

    Attributes:
        radices: A, B, D and E, of N1 = A B and N2 = D E.
        cluster: blocks that share a transform.
        warps: of a block.
        blocks: of a multiprocessor at a time.
    """

    kind: ClassVar[str] = "cluster"
    wide: ClassVar[bool] = True
    radices: tuple[int, int, int, int]
    cluster: int
    warps: int
    blocks: int

    @property
    def length(self) -> int:
        """N."""
        return prod(self.radices)

    @property
    def first(self) -> int:
        """N1."""
        return self.radices[0] * self.radices[1]

    @property
    def second(self) -> int:
        """N2."""
        return self.radices[2] * self.radices[3]

    @property
    def stages(self) -> str:
        """In words."""
        return f"{' x '.join(map(str, self.radices))} by {self.cluster} blocks"

    @property
    def threads(self) -> int:
        """Of a block."""
        return 32 * self.warps

    @property
    def groups(self) -> int:
        """Transforms that a block works on at a time."""
        return 1

    @property
    def transforms(self) -> int:
        """The same."""
        return 1

    def shared_bytes(self, precision: Precision) -> int:
        """Dynamic shared memory of a block; all precisions' are fp32."""
        lines = self.first // self.cluster
        exchanged = max(lines * (self.second + 16), self.second * (lines + 2))
        return self.length // self.cluster * 8 + 4 * exchanged + 16

    @property
    def sums(self) -> int:
        """Registers a thread that hold numbers."""
        return 2 * self.length // self.cluster // self.threads

    @property
    def besides(self) -> int:
        """Registers beside these."""
        return 64


@lru_cache(maxsize=16)
def cluster_tables(radices: tuple[int, int, int, int]) -> Array:
    """All twiddles, complex64: within N1, between N1 and N2 in two parts, within N2.

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
