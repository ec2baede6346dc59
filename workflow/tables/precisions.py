"""Precisions of a workload side by side: errors, the field's measures, gains.

The answer has the precision that was delivered alone; this says what the others would have cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from workflow.accuracy.measures import Measure, of_one_result
from workflow.cpu_models import is_model
from workflow.records import Record
from workflow.tables.answer import is_uneven, speedup_over, timed_once
from workflow.tables.ranking import ordered
from workflow.tables.readable import Column, number

PRECISIONS_TEXT = (
    "What each precision gives: the error of the whole result against fp64, what the field "
    "measures of it, how many times as fast as ours at fp64 it is where the times tell, and the "
    "energy that the device takes where it can tell. The column product has the precision that "
    "was delivered: where the study leaves the choice, the fastest whose error is within the "
    "tolerance."
)
MODELS_TEXT = (
    " On a CPU precisions of a GPU are models, which round as a GPU does: their errors are to go "
    "by, their times are not, and none is chosen."
)


def precisions_text(records: Sequence[Record]) -> str:
    """Return the text above the table."""
    return PRECISIONS_TEXT + (
        MODELS_TEXT if any(is_model(one.precision, one.backend) for one in records) else ""
    )


def precisions_columns(records: Sequence[Record]) -> list[Column]:
    """Return the columns: which workload, what is shown of it, and a column for each precision."""
    names = dict.fromkeys(one.precision for one in ordered(records) if one.is_ours)
    first = (Column("workload", "workload"), Column("product", "product"), Column("what", "what"))
    return [*first, *(Column(name, name, numeric=True) for name in names)]


def precisions_rows(
    records: Sequence[Record],
    delivered: Mapping[str, str],
    tolerances: Mapping[str, float],
) -> list[dict[str, Any]]:
    """Return the rows of each workload, with the values by precision as they are shown.

    Args:
        records: records of every workload; those of peers are left out.
        delivered: the precision of each product, by workload.
        tolerances: on the error, by workload; of those that leave the choice of a precision.
    """
    ours = [one for one in ordered(records) if one.is_ours]
    return [
        {"workload": name, "product": delivered.get(name, ""), "what": what}
        | {one.precision: value for one, value in zip(own, values, strict=True)}
        for name in dict.fromkeys(one.workload for one in ours)
        for own in [[one for one in ours if one.workload == name]]
        for what, values in _lines(own, tolerances.get(name))
        if any(values)
    ]


def _lines(own: Sequence[Record], tolerance: float | None) -> Iterator[tuple[str, list[str]]]:
    """Yield what is shown of one workload's records, and the value of each, empty without one."""
    if not all(one.verified for one in own):
        yield "verdict", [one.verdict for one in own]
    within = "" if tolerance is None else f" (tolerance {number(tolerance, scientific=True)})"
    error = _number_text(lambda one: one.rel_frobenius, scientific=True)
    yield f"error{within}", [error(one) for one in own]
    held = {column: value for one in own for column, value in one.measures.items()}
    for measure in of_one_result(held):
        yield measure.heading(held), [_measured(measure, one) for one in own]
    exact = next((one for one in own if one.precision == "fp64" and one.verified), None)
    if exact and any(_gain(one, exact) for one in own if one is not exact):
        gain = _number_text(lambda one: _gain(one, exact))
        once = " (chunks timed once)" * timed_once(*(one for one in own if _gain(one, exact)))
        yield f"times as fast as fp64{once}", [gain(one) for one in own]
    joules = _number_text(lambda one: one.energy_j if one.verified else None)
    yield "energy of a call (J)", [joules(one) for one in own]


def _number_text(
    value: Callable[[Record], float | None], *, scientific: bool = False
) -> Callable[[Record], str]:
    def text(one: Record) -> str:
        found = value(one)
        return "" if found is None else number(found, scientific=scientific)

    return text


def _measured(measure: Measure, one: Record) -> str:
    value = one.measures.get(measure.column)
    if not isinstance(value, float | int):
        return ""
    return number(measure.shown(value), scientific=measure.scientific)


def _gain(one: Record, exact: Record) -> float | None:
    if is_model(one.precision, one.backend) or not one.verified:
        return None
    found, low, high = speedup_over(exact, one)
    return None if one is not exact and is_uneven(low, high) else found
