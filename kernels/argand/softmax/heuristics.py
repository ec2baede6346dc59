"""The choice of a softmax's plan on a GPU: by the modules of each kind of rows, and by tables.

Needs no GPU and no CuPy.

The times that constants are fitted to are in docs/experiments/2026-11-30-fitted-constants.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from argand.device import Arch
from argand.multiprocessor import CLUSTER_SM, LARGEST_BLOCK, LARGEST_CLUSTER, WARP
from argand.runtime.plan import PlanError
from argand.softmax.candidates import STREAMED_WORDS, SoftmaxCandidate, values_of
from argand.softmax.few_rows import few_rows_candidate
from argand.softmax.formats import ELEMENT_BYTES, Operation
from argand.softmax.narrow_rows import FULL, narrow_candidate
from argand.softmax.plan import SMALL_BLOCK, RowPlan, SoftmaxForm
from argand.softmax.resident import resident_candidate
from argand.softmax.rings import CLUSTER_COLUMNS, MIN_PART, ring_candidates
from argand.softmax.slabs import SHORT_COLUMNS, slab_candidate
from argand.softmax.thread_tables import THREADS

_SHORT_COLUMNS_OF_4 = 512
"""`SHORT_COLUMNS` of values of 4 bytes."""
_VALUES_OF_4 = 4
"""Values of 4 bytes that a full access has."""
_SUM_UNALIGNED_COLUMNS = 160
"""Rows of 16 bits from here on whose ``logsumexp`` takes accesses of four values though they cross
edges."""


def choose_vector(
    most: int, even: int, columns: int, operation: Operation, *, few: bool = False
) -> int:
    """Return the values of an access: ``most`` fill it, ``even`` never cross a row's edge.

    ``few`` says whether there are few rows (`softmax.few_rows`).
    """
    if few:
        return even
    short = _SHORT_COLUMNS_OF_4 if most == _VALUES_OF_4 else SHORT_COLUMNS
    if columns > short:
        return most
    sums = operation == "logsumexp" and most > _VALUES_OF_4
    return max(even, _VALUES_OF_4) if sums and columns >= _SUM_UNALIGNED_COLUMNS else even


_STAGED_UNALIGNED_THREADS = 512
"""Fewest threads whose cluster's unaligned rows are staged: a block waits for their cut
accesses."""
_STREAMED_THREADS = 256
_SUM_BYTES = 96 << 10
"""The longest rows that ``logsumexp`` holds where there are many. It writes none, so longer ones
are streamed and read once all the same, and no block waits for another."""
_SUM_BYTES_OF_16BIT = 64 << 10
"""The same for rows of 16 bits, where a thread takes as many instructions for half as many
bytes."""
_SUM_ROWS = 7
"""The least such rows for each multiprocessor, which has two blocks or more at a time."""
_SUM_WORDS = 16
"""Registers of a streamed row of ``logsumexp`` that a thread holds at a time."""
_SUM_THREADS = 256
"""Threads of such a row of values of 4 bytes."""
_PACKED_SUM_THREADS = 128
"""Threads of such a row of packed values."""
_SUM_CLUSTER = 2
"""Blocks of such a row where there are fewer of more than `CLUSTER_COLUMNS`."""
_SUM_EVEN = 0.8
"""How evenly these load multiprocessors where threads hold `_SUM_WORDS` of fp32; less evenly they
hold twice as many."""
_PAIR_BYTES = 128
"""Bytes of the longest row of two lanes, which read 32 bytes of a line at a time: four lanes are
faster for longer ones."""


def plan_softmax(
    form: SoftmaxForm, arch: Arch, *, rows: int, columns: int, sm_count: int,
    measured: SoftmaxCandidate | None = None,
) -> RowPlan:  # fmt: skip
    """Return the plan for rows of this length on a GPU with ``sm_count`` multiprocessors.

    The tuned candidate ``measured`` goes before the others. Raises PlanError where no plan is
    legal.
    """
    for candidate in (
        measured,
        narrow_candidate(form, rows, columns, sm_count),
        slab_candidate(form, arch, rows, columns, sm_count),
        _sum_candidate(form, rows, columns, sm_count),
        *ring_candidates(form, arch, rows, columns, sm_count),
        few_rows_candidate(form, rows, columns, sm_count),
        resident_candidate(form, arch, rows, columns, sm_count),
        *_tabulated_candidates(form, arch, rows, columns, sm_count),
    ):
        plan = candidate.plan(form, arch, columns) if candidate else None
        if plan is not None:
            return plan
    raise PlanError(f"no plan for rows of {columns} columns of {form}")


def _tabulated_candidates(
    form: SoftmaxForm, arch: Arch, rows: int, columns: int, sm_count: int
) -> Iterator[SoftmaxCandidate]:
    """Yield the entry of `THREADS`, then others in case it is not legal."""
    most = LARGEST_CLUSTER if arch.sm >= CLUSTER_SM else 1
    left = [entry for entry in THREADS[form.value_bytes] if columns <= entry[0]]
    here = [entry for entry in left if entry[0] == left[0][0]]
    for _, threads, blocks, staged in here or [(columns, _STREAMED_THREADS, most, False)]:
        cluster = min(most, blocks)
        # Few rows would leave multiprocessors idle.
        while (
            threads > WARP
            and cluster < most
            and (rows * cluster * 2 <= sm_count and columns // (2 * cluster) >= MIN_PART)
        ):
            cluster *= 2
        threads = _least_waste(form, threads, cluster, columns)
        while (
            threads < WARP
            and threads * form.vector < columns
            and 2 * rows * threads <= sm_count * SMALL_BLOCK
        ):
            threads *= 2
        if cluster > 1 and (
            staged or (form.unaligned_rows and threads >= _STAGED_UNALIGNED_THREADS)
        ):
            yield SoftmaxCandidate(threads, cluster, staged=True)
    while threads <= LARGEST_BLOCK:
        yield SoftmaxCandidate(threads, cluster)
        threads *= 2
    yield SoftmaxCandidate(_STREAMED_THREADS, cluster, words=STREAMED_WORDS)


def _least_waste(form: SoftmaxForm, threads: int, cluster: int, columns: int) -> int:
    """Return an entry's threads, or fewer where those would leave many of their registers empty.

    Rows in registers are bytes in flight, so plans whose registers are not full do not reach the
    copy rate.
    """

    def full(count: int) -> float:
        return columns / (count * cluster * values_of(form, count, cluster, columns))

    if columns <= form.vector and not form.unaligned_rows:
        return 1  # a row of one access
    legal = (*range(512, WARP, -WARP), 32, 16, 8, 4, 2)
    narrowest = 2 if columns * form.element_bytes <= _PAIR_BYTES else 4
    least = threads = max(threads, narrowest)
    while full(threads) < FULL and least > narrowest:
        least //= 2
        threads = max((count for count in legal if least <= count <= threads), key=full)
    return threads


def _sum_candidate(
    form: SoftmaxForm, rows: int, columns: int, sm_count: int
) -> SoftmaxCandidate | None:
    """Return streamed rows for the ``logsumexp`` of many long ones; None for others."""
    each = ELEMENT_BYTES[form.input]
    longest = _SUM_BYTES_OF_16BIT if each == ELEMENT_BYTES["fp16"] else _SUM_BYTES
    if form.operation != "logsumexp" or form.compute_fp64 or columns * each <= longest:
        return None
    if rows >= sm_count * _SUM_ROWS:
        threads = _PACKED_SUM_THREADS if form.packed else _SUM_THREADS
        return SoftmaxCandidate(threads, 1, words=_SUM_WORDS)
    blocks = rows * _SUM_CLUSTER
    most = -(-blocks // sm_count)
    if columns <= CLUSTER_COLUMNS or most <= _SUM_CLUSTER:
        return None
    even = blocks >= most * sm_count * _SUM_EVEN
    if not even and form.input == "complex64":  # not measured
        return None
    words = _SUM_WORDS if even or form.packed else 2 * _SUM_WORDS
    return SoftmaxCandidate(_SUM_THREADS, _SUM_CLUSTER, words=words)
