"""Rules name the conda environment where Snakemake makes environments, and only there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PARSED = """
import sys
from pathlib import Path
from snakemake.api import SnakemakeApi
from snakemake.settings.types import (
    ConfigSettings, DeploymentMethod, DeploymentSettings, ResourceSettings,
)

methods = {DeploymentMethod.CONDA} if sys.argv[2] == "conda" else set()
with SnakemakeApi() as api:
    parsed = api.workflow(
        resource_settings=ResourceSettings(cores=1),
        config_settings=ConfigSettings(config={"study": "study.yaml"}),
        deployment_settings=DeploymentSettings(deployment_method=methods),
        snakefile=Path(sys.argv[1]),
    )
    rules = [rule for rule in parsed._workflow.rules if rule.script]
    print(len(rules), sorted({str(rule.conda_env) for rule in rules}))
"""


@pytest.mark.parametrize("method", ["conda", "none"])
def test_is_named_where_it_is_made(root: Path, tmp_path: Path, method: str) -> None:
    study = "device: cpu\nworkloads: {x: {kind: softmax, rows: 2, columns: 2}}\n"
    (tmp_path / "study.yaml").write_text(study)
    done = subprocess.run(
        [sys.executable, "-c", PARSED, root / "Snakefile", method], cwd=tmp_path, text=True,
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    count, found = done.stdout.split(maxsplit=1)
    assert int(count) > 10
    assert ("environment.yaml" in found) == (method == "conda")
    assert ("None" in found) == (method == "none")
