"""Values that staged data lack: made 0, lost or never there; and coordinates that they lack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workflow.readers.base import Reader

ZEROS, LOST, LEFT_OUT, ASSUMED = "zeros", "lost", "left_out", "assumed"
"""Keys of staged attributes and certificates, written and put into words here."""


def lacking(
    readers: Mapping[str, Reader],
    never: Mapping[str, str],
    left_out: dict[str, str],
    nan: Mapping[str, str],
    assumed: dict[str, str],
) -> dict[str, dict[str, str]]:
    """Return the attributes of staged data that say what it lacks, those that say something.

    `ZEROS` has by operand what was made 0, by its reader or as ``nan``, `LOST` what is lost or was
    ``never`` written, and `LEFT_OUT` by its path why something that a file has along an axis is no
    coordinate. `ASSUMED` is what nothing tells of entries of an axis (`unnamed.taken_in_order`).
    """
    made = {**{name: one.made_zero() for name, one in readers.items()}, **nan}
    zeros = {name: text for name, text in made.items() if text}
    said = {**{name: one.lost() for name, one in readers.items()}, **never}
    lost = {name: text for name, text in said.items() if text}
    every = {ZEROS: zeros, LOST: lost, LEFT_OUT: left_out, ASSUMED: assumed}
    return {key: found for key, found in every.items() if found}


def lacking_in_words(attributes: Mapping[str, Any]) -> str:
    """Return what `lacking` found as one text, "" where there is nothing."""
    zeros, lost, left_out, assumed = (
        attributes.get(key, {}) for key in (ZEROS, LOST, LEFT_OUT, ASSUMED)
    )
    parts = [f"{text}, are 0 in {name}" for name, text in zeros.items()]
    parts += [f"of {name}, {text}" for name, text in lost.items()]
    parts += [f"left out: {'; '.join(left_out.values())}"] if left_out else []
    return "; ".join([*parts, *assumed.values()])
