"""The choice of a softmax's plan on a GPU: slabs, streamed rows, rings (`softmax.rings`), tables.

Needs no GPU and no CuPy.
"""

from __future__ import annotations

from collections.abc import Iterator

from argand.device import Arch
from argand.multiprocessor import (
    CLUSTER_SM,
    LARGEST_BLOCK,
    LARGEST_CLUSTER,
    RESIDENT_THREADS,
    SECTOR,
    WARP,
)
from argand.precision import HALF_FORMATS
from argand.runtime.plan import PlanError
from argand.softmax.candidates import STREAMED_WORDS, SoftmaxCandidate, values_of
from argand.softmax.few_rows import few_rows_candidate
from argand.softmax.formats import ELEMENT_BYTES, Operation
from argand.softmax.plan import (
    SMALL_BLOCK,
    RowPlan,
    SoftmaxForm,
    slab_bytes,
    vector_for,
)
from argand.softmax.resident import resident_candidate
from argand.softmax.rings import CLUSTER_COLUMNS, LEAST_PART, ring_candidates
from argand.softmax.thread_tables import NARROW_FP32, NARROW_FP32_SUMS, THREADS

_SHORT_COLUMNS, _SHORT_COLUMNS_OF_4 = 256, 512
"""Up to here small whole accesses are faster than large ones of which some cross a row's edge; the
second of values of 4 bytes."""
_VALUES_OF_4 = 4
"""Values of 4 bytes that a full access has."""


_SUM_LANES, _SUM_COLUMNS, _SUM_UNALIGNED_COLUMNS = 4, range(65, 257), 160
"""Lanes and lengths of the rows of 16 bits that ``logsumexp`` holds in registers, where accesses of
four values do not cross their edges; from the third on also where they do. On an H200 slabs and
eight lanes took 1.07 to 1.14 of their time at 12 drawn lengths, of shorter unaligned rows 0.58 to
1.01."""


def choose_vector(
    most: int, even: int, columns: int, operation: Operation, *, few: bool = False
) -> int:
    """Return the values of an access: ``most`` fill it, ``even`` never cross a row's edge.

    ``few`` says whether rows are (`softmax.few_rows`).
    """
    if few:
        return even
    short = _SHORT_COLUMNS_OF_4 if most == _VALUES_OF_4 else _SHORT_COLUMNS
    if columns > short:
        return most
    sums = operation == "logsumexp" and most > _VALUES_OF_4
    return max(even, _VALUES_OF_4) if sums and columns >= _SUM_UNALIGNED_COLUMNS else even


_NARROW_COLUMNS, _SLAB_COLUMNS = 16, 28
"""The longest rows without an entry of `NARROW_FP32`, and those where no access is cut."""
_LANE_ACCESSES = 5
"""Most accesses of each of four lanes of fp32 of aligned rows with exact exponentials. Eight
lanes had 0.86 to 0.98 of a copy's rate on an H200 at 60 to 80 columns, four 0.95 to 1.0."""
_STAGED_UNALIGNED_THREADS = 512
"""Fewest threads whose cluster's unaligned rows are staged: a block waits for their cut
accesses."""
_FULL = 0.8
"""Share of its registers that a row has to fill."""
_STREAMED_THREADS = 256
_SUM_BYTES, _SUM_BYTES_OF_16BIT = 96 << 10, 64 << 10
"""The longest rows that ``logsumexp`` holds where there are many. It writes none, so longer ones
are streamed and read once all the same, and no block waits for another. The second is of 16 bits,
where a thread takes as many instructions for half as many bytes."""
_SUM_ROWS = 7
"""The least such rows for each multiprocessor, which has two blocks or more at a time."""
_SUM_WORDS, _SUM_THREADS, _PACKED_SUM_THREADS = 16, 256, 128
"""Registers of such a row that a thread holds at a time, and threads: of values of 4 bytes and of
packed ones. On an H200 plans that hold a row took 1.13 of the time, from 0.95 to 1.47, at 76
lengths of 12722 to 131072 of all precisions, and 256 threads with 32 registers took 1.02."""
_SUM_CLUSTER, _SUM_EVEN = 2, 0.8
"""Blocks of a row where there are fewer of more than `CLUSTER_COLUMNS`, and how evenly these load
multiprocessors where threads hold `_SUM_WORDS` of fp32, else twice as many. On an H200 rings and
clusters took 1.13 of their time, from 0.88 to 1.66, at 18 widths up to 800003, and where they load
them less evenly 1.01 to 1.19 at 10 widths from 637000 on."""
_SLAB_BYTES = 4096
"""Most bytes of x or of the result that a warp holds of a slab."""
_SLAB_STAGES = 2
_SLAB_BLOCKS = 6
"""Least blocks of a multiprocessor whose slabs fit its shared memory: some load, some compute."""
_SLAB_FP32_COLUMNS = 56
"""Longest rows of fp32 that are slabs: beyond, registers were faster on an H200 (`NARROW_FP32`)."""
_SLAB_COMPLEX_COLUMNS = 64
"""Longest rows of complex64 that are slabs. Beyond, rows in registers have 8 lanes or more, and had
1.00 to 1.02 of a copy's rate on an H200 at 8 widths of 93 to 1251, slabs 0.88 to 0.92."""
_SLAB_APPROXIMATE_COLUMNS = 128
"""Longest rows of 16 bits that are slabs where results have 32 and exponentials are approximate.
Beyond, registers had 0.91 to 0.98 of a copy's rate on an H200 at 13 widths, slabs 0.84 to 0.89."""
_WIDENED_LANES, _WIDENED_LANE_VALUES = 8, 44
"""Lanes of aligned rows of exact exponentials of 16 bits, and their most values: 0.87 to 0.97
of a copy's rate on an H200 at 13 widths of 144 to 352, where more lanes had 0.72 to 0.88."""
_SLAB_FP32_BYTES, _SLAB_16BIT_BYTES = 8192, 6144
"""`_SLAB_BYTES` of fp32 and of exact exponentials of 16 bits, and of rows of 16 bits, whose lanes
then hold up to 96 values: reductions take a lane as long whatever it holds. On an H200 half the
lanes took 0.97 of the time at 32 widths of 74 to 8212 of 16 bits, and 0.89 to 0.96 of it at 5
widths of 33 to 235 whose results have 32."""
_SLAB_SECTOR_COLUMNS = range(17, 129)
"""Rows of 16 bits whose results have 32 that are slabs though no access is cut, if they end within
a sector (`_ends_in_a_sector`). On an H200 slabs took 0.55 to 0.93 of the time of registers at 8
widths of 20 to 100."""
_SLAB_WARPS = 16
"""Least slabs of a warp for each multiprocessor. Fewer take 0.5 us longer than registers."""
_PAIR_BYTES = 128
"""Longest row of two lanes, which read 32 bytes of a line at a time: longer ones had 0.55 to 0.61
of a copy's rate (30 columns of complex64, 72 of fp16), and four lanes had 0.9 (72 of fp16)."""


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
        *_narrow_candidates(form, rows, columns, sm_count),
        _slab_candidate(form, arch, rows, columns, sm_count),
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
            and (rows * cluster * 2 <= sm_count and columns // (2 * cluster) >= LEAST_PART)
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


def _narrow_candidates(
    form: SoftmaxForm, rows: int, columns: int, sm_count: int
) -> Iterator[SoftmaxCandidate]:
    """Yield the lanes of values of 4 bytes in rows that fill the card."""
    cut = form.unaligned_rows or form.vector < vector_for(form.input, form.written)
    least = _NARROW_COLUMNS if cut or _ends_in_a_sector(form, columns) else _SLAB_COLUMNS
    if form.input in HALF_FORMATS:
        least = _longest_slab(form, columns) if cut else columns
        sums = (
            form.operation == "logsumexp" and form.vector >= _VALUES_OF_4 and not form.compute_fp64
        )
        if sums and columns in _SUM_COLUMNS and rows * _SUM_LANES >= sm_count * RESIDENT_THREADS:
            yield SoftmaxCandidate(_SUM_LANES, 1)
        lanes = _WIDENED_LANES if form.widened and not cut else 0
        if _SLAB_APPROXIMATE_COLUMNS < columns <= lanes * _WIDENED_LANE_VALUES and (
            rows * lanes >= sm_count * RESIDENT_THREADS
        ):
            yield SoftmaxCandidate(lanes, 1)
    if form.element_bytes != ELEMENT_BYTES["fp32"] or form.compute_fp64 or columns <= least:
        return
    sums = form.operation == "logsumexp"
    for limit, threads in NARROW_FP32_SUMS if sums else NARROW_FP32[form.approximate]:
        if columns <= limit:
            few = not form.approximate and columns <= 4 * _LANE_ACCESSES * form.vector
            if not cut and (few or not threads):
                threads = 4
            if threads and rows * threads >= sm_count * RESIDENT_THREADS:
                yield SoftmaxCandidate(threads, 1)
            return


def _ends_in_a_sector(form: SoftmaxForm, columns: int) -> bool:
    """Return whether written rows are no whole sectors, so that few lanes store parts of many."""
    sectors = columns * ELEMENT_BYTES[form.written] / SECTOR
    return form.operation != "logsumexp" and not sectors.is_integer()


def _least_waste(form: SoftmaxForm, threads: int, cluster: int, columns: int) -> int:
    """Return an entry's threads, or fewer where those would leave many of their registers empty.

    Rows in registers are bytes in flight. On an H200 plans whose registers were 0.59 to 0.8 full
    had 0.59 to 0.78 of the copy rate.
    """

    def full(count: int) -> float:
        return columns / (count * cluster * values_of(form, count, cluster, columns))

    legal = (*range(512, WARP, -WARP), 32, 16, 8, 4, 2)
    narrowest = 2 if columns * form.element_bytes <= _PAIR_BYTES else 4
    least = threads = max(threads, narrowest)
    while full(threads) < _FULL and least > narrowest:
        least //= 2
        threads = max((count for count in legal if least <= count <= threads), key=full)
    return threads


def _slab_candidate(
    form: SoftmaxForm, arch: Arch, rows: int, columns: int, sm_count: int
) -> SoftmaxCandidate | None:
    """Return slabs for rows that begin or end within an access, if shared memory holds enough."""
    cut = form.unaligned_rows or form.vector < vector_for(form.input, form.written)
    wider = form.half and form.written not in HALF_FORMATS and columns in _SLAB_SECTOR_COLUMNS
    threads, fewest = slab_threads(form, columns), sm_count * _SLAB_WARPS * WARP
    if form.widened and cut and rows * threads < fewest:
        threads *= 2
    if (
        not (cut or (wider and _ends_in_a_sector(form, columns)))
        or columns > _longest_slab(form, columns)
        or slab_bytes(form, columns) * _SLAB_STAGES * _SLAB_BLOCKS > arch.shared_bytes
        or rows * threads < fewest
    ):
        return None
    return SoftmaxCandidate(threads, 1, slab_stages=_SLAB_STAGES, bulk=arch.sm >= CLUSTER_SM)


def _longest_slab(form: SoftmaxForm, columns: int) -> int:
    """Return the longest rows that are slabs, ``columns`` where memory alone bounds them."""
    if form.compute_fp64:
        return columns
    if form.input in HALF_FORMATS:
        approximate = form.approximate and form.written not in HALF_FORMATS
        return _SLAB_APPROXIMATE_COLUMNS if approximate else _SHORT_COLUMNS
    return {"fp32": _SLAB_FP32_COLUMNS, "complex64": _SLAB_COMPLEX_COLUMNS}.get(form.input, columns)


def slab_threads(form: SoftmaxForm, columns: int) -> int:
    """Return the fewest threads whose part of a slab is no larger than a warp's (`_SLAB_BYTES`)."""
    halves = form.element_bytes == ELEMENT_BYTES["fp16"]
    of_warp = _SLAB_16BIT_BYTES if halves else _SLAB_BYTES
    if form.input == "fp32" or form.widened:
        of_warp = _SLAB_FP32_BYTES
    most = of_warp // (WARP * form.element_bytes)
    threads = 1
    while threads < WARP and columns > threads * most:
        threads *= 2
    return threads if columns <= threads * most else -(-columns // (WARP * most)) * WARP


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
