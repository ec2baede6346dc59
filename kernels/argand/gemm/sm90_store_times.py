"""The model of the time in which the wgmma family's plans store results. Needs no GPU and no CuPy.

`gemm.sm90_heuristics` says to what the constants were fitted.
"""

from __future__ import annotations

from argand.gemm.candidates import GemmChoice
from argand.gemm.question import Question
from argand.gemm.sm90_plan import WgmmaPlan
from argand.precision import Precision

_STORE_BYTES = 32.1e9
"""Bytes a second that a multiprocessor's epilogue stores."""
_DIRECT_STORE = 1.2
"""Factor of a store from registers: of full tiles, or of odd pitch."""
_SHIFTED_STORE = 1.5
"""The same of rows that begin in the middle of 16 bytes, and of 16-bit results one by one. Tiles
that share columns store whole sectors of L2, and have none."""
_OVERLAPPED_STORE, _HALF_SECTORS_OVERLAPPED = 0.665, 0.8
"""Fraction of a store's time that remains with an overlapped epilogue, and where rows begin in the
middle of a sector of L2 (13 plans of drawn products took 1.05 to 1.14 of their estimates)."""
_STORE_IN_TURN = 0.8
"""The same at one term where two warpgroups multiply in turn (80 plans of drawn products, an H200).
Planes of 16 bits take as long as without, two terms nearly."""
_EXCHANGE_BYTES = 1.1e11
"""Bytes a second that one of two warpgroups that share k adds of the accumulators of the other."""


def stores_directly(plan: WgmmaPlan, precision: Precision, columns: int) -> bool:
    """Return whether a tile is stored from registers: TMA or registers allow nothing else."""
    wide = plan.block_n == 128 and precision.terms > 1
    return columns % 2 == 1 or plan.odd_pitch or plan.cluster > 1 or wide


def store_seconds(choice: GemmChoice, plan: WgmmaPlan, question: Question) -> float:
    """Return the seconds of a tile's epilogue that nothing overlaps."""
    precision, sizes, *_ = question
    n = sizes.n
    store = plan.block_m * plan.block_n * (4 if sizes.narrow else 8) / _STORE_BYTES
    if sizes.narrow:
        store *= _SHIFTED_STORE if choice.swapped or n % 2 else 1.0
    elif stores_directly(plan, precision, n) and choice.split_k_slices == 1:
        shifted = _SHIFTED_STORE if n % 2 else _DIRECT_STORE
        store *= 1.0 if plan.shared_columns else shifted
    added = 8 * plan.block_m * plan.block_n * (plan.k_warpgroups - 1) / _EXCHANGE_BYTES
    return store / plan.cluster + added


def store_beside_mainloop(
    plan: WgmmaPlan, precision: Precision, columns: int, *, overlapped: bool, in_turn: bool
) -> float:
    """Return the fraction of a store's time that remains where another tile follows.

    ``overlapped`` says that the epilogue is, ``in_turn`` that two warpgroups multiply in turn.
    """
    if overlapped:
        return _OVERLAPPED_STORE if columns % 4 == 0 else _HALF_SECTORS_OVERLAPPED
    hides = in_turn and precision.terms == 1 and not in_16_bit_planes(plan, precision)
    return _STORE_IN_TURN if hides else 1.0


def in_16_bit_planes(plan: WgmmaPlan, precision: Precision) -> bool:
    """Return whether the row operand, too, is in planes of 16 bits."""
    return plan.storage == "planar" and precision.operand.bytes == 2
