"""Transforms of primes in the order of powers of a generator, by Hopper's wgmma. Needs no GPU."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from argand.dft_method import generator
from argand.dft_tables import roots
from argand.numpy_dft import table_exponent
from argand.precision import FP16, Precision
from argand.rounding import Array, split

_WARPGROUP = 128
_CORE_BYTES = 128
_DEPTH = 16
"""How many k one instruction contracts."""
LARGEST_COLUMNS = 256
"""Of one instruction."""


@dataclass(frozen=True)
class HankelPlan:
    """Transforms of a prime length by one product with Hankel matrices (``cuda/dft_hankel.cuh``).

    Attributes:
        length: L, an odd prime.
        turns: 1, or 2 or 4 for tiles of 16 or 8 transforms in place of 32: each then takes so many
            times as many rows of a product of so many times fewer columns.
        sharing: warpgroups that share the columns of a tile.
        groups: tiles that a block works on at a time.
        buffers, wide: as in `argand.dft_plan.DensePlan`.
    """

    kind: ClassVar[str] = "hankel"
    length: int
    turns: int
    sharing: int
    groups: int
    buffers: int
    wide: bool

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.groups * self.sharing * _WARPGROUP

    @property
    def slices(self) -> int:
        """Of k."""
        return -(-(self.length // 2) // _DEPTH)

    @property
    def shift(self) -> int:
        """Columns of a turn."""
        return -(-(self.length // 2) // (2 * self.turns)) * 2

    @property
    def before(self) -> int:
        """Columns of all turns before the last."""
        return (self.turns - 1) * self.shift

    @property
    def columns(self) -> int:
        """Of a warpgroup."""
        return -(-self.shift // (8 * self.sharing)) * 8

    @property
    def cores(self) -> int:
        """Tiles of 8 x 8 of one term of the cosines or sines."""
        return 2 * self.slices + self.sharing * self.columns // 8 - 1

    @property
    def places(self) -> int:
        """How many powers of the generator are in the table of places."""
        taken = _DEPTH * self.slices + self.before
        return max(taken, self.sharing * self.columns + 2 * self.before)

    def shared_bytes(self, precision: Precision) -> int:
        """Dynamic shared memory of a block."""
        table = 2 * precision.terms * self.cores * _CORE_BYTES
        places = -(-2 * self.places // 128) * 128
        tile = -(-(32 // self.turns) * self.length * 8 // 128) * 128
        return table + places + self.groups * self.buffers * (tile + 8)

    @property
    def sums(self) -> int:
        """Registers a thread that hold sums."""
        return self.columns

    @property
    def transforms(self) -> int:
        """That a block works on at a time."""
        return 32 // self.turns * self.groups


@lru_cache(maxsize=64)
def powers(length: int) -> npt.NDArray[np.int64]:
    """g^0, g^1, ... modulo a prime, for its smallest generator."""
    found = np.empty(length - 1, np.int64)
    step, value = generator(length), 1
    for index in range(length - 1):
        found[index] = value
        value = value * step % length
    return found


def places(plan: HankelPlan) -> npt.NDArray[np.uint16]:
    """Where g^(i - before) lies, in bytes from the beginning of a transform."""
    order = np.arange(plan.places) - plan.before
    return (8 * powers(plan.length)[order % (plan.length - 1)]).astype(np.uint16)


def cores(plan: HankelPlan, precision: Precision, cut: float = 0.0) -> npt.NDArray[np.uint16]:
    """(2 terms, cores, 8, 8) numbers of 16 bits: of the cosines, then of the sines.

    Number (r, c) of core matrix m is that of g^(8 m + r + c), times 1 + ``cut``.
    """
    numbers = powers(plan.length)
    index = 8 * np.arange(plan.cores)[:, None, None] + np.arange(8)[:, None] + np.arange(8)
    found = roots(numbers, plan.length) * (1 + cut)
    terms = [
        _halves(term, precision)
        for sequence in (found.real, -found.imag)
        for term in split(np.ldexp(sequence, table_exponent(precision)), precision)
    ]
    return np.ascontiguousarray(np.stack(terms)[:, index % (plan.length - 1)])


def _halves(values: Array, precision: Precision) -> npt.NDArray[np.uint16]:
    single = np.ascontiguousarray(values, np.float32)
    if precision.operand is FP16:
        return single.astype(np.float16).view(np.uint16)
    return (single.view(np.uint32) >> 16).astype(np.uint16)
