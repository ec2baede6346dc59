"""A check of transforms: sampled rows against fp64, and all of them finite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from argand.device import is_cuda_array

from benchmarks.dft.cases import Case
from benchmarks.harness.samples import on_host, sampled_rows
from benchmarks.peers import Candidate
from workflow.accuracy import Accuracy
from workflow.spectra.transforms import assess_transform

_CHECKED_VALUES, _CHECKED_ROWS = 1 << 20, 1 << 12
"""Numbers and transforms compared with fp64 at most; at least four transforms are."""


def checked_rows(case: Case) -> np.ndarray[Any, Any]:
    """Return the transforms of a case that are compared with fp64."""
    return sampled_rows(case.batch, max(4, min(_CHECKED_ROWS, _CHECKED_VALUES // case.length)))


def check(
    reference: Any,
    rows: np.ndarray[Any, Any],
    backend: str,
    ran: Callable[[Candidate], str],
    result: Any,
    candidate: Candidate,
) -> Accuracy:
    """Return sampled rows against fp64, by the bound of the plan that ran.

    Every element must be finite, so none was left unwritten.
    """
    given, precision = on_host(result[rows]), candidate.precision
    found = assess_transform(reference, given, precision, backend=backend, ran=ran(candidate))
    if len(rows) < len(result):
        found = replace(found, reference="sampled")
    # A sum of squares is finite where all of them are, and takes no memory of the result's size.
    flat = result.reshape(-1)
    power = sum(
        float(abs(array_dot(flat[start : start + (1 << 24)])))
        for start in range(0, len(flat), 1 << 24)
    )
    if not np.isfinite(power):
        found = replace(found, verified=False, reason="not every element is finite")
    return found


def array_dot(x: Any) -> Any:
    """Return the sum of |x|^2."""
    if not is_cuda_array(x):
        return np.vdot(x, x)
    import cupy

    return cupy.vdot(x, x)
