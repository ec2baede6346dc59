"""The table of tuned plans of softmaxes: the fastest candidate that was measured on a device.

`argand.tune_softmax` or ``python -m argand tune softmax 4096x32768`` fills it. Softmaxes without an
entry take the choice of `softmax.heuristics`, whose constants were measured on an H200.
"""

from __future__ import annotations

import json
from typing import Any

from argand.device import Device
from argand.runtime.plans.tuned_plans import TunedPlans, size_bucket
from argand.softmax.candidates import SoftmaxCandidate, every_candidate
from argand.softmax.plan import SoftmaxForm

_MANY_ROWS = 4096
"""Rows that fill any GPU many times: a larger count is no part of a tuned plan's key."""


def key(form: SoftmaxForm, rows: int, columns: int) -> str:
    """Return the name of a softmax's entry."""
    return json.dumps([
        form.operation, form.input, form.output, form.precision.name, form.vector,
        form.unaligned_rows, form.unit_scale, form.gapless, size_bucket(min(rows, _MANY_ROWS)),
        size_bucket(columns),
    ])  # fmt: skip


def lookup(form: SoftmaxForm, rows: int, columns: int, device: int) -> SoftmaxCandidate | None:
    """Return the tuned candidate of a softmax; None where none was measured."""
    return TABLE.find(key(form, rows, columns), device)


def _entry(name: str, row: dict[str, Any], device: Device) -> SoftmaxCandidate:
    """Return the candidate of an entry. Raises ValueError where it is not among the candidates."""
    candidate = SoftmaxCandidate(**row)
    if candidate not in every_candidate(device.sm_count):
        raise ValueError(f"{row} is not a candidate plan of {name} on {device.name}")
    return candidate


TABLE = TunedPlans(
    "softmax", "softmax-plans", _entry,
    "softmaxes take choices by times of another device until `argand.tune_softmax`",
)  # fmt: skip
