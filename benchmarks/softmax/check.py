"""A check of softmaxes: sampled rows against SciPy in fp64, and all of them finite."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from argand.softmax.formats import COMPLEX_KINDS, bf16_values

from benchmarks.harness.samples import on_host, sampled_rows
from benchmarks.peers import Candidate
from benchmarks.softmax.cases import Case
from workflow.accuracy import Accuracy
from workflow.accuracy.references import softmax_reference
from workflow.accuracy.softmax_accuracy import Rounded, assess_softmax

_CHECKED_VALUES = 1 << 19
"""Values compared with fp64 at most: an eighth of a second of SciPy for each candidate."""
_MIN_ROWS = 2
_SCANNED = 1 << 24
"""Values scanned at a time for those that are not finite."""
_ROUNDED = {
    "fp32": Rounded(), "fp16": Rounded(2.0**-11, 2.0**-25), "bf16": Rounded(2.0**-8, 2.0**-134),
}  # fmt: skip


def checked_rows(case: Case) -> np.ndarray[Any, Any]:
    """Return the rows of a case that are compared with fp64."""
    return sampled_rows(case.rows, max(_MIN_ROWS, _CHECKED_VALUES // case.columns))


def sampled_reference(case: Case, x: Any, sample: Any) -> tuple[Any, float]:
    """Return a reference of some rows, and what rounding a power moves a result by, relatively."""
    rows = on_host(x[sample])
    if case.kind in COMPLEX_KINDS:
        power = np.abs(rows.astype(np.complex128)) ** 2
        return softmax_reference(power), 4 * 2.0**-24 * float(power.max())
    return softmax_reference(bf16_values(rows) if case.kind == "bf16" else rows), 0.0


def check(
    reference: Any,
    sample: np.ndarray[Any, Any],
    backend: str,
    result: Any,
    candidate: Candidate,
    *,
    kind: str = "fp32",
    lost: float = 0.0,
) -> Accuracy:
    """Check sampled rows against fp64; every element must be finite, so each was written."""
    rows = on_host(result[sample])
    rounded = replace(_ROUNDED[kind], relative=_ROUNDED[kind].relative + lost)
    found = assess_softmax(
        reference, bf16_values(rows) if kind == "bf16" else rows, candidate.precision,
        backend=backend, rounded=rounded,
    )  # fmt: skip
    bad = _not_finite(result, kind)
    if len(sample) < len(result):
        found = replace(found, reference="sampled")
    if bad:
        found = replace(found, verified=False, reason=f"{bad} elements are not finite")
    return found


def _not_finite(result: Any, kind: str) -> int:
    """Return how many elements are not finite, by blocks of rows, for want of memory."""
    bad = 0
    step = max(1, _SCANNED // result.shape[1])
    for start in range(0, len(result), step):
        part = result[start : start + step]
        if kind == "bf16":
            bad += int(((part & 0x7F80) == 0x7F80).sum())
        else:
            bad += int((~(abs(part) <= np.finfo(part.dtype).max)).sum())
    return bad
