"""The choice of slabs, of rows that begin or end within an access or a sector. No GPU, no CuPy.

The times that constants are fitted to are in docs/experiments/2026-11-30-fitted-constants.md.
"""

from __future__ import annotations

from argand.device import Arch
from argand.multiprocessor import CLUSTER_SM, SECTOR, WARP
from argand.precision import HALF_FORMATS
from argand.softmax.candidates import SoftmaxCandidate
from argand.softmax.formats import ELEMENT_BYTES
from argand.softmax.plan import SoftmaxForm, slab_bytes, vector_for

SHORT_COLUMNS = 256
"""Up to here small whole accesses are faster than large ones that in part cross a row's edge."""
_BYTES = 4096
"""Most bytes of x or of the result that a warp holds of a slab."""
_BYTES_FP32 = 8192
"""`_BYTES` of fp32, and of rows of 16 bits with results in fp32."""
_BYTES_16BIT = 6144
"""`_BYTES` of other rows of 16 bits, whose lanes then hold up to 96 values: reductions take a lane
as long whatever it holds."""
_STAGES = 2
"""Slabs of a warp or of a block: one is copied while the other is computed."""
_BLOCKS = 6
"""Fewest blocks of a multiprocessor whose slabs fit its shared memory: some load, some compute."""
_WARPS = 16
"""Least slabs of a warp for each multiprocessor. Fewer take longer than registers."""
_FP32_COLUMNS = 56
"""Longest rows of fp32 that are slabs: beyond, registers were faster on an H200 (`NARROW_FP32`)."""
_COMPLEX_COLUMNS = 64
"""Longest rows of complex64 that are slabs. Beyond, rows in registers have 8 lanes or more, and are
faster."""
APPROXIMATE_COLUMNS = 128
"""Longest rows of 16 bits that are slabs where results have 32 and exponentials are approximate.
Beyond, registers are faster."""
UNCUT_COLUMNS = 28
"""Longest rows of fp32 without a cut access that are slabs or have an entry of `THREADS`."""
_MIN_UNCUT = 17
"""Fewest columns of rows that are slabs though no access is cut, if they end within a sector."""
_UNCUT_16BIT_COLUMNS = 128
"""Most columns of such rows of 16 bits with results of 32."""


def slab_candidate(
    form: SoftmaxForm, arch: Arch, rows: int, columns: int, sm_count: int
) -> SoftmaxCandidate | None:
    """Return slabs for rows that take them, if shared memory holds enough and the card is full."""
    threads, fewest = slab_threads(form, columns), sm_count * _WARPS * WARP
    if _is_wider(form) and is_cut(form) and rows * threads < fewest:
        threads *= 2
    if (
        not (is_cut(form) or _has_parts(form, columns))
        or columns > longest_slab(form, columns)
        or slab_bytes(form, columns) * _STAGES * _BLOCKS > arch.shared_bytes
        or rows * threads < fewest
    ):
        return None
    return SoftmaxCandidate(threads, 1, slab_stages=_STAGES, bulk=arch.sm >= CLUSTER_SM)


def is_cut(form: SoftmaxForm) -> bool:
    """Return whether full accesses would cross an edge of rows."""
    return form.unaligned_rows or form.vector < vector_for(form.input, form.written)


def ends_in_a_sector(form: SoftmaxForm, columns: int) -> bool:
    """Return whether written rows are no whole sectors, so that few lanes store parts of many.

    Results narrower than x, where lanes store less, were not measured.
    """
    each = ELEMENT_BYTES[form.written]
    wide = form.operation != "logsumexp" and each >= ELEMENT_BYTES[form.input]
    return wide and columns * each % SECTOR > 0


def _is_wider(form: SoftmaxForm) -> bool:
    """Return whether results of values of 16 bits have 32 or more."""
    return form.input in HALF_FORMATS and form.written not in HALF_FORMATS


def _has_parts(form: SoftmaxForm, columns: int) -> bool:
    """Return whether rows without a cut access are slabs, for the parts of sectors at their ends.

    Four lanes of such a row of fp32 would leave many of their registers empty
    (`argand.softmax.narrow_rows`).
    """
    if form.input == "fp32":
        longest = UNCUT_COLUMNS
    else:
        longest = _UNCUT_16BIT_COLUMNS if _is_wider(form) else 0
    return _MIN_UNCUT <= columns <= longest and ends_in_a_sector(form, columns)


def longest_slab(form: SoftmaxForm, columns: int) -> int:
    """Return the longest rows that are slabs, ``columns`` where memory alone bounds them."""
    if form.compute_fp64:
        return columns
    if form.input in HALF_FORMATS:
        approximate = form.approximate and form.written not in HALF_FORMATS
        return APPROXIMATE_COLUMNS if approximate else SHORT_COLUMNS
    return {"fp32": _FP32_COLUMNS, "complex64": _COMPLEX_COLUMNS}.get(form.input, columns)


def slab_threads(form: SoftmaxForm, columns: int) -> int:
    """Return the fewest threads whose part of a slab is no larger than a warp's (`_BYTES`)."""
    of_warp = _BYTES_16BIT if form.element_bytes == ELEMENT_BYTES["fp16"] else _BYTES
    if form.input == "fp32" or _is_wider(form):
        of_warp = _BYTES_FP32
    most = of_warp // (WARP * form.element_bytes)
    threads = 1
    while threads < WARP and columns > threads * most:
        threads *= 2
    return threads if columns <= threads * most else -(-columns // (WARP * most)) * WARP
