"""The butterfly plan: convolutions in fp32 by one block; its tables. Needs no GPU."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import ClassVar, TypeVar

import numpy as np

from argand.dft.method import Method, bluestein, dense, rader
from argand.dft.tables import Array, convolutions, roots
from argand.precision import Precision

Number = TypeVar("Number", int, Array)

STAGES = 4
"""Largest number of radices of a plan."""
LARGEST_RADIX = 64
"""Largest radix of a stage: a thread holds its numbers in registers."""
LARGEST_FIRST_BUTTERFLIES = 3
"""Largest number of first-stage butterflies of a thread; Bluestein's wait for the scale."""
LARGEST_OF_LOADED_TWIDDLES = 2048
"""Largest convolution that loads all twiddles; of longer ones most are products of others."""
LARGEST_SIZE = 1 << 16
"""Offsets have 16 bits."""


@dataclass(frozen=True)
class ButterflyPlan:
    """Transforms as convolutions of a product of radices, in fp32 (``cuda/dft/butterfly.cuh``).

    Attributes:
        length: N.
        rader: whether by Rader, for a prime that is the radices' product plus 1; else by Bluestein.
        radices: radices of the stages of a transform of the convolution's length, in order.
        warps: warps of a transform.
        groups: transforms that a block works on at a time.
    """

    kind: ClassVar[str] = "butterfly"
    wide_copies: ClassVar[bool] = False
    length: int
    rader: bool
    radices: tuple[int, ...]
    warps: int
    groups: int

    @property
    def size(self) -> int:
        """Length of the convolution."""
        return prod(self.radices)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.groups * self.warps * 32

    def busy_groups(self, rows: int, sm_count: int) -> int:
        """Return the groups of a launch of ``rows``: as few as need no further round of rows.

        In a last round of few groups these would wait for memory and at barriers alone.
        """
        each = -(-rows // sm_count)
        rounds = -(-each // self.groups)
        return -(-each // rounds)

    @property
    def multiplied_twiddles(self) -> int:
        """Twiddles that may be products of others, of those that a number meets on one way."""
        return (len(self.radices) - 1) * (self.size > LARGEST_OF_LOADED_TWIDDLES)

    def place(self, n: Number) -> Number:
        """Return indices in shared memory; after a line of even length one element is left free."""
        last = self.radices[-1]
        return n + (0 if last % 2 else n // last)

    @property
    def block_bytes(self) -> int:
        """Dynamic shared memory of a block."""
        tile = -(-(self.place(self.size - 1) + 1) * 8 // 128) * 128
        return self.groups * (tile + 8 + 4 * self.warps)

    def shared_bytes(self, precision: Precision) -> int:
        """Return the dynamic shared memory of a block, in fp32 at every precision."""
        return self.block_bytes

    @property
    def data_registers(self) -> int:
        """Registers of a thread for a butterfly, or for the numbers that wait for the scale."""
        return max(2 * max(self.radices), 2 * self.radices[0] + self._waiting)

    @property
    def _waiting(self) -> int:
        each = -(-self.length // self._first_stride)
        return 0 if self.rader else 2 * (self.first_butterflies - 1) * each

    @property
    def first_butterflies(self) -> int:
        """Butterflies of the first stage of a thread."""
        return -(-self._first_stride // (32 * self.warps))

    @property
    def _first_stride(self) -> int:
        """Distance of the numbers of a butterfly of the first stage."""
        return prod(self.radices[1:])

    @property
    def other_registers(self) -> int:
        """Registers beside these, so that no kernel spills (the tests compile some)."""
        if self.rader:
            return 56
        large = [radix for radix in self.radices if radix > 16]
        many = 16 * (self._waiting > 40) or 8 * (self._waiting > 16 and not large)
        return 32 + 8 * bool(large) + 24 * any(radix != 32 for radix in large) + many

    @property
    def stages(self) -> str:
        """The stages as text."""
        return f"{'rader' if self.rader else 'bluestein'}({' x '.join(map(str, self.radices))})"

    @property
    def transforms(self) -> int:
        """Transforms of a block at a time."""
        return self.groups

    @property
    def method(self) -> Method:
        """The method that it computes, with the convolution as one stage."""
        make = rader if self.rader else bluestein
        return make(self.length, dense(self.size))


@lru_cache(maxsize=64)
def stage_twiddles(radices: tuple[int, ...]) -> Array:
    """Return W^(u k) of every stage but the last, complex64: for k from 1 on, all u of a stride."""
    found = []
    size = prod(radices)
    for radix in radices[:-1]:
        stride = size // radix
        found.append(roots(np.outer(np.arange(1, radix), np.arange(stride)), size).ravel())
        size = stride
    return np.concatenate(found).astype(np.complex64)


def frequencies(radices: tuple[int, ...]) -> Array:
    """Return the frequency at each index after all stages, in digit-reversed order."""
    found, weight = np.zeros(1, np.int64), 1
    for radix in radices:
        found = (found[:, None] + weight * np.arange(radix)).ravel()
        weight *= radix
    return found


@lru_cache(maxsize=64)
def butterfly_tables(plan: ButterflyPlan, *, inverse: bool) -> tuple[int, dict[str, Array]]:
    """Return the exponent of the spectrum's scale, and the members of ``DftArguments`` by name.

    The spectrum has the order of the last stage's lanes: (radix, its butterflies).
    """
    (convolution,) = convolutions(plan.method, inverse=inverse)
    spectrum = convolution.spectrum[frequencies(plan.radices)].reshape(-1, plan.radices[-1]).T
    found = {
        "twiddles": stage_twiddles(plan.radices),
        "spectrum": np.ascontiguousarray(spectrum, np.complex64),
    }
    chirp = convolution.input_factors
    if chirp is not None:
        # Bluestein's chirp is the same before and after.
        return convolution.exponent, found | {"chirp": chirp.astype(np.complex64)}
    taken = np.empty(plan.size, np.int64)
    taken[convolution.input_order - 1] = np.arange(plan.size)
    found["gather_offsets"] = plan.place(taken).astype(np.uint16)
    found["scatter_offsets"] = plan.place(convolution.output_order).astype(np.uint16)
    return convolution.exponent, found
