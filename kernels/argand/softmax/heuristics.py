"""Which plan a softmax takes on a GPU: ladders measured on an H200, and every way worth measuring.

Needs no GPU and no CuPy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from argand.device import Arch
from argand.runtime.plan import PlanError
from argand.softmax.formats import ELEMENT_BYTES
from argand.softmax.plan import (
    CLUSTER_SM,
    LARGEST_BLOCK,
    LARGEST_CLUSTER,
    MOST_STAGES,
    SMALL_BLOCK,
    WARP,
    SoftmaxForm,
    SoftmaxPlan,
    is_legal,
    limited,
    ring_block,
    ring_bytes,
    ring_grain,
    ring_line,
    row_line,
    stage_bytes,
)

_SHORT_COLUMNS = 256
"""Up to here whole small accesses are faster than large ones of which some are cut."""


def choose_vector(most: int, even: int, columns: int) -> int:
    """Values of an access, of which ``most`` fill it and ``even`` never meet a row's edge."""
    return even if columns <= _SHORT_COLUMNS else most


_Step = tuple[int, int, int, bool]
_NARROW: tuple[_Step, ...] = (
    (32, 2, 1, False), (64, 4, 1, False), (128, 8, 1, False), (256, 32, 1, False),
    (1024, 64, 1, False), (2048, 64, 1, False), (4096, 256, 1, False),
)  # fmt: skip
_LADDERS: dict[int, tuple[_Step, ...]] = {
    8: (
        *((limit // 2, threads, cluster, False) for limit, threads, cluster, _ in _NARROW),
        (8192, 256, 1, False), (16384, 512, 1, False), (26624, 256, 4, False),
        (32768, 384, 4, False), (65536, 256, 8, False), (131072, 512, 8, False),
        (262144, 512, 16, False),
    ),
    4: (
        *_NARROW, (13312, 384, 1, False), (16384, 256, 1, False), (32768, 512, 1, False),
        (53248, 256, 4, False), (65536, 512, 2, True), (65536, 384, 4, False),
        (131072, 256, 8, True), (262144, 512, 8, True), (524288, 512, 16, True),
    ),
    2: (
        (32, 2, 1, False), (64, 4, 1, False), (128, 8, 1, False), (256, 16, 1, False),
        (1024, 64, 1, False), (2048, 128, 1, False), (4096, 256, 1, False), (8192, 512, 1, False),
        (13312, 384, 1, False), (16384, 128, 1, False), (32768, 256, 1, False),
        (65536, 512, 1, False), (131072, 512, 2, True), (262144, 512, 4, True),
        (524288, 512, 8, True), (1048576, 512, 16, True),
    ),
}  # fmt: skip
"""By bytes of a value: up to how many columns which threads of how many blocks share a row, and
whether it is staged; the next of the same length where that is not legal. Measured on an H200 by
``benchmarks/softmax/plans.py``; fp64 after fp32."""
_STAGED_EDGES = 512
"""Threads of a block from which rows with edges are staged: it waits for their cut accesses."""
_STREAMED_THREADS = 256
_STREAMED_WORDS = 32
_MOST_WORDS = 64
"""Of 32 bits that a thread holds of a row: twice that would leave one warp a scheduler."""
_Rung = tuple[int, int, int, int, int, int]
_RINGS: dict[int, tuple[_Rung, ...]] = {
    4: (
        (32768, 53248, 6, 512, 256, 4), (131072, 270336, 33, 512, 256, 4),
        (270336, 360448, 44, 384, 128, 4), (360448, 540672, 66, 384, 128, 4),
        (540672, 2400000, 132, 512, 256, 4),
    ),
    2: (
        (131072, 270336, 16, 512, 256, 4), (270336, 540672, 33, 512, 256, 4),
        (540672, 1200000, 66, 512, 256, 4), (1200000, 4800000, 132, 256, 128, 4),
    ),
}  # fmt: skip
"""By bytes of an element of x: from and up to how many columns a ring of which blocks, threads that
sum, threads that write, and lag; in between there is none. Measured as the ladders are."""
_RING_BLOCKS = (1, 2, 3, 4, 6, 8, 11, 12, 16, 22, 33, 44, 66, 132)
_RING_THREADS = ((256, 128), (384, 128), (512, 128), (512, 256))
_RING_LAGS = (2, 3, 4)
_RING_BYTES = (23 << 10, 52 << 10)
_LEAST_PART = 2048
"""Columns for which another block is worth its start where multiprocessors have nothing to do."""


@dataclass(frozen=True)
class SoftmaxWay:
    """A way of holding rows of about one length.

    Attributes:
        threads: of a block that hold values.
        cluster: blocks that share a row.
        staged: whether the next row is on its way meanwhile.
        words: registers that a thread holds of a row at a time; 0: its whole part.
        lag: of a ring, which it is where there is one.
        writers: of a ring, threads that write.
    """

    threads: int
    cluster: int
    staged: bool = False
    words: int = 0
    lag: int = 0
    writers: int = 0

    def plan(self, form: SoftmaxForm, arch: Arch, columns: int) -> SoftmaxPlan | None:
        """The plan for rows of this length; None where there is none."""
        if self.lag:
            found = ring(
                form, arch, self.threads, self.cluster, columns, writers=self.writers, lag=self.lag
            )
        elif self.words:
            found = streamed(form, self.threads, self.cluster, self.words)
        else:
            found = fitted(form, self.threads, self.cluster, columns, staged=self.staged)
            if _words(form, found) > _MOST_WORDS:
                return None
        return found if is_legal(found, form, arch) else None


def plan_softmax(
    form: SoftmaxForm, arch: Arch, *, rows: int, columns: int, cores: int,
    measured: SoftmaxWay | None = None,
) -> SoftmaxPlan:  # fmt: skip
    """The plan for rows of this length on a GPU with so many multiprocessors.

    ``measured`` on that GPU goes before the ladders.
    """
    for way in (
        measured,
        _ring_for(form, columns, cores),
        *_steps(form, arch, rows, columns, cores),
    ):
        plan = way.plan(form, arch, columns) if way else None
        if plan is not None:
            return plan
    raise PlanError(f"no plan for rows of {columns} columns of {form}")


def _steps(
    form: SoftmaxForm, arch: Arch, rows: int, columns: int, cores: int
) -> Iterator[SoftmaxWay]:
    """The ladder's step and, where it is not legal, others that may be."""
    most = LARGEST_CLUSTER if arch.sm >= CLUSTER_SM else 1
    left = [step for step in _LADDERS[form.value_bytes] if columns <= step[0]]
    here = [step for step in left if step[0] == left[0][0]]
    for _, threads, blocks, staged in here or [(columns, _STREAMED_THREADS, most, False)]:
        cluster = min(most, blocks)
        # Few rows would leave multiprocessors idle.
        while (
            threads > WARP
            and cluster < most
            and (rows * cluster * 2 <= cores and columns // (2 * cluster) >= _LEAST_PART)
        ):
            cluster *= 2
        if staged or (form.edges and threads >= _STAGED_EDGES):
            yield SoftmaxWay(threads, cluster, staged=True)
    while threads <= LARGEST_BLOCK:
        yield SoftmaxWay(threads, cluster)
        threads *= 2
    yield SoftmaxWay(_STREAMED_THREADS, cluster, words=_STREAMED_WORDS)


def _ring_for(form: SoftmaxForm, columns: int, cores: int) -> SoftmaxWay | None:
    for least, most, blocks, threads, writers, lag in _RINGS.get(ELEMENT_BYTES[form.input], ()):
        if least < columns <= most:
            return SoftmaxWay(threads, min(blocks, cores), lag=lag, writers=writers)
    return None


EVERY_WAY: tuple[SoftmaxWay, ...] = (
    *(
        SoftmaxWay(threads, cluster, staged)
        for threads in (1, 2, 4, 8, 16, 32, 64, 128, 192, 256, 384, 512, 768, 1024)
        for cluster in (1, 2, 4, 8, 16)
        for staged in (False, True)
    ),
    *(
        SoftmaxWay(threads, cluster, words=words)
        for threads in (256, 384, 512, 768, 1024)
        for cluster in (1, 2, 4, 8, 16)
        for words in (16, _STREAMED_WORDS)
    ),
    *(
        SoftmaxWay(threads, blocks, lag=lag, writers=writers)
        for blocks in _RING_BLOCKS
        for threads, writers in _RING_THREADS
        for lag in _RING_LAGS
    ),
)
"""What is looked among."""


def ways(form: SoftmaxForm, arch: Arch, columns: int) -> dict[SoftmaxWay, SoftmaxPlan]:
    """Every way worth measuring for rows of this length, with its plan; one way of each plan."""
    found: dict[SoftmaxPlan, SoftmaxWay] = {}
    for way in EVERY_WAY:
        plan = way.plan(form, arch, columns)
        if plan is not None and _worth(way, plan, form, columns):
            found.setdefault(plan, way)
    return {way: plan for plan, way in found.items()}


def _worth(way: SoftmaxWay, plan: SoftmaxPlan, form: SoftmaxForm, columns: int) -> bool:
    if plan.ring:  # slices that are long enough to be copied in a piece
        least, most = _RING_BYTES
        return least <= stage_bytes(form, columns // way.cluster) <= most
    if way.words:  # some tiles of a row
        return columns >= 4 * way.threads * way.cluster * _STREAMED_WORDS
    return way.threads == 1 or _words(form, plan) >= 8


def candidates(form: SoftmaxForm, arch: Arch, columns: int) -> list[SoftmaxPlan]:
    """Every plan worth measuring for rows of this length."""
    return list(ways(form, arch, columns).values())


def _words(form: SoftmaxForm, plan: SoftmaxPlan) -> int:
    """Registers that a thread's values take."""
    return plan.values * form.value_bytes // 4


def _values(form: SoftmaxForm, threads: int, cluster: int, columns: int) -> int:
    need = columns + (row_line(form, threads) - 1 if form.edges else 0)
    step = max(2, form.vector)
    return -(-need // (threads * cluster * step)) * step


def fitted(
    form: SoftmaxForm, threads: int, cluster: int, columns: int, *, staged: bool = False
) -> SoftmaxPlan:
    """The plan with so many threads in each of so many blocks that hold a whole row."""
    values = _values(form, threads, cluster, columns)
    block = threads if threads > WARP else SMALL_BLOCK
    return limited(form, SoftmaxPlan(threads, block, values, cluster, True, staged, 1))


def ring(
    form: SoftmaxForm, arch: Arch, threads: int, cluster: int, columns: int, *,
    writers: int = 0, lag: int = 1, blocks: int = 1, stages: int = MOST_STAGES,
) -> SoftmaxPlan:  # fmt: skip
    """The plan of blocks with up to so many rows in shared memory, of which each has a slice.

    As many threads write as hold values, unless it is said how many. The lag is less where there
    would be no room for two stages.
    """
    grain, line = ring_grain(form), ring_line(form)
    need = columns + (line - 1 if form.edges or grain != form.vector else 0)
    slice = -(-need // (cluster * line)) * line
    values = -(-slice // (threads * grain)) * grain
    block = ring_block(threads, writers or threads, cluster)
    room = ring_bytes(arch, blocks) // stage_bytes(form, slice)
    lag = max(1, min(lag, room - 2))
    return SoftmaxPlan(
        threads, block, values, cluster, True, False, blocks, min(stages, room - lag), lag, slice
    )


def streamed(form: SoftmaxForm, threads: int, cluster: int, words: int) -> SoftmaxPlan:
    """The plan whose threads hold so many registers of a row at a time."""
    values = max(2, form.vector, words * 4 // form.value_bytes)
    return limited(form, SoftmaxPlan(threads, threads, values, cluster, False, False, 1))
