"""What both benchmarks share: their arguments, a candidate's way to a Record, table and CSV."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from argand import PRECISIONS, Device, Precision
from argand.ceilings import Ceilings
from argand.device import resolve
from argand.nvrtc import kernel_digest

from workflow.accuracy.judgement import Accuracy
from workflow.records import Record
from workflow.storage.files import atomic_text
from workflow.timing import measure, rotations
from workflow.versions import timestamp, versions


@dataclass(frozen=True)
class Candidate:
    """One implementation at one precision.

    ``prepare`` turns NumPy operands into what ``compute`` takes, before any clock starts;
    ``download`` turns the result into a NumPy array. Where a library takes a place for its result,
    ``prepare`` fills it with NaN, so that an element that it does not write is seen.
    """

    name: str
    precision: Precision
    algorithm: str
    prepare: Callable[..., tuple[Any, ...]]
    compute: Callable[..., Any]
    download: Callable[[Any], np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Work:
    """The case that all candidates solve: its columns of a Record and its nominal cost."""

    sizes: dict[str, Any]
    flops: float
    bytes_moved: float
    operation: str

    @property
    def name(self) -> str:
        """The case in one word."""
        shown = [f"{key}{value}" for key, value in self.sizes.items()]
        return f"{self.operation}-" + "-".join(shown)


def parser(description: str | None, peers: Sequence[str]) -> argparse.ArgumentParser:
    """Arguments that both benchmarks have."""
    found = argparse.ArgumentParser(description=description)
    found.add_argument(
        "--precisions", type=_names(list(PRECISIONS), "precisions"), default=list(PRECISIONS),
        help=f"of {', '.join(PRECISIONS)}, separated by commas",
    )  # fmt: skip
    found.add_argument(
        "--peers", type=_names([*peers, "auto", "none"], "peers"), default=["auto"],
        help=f"of {', '.join(peers)}; auto takes what is installed, none takes none",
    )  # fmt: skip
    found.add_argument("--repeats", type=int, default=20, help="calls to time")
    found.add_argument("--seconds", type=float, default=0.5, help="or until this much is spent")
    found.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    found.add_argument("--seed", type=int, default=1)
    found.add_argument("--csv", type=Path, help="where the records go")
    return found


def _names(allowed: list[str], what: str) -> Callable[[str], list[str]]:
    def read(text: str) -> list[str]:
        names = [name for name in text.split(",") if name]
        for name in names:
            if name not in allowed:
                raise argparse.ArgumentTypeError(f"{what} must be of {allowed}, got {name!r}")
        return names

    return read


def chosen_device(name: str) -> Device:
    """The device of ``--device``."""
    return resolve(name)


def array_module(device: Device) -> Any:
    """NumPy or CuPy, whose arrays live on the device."""
    if device.backend == "cpu":
        return np
    import cupy

    return cupy


def chosen(available: Sequence[Candidate], wanted: Sequence[str]) -> list[Candidate]:
    """The peers that were asked for. Raises ValueError for one that cannot run here."""
    if "none" in wanted:
        return []
    if "auto" in wanted:
        return list(available)
    names = {peer.name for peer in available}
    for name in wanted:
        if name not in names:
            raise ValueError(f"peers must be of {sorted(names)} on this machine, got {name!r}")
    return [peer for peer in available if peer.name in wanted]


def run(
    candidate: Candidate,
    work: Work,
    operands: Sequence[np.ndarray[Any, Any]],
    assess: Callable[[np.ndarray[Any, Any], Precision], Accuracy],
    device: Device,
    ceilings: Ceilings,
    arguments: argparse.Namespace,
) -> Record:
    """Compute, check and time one candidate."""
    inputs = candidate.prepare(*operands)
    accuracy = assess(candidate.download(candidate.compute(*inputs)), candidate.precision)
    copies = rotations(device, sum(x.nbytes for x in operands))
    every = [inputs, *(candidate.prepare(*operands) for _ in range(copies - 1))]
    calls = [lambda mine=mine: candidate.compute(*mine) for mine in every]
    timing = measure(calls, device, repeats=arguments.repeats, seconds=arguments.seconds)
    spent = 1e-6 * timing.time_us_p50
    limit = ceilings.limit_time_s(work.flops, work.bytes_moved, candidate.precision)
    ours = candidate.name == "argand"
    return Record(
        workload=work.name, kind=work.operation, implementation=candidate.name,
        precision=candidate.precision.name, algorithm=candidate.algorithm, device=device.name,
        tflops=work.flops / spent / 1e12, gbytes_per_s=work.bytes_moved / spent / 1e9,
        limit_fraction=limit / spent, kernel_digest=kernel_digest(work.operation) if ours else "",
        versions=versions(), timestamp=timestamp(),
        **work.sizes, **asdict(timing), **asdict(accuracy),
    )  # fmt: skip


def with_speedups(records: Sequence[Record]) -> list[Record]:
    """Each record with the best verified peer's time of its class over its own."""
    found = []
    for record in records:
        peer_class = PRECISIONS[record.precision].peer_class
        times = [
            other.time_us_p50
            for other in records
            if other.implementation != "argand"
            and other.workload == record.workload
            and other.verified
            and other.time_us_p50
            and PRECISIONS[other.precision].peer_class == peer_class
        ]
        best = min(times) / record.time_us_p50 if times and record.time_us_p50 else None
        found.append(replace(record, speedup=best))
    return found


def show(records: Sequence[Record]) -> None:
    """Print the columns that matter, a line a record."""
    print(
        f"{'workload':34} {'who':8} {'precision':9} {'p50 us':>11} {'TFLOP/s':>9} {'GB/s':>8} "
        f"{'limit':>6} {'speedup':>7} {'error':>9}  verified  algorithm"
    )
    for record in records:
        speedup = f"{record.speedup:7.2f}" if record.speedup else f"{'-':>7}"
        verdict = "yes" if record.verified else f"NO: {record.reason}"
        print(
            f"{record.workload:34} {record.implementation:8} {record.precision:9} "
            f"{record.time_us_p50 or 0:11.1f} {record.tflops or 0:9.3f} "
            f"{record.gbytes_per_s or 0:8.1f} {record.limit_fraction or 0:6.1%} {speedup} "
            f"{record.rel_frobenius or 0:9.2e}  {verdict:8}  {record.algorithm}"
        )


def write_csv(path: Path, records: Sequence[Record]) -> None:
    """Records as CSV, in the column order of every table."""
    text = io.StringIO()
    writer = csv.DictWriter(text, Record.columns_in_order(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(record) for record in records)
    atomic_text(path, text.getvalue())


class Report:
    """Prints and writes the records case by case, so that an interrupt loses one case at most."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._records: list[Record] = []

    def add(self, records: Sequence[Record]) -> None:
        """The records of one case."""
        records = with_speedups(records)
        show(records)
        self._records += records
        if self._path is not None:
            write_csv(self._path, self._records)

    @property
    def status(self) -> int:
        """The exit status: 1 where something of ours did not verify."""
        return int(any(r.implementation == "argand" and not r.verified for r in self._records))
