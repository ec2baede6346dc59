"""Which plan a softmax takes on a GPU: the measured ladders, and every plan worth measuring.

Needs no GPU and no CuPy.
"""

from __future__ import annotations

from argand.device import Arch
from argand.softmax_formats import ELEMENT_BYTES
from argand.softmax_plan import (
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
_SINGLE: tuple[_Step, ...] = (
    (32, 2, 1, False), (64, 4, 1, False), (128, 8, 1, False), (256, 32, 1, False),
    (1024, 64, 1, False), (2048, 64, 1, False), (4096, 256, 1, False), (16384, 256, 1, False),
    (32768, 512, 1, True), (53248, 256, 4, False), (65536, 384, 4, False), (131072, 256, 8, True),
    (262144, 512, 8, True), (524288, 512, 16, True),
)  # fmt: skip
_LADDERS: dict[int, tuple[_Step, ...]] = {
    8: tuple((limit // 2, threads, cluster, False) for limit, threads, cluster, _ in _SINGLE),
    4: _SINGLE,
    2: (
        (32, 2, 1, False), (64, 4, 1, False), (128, 8, 1, False), (256, 16, 1, False),
        (1024, 64, 1, False), (2048, 128, 1, False), (4096, 256, 1, False), (8192, 512, 1, False),
        (16384, 128, 1, False), (32768, 256, 1, False), (65536, 512, 1, False),
        (131072, 512, 2, True), (262144, 512, 4, True), (524288, 512, 8, True),
        (1048576, 512, 16, True),
    ),
}  # fmt: skip
"""By bytes of a value: up to how many columns which threads of how many blocks share a row, and
whether it is staged. Measured on an H200 by ``benchmarks/softmax_plans.py``; fp64 after fp32."""
_STAGED_EDGES = 512
"""Threads of a block from which rows with edges are staged: it waits for their cut accesses."""
_STREAMED_THREADS = 256
_STREAMED_WORDS = 32
_MOST_WORDS = 64
"""Of 32 bits that a thread holds of a row: twice that would leave one warp a scheduler."""
_Rung = tuple[int, int, int, int, int, int]
_RINGS: dict[int, tuple[_Rung, ...]] = {
    4: (
        (32768, 53248, 6, 512, 256, 4), (131072, 270336, 33, 384, 128, 4),
        (270336, 360448, 44, 384, 128, 4), (360448, 540672, 66, 384, 128, 4),
        (540672, 2400000, 132, 512, 256, 4),
    ),
    2: ((540672, 1200000, 66, 256, 128, 4), (1200000, 4800000, 132, 256, 128, 4)),
}  # fmt: skip
"""By bytes of an element of x: from and up to how many columns a ring of which blocks, threads that
sum, threads that write, and lag; in between there is none. Measured as the ladders are."""
_RING_BLOCKS = (1, 2, 3, 4, 6, 8, 11, 12, 16, 22, 33, 44, 66, 132)
_RING_THREADS = ((256, 128), (384, 128), (512, 128), (512, 256))
_RING_LAGS = (2, 3, 4)
_RING_BYTES = (23 << 10, 52 << 10)
_LEAST_PART = 2048
"""Columns for which another block is worth its start where multiprocessors have nothing to do."""


def plan_softmax(
    form: SoftmaxForm, arch: Arch, *, rows: int, columns: int, cores: int
) -> SoftmaxPlan:
    """The plan for rows of this length on a GPU with so many multiprocessors."""
    plan = _ring_for(form, arch, columns, cores)
    if plan is not None:
        return plan
    most = LARGEST_CLUSTER if arch.sm >= CLUSTER_SM else 1
    threads, cluster, staged = _STREAMED_THREADS, most, False
    for limit, *found in _LADDERS[form.value_bytes]:
        if columns <= limit:
            threads, cluster, staged = found[0], min(most, found[1]), bool(found[2])
            break
    staged = staged or (form.edges and threads >= _STAGED_EDGES)
    # Few rows would leave multiprocessors idle.
    while (
        threads > WARP
        and cluster < most
        and (rows * cluster * 2 <= cores and columns // (2 * cluster) >= _LEAST_PART)
    ):
        cluster *= 2
    ways = [(threads, staged), (threads, False)]
    while threads < LARGEST_BLOCK:
        threads *= 2
        ways.append((threads, False))
    for threads, staged in ways:
        plan = fitted(form, threads, cluster, columns, staged=staged)
        if _words(form, plan) <= _MOST_WORDS and is_legal(plan, form, arch):
            return plan
    return streamed(form, _STREAMED_THREADS, cluster, _STREAMED_WORDS)


def _ring_for(form: SoftmaxForm, arch: Arch, columns: int, cores: int) -> SoftmaxPlan | None:
    for least, most, blocks, threads, writers, lag in _RINGS.get(ELEMENT_BYTES[form.input], ()):
        if least < columns <= most:
            plan = ring(form, arch, threads, min(blocks, cores), columns, writers=writers, lag=lag)
            return plan if is_legal(plan, form, arch) else None
    return None


def candidates(form: SoftmaxForm, arch: Arch, columns: int) -> list[SoftmaxPlan]:
    """Every plan worth measuring for rows of this length."""
    found: dict[SoftmaxPlan, None] = {}
    for threads in (1, 2, 4, 8, 16, 32, 64, 128, 192, 256, 384, 512, 768, 1024):
        for cluster in (1, 2, 4, 8, 16):
            for staged in (False, True):
                plan = fitted(form, threads, cluster, columns, staged=staged)
                words = _words(form, plan)
                if words <= _MOST_WORDS and (words >= 8 or threads == 1):
                    found[plan] = None
            if threads >= 256 and columns >= 4 * threads * cluster * _STREAMED_WORDS:
                for held in (16, 32):
                    found[streamed(form, threads, cluster, held)] = None
    for plan in rings(form, arch, columns):
        found[plan] = None
    return [plan for plan in found if is_legal(plan, form, arch)]


def rings(form: SoftmaxForm, arch: Arch, columns: int) -> list[SoftmaxPlan]:
    """Rings worth measuring, legal or not: slices that are long enough to be copied in a piece."""
    least, most = _RING_BYTES
    return [
        ring(form, arch, threads, blocks, columns, writers=writers, lag=lag)
        for blocks in _RING_BLOCKS
        if least <= stage_bytes(form, columns // blocks) <= most
        for threads, writers in _RING_THREADS
        for lag in _RING_LAGS
    ]


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
