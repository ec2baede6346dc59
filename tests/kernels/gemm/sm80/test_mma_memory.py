"""Shared memory of blocks of the mma.sync family."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from argand import PRECISIONS
from argand.gemm.sm80.occupancy import launched_bytes
from argand.gemm.sm80.plan import CLUSTER_SIZES, MmaPlan
from argand.gemm.sm80.tiles import mma_tiles
from argand.multiprocessor import RESERVED_BYTES, SHARED_BYTES

from tests.kernels.compiled import ARCHS


def test_a_short_k_leaves_memory_of_its_stages() -> None:
    tile = MmaPlan(32, 32, 32, 2, 2, 3)
    stage = tile.shared_bytes // 3
    assert [tile.least_bytes(k) // stage for k in (0, 1, 32, 33, 64, 65, 5000)] == [
        1, 1, 1, 2, 2, 3, 3,
    ]  # fmt: skip
    # Partial sums lie in the memory of all stages.
    for cut in (replace(tile, warps_k=2), replace(tile, cluster=2)):
        assert cut.least_bytes(1) == cut.shared_bytes


def test_clusters_have_no_more_room_than_their_blocks_need() -> None:
    """A multiprocessor has room for three blocks of 64 x 16, for two with memory of a part more."""
    arch, tile = ARCHS["sm_90a"], MmaPlan(64, 16, 32, 4, 1, 3, cluster=3)
    least = tile.least_bytes(855)
    more = [launched_bytes(tile, 855, x, 132, arch) - least for x in (1, 234, 235, 468)]
    assert more == [tile.part_bytes, tile.part_bytes, 0, 0]
    for plan, slices in product(mma_tiles(PRECISIONS["3xtf32"], arch), CLUSTER_SIZES[1:]):
        cut = replace(plan, cluster=slices)
        if cut.shared_bytes < arch.shared_bytes:
            assert launched_bytes(cut, 4096, 1, 132, arch) <= arch.shared_bytes


def test_a_multiprocessor_has_room_for_no_more_blocks_than_it_needs() -> None:
    arch, tile = ARCHS["sm_90a"], MmaPlan(64, 16, 32, 4, 1, 3)
    for blocks, held in ((1, 1), (132, 1), (133, 2), (264, 2), (397, 4)):
        nbytes = launched_bytes(tile, 40, blocks, 132, arch) + RESERVED_BYTES
        assert SHARED_BYTES // nbytes == held, blocks
    # Many blocks follow each other, and other cards have other memory.
    assert launched_bytes(tile, 40, 9999, 132, arch) == tile.least_bytes(40)
    assert launched_bytes(tile, 40, 1, 108, ARCHS["sm_80"]) == tile.least_bytes(40)
