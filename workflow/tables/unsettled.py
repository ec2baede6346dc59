"""The banner of times that did not settle, and why."""

from __future__ import annotations

from collections.abc import Sequence

from workflow.measuring.spread import WIDEST
from workflow.measuring.surroundings import BUSY
from workflow.records import Record


def unsettled_banner(records: Sequence[Record]) -> str:
    """Return a sentence or two on the rows whose times are unsettled.

    It is empty where there are none.
    """
    timed = [r for r in records if r.time_us_p50 is not None and r.settled is not None]
    unsettled = [record for record in timed if record.settled is False]
    if not unsettled:
        return ""
    said = (
        f"Times of {len(unsettled)} of {len(timed)} rows are unsettled: the interval of their "
        f"median is wider than {WIDEST:.0%} of it."
    )
    return f"{said} While they were measured, {_reason(unsettled)}."


def _reason(unsettled: Sequence[Record]) -> str:
    load = max((record.load or 0.0 for record in unsettled), default=0.0)
    held = dict.fromkeys(
        reason for record in unsettled for reason in record.throttling.split("; ") if reason
    )
    reasons = []
    if load >= BUSY:
        reasons.append(f"other programs kept up to {load:.1f} cores busy")
    if held:
        reasons.append(f"the clock was held down ({', '.join(held)})")
    return " and ".join(reasons) or (
        "neither load of other programs nor a lowered clock was seen: calls took unevenly long by "
        "themselves"
    )
