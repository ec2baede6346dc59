"""The division of a state among kernels of marginal probabilities. Needs no GPU and no CuPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from argand.multiprocessor import WARP
from argand.readout.bit_runs import padded, runs_to
from argand.readout.source import CHUNK, MARGINAL_CHUNKS, MAX_CHOSEN, MAX_SEGMENTS, THREADS

_MOST_SUMS = 1 / 8
"""Sums of all shares over the state's amplitudes; of complex64 each has as many bytes."""
_BLOCKS_TO_READ = 4
"""Part of the blocks of a device that read at nearly the rate of all."""


@dataclass(frozen=True)
class MarginalPlan:
    """Tiles of the lowest qubits, and the chosen qubits in and above them.

    Attributes:
        qubits: qubits of the state.
        width: qubits of a tile.
        chosen: as a call gives them.
        shares: blocks among which the tiles of one setting of the higher qubits are divided. The
            sums of a single one are the marginals; those of several take a second kernel.
    """

    qubits: int
    width: int
    chosen: tuple[int, ...]
    shares: int

    @property
    def low(self) -> list[int]:
        """Chosen qubits of a tile, ascending."""
        return sorted(qubit for qubit in self.chosen if qubit < self.width)

    @property
    def high(self) -> list[int]:
        """Chosen qubits above a tile, ascending."""
        return sorted(qubit for qubit in self.chosen if qubit >= self.width)

    @property
    def items(self) -> int:
        """Shares of all tiles, which blocks take one after another."""
        return self.shares << len(self.high)

    @property
    def lanes(self) -> int:
        """Lanes that add the shares of an outcome."""
        return min(WARP, 1 << (self.shares - 1).bit_length())

    @property
    def tiles(self) -> int:
        """Tiles of one setting of the higher qubits."""
        return 1 << (max(0, self.qubits - self.width) - len(self.high))

    @property
    def _order(self) -> tuple[int, ...]:
        """The bit of an outcome of each chosen qubit, ascending."""
        order = [self.chosen.index(qubit) for qubit in (*self.low, *self.high)]
        return padded(order, MAX_CHOSEN)

    def sums(self) -> dict[str, Any]:
        """Return the members of ``MarginalArguments``, addresses 0."""
        high = [qubit - self.width for qubit in self.high]
        above = range(max(0, self.qubits - self.width))
        free = runs_to([bit for bit in above if bit not in high])
        fixed = runs_to(high)
        return {
            "state": 0, "partials": 0, "tiles": self.tiles,
            "amplitudes": 1 << min(self.width, self.qubits),
            "free_mask": padded([mask for mask, _ in free], MAX_SEGMENTS),
            "high_mask": padded([mask for mask, _ in fixed], MAX_SEGMENTS),
            "free_shift": padded([shift for _, shift in free], MAX_SEGMENTS),
            "high_shift": padded([shift for _, shift in fixed], MAX_SEGMENTS),
            "low_bit": padded(self.low, MAX_CHOSEN), "free_segments": len(free),
            "high_segments": len(fixed), "low_count": len(self.low), "shares": self.shares,
            "high_settings": 1 << len(self.high),
            "place_mask": (1 << self.width) - 1 - sum(1 << qubit for qubit in self.low),
            "order": self._order,
        }  # fmt: skip

    def finish(self) -> dict[str, Any]:
        """Return the members of ``FinishArguments``, addresses 0."""
        return {
            "partials": 0, "out": 0, "outcomes": 1 << len(self.chosen),
            "low_count": len(self.low), "shares": self.shares, "lanes": self.lanes,
            "order": self._order,
        }  # fmt: skip


def plan_marginals(qubits: int, item: int, chosen: Sequence[int], blocks: int) -> MarginalPlan:
    """Return the plan for a state of ``qubits`` qubits on a device that holds ``blocks`` blocks.

    The sums of all shares, which are written and read, have at most `_MOST_SUMS` of the state's
    amplitudes, unless fewer shares leave multiprocessors without a block.
    """
    width = (THREADS * MARGINAL_CHUNKS * CHUNK // item).bit_length() - 1
    whole = MarginalPlan(qubits, width, tuple(chosen), 1)
    few = int(_MOST_SUMS * 2 ** (qubits - len(chosen)))
    least = blocks // _BLOCKS_TO_READ >> len(whole.high)
    shares = max(1, min(whole.tiles, max(few, least), blocks >> len(whole.high)))
    return MarginalPlan(qubits, width, tuple(chosen), shares)
