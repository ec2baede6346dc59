"""Checks of operands' values: NaN and Inf among them, and operands of zeros alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workflow.data import Array, Staged
from workflow.drawn import Stretched
from workflow.files.input_error import InputError

_PIECE = 1 << 20
"""Elements that are checked at a time, so that the masks stay small beside the data."""


def count_all(operands: Mapping[str, Array]) -> dict[str, dict[str, int]]:
    """Return the counts of NaN and Inf by operand."""
    counts = {name: count_nonfinite(data) for name, data in operands.items()}
    return {name: {"nan": nan, "inf": inf} for name, (nan, inf) in counts.items()}


def count_nonfinite(array: Array) -> tuple[int, int]:
    """Return how many elements are NaN, and how many infinite and not NaN, as (nan, inf).

    A complex element is NaN where either part is, infinite where either part is.
    """
    nan = inf = 0
    flat = array.reshape(-1)
    for start in range(0, flat.size, _PIECE):
        piece = flat[start : start + _PIECE]
        is_nan = np.isnan(piece)
        nan += int(np.count_nonzero(is_nan))
        inf += int(np.count_nonzero(np.isinf(piece) & ~is_nan))
    return nan, inf


def make_zero(data: Array) -> str:
    """Make NaN 0, in place, and return the number of NaN and that of all values; "" if none.

    A complex value is NaN where either part is.
    """
    flat, count = data.reshape(-1), 0
    for start in range(0, flat.size, _PIECE):
        piece = flat[start : start + _PIECE]
        is_nan = np.isnan(piece)
        piece[is_nan] = 0
        count += int(np.count_nonzero(is_nan))
    return f"{count} of {flat.size} values, which are NaN in the file" if count else ""


def count_stretches(operand: Stretched) -> dict[str, int]:
    """Return the counts of NaN and Inf of what comes in stretches."""
    counts = [count_all({"x": values})["x"] for _, values in operand.read()]
    return {key: sum(count[key] for count in counts) for key in ("nan", "inf")}


def refuse_nonfinite(
    operands: Mapping[str, Array | Stretched], attributes: Mapping[str, Any],
    axes: Mapping[str, Sequence[str]], *, never_in: bool,
) -> None:  # fmt: skip
    """Raise InputError with the counts and the first place where an operand is not finite.

    ``never_in`` says that the study cannot let such values through.
    """
    found, has_nan = [], False
    for name, counts in attributes["nonfinite"].items():
        if counts["nan"] or counts["inf"]:
            data = operands[name]
            has_nan |= counts["nan"] > 0 and not isinstance(data, Stretched)
            found.append(
                f"input.{name} has {counts['nan']} NaN and {counts['inf']} Inf among "
                f"{math.prod(data.shape)} values{_first(data, axes[name])}"
            )
    if found:
        advice = [] if never_in else ["allow_nonfinite: true lets them through"]
        advice += ["input.flagged: zero makes NaN of HDF5 0"] if has_nan else []
        advice = advice or ["select others by input.select"]
        raise InputError("; ".join(found + advice))


def refuse_zeros(staged: Staged, name: str) -> None:
    """Raise InputError where all values of an operand are zero, so that nothing can be solved."""
    drawn = staged.drawn.get(name)
    if isinstance(drawn, Stretched):
        some = any(values.any() for _, values in drawn.read())
    else:
        some = bool(staged.operands[name].any())
    if not some:
        raise InputError(f"input.{name}: all of its values are zero; look at input.select")


def _first(data: Array | Stretched, axes: Sequence[str]) -> str:
    """Return where the first value is that is not finite, of what is in memory."""
    if isinstance(data, Stretched):
        return ""
    place = np.unravel_index(np.argmin(np.isfinite(data)), data.shape)
    shown = [f"{axis} {int(number)}" for axis, number in zip(axes, place, strict=True)]
    return f", the first at {', '.join(shown)} of what is selected"
