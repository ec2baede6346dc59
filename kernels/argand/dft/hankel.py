"""The Hankel plan: transforms of primes by wgmma, and their tables. Needs no GPU."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from argand.dft.cpu import table_exponent
from argand.dft.method import generator
from argand.dft.tables import roots
from argand.dft.truncation import truncation_bias
from argand.multiprocessor import registers
from argand.precision import Precision
from argand.rounding import encode, split

_CORE_MATRIX_BYTES = 128
_DEPTH = 16
"""k of one MMA, and of a k-tile."""
ROW_COPIES = (1, 2)
"""Copies of a transform among the 64 rows of wgmma, for tiles of 32 or 16 transforms."""
LARGEST_COLUMNS = 256
"""Columns of one wgmma."""
_CACHED_REGISTERS = 8
"""Registers of a k-tile's high-order fragments: real and imaginary parts of e and o."""
_ASSEMBLER_REGISTERS = 8
"""Registers that the assembler needs beside the cached fragments."""
LARGEST_UNPROMOTED = 10
"""K-tiles up to which truncation is rare enough; longer mainloops promote accumulators once."""
_MAX_CACHED, _MAX_CACHED_OF_MANY = 6, 4
"""Largest number of cached k-tiles; the latter with row copies and more k-tiles than the former."""
_MAX_CACHED_PROMOTED = ((88, 6), (112, 4), (128, 2))
"""Largest numbers of cached k-tiles with promotion: (most columns, k-tiles)."""


@dataclass(frozen=True)
class HankelPlan:
    """Transforms of a prime length by one product with Hankel matrices (``cuda/dft/hankel.cuh``).

    Attributes:
        length: L, an odd prime.
        row_copies: 1, or 2 for tiles of 16 transforms in place of 32: each transform takes twice
            the rows of a product with half the columns.
        warpgroups: warpgroups that share the columns of a tile.
        groups: tiles that a block works on at a time.
        buffers: tiles in shared memory, for all groups together. Wide copies relay them from group
            to group; without them each group has its own.
        wide_copies: as in `argand.dft.plan.DensePlan`.
    """

    kind: ClassVar[str] = "hankel"
    length: int
    row_copies: int
    warpgroups: int
    groups: int
    buffers: int
    wide_copies: bool

    @property
    def warps(self) -> int:
        """Warps of a tile."""
        return 4 * self.warpgroups

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.groups * self.warps * 32

    @property
    def waits(self) -> bool:
        """Whether no tile is in flight beside two in work."""
        return self.groups < 2 or self.buffers < 3

    @property
    def num_k_tiles(self) -> int:
        """Number of k-tiles, of 16 numbers each."""
        return -(-(self.length // 2) // _DEPTH)

    @property
    def promotes(self) -> bool:
        """Whether the mainloop of a precision of two terms promotes its accumulators, once."""
        return self.num_k_tiles > LARGEST_UNPROMOTED

    @property
    def columns_per_copy(self) -> int:
        """Columns that a copy of the rows computes: even, so that two offsets are one word."""
        return -(-(self.length // 2) // (2 * self.row_copies)) * 2

    @property
    def columns_before_last_copy(self) -> int:
        """Columns of all copies of the rows but the last."""
        return (self.row_copies - 1) * self.columns_per_copy

    @property
    def columns(self) -> int:
        """Columns of a warpgroup."""
        return -(-self.columns_per_copy // (8 * self.warpgroups)) * 8

    @property
    def core_matrices(self) -> int:
        """Core matrices of 8 x 8 of one term of the cosines or of the sines."""
        return 2 * self.num_k_tiles + self.warpgroups * self.columns // 8 - 1

    @property
    def num_offsets(self) -> int:
        """Length of the table of byte offsets."""
        taken = _DEPTH * self.num_k_tiles + self.columns_before_last_copy
        return max(taken, self.warpgroups * self.columns + 2 * self.columns_before_last_copy)

    def shared_bytes(self, precision: Precision) -> int:
        """Return the dynamic shared memory of a block."""
        table = 2 * precision.terms * self.core_matrices * _CORE_MATRIX_BYTES
        offset_bytes = -(-2 * self.num_offsets // 128) * 128
        tile = -(-(32 // self.row_copies) * self.length * 8 // 128) * 128
        scratch = 32 * self.groups * self.warps if self._absmax_warps(precision) > 1 else 0
        return table + offset_bytes + self.buffers * (tile + 16) + scratch

    def _absmax_warps(self, precision: Precision) -> int:
        """Return the warps that hold the same transforms and exchange the absmax of their parts."""
        return self.row_copies * self.warpgroups if precision.scaled else 1

    @property
    def data_registers(self) -> int:
        """Accumulators of a thread, in registers."""
        return self.columns

    def other_registers(self, precision: Precision) -> int:
        """Return registers beside accumulators and cached fragments, so that no kernel spills."""
        found = 48 + 16 * precision.terms + 8 * (not self.wide_copies) + 8 * (self.warpgroups > 1)
        if precision.terms > 1 and self.promotes:
            found += 12 + 40 * (self.warpgroups > 1)
        return found

    def cached_k_tiles(self, precision: Precision) -> int:
        """Return how many k-tiles keep their high-order fragments in registers for the second pass.

        The others are folded a second time.
        """
        if precision.terms == 1:
            return 0
        left = (
            registers(self.threads)
            - self.data_registers
            - self.other_registers(precision)
            - _ASSEMBLER_REGISTERS
        )
        most = (
            _MAX_CACHED
            if self.num_k_tiles <= _MAX_CACHED or self.row_copies == 1
            else _MAX_CACHED_OF_MANY
        )
        if self.promotes:
            most = next((most for limit, most in _MAX_CACHED_PROMOTED if self.columns <= limit), 0)
        found = max(0, min(self.num_k_tiles, most, left // _CACHED_REGISTERS))
        # The others come in pairs: the mainloop alternates between two fragments.
        return max(0, found - (self.num_k_tiles - found) % 2)

    def promotion_k_tile(self, precision: Precision) -> int:
        """Return the k-tile before whose high-order MMAs accumulators are promoted, a middle one.

        0 where they never are. The k-tiles that are folded again come in pairs before and after.
        """
        if precision.terms == 1 or not self.promotes:
            return 0
        cached = self.cached_k_tiles(precision)
        return cached + (self.num_k_tiles - 2 * cached + 3) // 4 * 2

    def bias_step(self, precision: Precision) -> float:
        """Return the fall of the bias compensation from one number of the table to the next.

        Every MMA from its own k-tile on truncates the sum that a high-order product is in.
        """
        return truncation_bias(precision) / _DEPTH

    @property
    def transforms(self) -> int:
        """Transforms of a block at a time."""
        return 32 // self.row_copies * self.groups


@lru_cache(maxsize=256)
def powers(length: int) -> tuple[npt.NDArray[np.int64], int]:
    """Return g^(i + offset) modulo a prime for i from 0 to L - 2, and the offset.

    Generator and offset are those with the fewest bank conflicts, of all generators and eight
    offsets: lanes access four of every other number at a time, in different banks where these
    differ modulo 4.
    """
    base, numbers = generator(length), np.arange(length - 1)
    first = np.array([pow(base, int(i), length) for i in numbers])
    together = (np.arange(-(-length // 16) * 8) // 8 * 8)[:, None] + 2 * np.arange(4)
    together = np.concatenate([together[::8], together[::8] + 1]) % (length - 1)
    found = []
    for step in numbers[np.gcd(numbers, length - 1) == 1]:
        for offset in range(8):
            some = first[step * (numbers + offset) % (length - 1)]
            cost = sum(_bank_conflicts(x[together] % 4) for x in (some, length - some))
            found.append((cost, int(step), offset))
    _, step, offset = min(found)
    return first[step * (numbers + offset) % (length - 1)], offset


def _bank_conflicts(rows: npt.NDArray[np.int64]) -> int:
    """Return accesses to the most frequent bank (0 to 3) of each row, summed over rows."""
    return int(np.max([(rows == value).sum(axis=1) for value in range(4)], axis=0).sum())


def gather_offsets(plan: HankelPlan) -> npt.NDArray[np.uint16]:
    """Return the byte offsets of g^(i - columns_before_last_copy) in a transform."""
    order = np.arange(plan.num_offsets) - plan.columns_before_last_copy
    return (8 * powers(plan.length)[0][order % (plan.length - 1)]).astype(np.uint16)


def core_matrix_table(plan: HankelPlan, precision: Precision) -> npt.NDArray[np.uint16]:
    """Return (2 terms, core_matrices, 8, 8) numbers of 16 bits of the cosines, then of the sines.

    Number (r, c) of core matrix m is that of g^(8 m + r + c), from twice the offset on, times the
    bias compensation of its products in the last eight columns. In other columns that is too much,
    which the kernel undoes by a factor of the column. These factors are below 1, where fp32 is
    twice as fine as above.
    """
    numbers, offset = powers(plan.length)
    index = 8 * np.arange(plan.core_matrices)[:, None, None] + np.arange(8)[:, None] + np.arange(8)
    middle = _DEPTH * plan.num_k_tiles + (_DEPTH - 1) / 2 + plan.warpgroups * plan.columns - 8
    compensation = np.exp(plan.bias_step(precision) * (middle - index))
    found = roots(numbers, plan.length)[(index + offset) % (plan.length - 1)] * compensation
    terms = [
        encode(term, precision.operand)
        for part in (found.real, -found.imag)
        for term in split(np.ldexp(part, table_exponent(precision)), precision)
    ]
    return np.ascontiguousarray(np.stack(terms))
