"""The gain of a study in shards from more GPUs, as it is measured, on GPUs that are not there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake_gpus import MACHINE
from shared_runs import QUICK
from snakemake_forks import run_snakemake

from benchmarks.pipeline import scaling
from benchmarks.pipeline.scaling import summary
from workflow.jobs.lease_log import lease_log


def line(event: str, second: float, gpu: int, pid: int) -> dict[str, Any]:
    return {
        "time": f"2026-01-01T00:00:{second:06.3f}+00:00", "event": event, "pid": pid,
        "gpus": [{"index": gpu, "uuid": f"GPU-{gpu}"}], "host_peak_bytes": pid << 20,
    }  # fmt: skip


def test_a_summary_of_leases() -> None:
    jobs = [(0, 2, 0), (3, 5, 0), (1, 5, 1)]
    lines = [
        line(event, second, gpu, pid)
        for pid, (start, end, gpu) in enumerate(jobs)
        for event, second in (("taken", start), ("given back", end))
    ]
    assert summary(lines) == {
        "devices": 2, "span_s": 5, "shards_per_s": 3 / 5, "held_s": 2, "between_s": 1,
        "busy": 8 / 10, "host_peak_mib": 2,
    }  # fmt: skip
    lines += [line("taken", 4, 1, 9), line("given back", 6, 1, 9)]
    with pytest.raises(ValueError, match="two jobs had GPU-1 at the same time"):
        summary(lines)


Run = Callable[..., subprocess.CompletedProcess[str]]


def measured(folder: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> dict[str, Any]:
    """The report of three shards on three GPUs, then of two on one, each by ``run``."""
    monkeypatch.setattr(scaling, "usable_gpus", lambda: 3 * [SimpleNamespace(name="fake")])
    monkeypatch.setattr(scaling, "subprocess", SimpleNamespace(run=run))
    out, log = folder / "scaling.json", folder / "leases.jsonl"
    given = [
        "--shards", "3", "--alone", "2", "--samples", "64", "--precisions", "fp32",
        "--folder", str(folder), "--json", str(out), "--leases", str(log),
    ]  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["scaling", *given])
    scaling.main()
    report: dict[str, Any] = json.loads(out.read_text())
    one, every = report["runs"]
    assert (one["gpus"], one["shards"], one["devices"]) == (1, 2, 1)
    assert (every["gpus"], every["shards"]) == (3, 3)
    assert every["speedup"] > 0
    assert len(log.read_text().splitlines()) == 2 * (3 + 3 + 2)
    assert not list(folder.glob("tmp*"))
    return report


def test_one_and_all_gpus_by_their_leases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of Snakemake jobs of two seconds, shared out among the GPUs that it may use."""
    clock = iter(range(0, 60, 10))

    def leased(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        targets = command[3 : command.index("--snakefile")]
        folder = Path(command[command.index("--directory") + 1])
        gpus = int(command[command.index("--resources") + 1].removeprefix("gpu="))
        (folder / "results" / "runs").mkdir()
        log = folder / lease_log()
        log.parent.mkdir(parents=True, exist_ok=True)
        start = next(clock)
        lines = [
            line(event, start + 2 * (job // gpus) + end, job % gpus, 10 * start + job)
            for job in range(len(targets))
            for event, end in (("taken", 0), ("given back", 2))
        ]
        with log.open("a") as file:
            file.writelines(json.dumps(one) + "\n" for one in lines)
        return subprocess.CompletedProcess(command, 0, "", "")

    one, every = measured(tmp_path, monkeypatch, leased)["runs"]
    assert (one["span_s"], one["shards_per_s"], one["held_s"], one["between_s"]) == (4, 0.5, 2, 0)
    assert every["devices"] == 3
    assert (every["shards_per_s"], every["speedup"], every["efficiency"]) == (1.5, 3, 1)


@pytest.mark.exhaustive
@pytest.mark.slow
def test_one_and_all_gpus(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text(MACHINE + QUICK)
    path = os.pathsep.join(map(str, (tmp_path, root, root / "kernels")))
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.setenv("ARGAND_LOCK_FOLDER", str(tmp_path))

    def forked(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        """Do as ``python -m snakemake`` of the command does, faster."""
        return run_snakemake(command[3:], Path.cwd())

    one, every = measured(tmp_path, monkeypatch, forked)["runs"]
    assert one["held_s"] > 1.5
    assert every["devices"] > 1  # under load the first job ends before the last one begins
