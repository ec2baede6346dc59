"""Results whose time of change is in the future do not hide that their inputs are newer."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from workflow.preflight.future_results import age_future


def put(path: Path, ahead_s: float) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    now = time.time()
    os.utime(path, (now, now + ahead_s))
    return path


def test_results_of_tomorrow_are_older_than_any_file(tmp_path: Path) -> None:
    day = 86400.0
    old = [put(tmp_path / "products" / "beams" / "1-of-2.h5", day), put(tmp_path / "a.md", day)]
    kept = [
        put(tmp_path / "staged" / "beams.h5", 5),  # the clock of a file server
        put(tmp_path / "records" / "beams.jsonl", -day),
        put(tmp_path / "logs" / "run" / "beams.log", day),
        put(tmp_path / ".lock", day),
        put(tmp_path / "times" / "beams.json", day),
    ]
    outside = put(tmp_path.parent / "outside", day)
    link = tmp_path / "staged" / "link.h5"
    link.symlink_to(outside)
    os.utime(link, (time.time() + day,) * 2, follow_symlinks=False)
    times = [path.stat().st_mtime_ns for path in [*kept, outside]]
    said: list[str] = []
    assert set(age_future(tmp_path, said.append)) == set(old)
    assert said == [
        f"{tmp_path}: 2 files changed in the future, such as a.md: was a clock set back? What "
        "follows from an input is made again"
    ]
    assert [path.stat().st_mtime_ns for path in old] == [0, 0]
    assert [path.stat().st_mtime_ns for path in [*kept, outside]] == times
    assert (age_future(tmp_path, said.append), len(said)) == ([], 1)


def test_results_that_are_not_there(tmp_path: Path) -> None:
    assert age_future(tmp_path / "night", pytest.fail) == []
