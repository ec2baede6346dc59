"""The choice of the result that is delivered: the fastest that verified within the tolerance."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from argand import PRECISIONS
from argand.gemm.modular.moduli import moduli
from argand.precision import any_precision

from workflow.config.case import Case
from workflow.cpu_models import is_model
from workflow.records import Record
from workflow.workloads.base import Workload


class DeliveryError(RuntimeError):
    """No result is good enough to be delivered."""


CLEARLY = 1.1
"""Times as fast as a more accurate precision a result must be to be taken in its place: about as
much as a settled time may be off."""
_SHORT_US = 500.0
"""Calls up to this long fill a batch, whose shortest one counts."""


def choose(workload: Workload, records: list[Record]) -> Record:
    """Return the record whose result becomes the product.

    With ``precision: auto`` it is the fastest of ours that verified, with an error of at most the
    workload's tolerance: from the most accurate on, a less accurate one is taken where it is
    clearly faster (`clearly_faster`). On the CPU it is one that the CPU has itself, fp64 or fp32:
    the others are models of a GPU's and compute more than fp32 does.

    Otherwise it is ours at the precision asked for, if that verified, or if only its bound is too
    wide and the workload allows it.

    Raises DeliveryError, with what there is, where there is none.
    """
    case = workload.case
    ours = [record for record in records if record.is_ours]
    if case.precision != "auto":
        ours = [record for record in ours if record.precision == case.precision]
    good = [record for record in ours if _fits(case, record)]
    if not good:
        found = "; ".join(f"{record.precision}: {_state(record)}" for record in ours)
        raise DeliveryError(
            f"{workload.name}: precision {case.precision} within tolerance {case.accepted_error:g} "
            f"is not to be had ({found or 'nothing was computed'}){_hint(case, ours)}"
        )
    first, *others = sorted(good, key=_roundoff)
    chosen = first
    for record in others:
        if clearly_faster(record, chosen):
            chosen = record
    return chosen


def choices(
    workloads: Sequence[Workload], records: Sequence[Record]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the precision of each workload's product, and for those without one the reason."""
    delivered: dict[str, str] = {}
    failures: dict[str, str] = {}
    for workload in workloads:
        own = [record for record in records if record.workload == workload.name]
        try:
            delivered[workload.name] = choose(workload, own).precision
        except DeliveryError as error:
            failures[workload.name] = str(error)
    return delivered, failures


def clearly_faster(record: Record, other: Record) -> bool:
    """Return whether a median is shorter by `CLEARLY`, and the intervals of both do not overlap.

    An unsettled time of the CPU says more of the load than of the precision: by it the choice would
    differ from run to run. There fp32, which moves half the bytes of fp64, counts as faster. But
    short calls fit between interruptions, and a GPU is not delayed by other programs of the host:
    of their unsettled times the lower ends of both intervals are compared.

    A median without an interval, of a result that was streamed, counts as one of no width.
    """
    mine, its = record.time_us_p50, other.time_us_p50
    if mine is None or its is None:
        return False
    above = mine if record.time_us_high is None else record.time_us_high
    below = its if other.time_us_low is None else other.time_us_low
    if record.settled is False or other.settled is False:
        if record.backend == "cpu" and max(mine, its) > _SHORT_US:
            return _bytes(record) < _bytes(other)
        own = mine if record.time_us_low is None else record.time_us_low
        return CLEARLY * own <= below
    return above < below and CLEARLY * mine <= its


def _bytes(record: Record) -> int:
    return np.dtype(any_precision(record.precision).output).itemsize


def _roundoff(record: Record) -> tuple[float, int]:
    """Return the order of precisions from the most accurate on: by roundoff, then by the table."""
    row = any_precision(record.precision)
    if row.moduli:  # what rounding moves a component by, relative to its line's norm
        return moduli(row.moduli).component_loss(1), len(PRECISIONS)
    return row.u, list(PRECISIONS).index(row.name)


def _fits(case: Case, record: Record) -> bool:
    if record.rel_frobenius is None or record.error_limit is None:
        return False
    if case.precision == "auto":
        if is_model(record.precision, record.backend):
            return False
        return record.verified and record.error_limit <= case.accepted_error
    return record.verified or (case.allow_unproven and record.verdict == "unproven")


def _above(error: float) -> float:
    """Return the next number of two digits that is no smaller."""
    unit = 10.0 ** (math.floor(math.log10(error)) - 1)
    return math.ceil(error / unit) * unit


def _hint(case: Case, ours: list[Record]) -> str:
    """Return advice where the tolerance or a bound is in the way, or all that fits is a model."""
    verified = [record for record in ours if record.verified] if case.precision == "auto" else []
    errors = [
        one.error_limit
        for one in verified
        if not is_model(one.precision, one.backend) and one.error_limit
    ]
    if errors:
        return (
            f". Give a tolerance of {_above(min(errors)):g} or more, or measure a more accurate "
            "precision too"
        )
    if verified:
        return (
            ". On the CPU auto takes fp64 and fp32 alone, the others being models of a GPU's: "
            "measure one of them too, or name the precision"
        )
    if not any(record.verdict == "unproven" for record in ours):
        return ""
    explicit = "" if case.precision != "auto" else "name a precision and "
    return (
        f". A more accurate precision may be provable; to have an unproven result, {explicit}"
        "set allow_unproven: true"
    )


def choose_at(records: list[Record], precision: str) -> Record:
    """Return our record at a precision."""
    return next(r for r in records if r.is_ours and r.precision == precision)


def _state(record: Record) -> str:
    if not record.verified:
        return f"not verified, {record.reason}"
    limit = record.error_limit
    return f"error {record.rel_frobenius:.2g}, at most {limit:.2g}"
