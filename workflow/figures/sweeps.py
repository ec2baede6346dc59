"""Time and error of a swept workload against what was swept."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from workflow.cpu_models import is_model
from workflow.figures.marks import above_zero, legends, mark_exact, markers_of, plain_ticks
from workflow.figures.style import colour_of, marker_key, save
from workflow.implementation import OURS
from workflow.records import Record
from workflow.tables.ranking import ordered

Points = Mapping[str, Mapping[str, Any]]
"""The cases of a sweep by name, each with the value of every swept key."""
_WIDE = 8
"""Largest value over smallest from which an axis is logarithmic."""
_MAX_PANELS = 3
"""Panels beside each other: values of the other keys of a sweep over several."""


def draw_sweep(path: Path, name: str, records: Sequence[Record], points: Points) -> None:
    """Write the figure of the workload ``name`` as SVG, atomically."""
    save(path, lambda: sweep_figure(name, records, points))


def sweep_figure(name: str, records: Sequence[Record], points: Points) -> Figure:
    """Return times above, errors below, over the swept key; a curve a peer and precision.

    The axis is the key with the most values, where there are several, numbers before names; each of
    the first combinations of the others has panels of its own.
    """
    keys = list(next(iter(points.values())))
    key = max(keys, key=lambda one: (_numeric(points, one), len(_values(points, one))))
    others = [one for one in keys if one != key]
    combinations = list(dict.fromkeys(_at(values, others) for values in points.values()))
    shown = combinations[:_MAX_PANELS]
    figure = Figure(figsize=(7.6 + 3.2 * (len(shown) - 1), 5.6), layout="constrained")
    panels = figure.subplots(2, len(shown), sharex=True, sharey="row", squeeze=False)
    drawn = [record for record in ordered(records) if record.workload in points]
    for column, combination in enumerate(shown):
        cases = {
            case: values[key]
            for case, values in points.items()
            if _at(values, others) == combination
        }
        times, errors = panels[0][column], panels[1][column]
        _draw(times, errors, [record for record in drawn if record.workload in cases], cases)
        if others:
            said = zip(others, combination, strict=True)
            times.set_title(", ".join(f"{one} = {value}" for one, value in said), fontsize=10)
        _axis(errors, [cases[case] for case in cases])
        errors.set_xlabel(key)
    panels[0][0].set_ylabel("time (µs)")
    panels[1][0].set_ylabel("relative Frobenius error")
    hidden = len(combinations) - len(shown)
    left = f" ({hidden} more combinations of {', '.join(others)} not drawn)" if hidden else ""
    figure.suptitle(f"{name} over {key}{left}")
    keys_of = {
        one: marker_key(marker, filled=one == OURS) for one, marker in markers_of(drawn).items()
    }
    legends(figure, drawn, keys_of, {"bound": Line2D([], [], color="#777777", linestyle=":")})
    return figure


def _draw(times: Axes, errors: Axes, records: Sequence[Record], cases: Mapping[str, Any]) -> None:
    """Draw times and errors of verified records over the cases, a curve an implementation."""
    numbers = all(_is_number(value) for value in cases.values())
    places = {
        case: float(value) if numbers else float(place)
        for place, (case, value) in enumerate(cases.items())
    }
    markers = markers_of(records)
    verified = [record for record in records if record.verified]
    curves: dict[tuple[str, str], list[Record]] = {}
    for record in sorted(verified, key=lambda one: places[one.workload]):
        curves.setdefault((record.implementation, record.precision), []).append(record)
    for (who, precision), own in sorted(curves.items()):
        colour, ours = colour_of(precision), who == OURS
        look: dict[str, Any] = {
            "color": colour, "marker": markers[who], "markersize": 5,
            "markerfacecolor": colour if ours else "white",
            "linewidth": 1.8 if ours else 1.0, "linestyle": "-" if ours else "--",
            "zorder": 3 if ours else 2.5,
        }  # fmt: skip
        _draw_times(times, [one for one in own if _is_timed(one)], places, look)
        _draw_errors(errors, own, places, look, bounds=ours)
    for axes in (times, errors):
        axes.set_yscale("log")
        axes.grid()
    plain_ticks(times.yaxis, [one.time_us_p50 or 0.0 for one in verified if _is_timed(one)])
    mark_exact(errors, _errors([one for curve in curves.values() for one in curve]))


def _draw_times(
    axes: Axes, timed: Sequence[Record], places: Mapping[str, float], look: Mapping[str, Any]
) -> None:
    """Draw medians, each with its interval where it has one."""
    axes.plot([places[x.workload] for x in timed], [x.time_us_p50 or 0.0 for x in timed], **look)
    for one in timed:
        if one.time_us_low and one.time_us_high:
            ends = (one.time_us_low, one.time_us_high)
            at = [places[one.workload]] * 2
            axes.plot(at, ends, "-", color=look["color"], linewidth=3, alpha=0.35)


def _draw_errors(
    axes: Axes, records: Sequence[Record], places: Mapping[str, float], look: Mapping[str, Any],
    *, bounds: bool,
) -> None:  # fmt: skip
    """Draw relative errors and, dotted, their ``bounds``."""
    known = [one for one in records if one.rel_frobenius is not None]
    axes.plot([places[one.workload] for one in known], _errors(known), **look)
    bounded = [one for one in known if one.bound and bounds]
    axes.plot(
        [places[one.workload] for one in bounded], [one.bound or 0.0 for one in bounded], ":",
        color=look["color"], linewidth=1.2,
    )  # fmt: skip


def _errors(records: Sequence[Record]) -> list[float]:
    known = [one.rel_frobenius for one in records if one.rel_frobenius is not None]
    return above_zero(known)


def _is_timed(record: Record) -> bool:
    return bool(record.time_us_p50) and not is_model(record.precision, record.backend)


def _axis(axes: Axes, values: Sequence[Any]) -> None:
    if not all(map(_is_number, values)):
        axes.set_xticks(range(len(values)), [str(value) for value in values])
        return
    numbers = [float(value) for value in values]
    if min(numbers) > 0 and max(numbers) >= _WIDE * min(numbers):
        axes.set_xscale("log")
    if len(numbers) <= 10:
        axes.set_xticks(numbers, [f"{value:g}" for value in numbers], minor=False)
        axes.set_xticks([], minor=True)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _values(points: Points, key: str) -> set[str]:
    return {repr(values[key]) for values in points.values()}


def _numeric(points: Points, key: str) -> bool:
    return all(_is_number(values[key]) for values in points.values())


def _at(values: Mapping[str, Any], keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(json.dumps(values[key]).strip('"') for key in keys)
