"""Readings of clocks and sensors for one result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Measurements:
    """Readings taken while a result was computed, by the columns of the tables; None without it.

    Attributes:
        chunks: the number of chunks of a result whose data streamed through the device. Its time is
            then that of all chunks' computations, each timed once.
        iterations: batches that were timed; of each the shortest call counts.
        time_us_p20, time_us_p50, time_us_p80: the whole call in device memory, quantiles over the
            batches.
        time_us_low, time_us_high: what the median lies between, at a confidence of 0.95
            (`workflow.measuring.spread`); for a workload in shards the sums over the shards.
        settled: whether that interval is at most a tenth of the median wide; None where each chunk
            of a streamed result was timed once, and of what models a GPU's precision on a CPU,
            whose time decides nothing and has the fewest batches.
        end_to_end_us: the same with the operands' transfers to the device and the result's back,
            and reading and writing files.
        predicted_us: what `argand.gates.costs` predicted of the median, for our gates and circuits.
        energy_j: the energy of one call, where the device can tell.
        load: CPU cores that other programs kept busy meanwhile, on average.
        clock_mhz: the device's clock meanwhile, a median; None where nothing tells.
        throttling: what held a GPU's clock down; empty where nothing did.
    """

    chunks: int | None = None
    iterations: int | None = None
    time_us_p20: float | None = None
    time_us_p50: float | None = None
    time_us_p80: float | None = None
    time_us_low: float | None = None
    time_us_high: float | None = None
    settled: bool | None = None
    end_to_end_us: float | None = None
    predicted_us: float | None = None
    energy_j: float | None = None
    load: float | None = None
    clock_mhz: float | None = None
    throttling: str = ""


Readings = Mapping[str, Any]
"""Some of these by their names."""
READINGS = tuple(field.name for field in fields(Measurements))
"""The names of all readings."""
