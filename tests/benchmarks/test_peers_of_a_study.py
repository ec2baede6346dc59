"""Ours beside the peers of a study that was run: rows, not times."""

from __future__ import annotations

import csv
import logging
from pathlib import Path

import pytest
import yaml

from benchmarks.pipeline import peers
from workflow.config.loading import load_study
from workflow.steps.staging import stage

WORKLOADS = {
    "product": {"kind": "gemm", "m": 4, "n": 5, "k": 6, "baselines": ["numpy"]},
    "logits": {"kind": "softmax", "rows": 4, "columns": 8, "baselines": ["scipy"]},
    "lone": {"kind": "softmax", "rows": 4, "columns": 8, "baselines": "none"},
    "model": {"kind": "gemm", "m": 4, "n": 5, "k": 6, "precisions": ["tf32"]},
}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    (tmp_path / "study.yaml").write_text(yaml.safe_dump({"workloads": WORKLOADS}, sort_keys=False))
    (tmp_path / "staged").mkdir()
    study = load_study(tmp_path / "study.yaml", folder=tmp_path)
    for name in study.names:
        path = tmp_path / "staged" / f"{name}.h5"
        stage(study.workload(name), [], path, logging.getLogger("test"))
    return tmp_path


def test_a_row_for_each_precision_that_the_cpu_and_a_peer_have(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = results / "rows.csv"
    peers.main([str(results), "--rounds", "6", "--csv", str(path)])
    with path.open() as file:
        rows = list(csv.DictReader(file))
    found = [(row["workload"], row["precision"], row["peer"]) for row in rows]
    assert found == [
        ("product", "fp64", "numpy"), ("product", "fp32", "numpy"),
        ("logits", "fp64", "scipy"), ("logits", "fp32", "scipy"),
    ]  # fmt: skip
    for row in rows:
        assert 0 < float(row["low"]) <= float(row["ratio"]) <= float(row["high"])
        assert float(row["ours_us"]) > 0
    assert capsys.readouterr().out.count(" of it (") == len(rows)
