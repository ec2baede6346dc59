"""Plans of the pack kernel of the wgmma family. Nothing here needs a GPU or CuPy."""

from __future__ import annotations

from dataclasses import dataclass

from argand.precision import Precision

THREADS, TILE = 256, 4096
"""Threads of a block, and most complex numbers of the tile that it packs (gemm/pack_tile.cuh)."""
_PITCH = 16
"""Planes are padded to a multiple of this many k."""
_RESIDENT_PANELS = 4
"""Panels whose blocks are resident at once where they wait for each other."""
_ROWS, _FEW_ROWS = 64, 16
"""Rows of a panel, and of one whose rows are scaled where k takes more than one tile."""
_FILLED_K = 1024
"""The least k at which panels that are not full take no longer than others."""
ALONE_K = TILE // _FEW_ROWS
"""Largest k, up to a multiple of 16, at which one block packs whole rows and finds their absmax."""


@dataclass(frozen=True)
class PackPlan:
    """A plan of the pack kernel for one source.

    ``half_source`` says that it holds pairs of 16 bits, ``k_major`` that k is its contiguous axis,
    ``vector`` how many complex numbers one read takes (2 needs them aligned). A block packs a tile
    of ``elements``, ``rows`` by `tile_k` k; the blocks of the same rows are a panel.
    ``exchanges_k`` has k = 2 i and 2 i + 1 change places in every second matrix, as beside an X of
    odd batches. The blocks of a panel are a ``cluster``, or wait for each other where there is 1 in
    it.
    """

    half_source: bool = False
    k_major: bool = True
    vector: int = 1
    rows: int = 64
    exchanges_k: bool = False
    cluster: int = 1
    elements: int = TILE

    @property
    def blocks_per_sm(self) -> int:
        """Resident blocks, limited by 37 KB of shared memory and 48 or 64 registers per thread."""
        return 5 if self.rows < 64 else 4

    @property
    def loads_whole_lines(self) -> bool:
        """Whether the threads load whole lines of a tile, and a warp k of one row where it is."""
        return not self.k_major or 32 <= self.tile_k // self.vector <= THREADS

    @property
    def tile_k(self) -> int:
        """Elements of k that a block packs."""
        return self.elements // self.rows

    def panels(self, rows: int, batches: int) -> int:
        """Return how many panels ``batches`` matrices of ``rows`` rows have."""
        return batches * -(-rows // self.rows)

    def panel_blocks(self, pitch: int) -> int:
        """Return how many blocks a panel has."""
        return self.cluster if self.cluster > 1 else -(-pitch // self.tile_k)


def scales(precision: Precision, plan: PackPlan) -> bool:
    """Return whether rows are scaled: 16-bit sources are in the operand format already."""
    return precision.scaled and not plan.half_source


def panel_rows(precision: Precision, half_source: bool, pitch: int) -> int:
    """Return the rows of a panel: few where its blocks wait for each other and k is long.

    Fewer blocks then wait, of a k that one block holds none. Elsewhere a tile has as many rows as
    k, so that either axis may be the contiguous one.
    """
    return _FEW_ROWS if precision.scaled and not half_source and pitch > _ROWS else _ROWS


def panel_fill(precision: Precision, rows: int, k: int) -> float:
    """Return the factor of packing a matrix whose last panel is not full: the blocks wait as long.

    It is the rows of its panels over its own, and 1 where one block has all of k or k is long.
    """
    panel = panel_rows(precision, half_source=False, pitch=k)
    waits = panel == _ROWS or ALONE_K < k < _FILLED_K
    return -(-rows // panel) * panel / rows if waits else 1.0


def scaled_blocks(precision: Precision, rows: int, k: int) -> int:
    """Return the blocks that pack a matrix of ``rows`` scaled rows of k."""
    pitch = pitch_of(k)
    plan = PackPlan(rows=panel_rows(precision, half_source=False, pitch=pitch))
    return plan.panels(rows, 1) * -(-pitch // plan.tile_k)


def panels_resident(plan: PackPlan, pitch: int, sm_count: int) -> bool:
    """Return whether a panel's blocks are resident at once: then they exchange the row absmax."""
    return _RESIDENT_PANELS * plan.panel_blocks(pitch) <= plan.blocks_per_sm * sm_count


def pitch_of(k: int) -> int:
    """Return the elements of k from row to row of an operand's planes."""
    return max(_PITCH, -(-k // _PITCH) * _PITCH)


def planes_bytes(precision: Precision, rows: int, k: int, batches: int) -> int:
    """Return the bytes of ``batches`` matrices of rows by k in planes."""
    return batches * rows * pitch_of(k) * precision.planar_bytes
