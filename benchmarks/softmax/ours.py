"""Our softmaxes as candidates."""

from __future__ import annotations

from typing import Any

import numpy as np
from argand import Device, Precision, softmax
from argand.softmax.formats import COMPLEX_KINDS, REAL_KINDS

from benchmarks.harness.measuring import array_module
from benchmarks.peers import Candidate
from benchmarks.softmax.cases import Case


def candidate(precision: Precision, device: Device, case: Case | None = None) -> Candidate:
    """Return our own softmax; its result's place is filled with NaN before."""
    arrays = array_module(device)
    case = case or Case(0, 0)
    wide = precision.real_output == "float64"
    output = "fp64" if wide else case.output

    def prepare(x: Any) -> tuple[Any, ...]:
        given = arrays.array(x, dtype="float64" if wide else x.dtype)
        out = arrays.empty(x.shape, REAL_KINDS[output])
        out[...] = 0xFFFF if output == "bf16" else np.nan
        return given, out

    def compute(x: Any, out: Any) -> Any:
        return softmax(
            x, precision=precision, power=case.kind in COMPLEX_KINDS, output=output, out=out,
            format="bf16" if case.kind == "bf16" else None,
        )  # fmt: skip

    return Candidate(
        "argand", precision, "tiled recurrence", prepare, compute,
        input=case.kind, output=case.output,
    )  # fmt: skip
