"""Candidate plans of a softmax: how a plan follows from a few parameters, and which are measured.

Needs no GPU and no CuPy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from argand.device import Arch
from argand.multiprocessor import WARP
from argand.runtime.plan import is_legal
from argand.softmax.legality import check_softmax_plan, limited, value_registers
from argand.softmax.plan import (
    MAX_LOAD_STAGES,
    SMALL_BLOCK,
    RowPlan,
    SoftmaxForm,
    ring_block,
    ring_bytes,
    ring_grain,
    ring_line,
    row_line,
    stages_bytes,
)

STREAMED_WORDS = 32
"""Registers of a streamed row that a thread holds at a time."""
_MAX_WORDS = 64
"""Most registers of a row in a thread: twice as many would leave each scheduler one warp."""
_MAX_SLAB_WORDS = 96
"""Most registers of a row in a lane of a slab, whose next one is copied meanwhile."""
_RING_THREADS = ((256, 128), (384, 128), (480, 160), (512, 128), (512, 256), (576, 192))
_RING_EPILOGUE_STAGES = (2, 3, 4)
"""Threads of a ring that reduce and that write, and its epilogue stages, among the candidates."""
_RING_BYTES = (23 << 10, 52 << 10)
"""Least and most bytes of a bulk copy, of one slice of a row."""


@dataclass(frozen=True)
class SoftmaxCandidate:
    """Parameters of a plan for rows of about one length; the tuned table keeps them.

    Attributes:
        threads: threads of a block that hold values; in a ring those of the reduce warps.
        cluster: blocks that share a row.
        staged: whether a cluster copies the next row meanwhile.
        words: registers of a row that a thread holds at a time; 0: its whole part.
        epilogue_stages: epilogue stages of a ring; 0 for other plans.
        write_threads: threads of the write warps of a ring.
        slab_stages: stages of a slab plan, whose ``threads`` share a row; 0 for other plans.
        bulk: whether the slabs of a slab plan move by bulk copies.
    """

    threads: int
    cluster: int
    staged: bool = False
    words: int = 0
    epilogue_stages: int = 0
    write_threads: int = 0
    slab_stages: int = 0
    bulk: bool = False

    def plan(self, form: SoftmaxForm, arch: Arch, columns: int) -> RowPlan | None:
        """Return the plan for rows of this length; None where it is not legal."""
        if self.epilogue_stages:
            found = ring(form, arch, self, columns)
        elif self.slab_stages:
            found = slab(form, self.threads, columns, stages=self.slab_stages, bulk=self.bulk)
        elif self.words:
            found = streamed(form, self.threads, self.cluster, self.words)
        else:
            found = fitted(form, self.threads, self.cluster, columns, staged=self.staged)
        most = _MAX_SLAB_WORDS if found.slab else _MAX_WORDS
        if not found.ring and value_registers(form, found) > most:
            return None
        return found if is_legal(check_softmax_plan, found, form, arch) else None


_WITHOUT_RING = (
    *(
        SoftmaxCandidate(threads, 1, slab_stages=stages, bulk=bulk)
        for threads in (1, 2, 4, 8, 16, 32, 64, 96, 128, 160, 192, 256, 320, 384, 512)
        for stages in (2, 3)
        for bulk in (False, True)
    ),
    *(
        SoftmaxCandidate(threads, cluster, staged)
        for threads in (1, 2, 4, 8, 16, 32, 64, 128, 192, 256, 384, 512, 768, 1024)
        for cluster in (1, 2, 4, 8, 16)
        for staged in ((False, True) if cluster > 1 else (False,))
    ),
    *(
        SoftmaxCandidate(threads, cluster, words=words)
        for threads in (256, 384, 512, 768, 1024)
        for cluster in (1, 2, 4, 8, 16)
        for words in (16, STREAMED_WORDS)
    ),
)


@lru_cache(maxsize=8)
def every_candidate(sm_count: int) -> tuple[SoftmaxCandidate, ...]:
    """Return the candidates on ``sm_count`` multiprocessors; those that are legal are measured.

    Rings of as many blocks as divide the card leave none of it idle.
    """
    blocks = {1, 2, 4, 8, 16} | {count for count in range(1, sm_count + 1) if sm_count % count == 0}
    rings = (
        SoftmaxCandidate(threads, count, epilogue_stages=stages, write_threads=write_threads)
        for count in sorted(blocks)
        for threads, write_threads in _RING_THREADS
        for stages in _RING_EPILOGUE_STAGES
    )
    return (*_WITHOUT_RING, *rings)


def candidate_plans(
    form: SoftmaxForm, arch: Arch, sm_count: int, columns: int
) -> dict[SoftmaxCandidate, RowPlan]:
    """Return the candidates worth measuring for rows of this length, with plans, each plan once."""
    found: dict[RowPlan, SoftmaxCandidate] = {}
    for candidate in every_candidate(sm_count):
        plan = candidate.plan(form, arch, columns)
        if plan is not None and _is_worth_measuring(candidate, plan, form, columns):
            found.setdefault(plan, candidate)
    return {candidate: plan for plan, candidate in found.items()}


def _is_worth_measuring(
    candidate: SoftmaxCandidate, plan: RowPlan, form: SoftmaxForm, columns: int
) -> bool:
    if plan.ring:  # one bulk copy a slice has to be long
        least, most = _RING_BYTES
        copied = stages_bytes(form, columns // candidate.cluster, load=1, epilogue=0)
        return least <= copied <= most
    if plan.slab:
        return plan.row_threads == 1 or value_registers(form, plan) >= 8
    if candidate.words:  # some tiles of a row
        return columns >= 4 * candidate.threads * candidate.cluster * STREAMED_WORDS
    return candidate.threads == 1 or value_registers(form, plan) >= 8


def candidates(form: SoftmaxForm, arch: Arch, sm_count: int, columns: int) -> list[RowPlan]:
    """Return the candidate plans for rows of this length."""
    return list(candidate_plans(form, arch, sm_count, columns).values())


def values_of(form: SoftmaxForm, threads: int, cluster: int, columns: int) -> int:
    """Return how many values a thread of a resident row holds."""
    need = columns + (row_line(form, threads) - 1 if form.unaligned_rows else 0)
    step = max(2, form.vector)
    return -(-need // (threads * cluster * step)) * step


def fitted(
    form: SoftmaxForm, threads: int, cluster: int, columns: int, *, staged: bool = False
) -> RowPlan:
    """Return the resident or staged plan, whose ``cluster`` blocks of ``threads`` hold a row."""
    values = values_of(form, threads, cluster, columns)
    block = threads if threads > WARP else SMALL_BLOCK
    plan = RowPlan(threads, block, values, cluster, resident=True, staged=staged, blocks=1)
    return limited(form, plan)


def slab(form: SoftmaxForm, threads: int, columns: int, *, stages: int, bulk: bool) -> RowPlan:
    """Return the slab plan: ``threads`` hold a row, their warp or block has ``stages`` slabs."""
    values = -(-columns // threads)
    block = threads if threads > WARP else SMALL_BLOCK
    plan = RowPlan(
        threads, block, values, 1, resident=True, staged=False, blocks=1, slab_stages=stages,
        bulk=bulk,
    )  # fmt: skip
    return limited(form, plan)


def ring(
    form: SoftmaxForm, arch: Arch, candidate: SoftmaxCandidate, columns: int, *,
    blocks: int = 1, load_stages: int = MAX_LOAD_STAGES,
) -> RowPlan:  # fmt: skip
    """Return the ring plan, of slices of up to ``load_stages`` and the epilogue's rows per block.

    As many threads write as reduce where the candidate does not say how many. Epilogue stages are
    fewer where shared memory has no room for two load stages beside them. ``blocks`` are those of a
    multiprocessor.
    """
    threads, cluster = candidate.threads, candidate.cluster
    grain, line = ring_grain(form), ring_line(form)
    need = columns + (line - 1 if form.unaligned_rows or grain != form.vector else 0)
    slice_columns = -(-need // (cluster * line)) * line
    values = -(-slice_columns // (threads * grain)) * grain
    block = ring_block(threads, candidate.write_threads or threads, cluster)
    room = ring_bytes(arch, blocks)
    of_load = stages_bytes(form, slice_columns, load=1, epilogue=0)
    of_epilogue = stages_bytes(form, slice_columns, load=0, epilogue=1)
    epilogue_stages = max(1, min(candidate.epilogue_stages, (room - 2 * of_load) // of_epilogue))
    return RowPlan(
        threads,
        block,
        values,
        cluster,
        resident=True,
        staged=False,
        blocks=blocks,
        load_stages=min(load_stages, (room - epilogue_stages * of_epilogue) // of_load),
        epilogue_stages=epilogue_stages,
        slice_columns=slice_columns,
    )


def streamed(form: SoftmaxForm, threads: int, cluster: int, words: int) -> RowPlan:
    """Return the streamed plan: threads hold ``words`` registers of a row at a time."""
    values = max(2, form.vector, words * 4 // form.value_bytes)
    plan = RowPlan(threads, threads, values, cluster, resident=False, staged=False, blocks=1)
    return limited(form, plan)
