"""A study in shards as a user runs it: products of the whole, a lost source, a killed job."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from rule_jobs import held_environ, held_run, running_job
from shared_runs import TABLES, made_once, measured_as, repeatable, session_folder
from snakemake_forks import run_snakemake

from tests.covers import EXHAUSTIVE
from workflow.storage.datasets import DataError
from workflow.storage.products import read_product

pytestmark = pytest.mark.slow

STUDY = """
device: cpu
precisions: [fp32, 3xtf32]
baselines: none
workloads:
  beams:
    {{kind: beamforming, channels: 5, beams: 4, antennas: 6, samples: 30, precision: fp32{more}}}
  chance: {{kind: softmax, input: {{workload: beams}}, precision: 3xtf32}}
"""
SHARDS = 2


class Project:
    """A folder to run the study in, in so many shards."""

    def __init__(self, root: Path, folder: Path, shards: int) -> None:
        self.root, self.folder, self.results = root, folder, folder / "results"
        self.targets: tuple[str, ...] = ()
        if not EXHAUSTIVE:  # all but figures
            parts = [f"beams/{index + 1}-of-{shards}" for index in range(shards) if shards > 1]
            products = [f"results/products/{name}.h5" for name in ("beams", "chance", *parts)]
            self.targets = (TABLES, *products, *["results/tables/shards.csv"] * (shards > 1))
        more = f", shards: {shards}" if shards > 1 else ""
        (folder / "study.yaml").write_text(STUDY.format(more=more))

    def flags(self) -> list[str]:
        return [
            "--snakefile", str(self.root / "Snakefile"), "--cores", "2",
            "--config", f"study={self.folder / 'study.yaml'}", "out=results",
            "--directory", str(self.folder), *self.targets,
        ]  # fmt: skip

    def run(self) -> str:
        done = run_snakemake(self.flags(), self.folder)
        assert done.returncode == 0, done.stderr
        return done.stderr

    def run_and_kill(self, rule: str) -> None:
        """Run until a job of a rule is there, kill it in the middle, and wait for Snakemake."""
        environ = held_environ(self.folder)
        with held_run(self.folder, lambda: run_snakemake(self.flags(), self.folder, environ),
                      rule) as run:  # fmt: skip
            running_job(self.folder, rule).kill()
        assert run.result().returncode == 1
        assert not (self.results / "products" / "beams.h5").exists()

    def product(self, name: str) -> np.ndarray:
        return np.asarray(read_product(self.results / "products" / f"{name}.h5").data)

    def table(self, name: str) -> list[dict[str, str]]:
        with (self.results / "tables" / f"{name}.csv").open() as file:
            return list(csv.DictReader(file))

    def verdicts(self) -> list[dict[str, str]]:
        """The tables but for what was measured."""
        return repeatable(row for name in ("performance", "shards") for row in self.table(name))


def finished(root: Path, factory: pytest.TempPathFactory, measured: Path, shards: int) -> Project:
    """A finished run in so many shards, made once, to read.

    The short run takes one in shards of which a job was killed: others see it undisturbed.
    """

    def make(folder: Path) -> None:
        measured_as(folder, measured)
        project = Project(root, folder, shards)
        if shards > 1 and not EXHAUSTIVE:
            project.run_and_kill("run")
        project.run()

    made_once(session_folder(factory) / f"beams-{shards}", make)
    return Project(root, session_folder(factory) / f"beams-{shards}", shards)


@pytest.fixture(scope="module")
def whole(root: Path, tmp_path_factory: pytest.TempPathFactory, tiny_run: Path) -> Project:
    return finished(root, tmp_path_factory, tiny_run, 1)


@pytest.fixture
def sharded(
    root: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, tiny_run: Path
) -> Project:
    """A copy of its own for each test."""
    original = finished(root, tmp_path_factory, tiny_run, SHARDS)
    shutil.copytree(original.folder, tmp_path / "sharded")
    return Project(root, tmp_path / "sharded", SHARDS)


@pytest.fixture
def undisturbed(sharded: Project) -> list[dict[str, str]]:
    return sharded.verdicts()


def assert_same(project: Project, other: Project) -> None:
    for name in ("beams", "chance"):
        # Each channel is a product of its own: not a bit may differ.
        np.testing.assert_array_equal(project.product(name), other.product(name))


def by_precision(project: Project) -> dict[tuple[str, str], dict[str, str]]:
    return {(row["workload"], row["precision"]): row for row in project.table("performance")}


def test_a_row_for_the_whole(sharded: Project) -> None:
    rows = by_precision(sharded)
    assert {name for name, _ in rows} == {"beams", "chance"}
    assert all(row["verified"] == "true" for row in rows.values())
    assert rows["beams", "fp32"]["shards"] == str(SHARDS)
    assert sharded.product("beams").shape == (5, 1, 4, 30)
    each = [row for row in sharded.table("shards") if row["precision"] == "fp32"]
    assert [row["shard"] for row in each] == ["1-of-2", "2-of-2"]
    times = sum(float(row["time_us_p50"]) for row in each)
    assert float(rows["beams", "fp32"]["time_us_p50"]) == pytest.approx(times)
    assert not list((sharded.results / "runs").rglob("*.h5"))
    assert not list(sharded.results.rglob("*.part"))


def test_nothing_is_done_twice(sharded: Project) -> None:
    assert "Nothing to be done" in sharded.run()


@pytest.mark.exhaustive
def test_a_source_that_is_lost_is_an_error_and_made_again(
    sharded: Project, whole: Project, undisturbed: list[dict[str, str]]
) -> None:
    lost = sharded.results / "products" / "beams" / "2-of-2.h5"
    lost.unlink()
    with pytest.raises(DataError, match=r"beams\.h5: its source .*2-of-2\.h5 is missing"):
        sharded.product("beams")
    sharded.run()
    assert lost.is_file()
    assert_same(sharded, whole)
    assert sharded.verdicts() == undisturbed


@pytest.mark.exhaustive
@pytest.mark.parametrize("rule", ["run", "verify"])
def test_a_killed_job_of_a_shard(
    rule: str,
    root: Path,
    tmp_path: Path,
    whole: Project,
    undisturbed: list[dict[str, str]],
    tiny_run: Path,
) -> None:
    (tmp_path / "killed").mkdir()
    project = Project(root, tmp_path / "killed", SHARDS)
    measured_as(project.folder, tiny_run)
    project.run_and_kill(rule)
    project.run()
    assert_same(project, whole)
    assert project.verdicts() == undisturbed
    assert not list(project.results.rglob("*.part"))


@pytest.mark.exhaustive
def test_another_number_of_shards_stages_nothing_again(sharded: Project, whole: Project) -> None:
    staged = (sharded.results / "staged" / "beams.h5").stat().st_mtime_ns
    other = Project(sharded.root, sharded.folder, 3)
    other.run()
    assert (sharded.results / "staged" / "beams.h5").stat().st_mtime_ns == staged
    assert_same(other, whole)
    assert json.loads((other.results / "records/beams/2-of-3.jsonl").read_text().splitlines()[0])
    if EXHAUSTIVE:
        other = Project(sharded.root, sharded.folder, 1)
        other.run()
        assert_same(other, whole)
