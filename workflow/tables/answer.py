"""The answer of a study: one row a workload, of the precision that was delivered.

It says how fast that is against the best peer, how far from fp64, and both in words.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from workflow.accuracy.measures import of_one_result
from workflow.counted import in_time_units
from workflow.cpu_models import is_model
from workflow.records import Record
from workflow.tables.ranking import best_baseline
from workflow.tables.readable import Column, number, scientific

SAME = 0.03
"""A ratio of times that is nearer to 1 than this is called the same."""
SETTLED = 0.25
"""An interval of a ratio that holds 1 and goes farther from it than this does not tell that two
times are the same: that of two times that have just settled goes no farther."""


@dataclass(frozen=True)
class Answer:
    """A study's answer for one workload.

    Attributes:
        workload, kind: the workload of the study and its kind.
        precision: the precision of the product; empty where nothing is delivered.
        time_us: median of the whole call, in microseconds; None where the result did not verify.
        speedup: the best peer's time over it, with the interval of both medians; None where there
            is not a peer, where the result did not verify, and for a model of a GPU's precision.
        peer: the implementation and precision compared with.
        measures: what the kind of workload measures of it, in the units of its field; the error
            in decibels where the kind measures nothing.
        error, bound: relative Frobenius error against fp64, and what it is held to.
        verdict: all of it in words, or why there is no answer.
        verified: whether the product was proved.
        data: what the study names as the workload's data, in words, and what to know of it before
            the answer is trusted, as samples that were never written; empty where they are drawn.
    """

    workload: str
    kind: str
    precision: str = ""
    time_us: float | None = None
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    peer: str = ""
    measures: str = ""
    error: float | None = None
    bound: float | None = None
    verdict: str = ""
    verified: bool = False
    data: str = ""

    @property
    def is_uneven(self) -> bool:
        """Whether the times do not tell which is faster, so that the speedup says nothing."""
        return is_uneven(self.speedup_low, self.speedup_high)


def answers(
    records: Sequence[Record], delivered: Mapping[str, str], failures: Mapping[str, str]
) -> list[Answer]:
    """Return a row for each workload, in the order of the records, those without any last.

    Args:
        records: records of every workload.
        delivered: the precision of each product, by workload.
        failures: why the others have none, by workload.
    """
    kinds = {record.workload: record.kind for record in records}
    names = dict.fromkeys([*kinds, *delivered, *failures])
    return [
        _answer(records, name, kinds.get(name, ""), delivered.get(name), failures.get(name, ""))
        for name in names
    ]


def _answer(
    records: Sequence[Record], name: str, kind: str, precision: str | None, failure: str
) -> Answer:
    ours = [
        record for record in records
        if record.is_ours and (record.workload, record.precision) == (name, precision)
    ]  # fmt: skip
    if not ours:
        return Answer(name, kind, verdict=f"no product: {failure or 'nothing was computed'}")
    record = ours[0]
    silent = _why_silent(record)
    peer = None if silent else best_baseline(record, records)
    speedup, low, high = (None, None, None) if peer is None else speedup_over(peer, record)
    return Answer(
        workload=name, kind=kind, precision=record.precision,
        time_us=record.time_us_p50 if record.verified else None,
        speedup=speedup, speedup_low=low, speedup_high=high,
        peer="" if peer is None else f"{peer.implementation} {peer.precision}",
        measures=_measured(record), error=record.rel_frobenius, bound=record.bound,
        verdict=f"{_proof(record)}; {silent or _speed(speedup, low, high, peer)}"
        + ", each chunk timed once" * (peer is not None and timed_once(record, peer)),
        verified=record.verified,
    )  # fmt: skip


def _why_silent(record: Record) -> str:
    """Return why the time of a result is compared with no peer's; empty where it is."""
    if not record.verified:
        return "not compared: only verified results are"
    if is_model(record.precision, record.backend):
        return "a model of a GPU's precision, whose time says nothing of it"
    return ""


def _measured(record: Record) -> str:
    """Return the measures of a result by its kind, each with its caption and unit.

    For a kind that has none it is the error in decibels of the result's norm, as fields of signals
    count it.
    """
    own = ", ".join(
        f"{one.captioned(record.measures)} "
        f"{number(one.shown(value), scientific=one.scientific)} {one.unit}".rstrip()
        for one in of_one_result(record.measures)
        if not isinstance(value := record.measures[one.column], str)
    )
    error = record.rel_frobenius
    if own or not error or not math.isfinite(error):
        return own
    return f"error {number(20 * math.log10(error))} dB"


def speedup_over(peer: Record, record: Record) -> tuple[float | None, float | None, float | None]:
    """Return another record's time over a record's, and its interval where both times have one."""
    its, own = peer.time_us_p50, record.time_us_p50
    if not its or not own:
        return None, None, None
    ends = (peer.time_us_low, peer.time_us_high, record.time_us_low, record.time_us_high)
    if any(not end for end in ends):
        return its / own, None, None
    below, above, least, most = (float(end or 0) for end in ends)
    return its / own, below / most, above / least


def timed_once(*records: Record) -> bool:
    """Return whether a result streamed through the device, so that its time has no interval."""
    return any(one.chunks is not None and one.time_us_low is None for one in records)


def _proof(record: Record) -> str:
    if not record.verified:
        return f"{record.verdict or 'not verified'}: {record.reason}"
    if record.rel_frobenius == 0:
        return "verified, equal to fp64"
    if record.ratio:
        shown = number(record.ratio)
        if shown == number(1.0):  # as for operands that are rounded once, whose bound is that
            return "verified, error at its bound"
        return f"verified, error {shown} times below its bound"
    return "verified"


def _speed(
    speedup: float | None, low: float | None, high: float | None, peer: Record | None
) -> str:
    if speedup is None or peer is None:
        return "no peer to compare with"
    who = f"{peer.implementation} at {peer.precision}"
    if is_uneven(low, high):
        return f"times too uneven to compare with {who}"
    within = low is not None and high is not None and low < 1 < high
    if within or abs(speedup - 1) < SAME:
        return f"as fast as {who}"
    if low is not None and high is not None and high > low * (1 + SETTLED) ** 2:
        if low > 1:
            return f"at least {number(low)} times as fast as {who}"
        return f"at least {number(1 / high)} times slower than {who}"
    if speedup > 1:
        return f"{number(speedup)} times as fast as {who}"
    return f"{number(1 / speedup)} times slower than {who}"


def is_uneven(low: float | None, high: float | None) -> bool:
    """Return whether the interval of a ratio of times does not tell which is longer."""
    if low is None or high is None or not low < 1 < high:
        return False
    return low < 1 / (1 + SETTLED) or high > 1 + SETTLED


def _interval(row: Mapping[str, Any]) -> str | None:
    low, high = row["speedup_low"], row["speedup_high"]
    return None if low is None or high is None else f"{number(low)} to {number(high)}"


def answer_rows(found: Sequence[Answer]) -> list[dict[str, Any]]:
    """Return the rows of the table, with the interval of the speedup as text.

    A speedup that the times do not tell is left out.
    """
    rows = [asdict(one) | ({"speedup": None} if one.is_uneven else {}) for one in found]
    return [row | {"interval": _interval(row)} for row in rows]


ANSWER = (
    Column("workload", "workload"),
    Column("precision", "precision"),
    Column("verdict", "in words", words=True),
    Column("measures", "in its field", words=True),
    Column("time_us", "time", in_time_units, numeric=True),
    Column("speedup", "speedup (×)", number, numeric=True),
    Column("interval", "between (×)"),
    Column("peer", "over"),
    Column("error", "error", scientific, numeric=True),
    Column("bound", "bound", scientific, numeric=True),
    Column("kind", "kind"),
    Column("data", "data", words=True),
)
ANSWER_TEXT = (
    "Each row is a workload, at the precision of its product. The field's measure of a result is "
    "its error in decibels of the norm where the field has no other. Times are medians of the "
    "whole call. The speedup is over the best peer of the same class, between the ends of both "
    "intervals, and left out where times are too uneven to tell. Errors are relative to fp64, of "
    "the whole result (Frobenius norm), and the bound is what they may be at most. An error is "
    "that of the workload itself: products that it is made of have their own, which stand beside "
    "them. Data are those that the study names, with what to know of them, such as samples that "
    "are lost."
)
