"""The table of measured choices of softmaxes: which way of holding rows was fastest on a device.

`argand.tune_softmax` fills it, or ``python -m argand tune softmax 4096x32768``. What is not in it
takes the ladders of `softmax.heuristics`, measured on an H200.
"""

from __future__ import annotations

import json
from typing import Any

from argand.device import Arch
from argand.runtime.choice_table import ChoiceTable, step
from argand.softmax.heuristics import EVERY_WAY, SoftmaxWay
from argand.softmax.plan import SoftmaxForm

_MANY_ROWS = 4096
"""From here on how many there are changes nothing: they fill any card many times."""


def key(form: SoftmaxForm, rows: int, columns: int) -> str:
    """The entry that a softmax belongs to."""
    return json.dumps([
        form.operation, form.input, form.output, form.precision.name, form.vector, form.edges,
        form.unit, step(min(rows, _MANY_ROWS)), step(columns),
    ])  # fmt: skip


def lookup(form: SoftmaxForm, rows: int, columns: int, device: int) -> SoftmaxWay | None:
    """The measured way for a softmax, None where none was measured."""
    return TABLE.find(key(form, rows, columns), device)


def _entry(name: str, row: dict[str, Any], arch: Arch) -> SoftmaxWay:
    """An entry's choice. Raises ValueError where it is none of those that are measured."""
    way = SoftmaxWay(**row)
    if way not in EVERY_WAY:
        raise ValueError(f"{row} is no way to solve {name} on {arch.target}")
    return EVERY_WAY[EVERY_WAY.index(way)]


TABLE = ChoiceTable(
    "softmax", "softmax-plans", _entry,
    "softmaxes take the ladders of another device until `argand.tune_softmax`",
)  # fmt: skip
