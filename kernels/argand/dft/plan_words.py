"""Plans of transforms as text, for records and tables, and back. Needs no GPU and no CuPy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, get_args

from argand.dft.plan import Plan

LIBRARY = "cufft"
"""The kind of transforms by a library, which have no plan."""
_KINDS: dict[str, Any] = {kind.kind: kind for kind in get_args(Plan)}


def plan_members(plan: Plan | None) -> dict[str, Any]:
    """Return a plan's kind and members by name; for cuFFT the kind alone."""
    return {"kind": LIBRARY} if plan is None else {"kind": plan.kind, **asdict(plan)}


def plan_of_members(members: Mapping[str, Any]) -> Plan | None:
    """Return the plan with the members of `plan_members`; None for cuFFT.

    Raises KeyError for an unknown kind, TypeError for unknown members.
    """
    given = {name: tuple(x) if isinstance(x, list) else x for name, x in members.items()}
    kind = str(given.pop("kind"))
    if kind == LIBRARY:
        return None
    found: Plan = _KINDS[kind](**given)
    return found


def plan_words(plan: Plan | None) -> str:
    """Return a plan as JSON on one line; `plan_in` reads it."""
    return json.dumps(plan_members(plan))


def plan_in(words: str) -> Plan | None:
    """Return the plan of `plan_words`. Raises what `plan_of_members` does, and ValueError."""
    return plan_of_members(json.loads(words))
