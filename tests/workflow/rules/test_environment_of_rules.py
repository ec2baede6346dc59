"""Rules name the conda environment where Snakemake makes environments, and only there."""

from __future__ import annotations

from pathlib import Path

from snakemake_forks import run_beside_snakemake

PARSED = """
import sys
from pathlib import Path
from snakemake.api import SnakemakeApi
from snakemake.settings.types import (
    ConfigSettings, DeploymentMethod, DeploymentSettings, ResourceSettings,
)

for methods in ({DeploymentMethod.CONDA}, set()):
    with SnakemakeApi() as api:
        parsed = api.workflow(
            resource_settings=ResourceSettings(cores=1),
            config_settings=ConfigSettings(config={"study": "study.yaml"}),
            deployment_settings=DeploymentSettings(deployment_method=methods),
            snakefile=Path(sys.argv[1]),
        )
        rules = [rule for rule in parsed._workflow.rules if rule.script]
        print(len(rules), *sorted({str(rule.conda_env) for rule in rules}))
"""


def test_is_named_where_it_is_made(root: Path, tmp_path: Path) -> None:
    study = "device: cpu\nworkloads: {x: {kind: softmax, rows: 2, columns: 2}}\n"
    (tmp_path / "study.yaml").write_text(study)
    (tmp_path / "own.parsed.py").write_text(PARSED)
    done = run_beside_snakemake(tmp_path / "own.parsed.py", str(root / "Snakefile"))
    assert done.returncode == 0, done.stderr
    conda, without = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
    assert int(conda[0]) == int(without[0]) > 10
    assert conda[1].endswith("environment.yaml")
    assert without[1] == "None"
