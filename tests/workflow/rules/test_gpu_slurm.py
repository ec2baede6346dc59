"""Real GPUs under a real Slurm: a node with two of them."""

from __future__ import annotations

from pathlib import Path

import mini_slurm
import pytest
from argand.device import gpus
from slurm_project import WHY_NOT, Project

from workflow.storage.runs import open_run

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)]

STUDY = """
precisions: [fp32, 3xtf32]
baselines: none
keep_runs: true
workloads:
  product: {kind: gemm, batch: 4, m: 256, n: 256, k: 256, shards: 4}
"""


def test_jobs_use_the_gpu_that_slurm_gave_them(root: Path, tmp_path: Path) -> None:
    found = gpus()
    if len(found) < 2:
        pytest.skip(f"two GPUs are needed, there are {len(found)}")
    project_folder = tmp_path / "project"
    project_folder.mkdir()
    files = [f"/dev/nvidia{device.index}" for device in found[:2]]
    parts = [f"results/runs/product/{index}-of-4.h5" for index in range(1, 5)]
    with mini_slurm.running(tmp_path / "slurm", files) as cluster:
        project = Project(root, project_folder, cluster.environ, STUDY)
        try:
            staged = project.start("--cores", "1", "results/staged/product.h5")  # needs no node
            project.finish(staged)
            project.finish(project.submit(*parts))
        finally:
            project.end()
    lines = project.leases()
    assert len(lines) == 8
    for line in lines:
        assert line["given_by"].startswith("Slurm job ")
        assert len(line["gpus"]) == 1
    assert {line["gpus"][0]["index"] for line in lines} == {0, 1}
    for part in parts:
        with open_run(project_folder / part) as run:
            assert [result.precision for result in run.results] == ["fp32", "3xtf32"]
            assert {result.device for result in run.results} <= {device.name for device in found}
            assert all(run.outline(result) is not None for result in run.results)
