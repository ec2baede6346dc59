"""Mixed-radix plans: transforms by butterflies of a block, in fp32; the table. Needs no GPU."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import ClassVar

import numpy as np

from argand.dft.tables import Array, roots
from argand.multiprocessor import RESERVED_BYTES, RESIDENT_THREADS, SHARED_BYTES, WARP, registers
from argand.precision import Precision

MIXED_STAGES = 4
"""Largest number of radices of a plan."""
LARGEST_MIXED_RADIX = 40
"""Largest radix of a butterfly in registers."""
_NEEDED = ((13, 40), (15, 48), (20, 56), (23, 64), (27, 80), (31, 96), (34, 104))
"""Largest radices, and the registers without which a thread spills (the tests compile some)."""
_MAX_BLOCKS = 16
"""Most blocks of a multiprocessor that a plan asks registers for."""
_FEW_REGISTERS, _MORE_BEFORE_HOPPER = 72, 8
"""Registers of a thread up to which it needs some more on targets before Hopper."""
_BANKS = 16
"""Numbers of 8 bytes that the banks hold side by side."""
_SEEN, _SEEN_LANES = 4, 512
"""Transforms and lanes of a tile whose accesses stand for those of all."""


@dataclass(frozen=True)
class MixedRadixPlan:
    """Transforms of a product of radices, in fp32 (``cuda/dft/mixed_radix.cuh``).

    Attributes:
        radices: radices of the stages, in order.
        transforms: transforms of a tile, one for each block.
        warps: warps of a block.
    """

    kind: ClassVar[str] = "mixed_radix"
    wide_copies: ClassVar[bool] = False
    groups: ClassVar[int] = 1
    radices: tuple[int, ...]
    transforms: int
    warps: int

    @property
    def length(self) -> int:
        """N, the length of a transform."""
        return prod(self.radices)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * self.warps

    @property
    def stages(self) -> str:
        """The stages as text."""
        return " x ".join(map(str, self.radices))

    @cached_property
    def pitches(self) -> tuple[int, ...]:
        """Elements in shared memory from one index of each stage to the next."""
        return _pitches(self.radices, min(self.transforms, _SEEN))

    @property
    def multiplied_twiddles(self) -> int:
        """Twiddles that may be products of others, of those that a number meets."""
        return len(self.radices) - 1 if len(self.radices) > 2 else 0

    @property
    def _tile_bytes(self) -> int:
        """Bytes of a tile in shared memory."""
        return 8 * self.transforms * self.radices[0] * self.pitches[0]

    def shared_bytes(self, precision: Precision) -> int:
        """Return the dynamic shared memory of a block, in fp32 at every precision."""
        return self._tile_bytes

    @property
    def data_registers(self) -> int:
        """Registers of a thread that hold a butterfly."""
        return 2 * max(self.radices)

    @property
    def other_registers(self) -> int:
        """Registers beside these, so that no kernel spills (the tests compile some)."""
        return needed_registers(self.radices) - self.data_registers

    @cached_property
    def blocks_per_sm(self) -> int:
        """Blocks of a multiprocessor that registers, shared memory and threads allow."""
        return mixed_radix_blocks(self.radices, self._tile_bytes, self.warps)

    @property
    def blocks_before_hopper(self) -> int:
        """Blocks of a multiprocessor on targets before Hopper."""
        few = needed_registers(self.radices) <= _FEW_REGISTERS
        more = _MORE_BEFORE_HOPPER if few else 0
        return mixed_radix_blocks(self.radices, self._tile_bytes, self.warps, more)


def mixed_radix_blocks(radices: tuple[int, ...], shared: int, warps: int, more: int = 0) -> int:
    """Return the blocks of a multiprocessor, of some bytes of shared memory each.

    ``more`` is how many registers a thread needs beyond `needed_registers`.
    """
    most = min(
        _MAX_BLOCKS, SHARED_BYTES // (shared + RESERVED_BYTES), RESIDENT_THREADS // (WARP * warps)
    )
    needed = needed_registers(radices) + more
    every = range(most, 1, -1)
    return next((blocks for blocks in every if registers(WARP * warps * blocks) >= needed), 1)


@lru_cache(maxsize=4096)
def needed_registers(radices: tuple[int, ...]) -> int:
    """Return the registers of a thread, so that it does not spill; middle stages take some more."""
    needed = next((needed for most, needed in _NEEDED if max(radices) <= most), 128)
    return needed + 8 * (len(radices) > 2)


@lru_cache(maxsize=4096)
def _pitches(radices: tuple[int, ...], transforms: int) -> tuple[int, ...]:
    """Return the pitches of the fewest bank conflicts, then of the least memory."""
    choices: list[tuple[int, ...]] = [(1,)]
    for stage in range(len(radices) - 1, 0, -1):
        more = range(3 if stage == len(radices) - 1 else 4)
        choices = [(radices[stage] * one[0] + i, *one) for one in choices for i in more]
    return min(choices, key=lambda one: (round(_ways(radices, one, transforms), 2), one))


def _ways(radices: tuple[int, ...], pitches: tuple[int, ...], transforms: int) -> float:
    """Return how many of 16 lanes meet in one bank, on average of all accesses of a tile."""
    places: Array = np.zeros(1, np.int64)
    for radix, pitch in zip(radices, pitches, strict=True):
        places = np.add.outer(places, np.arange(radix) * pitch)
    places, last, total = places[0], len(radices) - 1, 0.0
    rows = np.arange(transforms)[:, None] * (radices[0] * pitches[0])
    for stage in range(last + 1):
        first = places.take(0, axis=stage)  # of each butterfly, by lanes
        every = (rows + (first.T if stage == last else first).ravel()).ravel()[
            :_SEEN_LANES
        ] % _BANKS
        lanes = every[: len(every) // _BANKS * _BANKS].reshape(-1, _BANKS)
        met = (lanes[:, :, None] == np.arange(_BANKS)).sum(axis=1).max(axis=1)
        total += (2 - (stage in (0, last))) * float(met.mean() if met.size else 1)
    return total / (2 * last)


def mixed_radix_table(radices: tuple[int, ...]) -> Array:
    """Return complex64 W_(R_s L_s)^(k n) of each stage but the last, (R_s, L_s)."""
    found = []
    for stage, radix in enumerate(radices[:-1]):
        rest = prod(radices[stage + 1 :])
        found.append(roots(np.outer(np.arange(radix), np.arange(rest)), radix * rest).ravel())
    return np.concatenate(found).astype(np.complex64)
