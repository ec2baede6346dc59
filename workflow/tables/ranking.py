"""Records beside each other: their order, speedups, the Pareto front."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Any

from argand import PRECISIONS
from argand.precision import EXACT_PRECISIONS, PEER_CLASSES, any_precision

from workflow.cpu_models import is_model
from workflow.records import TIMED, Record

OF_VERIFIED = (*TIMED, "predicted_us")
"""The columns that only a verified result may fill."""


def complete(records: Sequence[Record]) -> list[Record]:
    """Return the records with their speedup, and without numbers where they did not verify.

    Speedup is the best baseline's median time over the record's. The best baseline is the fastest
    verified peer of the same precision class in the same workload on the same device; where the
    class has none, that of the next more accurate class that has one (`PEER_CLASSES`). Without any
    it stays None, and for a model of a GPU's precision on a CPU, which is not timed beside them.

    Raises ValueError for a record that did not verify and does not say why.
    """
    return [
        replace(record, speedup=_speedup(record, records)) if record.verified else record
        for record in of_verified(records)
    ]


def of_verified(records: Sequence[Record]) -> list[Record]:
    """Return the records without numbers of time where they did not verify.

    Raises ValueError for a record that did not verify and does not say why.
    """
    blank: dict[str, Any] = {
        field.name: field.default for field in fields(Record) if field.name in OF_VERIFIED
    }
    for record in records:
        if not record.verified and not record.reason:
            raise ValueError(f"{_name(record)}: not verified, and no reason is given")
    return [record if record.verified else replace(record, **blank) for record in records]


def ordered(records: Iterable[Record]) -> list[Record]:
    """Return the workloads in the order given, ours before the peers, precisions from fp64 down."""
    rows = list(records)
    workloads = list(dict.fromkeys(record.workload for record in rows))
    precisions = [*PRECISIONS, *reversed(list(EXACT_PRECISIONS))]

    def place(record: Record) -> tuple[int, bool, str, int]:
        peer = not record.is_ours
        at = workloads.index(record.workload), precisions.index(record.precision)
        return at[0], peer, record.implementation, at[1]

    return sorted(rows, key=place)


def pareto(records: Iterable[Record]) -> list[Record]:
    """Return the records that no other beats in both time and error, the fastest first.

    Only verified ones with a time and a relative Frobenius error count. Compare one workload on one
    device at a time.
    """
    timed = [r for r in records if r.verified and _comparable(r)]
    front: list[Record] = []
    for record in sorted(timed, key=lambda r: (r.time_us_p50 or 0.0, r.rel_frobenius or 0.0)):
        if not front or (record.rel_frobenius or 0.0) < (front[-1].rel_frobenius or 0.0):
            front.append(record)
    return front


def _name(record: Record) -> str:
    return f"{record.workload}: {record.implementation} at {record.precision}"


def _comparable(record: Record) -> bool:
    return record.time_us_p50 is not None and record.rel_frobenius is not None


def _speedup(record: Record, records: Sequence[Record]) -> float | None:
    if is_model(record.precision, record.backend):
        return None
    baseline = best_baseline(record, records)
    if baseline is None or baseline.time_us_p50 is None or not record.time_us_p50:
        return None
    return baseline.time_us_p50 / record.time_us_p50


def best_baseline(record: Record, records: Sequence[Record]) -> Record | None:
    """Return the peer that `complete` compares a record with, or None where there is none."""
    level = PEER_CLASSES.index(any_precision(record.precision).peer_class)
    peers = [
        peer
        for peer in records
        if (peer.workload, peer.device) == (record.workload, record.device)
        and not peer.is_ours
        and peer.verified
        and peer.time_us_p50 is not None
    ]
    for peer_class in reversed(PEER_CLASSES[: level + 1]):
        same = [peer for peer in peers if any_precision(peer.precision).peer_class == peer_class]
        if same:
            return min(same, key=lambda peer: peer.time_us_p50 or 0.0)
    return None
