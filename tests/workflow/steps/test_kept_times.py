"""Times that are kept: what has them is computed and not timed again, what has not is timed."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from argand.device import Arch, Device, cpu
from argand.runtime.files.plain_files import NotPlainError
from argand.runtime.measuring.ceilings import Ceilings, operand_formats

from workflow.measuring.samplers import Timing
from workflow.preflight.loading import load_study
from workflow.records import Record
from workflow.steps import in_turn, kept_times
from workflow.steps.execute import execute
from workflow.steps.kept_times import KeptTimes, work
from workflow.steps.staging import stage
from workflow.steps.verification import verify
from workflow.storage.checked_json import read_object, write_object
from workflow.storage.datasets import DataError
from workflow.storage.runs import read_ceilings

LOG = logging.getLogger("test_kept_times")
PRODUCT = {"kind": "gemm", "m": 8, "n": 9, "k": 10}
ALONE: dict[str, Any] = {"precisions": ["fp32"], "baselines": "none"}
"""A study of one result."""
STREAMED = {"kind": "softmax", "rows": 517, "columns": 33, "device_memory": "30 KiB"}


class Part:
    """A part that is run again and again in a folder, each time with another study."""

    def __init__(self, folder: Path) -> None:
        self.staged, self.run, self.times = (
            folder / name for name in ("staged.h5", "run.h5", "times/w.json")
        )
        self.timed: list[int] = []
        """Wrap the timing calls, and count how many calls each timed."""
        self.measured = 0
        """Calls that measured the ceilings."""
        self.device = replace(cpu(), cache_bytes=0)
        self.code = "code"

    def measure(self, tasks: Any, *_: Any, **__: Any) -> list[Timing]:
        self.timed.append(len(tasks))
        return [Timing(1.0, 10.0 * len(self.timed) + at, 99.0, 6) for at in range(len(tasks))]

    def ceilings(self, device: Device) -> Ceilings:
        self.measured += 1
        return Ceilings(device.name, 1.0 * self.measured, dict.fromkeys(operand_formats(), 0.1))

    def records(self, case: dict[str, Any], seed: int = 1, **study: Any) -> list[Record]:
        """Run it and verify it; ``timed`` and ``measured`` are then of this run."""
        given = {"precisions": ["fp64", "fp32"], "baselines": ["numpy"], "seed": seed, **study}
        workload = load_study({**given, "workloads": {"w": case}}).workload("w")
        if not self.staged.exists():
            stage(workload, [], self.staged, LOG)
        self.timed.clear()
        self.measured = 0
        key = work(workload, self.staged, self.device, None, self.code)
        kept = KeptTimes.read(self.times, key, LOG)
        execute(workload, self.staged, self.run, self.device, LOG, None, self.ceilings, kept)
        return verify(workload, self.staged, self.run, read_ceilings(self.run), LOG)


@pytest.fixture
def part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Part:
    found = Part(tmp_path)
    for name in ("measure_in_turn", "measure_coarsely"):
        monkeypatch.setattr(in_turn, name, found.measure)
    stamps = (f"stamp {count}" for count in range(1000))
    monkeypatch.setattr("workflow.steps.run_results.timestamp", lambda: next(stamps))
    return found


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.INFO):
        yield caplog


@pytest.mark.parametrize(
    "chosen", [{"tolerance": 1e-3}, {"precision": "fp32", "allow_unproven": True}]
)
def test_another_choice_of_a_result_times_nothing(part: Part, chosen: dict[str, Any]) -> None:
    first = part.records(PRODUCT)
    assert part.timed == [len(first)] == [4]
    assert part.measured >= 1
    part.run.unlink()
    again = part.records(PRODUCT | chosen)
    assert (part.timed, part.measured) == ([], 0)
    assert [replace(row, tolerance=1e-5) for row in again] == first


@pytest.mark.parametrize(("busy", "times"), [(float("inf"), 1), (0.0, 2)])
def test_ceilings_are_measured_again_where_others_were_busy(
    part: Part, monkeypatch: pytest.MonkeyPatch, busy: float, times: int
) -> None:
    monkeypatch.setattr("workflow.steps.execute.BUSY", busy)
    monkeypatch.setattr("workflow.measuring.surroundings.load_of", lambda *_: 0.1)
    part.records(PRODUCT)
    assert part.measured == times
    assert read_ceilings(part.run).copy_gbytes_per_s == times  # the better one


def test_another_precision_is_timed_alone(part: Part) -> None:
    first = part.records(PRODUCT)
    wider = part.records(PRODUCT, precisions=["fp64", "fp32", "tf32"], baselines="none")
    assert part.timed == [1]
    assert [row.time_us_p50 for row in wider] == [10.0, 11.0, 10.0]
    assert [row.timestamp for row in wider[:2]] == [row.timestamp for row in first[:2]]
    rounded = part.records(
        PRODUCT | {"rounding": {"tf32": "toward_zero"}}, precisions=["fp64", "tf32"]
    )
    assert part.timed == [1]
    assert rounded[0].time_us_p50 == 10.0
    part.records(PRODUCT)
    assert part.timed == []


def test_a_streamed_result_keeps_its_time(part: Part) -> None:
    first = part.records(STREAMED, precisions=["fp32"])
    assert first[0].chunks
    again = part.records(STREAMED | {"tolerance": 1e-3}, precisions=["fp32"])
    assert part.measured == 0
    assert [replace(row, tolerance=1e-5) for row in again] == first
    whole = {key: value for key, value in STREAMED.items() if key != "device_memory"}
    assert part.records(whole, precisions=["fp32"])[0].chunks is None
    assert part.timed


def test_what_cannot_be_computed_is_no_reason_to_time_the_rest(part: Part) -> None:
    part.device = replace(part.device, arch=Arch(75, "sm_75", 0, "a card"))
    first = part.records(PRODUCT)
    assert {row.reason for row in first} == {"needs compute capability 8.0"}
    assert part.records(PRODUCT) == first
    assert part.measured == 0


@pytest.mark.parametrize("changed", ["input", "size", "kernels", "device", "code", "versions"])
def test_other_work_is_timed_again(
    part: Part, changed: str, monkeypatch: pytest.MonkeyPatch, said: pytest.LogCaptureFixture
) -> None:
    part.records(PRODUCT)
    case, seed = PRODUCT, 1
    if changed in ("input", "size"):
        part.staged.unlink()
        case, seed = (case, 2) if changed == "input" else (case | {"m": 7}, 1)
    elif changed == "kernels":
        monkeypatch.setattr(kept_times, "kernel_digest", lambda operation: "edited")
    elif changed == "versions":
        monkeypatch.setattr(kept_times, "versions", lambda: "numpy 9")
    elif changed == "device":
        part.device = replace(part.device, name="another card")
    else:
        part.code = "edited"
    said.clear()
    rows = part.records(case, seed)
    assert part.timed == [len(rows)]
    assert "all are timed again" in said.text
    assert part.records(case, seed) == rows
    assert part.timed == []


def test_other_kernels_of_a_result_time_it_again(part: Part) -> None:
    part.records(PRODUCT)
    content = read_object(part.times)
    content["rows"][1]["algorithm"] += ", a tile that was tuned"
    write_object(part.times, content)
    part.records(PRODUCT)
    assert part.timed == [1]


def damaged(path: Path, how: str) -> None:
    good = path.read_bytes()
    content = read_object(path)
    if how == "cut short":
        path.write_bytes(good[: len(good) // 2])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "not text":
        path.write_bytes(b"\xff" + good)
    elif how == "flipped":
        path.write_bytes(good.replace(b"99.0", b"98.0", 1))
    elif how == "another's":
        path.write_text(json.dumps([1, 2]))
    elif how == "nested":
        path.write_text("[" * 100_000)
    elif how == "no rows":
        del content["rows"]
        write_object(path, content)
    elif how == "no number":
        content["rows"][0]["time_us_p50"] = "10"
        write_object(path, content)
    elif how == "not finite":
        content["rows"][0]["time_us_p50"] = float("nan")
        write_object(path, content)
    elif how == "negative":
        content["rows"][0]["time_us_p50"] = -1.0
        write_object(path, content)
    else:
        write_object(path, content | {"ceilings": how})


@pytest.mark.parametrize(
    "how",
    ["cut short", "empty", "not text", "flipped", "another's", "nested", "no rows", "no number",
     "not finite", "negative", "no ceilings"],
)  # fmt: skip
def test_a_file_that_means_nothing_is_left_out_and_said_so(
    part: Part, how: str, said: pytest.LogCaptureFixture
) -> None:
    rows = part.records(PRODUCT, **ALONE)
    damaged(part.times, how)
    said.clear()
    part.records(PRODUCT, **ALONE)
    assert part.timed == [len(rows)]
    (line,) = [one for one in said.messages if "timed again" in one]
    assert str(part.times) in line
    part.records(PRODUCT, **ALONE)
    assert part.timed == [], "the file was not written again"


def test_a_pipe_in_its_place_is_refused(part: Part) -> None:
    part.times.parent.mkdir()
    os.mkfifo(part.times)
    with pytest.raises(NotPlainError, match="found a pipe"):
        part.records(PRODUCT)


def test_a_staged_file_without_a_seal_is_named(part: Part) -> None:
    part.records(PRODUCT)
    part.staged.write_bytes(part.staged.read_bytes()[:-200])
    with pytest.raises(DataError, match=r"staged\.h5: missing, truncated or damaged"):
        part.records(PRODUCT)
