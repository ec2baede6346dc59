"""The choice of lanes of narrow rows in registers, where these fill the card. No GPU, no CuPy.

The times that constants are fitted to are in docs/experiments/2026-11-30-fitted-constants.md.
"""

from __future__ import annotations

from argand.multiprocessor import RESIDENT_THREADS
from argand.precision import HALF_FORMATS
from argand.softmax.candidates import SoftmaxCandidate, values_of
from argand.softmax.formats import ELEMENT_BYTES
from argand.softmax.plan import SoftmaxForm
from argand.softmax.slabs import (
    APPROXIMATE_COLUMNS,
    UNCUT_COLUMNS,
    ends_in_a_sector,
    is_cut,
    longest_slab,
)
from argand.softmax.thread_tables import NARROW_FP32, NARROW_FP32_SUMS, NARROW_HALVES

FULL = 0.8
"""Share of its registers that a row has to fill."""
_CUT_COLUMNS = 16
"""The longest rows without an entry of `NARROW_FP32` where accesses or sectors are cut."""
_FEW_LANES = 4
"""Lanes of aligned rows of fp32 with exact exponentials."""
_FEW_LANES_COLUMNS = 80
"""The longest such rows."""
_SUM_LANES = 4
"""Lanes of the rows of 16 bits that ``logsumexp`` holds in registers."""
_SUM_COLUMNS = range(65, 257)
"""Lengths of such rows."""
_SUM_ACCESS = 4
"""Fewest values of an access to such rows."""
_WIDENED_LANES = 8
"""Lanes of aligned rows of exact exponentials of 16 bits."""
_WIDENED_LANE_VALUES = 44
"""Most values of such a lane."""
_ROUNDED_COLUMNS = range(17, 257)
"""Lengths of rows of 16 bits that are rounded, have results of 32 and end within a sector."""
_ROUNDED_VALUES = 8
"""Values of a lane of such rows, whose results are two accesses."""
_ROUNDED_FULL = 0.62
"""Smallest fraction of these values that such a row fills."""
_ROUNDED_HALVED = 64
"""The longest of these that are slabs where they fill less; longer ones have half the lanes."""


def narrow_candidate(
    form: SoftmaxForm, rows: int, columns: int, sm_count: int
) -> SoftmaxCandidate | None:
    """Return the lanes of narrow rows that fill the card; None for others."""
    lanes = _lanes(form, columns)
    if not lanes or rows * lanes < sm_count * RESIDENT_THREADS:
        return None
    return SoftmaxCandidate(lanes, 1)


def _lanes(form: SoftmaxForm, columns: int) -> int:
    """Return the lanes of a row, 0 where slabs or other entries are taken."""
    cut = is_cut(form)
    if form.input in HALF_FORMATS:
        lanes = _lanes_of_halves(form, columns)
        least = longest_slab(form, columns) if cut else columns
    else:
        lanes = 0
        least = _CUT_COLUMNS if cut or ends_in_a_sector(form, columns) else UNCUT_COLUMNS
    if lanes or columns <= least or form.compute_fp64:
        return lanes
    return _lanes_of_fp32(form, columns) if form.element_bytes == ELEMENT_BYTES["fp32"] else 0


def _lanes_of_halves(form: SoftmaxForm, columns: int) -> int:
    """Return the lanes of a row of 16 bits, 0 where slabs or other entries are taken."""
    sums = form.operation == "logsumexp" and not form.compute_fp64
    if sums and form.vector >= _SUM_ACCESS and columns in _SUM_COLUMNS:
        return _SUM_LANES
    if is_cut(form):
        return 0
    rounded = form.approximate and not form.half
    if rounded and form.written == "fp32" and ends_in_a_sector(form, columns):
        return _lanes_of_rounded(form, columns)
    if form.packed and form.written in HALF_FORMATS and ends_in_a_sector(form, columns):
        return next((lanes for limit, lanes in NARROW_HALVES if columns <= limit), 0)
    most = _WIDENED_LANES * _WIDENED_LANE_VALUES if form.widened else 0
    return _WIDENED_LANES if APPROXIMATE_COLUMNS < columns <= most else 0


def _lanes_of_rounded(form: SoftmaxForm, columns: int) -> int:
    """Return the lanes of a row of 16 bits whose values are rounded and whose results have 32."""
    if columns not in _ROUNDED_COLUMNS:
        return 0
    lanes = 1 << (-(-columns // _ROUNDED_VALUES) - 1).bit_length()
    if columns >= _ROUNDED_FULL * lanes * values_of(form, lanes, 1, columns):
        return lanes
    return lanes // 2 if columns > _ROUNDED_HALVED else 0


def _lanes_of_fp32(form: SoftmaxForm, columns: int) -> int:
    """Return the lanes of a row whose wider elements have 4 bytes, 0 as in `_lanes_of_halves`."""
    sums = form.operation == "logsumexp"
    table = NARROW_FP32_SUMS if sums else NARROW_FP32[form.approximate]
    lanes = next((lanes for limit, lanes in table if columns <= limit), 0)
    few = not form.approximate and columns <= _FEW_LANES_COLUMNS
    if is_cut(form) or columns > table[-1][0] or (lanes and not few):
        return lanes
    # Exact exponentials of empty registers take longer than slabs do.
    empty = columns < FULL * _FEW_LANES * values_of(form, _FEW_LANES, 1, columns)
    return 0 if few and empty and columns <= UNCUT_COLUMNS else _FEW_LANES
