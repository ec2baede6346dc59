"""Tables of what was measured of large data and several GPUs, from JSON under docs/data/."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tools.docs.shown import text_table
from workflow.tables.readable import number

_PARTS = ("read", "copy", "compute", "write")


def _json(data: Path, name: str) -> Any:
    return json.loads((data / name).read_text(encoding="utf-8"))


STREAMING, SCALING = "h200-streaming.json", ("h200-scaling.json", "h200-scaling-4.json")
"""Files that `streaming` and, on eight cards and four, `scaling` of `benchmarks.pipeline` wrote."""


def streaming_table(data: Path) -> str:
    """Return streams of `benchmarks.pipeline.streaming` beside their parts, and medians."""
    rows = [row for report in _json(data, STREAMING) for row in _streams(report)]
    return text_table(rows, "files")


def _streams(report: Mapping[str, Any]) -> Iterable[dict[str, str]]:
    where = "memory" if "shm" in report["folder"] else "disk"
    what = f"{where}, {report['beams']} beams"
    rows = [
        {
            "stream (s)": run["stream"]["seconds"],
            **{f"{name} (s)": run["alone"][name] for name in _PARTS},
            "of slowest (%)": 100 * run["of_slowest"],
            "of slowest but write (%)": 100 * run["of_slowest_but_write"],
        }
        for run in report["runs"]
    ]
    medians = {key: statistics.median(row[key] for row in rows) for key in rows[0]}
    for index, row in enumerate([*rows, medians], 1):
        name = f"repeat {index}" if index <= len(rows) else "median"
        yield {"files": f"{what}, {name}", **{key: number(value) for key, value in row.items()}}


def scaling_table(data: Path) -> str:
    """Return the runs of `benchmarks.pipeline.scaling`, with one GPU and with all of a host."""
    return text_table(
        [_scaled(run) for name in SCALING for run in _json(data, name)["runs"]], "GPUs"
    )


def _scaled(run: Mapping[str, Any]) -> dict[str, str]:
    speedup, efficiency = run.get("speedup", 1.0), run.get("efficiency", 1.0)
    return {
        "GPUs": str(run["gpus"]),
        "shards": str(run["shards"]),
        "Snakemake (s)": number(run["wall_s"]),
        "first to last lease (s)": number(run["span_s"]),
        "shards/s": number(run["shards_per_s"]),
        "speed-up (×)": number(speedup),
        "efficiency (%)": number(100 * efficiency),
        "a device held (s)": number(run["held_s"]),
        "between two jobs (s)": number(run["between_s"]),
        "devices held (%)": number(100 * run["busy"]),
    }


SCALE_TABLES: dict[str, Callable[[Path], str]] = {
    "h200-streaming": streaming_table,
    "h200-scaling": scaling_table,
}
