"""A failure costs its own workload: tables, figures and report of the others are made."""

from __future__ import annotations

import html
import os
import re
from pathlib import Path

import h5py
import numpy as np
import pytest
from shared_runs import QUICK, TABLES, failed
from slurm_project import Project

from tests.covers import EXHAUSTIVE

pytestmark = pytest.mark.slow

STUDY = """
device: cpu
precisions: [fp64, fp32]
baselines: none
workloads:
  good: {kind: gemm, m: 8, n: 9, k: 10}
  broken: {kind: gemm, input: {file: in.h5, a: a, b: b}}
  beams:
    {kind: beamforming, channels: 2, beams: 4, antennas: 6, samples: 30, precisions: [fp32],
     tolerance: 1.0e-9}
  chance: {kind: softmax, input: {workload: beams}}
  crash: {kind: gemm, batch: 4, m: 8, n: 9, k: 10, shards: 2}
"""
NAMES = ("good", "broken", "beams", "chance", "crash")
CRASH = """
    pass
if ".run." in " ".join(sys.orig_argv):
    import os, signal
    from workflow.steps import execute as module
    def execute(workload, *more, before=module.execute):
        if workload.name == "crash" and os.path.exists("crash"):
            os.kill(os.getpid(), signal.SIGKILL)
        return before(workload, *more)
    module.execute = execute
"""
REFUSE = """
    pass
if ".deliver." in " ".join(sys.orig_argv):
    import os
    from workflow.steps import delivery, result_choice
    def deliver(*given, before=delivery.deliver):
        if os.path.exists("refuse"):
            raise result_choice.DeliveryError("refused")
        return before(*given)
    delivery.deliver = deliver
"""


def failed_answers(results: Path) -> dict[str, str]:
    """The text of the answer's red rows, by workload."""
    page = (results / "answer.html").read_text()
    answers = page.split("<section>")[1]
    rows = re.findall(r'<tr class="failed">(.*?)</tr>', answers)
    cells = [re.findall(r"<t[dh].*?>(.*?)</t[dh]>", row) for row in rows]
    return {row[0]: html.unescape(" ".join(row)) for row in cells}


def table(project: Project) -> str:
    return (project.results / "tables" / "performance.md").read_text()


def test_the_others_are_finished_and_the_same_command_goes_on(root: Path, tmp_path: Path) -> None:
    """NaN in an input, a tolerance that no precision has, a job that is killed."""
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["b"] = np.eye(4, dtype=np.complex64)
        file["a"] = np.full((4, 4), np.nan, np.complex64)
    (tmp_path / "crash").touch()
    project = Project(root, tmp_path, dict(os.environ), STUDY, QUICK + CRASH)
    said = project.run(status=1)
    assert "Traceback" not in said
    results = project.results
    for name in (
        "products/good.h5", "figures/pareto/good.svg", "figures/products/good.svg",
        "figures/limits.svg", "tables/performance.h5", "tables/accuracy.md",
    ):  # fmt: skip
        assert (results / name).stat().st_size > 100, name
    for name in ("broken", "beams", "chance", "crash"):
        assert not (results / "products" / f"{name}.h5").exists()
        assert not (results / "figures" / "pareto" / f"{name}.svg").exists()
    assert failed(results / "tables" / "performance.csv") == ["broken", "chance", "crash"]
    page = (results / "tables" / "performance.html").read_text()
    for text in (
        "InputError: input.a has 16 NaN", "results/logs/stage/broken.log",
        "precision auto within tolerance 1e-09 is not to be had", "results/logs/deliver/beams.log",
        "reads the product of beams (results/products/beams.h5), which was not made",
        "ended, or was killed, without an error", "results/logs/run/crash/1-of-2.log",
    ):  # fmt: skip
        assert text in table(project).replace("\\", ""), text
        assert text in page, text
    assert page.count('<tr class="failed">') == 5 + 3 * 2  # each failure, each row without results
    answers = failed_answers(results)
    for name, text in (
        ("broken", "InputError: input.a has 16 NaN"), ("broken", "results/logs/stage/broken.log"),
        ("beams", "results/logs/deliver/beams.log"), ("chance", "beams.h5), which was not made"),
        ("crash", "results/logs/run/crash/"),
    ):  # fmt: skip
        assert text in answers[name], name
    assert set(answers) == {"broken", "beams", "chance", "crash"}
    page = (results / "answer.html").read_text()
    assert "good at fp" in page
    assert "beams at fp" not in page  # nothing of it was delivered
    assert "1 of 5 answers" in (results / "answer.md").read_text()
    project.run("reported", "--report", "results/report.html")
    assert "report.html" not in table(project)
    assert (results / "report.html").stat().st_size > 1000

    staged = (results / "staged" / "good.h5").stat().st_mtime_ns
    (tmp_path / "crash").unlink()
    with h5py.File(tmp_path / "in.h5", "r+") as file:
        file["a"][...] = np.eye(4, dtype=np.complex64)
    (tmp_path / "study.yaml").write_text(STUDY.replace("tolerance: 1.0e-9", "tolerance: 1.0e-2"))
    targets = (TABLES, *(f"results/products/{name}.h5" for name in NAMES))
    if EXHAUSTIVE:  # the answer has figures, which take longer than all else
        targets += ("results/answer.md",)
    project.run(*targets)
    assert "## Failed" not in table(project)
    assert failed(results / "tables" / "performance.csv") == []
    if EXHAUSTIVE:
        assert failed_answers(results) == {}
        assert "5 of 5 answers" in (results / "answer.md").read_text()
    assert (results / "staged" / "good.h5").stat().st_mtime_ns == staged
    assert "Nothing to be done" in project.run(*targets)


def test_a_delivery_that_fails_is_reported_until_it_succeeds(root: Path, tmp_path: Path) -> None:
    """Its records are made before it fails, so nothing else has the tables made again."""
    study = STUDY.partition("  broken")[0].replace("fp64, fp32", "fp32")
    project = Project(root, tmp_path, dict(os.environ), study, QUICK + REFUSE)
    targets = (TABLES, "results/products/good.h5")
    (tmp_path / "refuse").touch()
    project.run(*targets, status=1)
    assert "| good | deliver | DeliveryError" in table(project)
    assert failed(project.results / "tables" / "performance.csv") == []
    (tmp_path / "refuse").unlink()
    project.run(*targets)
    assert "## Failed" not in table(project)
