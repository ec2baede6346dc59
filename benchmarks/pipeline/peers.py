"""Our fp64 and fp32 beside NumPy and SciPy on the CPU, for each workload of a study that was run.

``python -m benchmarks.pipeline.peers results/config [--rounds 40] [--csv PATH]`` times ours and the
peers on the staged operands in turn, a batch of each in every round, as a run does. A ratio is the
median over the rounds of our time over that of the fastest peer of the same precision in the same
round, so a program that comes and goes is in both; ``low`` and ``high`` are its interval at 95%
(`workflow.spread`). Nothing is asserted.

Under load the threads of BLAS wait for each other, a product takes ten times as long, and ratios
say little: ``chrt -r 1`` before the command lets no ordinary program interrupt it.
"""

from __future__ import annotations

from workflow.threads import rest_blas

rest_blas()  # before anything imports NumPy, as in a run

# ruff: noqa: E402
import argparse
import itertools
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from argand.device import Device, cpu

from benchmarks.harness.rows import write_rows
from workflow.config.loading import load_study
from workflow.data import Implementation
from workflow.samplers import CpuSampler
from workflow.spread import spread_of
from workflow.steps.execute import precisions_of
from workflow.steps.resident import moves, upload
from workflow.storage.staged import open_staged
from workflow.surroundings import watching
from workflow.tables.ranking import OURS
from workflow.timing import REPEATS, rotations
from workflow.workloads.base import Workload


@dataclass(frozen=True)
class Row:
    """One workload at one precision; times are medians of batches, of each the shortest call."""

    workload: str
    precision: str
    ours_us: float
    peer: str
    peer_us: float
    ratio: float
    low: float | None
    high: float | None
    settled: bool
    load: float | None


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", type=Path, help="the folder of a study's results")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args(arguments)
    study = load_study(options.results / "study.yaml", folder=options.results)
    rows = []
    for name in study.names:
        path = options.results / "staged" / f"{name}.h5"
        for row in measured(study.workload(name), path, options.rounds):
            rows.append(row)
            said = "" if row.settled else ", unsettled"
            print(
                f"{row.workload} {row.precision}: {row.ours_us:.0f} us, {row.peer} "
                f"{row.peer_us:.0f} us, {row.ratio:.3f} of it "
                f"({row.low or row.ratio:.3f} to {row.high or row.ratio:.3f}){said}",
                flush=True,
            )
    if options.csv:
        write_rows(options.csv, [asdict(row) for row in rows])


def measured(workload: Workload, staged: Path, rounds: int) -> Iterator[Row]:
    """Yield a row for each precision that the CPU has itself and a peer has too."""
    device = cpu()
    with open_staged(staged, workload.split_axes, None) as file:
        given = file.read()
    rows = [row for row in precisions_of(workload) if row.exact_operands]
    ours = [workload.argand(given, row, device) for row in rows]
    found = [*ours, *workload.baselines(given, device)]
    with watching(device) as watch:
        times = _in_turn(found, given.operands, device, rounds)
        watch.sample()
    for row in rows:
        beside = {one.name: t for one, t in zip(found, times, strict=True) if one.precision == row}
        mine = beside.pop(OURS)
        if not beside:
            continue
        peer = min(beside, key=lambda name: spread_of(beside[name]).p50)
        ratio = spread_of([a / b for a, b in zip(mine, beside[peer], strict=True)])
        own, other = spread_of(mine), spread_of(beside[peer])
        yield Row(
            workload.name, row.name, own.p50, peer, other.p50, ratio.p50, ratio.low, ratio.high,
            own.settled and other.settled, watch.found.load,
        )  # fmt: skip


def _in_turn(
    found: Sequence[Implementation], operands: Mapping[str, Any], device: Device, rounds: int
) -> list[list[float]]:
    """Return the microseconds of each, a batch in every round."""
    turn = itertools.count()
    samplers = []
    for one in found:
        prepared = one.prepare(operands)
        size = sum(value.nbytes for value in prepared.values() if moves(value))
        copies = min(REPEATS, rotations(device, size))
        resident = [upload(prepared, device, copy=True) for _ in range(copies)]
        calls = [partial(one.compute, inputs) for inputs in resident]
        samplers.append(CpuSampler(calls, turn, time.perf_counter, 1, 0.0))
    order = samplers[:]
    for _ in range(rounds):
        for sampler in order:
            sampler.sample()
        random.shuffle(order)
    return [[1e6 * seconds for seconds in sampler.seconds] for sampler in samplers]


if __name__ == "__main__":
    main()
