"""Transforms of primes in the order of powers of a generator, by Hopper's wgmma. Needs no GPU."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from argand.dft.cpu import table_exponent
from argand.dft.method import generator
from argand.dft.registers import registers
from argand.dft.tables import roots
from argand.dft.truncation import cut_of
from argand.precision import FP16, Precision
from argand.rounding import Array, split

_CORE_BYTES = 128
_DEPTH = 16
"""How many k one instruction contracts."""
TURNS = (1, 2, 4)
"""Four warps have rows of 32 transforms, 16 or 8."""
LARGEST_COLUMNS = 256
"""Of one instruction."""
_HELD_REGISTERS = 8
"""The first terms of a slice: real and imaginary parts of e and o."""
_HELD_BESIDES = 8
"""Registers that the assembler wants beside them."""
LARGEST_SUM = 10
"""Slices of k of a sum, up to which it is cut seldom enough: longer ones are put aside once."""
_MOST_HELD, _MOST_OF_MANY = 6, 4
"""Slices whose first terms wait in registers; the latter of more than the former in turns."""
_MOST_BESIDE_ASIDE = ((88, 6), (112, 4), (128, 2))
"""The same where sums are put aside, up to so many columns."""


@dataclass(frozen=True)
class HankelPlan:
    """Transforms of a prime length by one product with Hankel matrices (``cuda/dft/hankel.cuh``).

    Attributes:
        length: L, an odd prime.
        turns: 1, or 2 or 4 for tiles of 16 or 8 transforms in place of 32: each then takes so many
            times as many rows of a product of so many times fewer columns.
        sharing: warpgroups that share the columns of a tile.
        groups: tiles that a block works on at a time.
        buffers: places of a tile in shared memory for all groups together. They go from group to
            group, but for copies that are not wide: there each group has its own.
        wide: as in `argand.dft.plan.DensePlan`.
    """

    kind: ClassVar[str] = "hankel"
    length: int
    turns: int
    sharing: int
    groups: int
    buffers: int
    wide: bool

    @property
    def warps(self) -> int:
        """Of a tile."""
        return 4 * self.sharing

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.groups * self.warps * 32

    @property
    def slices(self) -> int:
        """Of k."""
        return -(-(self.length // 2) // _DEPTH)

    @property
    def long(self) -> bool:
        """Whether sums of two terms are put aside once."""
        return self.slices > LARGEST_SUM

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
        board = 32 * self.groups * self.warps if self._lookers(precision) > 1 else 0
        return table + places + self.buffers * (tile + 16) + board

    def _lookers(self, precision: Precision) -> int:
        return self.turns * self.sharing if precision.scaled else 1

    @property
    def sums(self) -> int:
        """Registers a thread that hold a sum of each column."""
        return self.columns

    def besides(self, precision: Precision) -> int:
        """Registers beside these and held rows, with which no kernel spills (see the tests)."""
        found = 48 + 16 * precision.terms + 8 * (not self.wide) + 8 * (self.sharing > 1)
        if precision.terms > 1 and self.long:
            found += 12 + 40 * (self.sharing > 1)
        return found

    def held(self, precision: Precision) -> int:
        """Slices whose first terms wait in registers for their turn; others are folded anew."""
        if precision.terms == 1:
            return 0
        left = registers(self.threads) - self.sums - self.besides(precision) - _HELD_BESIDES
        most = _MOST_HELD if self.slices <= _MOST_HELD or self.turns == 1 else _MOST_OF_MANY
        if self.long:
            most = next((most for limit, most in _MOST_BESIDE_ASIDE if self.columns <= limit), 0)
        found = max(0, min(self.slices, most, left // _HELD_REGISTERS))
        # An odd number of others would be a lone slice: two are under way at a time.
        return max(0, found - (self.slices - found) % 2)

    def aside(self, precision: Precision) -> int:
        """Slices after whose large products the sums are put aside: half of them, of long sums.

        0 where they are not. Those that are folded anew come in pairs before and after.
        """
        if precision.terms == 1 or not self.long:
            return 0
        held = self.held(precision)
        return held + (self.slices - 2 * held + 3) // 4 * 2

    def growth(self, precision: Precision) -> float:
        """What a table's numbers lose from one to the next, relatively.

        A large product is cut by every instruction from its own slice on.
        """
        return cut_of(precision) / _DEPTH

    @property
    def transforms(self) -> int:
        """That a block works on at a time."""
        return 32 // self.turns * self.groups


@lru_cache(maxsize=256)
def powers(length: int) -> tuple[npt.NDArray[np.int64], int]:
    """g^(i + offset) modulo a prime for i from 0 to L - 2, and the offset.

    Of all generators and eight offsets those with the fewest bank conflicts: lanes read and write
    four of every other number at a time, which lie in different banks where they differ modulo 4.
    """
    base, numbers = generator(length), np.arange(length - 1)
    first = np.array([pow(base, int(i), length) for i in numbers])
    together = (np.arange(-(-length // 16) * 8) // 8 * 8)[:, None] + 2 * np.arange(4)
    together = np.concatenate([together[::8], together[::8] + 1]) % (length - 1)
    found = []
    for step in numbers[np.gcd(numbers, length - 1) == 1]:
        for offset in range(8):
            some = first[step * (numbers + offset) % (length - 1)]
            cost = sum(_most_alike(x[together] % 4) for x in (some, length - some))
            found.append((cost, int(step), offset))
    _, step, offset = min(found)
    return first[step * (numbers + offset) % (length - 1)], offset


def _most_alike(rows: npt.NDArray[np.int64]) -> int:
    """How often the most frequent number of 0 to 3 stands in a row, summed over rows."""
    return int(np.max([(rows == value).sum(axis=1) for value in range(4)], axis=0).sum())


def places(plan: HankelPlan) -> npt.NDArray[np.uint16]:
    """Where g^(i - before) lies, in bytes from the beginning of a transform, from the offset on."""
    order = np.arange(plan.places) - plan.before
    return (8 * powers(plan.length)[0][order % (plan.length - 1)]).astype(np.uint16)


def cores(plan: HankelPlan, precision: Precision) -> npt.NDArray[np.uint16]:
    """(2 terms, cores, 8, 8) numbers of 16 bits: of the cosines, then of the sines.

    Number (r, c) of core matrix m is that of g^(8 m + r + c), from twice the offset on, times what
    gives back the cuts of its products' sums in the last eight columns. Others have more, which the
    kernel undoes, by factors below 1: fp32 has twice as many of these as above.
    """
    numbers, offset = powers(plan.length)
    index = 8 * np.arange(plan.cores)[:, None, None] + np.arange(8)[:, None] + np.arange(8)
    middle = _DEPTH * plan.slices + (_DEPTH - 1) / 2 + plan.sharing * plan.columns - 8
    given = np.exp(plan.growth(precision) * (middle - index))
    found = roots(numbers, plan.length)[(index + offset) % (plan.length - 1)] * given
    terms = [
        _halves(term, precision)
        for part in (found.real, -found.imag)
        for term in split(np.ldexp(part, table_exponent(precision)), precision)
    ]
    return np.ascontiguousarray(np.stack(terms))


def _halves(values: Array, precision: Precision) -> npt.NDArray[np.uint16]:
    single = np.ascontiguousarray(values, np.float32)
    if precision.operand is FP16:
        return single.astype(np.float16).view(np.uint16)
    return (single.view(np.uint32) >> 16).astype(np.uint16)
