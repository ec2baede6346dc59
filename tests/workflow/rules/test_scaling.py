"""How a study in shards gains from more GPUs: what is measured, on GPUs that are not there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake_gpus import MACHINE
from shared_runs import QUICK
from snakemake_forks import run_snakemake

from benchmarks.pipeline import scaling
from benchmarks.pipeline.scaling import summary


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


def forked(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
    """Do as ``python -m snakemake`` of the command does, faster."""
    return run_snakemake(command[3:], Path.cwd())


@pytest.mark.slow
def test_one_and_all_gpus(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text(MACHINE + QUICK)
    path = os.pathsep.join(map(str, (tmp_path, root, root / "kernels")))
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.setenv("ARGAND_LOCK_FOLDER", str(tmp_path))
    monkeypatch.setattr(scaling, "usable_gpus", lambda: 3 * [SimpleNamespace(name="fake")])
    monkeypatch.setattr(scaling, "subprocess", SimpleNamespace(run=forked))
    out, log = tmp_path / "scaling.json", tmp_path / "leases.jsonl"
    given = [
        "--shards", "3", "--alone", "2", "--samples", "64", "--precisions", "fp32",
        "--folder", str(tmp_path), "--json", str(out), "--leases", str(log),
    ]  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["scaling", *given])
    scaling.main()
    report = json.loads(out.read_text())
    one, every = report["runs"]
    assert (one["gpus"], one["shards"], one["devices"]) == (1, 2, 1)
    assert (every["gpus"], every["shards"], every["speedup"] > 0) == (3, 3, True)
    assert one["held_s"] > 1.5
    assert len(log.read_text().splitlines()) == 2 * (3 + 3 + 2)
    assert not list(tmp_path.glob("tmp*"))
