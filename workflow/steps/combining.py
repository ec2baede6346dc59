"""The combine step: what the shards' records say of the whole workload.

Each shard was timed and verified by itself, maybe on another device. In records of the whole
workload

- times and energy are sums: what one device would take for all shards one after another, not the
  time that passed while several computed at once. Rates are the whole work over that time, so they
  compare with those of a workload that is not split. Quantiles of sums are not sums of quantiles:
  only the sum of the medians is given, with the sums of its lower and upper ends.
- the load is the highest and the clock the lowest of all shards.
- errors and the verdict are those of the worst shard (`workflow.accuracy.assessment.worst_of`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from logging import Logger
from pathlib import Path
from typing import Any

from argand.precision import any_precision

from workflow.accuracy import worst_of
from workflow.data import Staged
from workflow.implementation import Shape
from workflow.measuring.spread import narrow
from workflow.records import Record
from workflow.shards import Shard
from workflow.storage.staged import read_staged_shape
from workflow.workloads.base import Workload

_SUMS = ("time_us_p50", "time_us_low", "time_us_high", "end_to_end_us", "energy_j", "chunks")
_SAME = ("versions", "device", "algorithm", "kernel_digest")


class CombinationError(RuntimeError):
    """The shards' records do not belong together."""


def combine(
    workload: Workload, staged_path: Path, found: Mapping[Shard, Sequence[Record]], log: Logger
) -> list[Record]:
    """Return one record for each implementation and precision of the whole workload.

    Args:
        workload: what was split.
        staged_path: its staged file, for the sizes of the whole; no data is read.
        found: the records of every shard.

    Raises CombinationError where shards measured different things.
    """
    staged = read_staged_shape(staged_path)
    rows = {shard: {_key(record): record for record in records} for shard, records in found.items()}
    first = next(iter(rows.values()))
    for shard, row in rows.items():
        if row.keys() != first.keys():
            raise CombinationError(
                f"{workload.name}: shard {shard} has records of {_in_words(row)}, the first shard "
                f"of {_in_words(first)}; delete records/{workload.name} in the results and run "
                "again"
            )
    records = [_whole(workload, staged, [row[key] for row in rows.values()]) for key in first]
    passed = sum(record.verified for record in records)
    log.info("%s", f"{passed} of {len(records)} results verified in all {len(rows)} shards")
    return records


def _key(record: Record) -> tuple[str, str]:
    return record.implementation, record.precision


def _in_words(keys: Iterable[tuple[str, str]]) -> str:
    return ", ".join(" ".join(key) for key in keys)


def _whole(workload: Workload, staged: Staged, shards: list[Record]) -> Record:
    shape = workload.shape(staged, any_precision(shards[0].precision))
    values: dict[str, Any] = asdict(worst_of({f"shard {one.shard}": one for one in shards}))
    values |= {name: _together(sum, shards, name) for name in _SUMS}
    values |= {name: "; ".join(dict.fromkeys(getattr(r, name) for r in shards)) for name in _SAME}
    return replace(
        shards[0],
        **values,
        **_rates(shape, values["time_us_p50"], shards),
        **shape.sizes(),
        shards=len(shards),
        shard="",
        iterations=_together(min, shards, "iterations"),
        time_us_p20=None,
        time_us_p80=None,
        settled=None
        if values["time_us_p50"] is None or shards[0].settled is None
        else narrow(values["time_us_p50"], values["time_us_low"], values["time_us_high"]),
        load=_together(max, shards, "load"),
        clock_mhz=_together(min, shards, "clock_mhz"),
        throttling="; ".join(dict.fromkeys(r.throttling for r in shards if r.throttling)),
        timestamp=max(record.timestamp for record in shards),
    )


def _together(function: Any, shards: Sequence[Record], name: str) -> Any:
    """Return a function of a column over all shards; None where a shard has no value."""
    values = [getattr(record, name) for record in shards]
    return None if any(value is None for value in values) else function(values)


def _rates(shape: Shape, time_us: float | None, shards: Sequence[Record]) -> dict[str, Any]:
    if not time_us:
        return dict.fromkeys(shape.rates(1.0, None))
    limit_s = None
    if all(record.limit_fraction is not None for record in shards):
        limit_s = 1e-6 * sum((r.limit_fraction or 0) * (r.time_us_p50 or 0) for r in shards)
    return shape.rates(time_us, limit_s)
