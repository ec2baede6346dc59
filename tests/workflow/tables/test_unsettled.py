"""Times that did not settle are named once."""

from __future__ import annotations

from typing import Any

from workflow.measuring.surroundings import BUSY
from workflow.records import Record
from workflow.tables.unsettled import unsettled_banner


def row(**values: Any) -> Record:
    return Record(
        workload="w", kind="gemm", implementation="argand", precision="fp32", algorithm="x",
        device="d", **{"time_us_p50": 1.0, "settled": True, **values},
    )  # fmt: skip


def test_nothing_is_said_of_settled_times() -> None:
    assert unsettled_banner([]) == ""
    # Nor of rows without a time, nor of those that were streamed or recorded before.
    assert unsettled_banner([row(), row(settled=None), row(time_us_p50=None, settled=None)]) == ""


def test_the_reason_is_what_was_seen() -> None:
    found = unsettled_banner(
        [row(load=1.9), row(settled=False, load=1.26), row(settled=False), row(settled=None)]
    )
    assert found == (
        "Times of 2 of 3 rows are unsettled: the interval of their median is wider than 10% of it. "
        "While they were measured, other programs kept up to 1.3 cores busy."
    )
    held = unsettled_banner(
        [row(settled=False, throttling="power cap; thermal, by software"),
         row(settled=False, load=BUSY, throttling="power cap")]
    )  # fmt: skip
    assert held.endswith(
        "other programs kept up to 0.2 cores busy and the clock was held down (power cap, thermal, "
        "by software)."
    )
    unknown = unsettled_banner([row(settled=False, load=0.1)])
    assert "neither load of other programs nor a lowered clock was seen" in unknown
