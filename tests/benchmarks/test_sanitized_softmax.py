"""The sanitizer's calls of softmax, on the CPU: every rounding is there and right."""

from __future__ import annotations

import numpy as np
from argand import PRECISIONS
from argand.softmax.problem import SOFTMAX_PRECISIONS

from benchmarks.sanitize.softmax import every_rounding


def test_every_rounding_is_within_its_bound() -> None:
    found = dict(every_rounding(np))
    rounded = {name for name in SOFTMAX_PRECISIONS if not PRECISIONS[name].exact_operands}
    assert {name.split()[0] for name in found} == rounded
    assert not [f"{name}: {reason}" for name, reason in found.items() if reason]
