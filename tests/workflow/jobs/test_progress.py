"""The progress lines that a person follows."""

from __future__ import annotations

import io
import logging
import os
import termios
import time
from pathlib import Path

import pytest

from workflow.jobs.progress import Bar, Progress


def _emit(progress: Progress, event: str, **fields: object) -> None:
    record = logging.LogRecord("snakemake", logging.INFO, "", 0, "", (), None)
    record.__dict__.update(fields, event=event)
    progress.emit(record)


def test_one_line_a_step_with_the_log_s_last_line(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    stream = io.StringIO()
    progress = Progress(stream)
    _emit(progress, "run_info", stats={"total": 12})
    _emit(progress, "job_info", jobid=3, rule_msg="run      beams", rule_name="run", log=[str(log)])
    log.write_text("details\n6 precisions; fastest fp16\n\n")
    _emit(progress, "job_finished", job_id=3)
    (line,) = stream.getvalue().splitlines()
    assert "[ 1/12]" in line
    assert "run      beams" in line
    assert line.endswith("6 precisions; fastest fp16")


def test_a_failure_is_named_with_its_log(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    stream = io.StringIO()
    progress = Progress(stream)
    _emit(progress, "job_info", jobid=1, rule_msg="run x", rule_name="run", log=[str(log)])
    log.write_text("Traceback\nValueError: no\n")
    _emit(progress, "job_error", jobid=1)
    assert "FAILED  ValueError: no" in stream.getvalue()
    assert str(log) in stream.getvalue()


def test_a_job_that_was_not_taken_has_the_executor_s_word(tmp_path: Path) -> None:
    stream = io.StringIO()
    progress = Progress(stream)
    log = tmp_path / "run.log"
    _emit(progress, "job_info", jobid=1, rule_msg="run x", rule_name="run", log=[str(log)])
    said = "SLURM sbatch failed. The error message was\n'Requested node is not available'."
    _emit(progress, "job_error", jobid=1, rule_msg=said + 1000 * "x")
    (line,) = stream.getvalue().splitlines()
    assert "FAILED  SLURM sbatch failed. The error message was 'Requested node" in line
    assert len(line) < 400
    assert str(log) not in line, "there is no such file"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_what_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    progress = Progress(stream)
    for number in (1, 2):
        monkeypatch.setattr(time, "strftime", lambda form, number=number: f"0{number}:00")
        _emit(progress, "job_info", jobid=number, rule_msg=f"run  w{number}", rule_name="run")
    _emit(progress, "job_finished", job_id=1)
    shown = stream.getvalue().replace("\x1b[2K", "").split("\r")
    assert [line.strip() for line in shown[:2]] == [
        "under way: run w1 since 01:00",
        "under way: run w1 since 01:00, run w2 since 02:00",
    ]
    ended, still = shown[2].splitlines()
    assert "run  w1" in ended
    assert still.strip() == "under way: run w2 since 02:00"


def test_what_is_overwritten_fits_the_terminal() -> None:
    """A line that wraps would leave all its rows but the last one on the terminal."""
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w") as stream:
        for columns, most in ((40, 39), (0, 79)):
            termios.tcsetwinsize(ours, (24, columns))
            progress = Progress(stream)
            for number in range(9):
                _emit(progress, "job_info", jobid=number, rule_msg=f"run w{number}")
            with Bar("beams", 9, stream) as bar:
                bar.show(9)
            print("end", file=stream, flush=True)
            text = b""
            while b"end" not in text:  # a terminal hands on what is written in pieces
                text += os.read(ours, 1 << 16)
            shown = text.decode().replace("\x1b[2K", "").split("\r")
            assert max(map(len, shown)) == most
    os.close(ours)


def test_a_bar_on_a_terminal() -> None:
    stream = Terminal()
    with Bar("beams fp32", 200, stream) as bar:
        bar.show(50)
        bar._EVERY_S = 3600
        bar.show(51)  # too soon after the last
        bar.show(200)
    lines = stream.getvalue().replace("\x1b[2K", "").split("\r")
    assert lines[0].startswith("beams fp32  [#######.......................]  25 %  ")
    assert lines[1].startswith("beams fp32  [##############################] 100 %  0 s left")
    assert lines[2] == ""


def test_no_bar_in_a_file() -> None:
    stream = io.StringIO()
    with Bar("beams fp32", 200, stream) as bar:
        bar.show(200)
    assert stream.getvalue() == ""


def test_the_log_of_an_earlier_job_says_nothing(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text("6 precisions; fastest fp16\n")
    stream = io.StringIO()
    progress = Progress(stream)
    _emit(progress, "job_info", jobid=1, rule_msg="run x", rule_name="run", log=[str(log)])
    _emit(progress, "job_error", jobid=1, rule_msg="not submitted")
    assert "FAILED  not submitted" in stream.getvalue()
    assert "fastest" not in stream.getvalue()


def test_the_jobs_of_a_group_fail_together(tmp_path: Path) -> None:
    """The scheduler knows one job; what each part said last shows which of them it was."""
    stream = io.StringIO()
    progress = Progress(stream)
    logs = {1: tmp_path / "verify.log", 2: tmp_path / "deliver.log", 3: tmp_path / "draw.log"}
    for job, log in logs.items():
        _emit(progress, "job_info", jobid=job, rule_msg=log.stem, rule_name="x", log=[str(log)])
    logs[1].write_text("4 of 4 verified\n")
    logs[2].write_text("DeliveryError: no\n")
    parts = [{"jobid": job} for job in logs]
    _emit(progress, "group_error", groupid="verify", aux_logs=["slurm/7.log"], job_error_info=parts)
    for job in logs:
        _emit(progress, "job_error", jobid=job, rule_msg=None)
    verify, deliver, draw = stream.getvalue().splitlines()
    assert "FAILED with its group  4 of 4 verified" in verify
    assert "FAILED with its group  DeliveryError: no" in deliver
    assert "FAILED with its group  see slurm/7.log" in draw
