"""The table of disk, memory and time that each step of a study will need, before it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from argand.device import cpu
from argand.runtime.measuring.ceilings import cpu_copy_bytes

from workflow.counted import counted
from workflow.preflight.budget import BASE_BYTES, CUDA_BYTES, disk_of
from workflow.preflight.estimates import OF_A_PART, Step, estimate
from workflow.storage.memory import in_words
from workflow.study import Study
from workflow.tables.readable import Column, markdown_table

_JOB_SECONDS = 1.5
"""A job's start, on a machine that has run one before; small ones take 0.8 to 1.9 s in all."""
_MAX_SHOWN = 40
"""Workloads in the table, those with the largest files: a sweep has thousands."""
_STEPS: tuple[Step, ...] = ("stage", "run", "verify", "deliver", "draw")


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


_COLUMNS = (
    Column("workload", "workload"),
    Column("step", "step"),
    Column("jobs", "jobs", numeric=True),
    Column("disk", "disk", write=in_words, numeric=True),
    Column("memory", "memory of a job", write=in_words, numeric=True),
    Column("seconds", "time of a job", write=_time, numeric=True),
)


def needs_table(study: Study, *, gpu: bool) -> str:
    """Return a row for each step of each workload, in Markdown.

    Disk is exact except for compression, and a run's is freed when its product is delivered; memory
    is the libraries of a job and its data, of a run on the CPU also what passes through the cache
    to time it; time is that of a slow machine, so it is rather too long.
    """
    disk = {name: disk_of(study, name) for name in study.names}
    by_size = sorted(disk, key=lambda name: -sum(disk[name].values()))
    shown = [name for name in study.names if name in set(by_size[:_MAX_SHOWN])]
    rows = [row for name in shown for row in _rows(study, name, disk[name], gpu=gpu)]
    table, smaller = markdown_table(_COLUMNS, rows), len(disk) - _MAX_SHOWN
    if smaller > 0:
        table += f"\nand {counted(smaller, 'workload')} with smaller files\n"
    return table


def _rows(
    study: Study, name: str, disk: Mapping[str, int], *, gpu: bool
) -> Iterator[dict[str, Any]]:
    parts = len(study.parts(name))
    for step in _STEPS:
        memory, seconds = estimate(study, name, step, gpu=gpu)
        if step == "run":  # on the CPU a copy, then copies of inputs as large as that at most
            memory += CUDA_BYTES if gpu else cpu_copy_bytes(cpu())
        yield {
            "workload": name,
            "step": step,
            "jobs": parts if step in OF_A_PART else 1,
            "disk": disk.get(step),
            "memory": int(BASE_BYTES + memory),
            "seconds": _JOB_SECONDS + seconds,
        }
