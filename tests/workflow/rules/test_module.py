"""The workflow as a module of another one, in another repository, with a config and a prefix."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from shared_runs import MEASURED, TABLES, measured_as
from snakemake_forks import run_snakemake

from workflow.storage.products import read_product

pytestmark = pytest.mark.slow

OUTER = """
configfile: "outer.yaml"

module argand:
    snakefile: "{root}/Snakefile"
    config: config["night"]
    prefix: "night"

use rule * from argand as argand_*

use rule stage from argand as argand_stage with:
    log: "logs/own-{{workload}}.log"

rule count:
    default_target: True
    input: "night/results/products/product.h5"
    output: "count.txt"
    shell: "ls night/results/products | wc -l > {{output}}"

rule whole:
    input: rules.argand_all.input

rule other:
    output: "other.txt"
    log: "logs/other.log"
    shell: "exit 3"

onstart:
    argand.onstart()

onerror:
    argand.onerror()
"""
STUDY = """
  device: cpu
  precisions: [fp32]
  baselines: none
  workloads:
    product: {kind: gemm, m: 8, n: 9, k: 10}
    beams: {kind: beamforming, channels: 2, beams: 4, antennas: 6, samples: 30, shards: 2}
    chance: {kind: softmax, input: {workload: beams}}
    swept: {kind: dft, length: [12, 16], batch: 3}
"""


def snakemake(folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """Run the outer workflow from its own folder."""
    return run_snakemake(["--cores", "2", *flags], folder)


@pytest.fixture
def outer(tmp_path: Path, root: Path, tiny_run: Path) -> Path:
    (tmp_path / "Snakefile").write_text(OUTER.format(root=root))
    (tmp_path / "outer.yaml").write_text(f"night:{STUDY}")
    measured_as(tmp_path / "night", tiny_run)
    assert all((tmp_path / "night" / name).is_file() for name in MEASURED)
    return tmp_path


def test_a_study_in_the_config_of_another_workflow(outer: Path) -> None:
    done = snakemake(outer)
    assert done.returncode == 0, done.stderr
    assert (outer / "count.txt").read_text().split() == ["1"]
    product = read_product(outer / "night" / "results" / "products" / "product.h5")
    assert product.data.shape[-2:] == (8, 9)
    assert (outer / "logs" / "own-product.log").is_file()
    assert (outer / "night" / "results" / ".lock").is_file()
    assert not (outer / "results").exists()


def test_everything_of_the_module_has_the_prefix(outer: Path) -> None:
    done = snakemake(outer, "--dry-run", "whole")
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    for name in (
        "products/chance.h5", "products/beams/2-of-2.h5", "tables/performance.csv",
        "figures/sweeps/swept.svg",
    ):  # fmt: skip
        assert f"night/results/{name}" in said
    made = re.findall(r"Missing output files: (.*?)(?:; Input|$)", said, re.MULTILINE)
    names = [name for line in made for name in line.split(", ")]
    assert len(names) > 20
    assert all(name.startswith("night/results/") for name in names)


def test_a_study_of_its_own_file(outer: Path) -> None:
    """``study`` is a path from the folder of the outer workflow; other keys override it."""
    (outer / "study.yaml").write_text("\n".join(line[2:] for line in STUDY.splitlines()))
    (outer / "outer.yaml").write_text("night: {study: study.yaml, precisions: [fp65]}")
    done = snakemake(outer, "--dry-run")
    assert done.returncode == 1
    assert "precisions: must be one of" in done.stdout + done.stderr


def test_results_elsewhere(outer: Path) -> None:
    text = (outer / "outer.yaml").read_text().replace("night:", "night:\n  out: of/tonight")
    (outer / "outer.yaml").write_text(text)
    done = snakemake(outer, "--dry-run", "whole")
    assert done.returncode == 0, done.stderr
    made = re.findall(r"Missing output files: (.*?)(?:; Input|$)", done.stdout, re.MULTILINE)
    names = [name for line in made for name in line.split(", ")]
    assert len(names) > 20
    assert all(name.startswith("night/of/tonight/") for name in names)


def test_a_workload_that_fails_costs_only_itself(outer: Path) -> None:
    """Snakemake calls a module's handler where the outer workflow does: tables and answer."""
    text = (
        (outer / "outer.yaml").read_text().replace("samples: 30", "samples: 30, tolerance: 1.0e-9")
    )
    (outer / "outer.yaml").write_text(text)
    products = [f"night/results/products/{name}.h5" for name in ("product", "beams", "chance")]
    done = snakemake(outer, "--keep-going", f"night/{TABLES}", *products, "other.txt")
    assert done.returncode == 1
    results = outer / "night" / "results"
    assert (results / "products" / "product.h5").is_file()
    assert not (results / "products" / "beams.h5").exists()
    assert (results / "figures" / "sweeps" / "swept.svg").stat().st_size > 1000
    answer = (results / "answer.md").read_text()
    assert re.search(r"\| product \| fp32 \| verified", answer)
    assert "no product: argand_deliver_shard: DeliveryError: beams" in answer
    assert (
        "reads the product of beams (night/results/products/beams.h5), which was not made" in answer
    )
    assert "night/results/logs/deliver/beams/1-of-2.log" in answer
    assert "the study |" not in answer.partition("## Failed")[2]  # of the outer rule
    assert "## Failed" in (results / "tables" / "performance.md").read_text()
