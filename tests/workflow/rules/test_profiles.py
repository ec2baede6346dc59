"""Profiles, environments of rules, and how the workflow is parsed: a mistake is one line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
import yaml
from snakemake_forks import run_beside_snakemake

from workflow.profile import ProfileError, check_profile

GPU_RULES = {"run", "growth_of_errors"}
THREADED = {"verify", "verify_shard"}


def profile(root: Path, name: str) -> dict[str, Any]:
    return yaml.safe_load((root / "profiles" / name / "config.yaml").read_text())


@pytest.fixture
def rules(root: Path) -> str:
    return "".join(path.read_text() for path in sorted((root / "workflow/rules").glob("*.smk")))


def test_a_profile_repeats_the_default_one_that_it_replaces(root: Path) -> None:
    default, slurm = profile(root, "default"), profile(root, "slurm")
    assert {key: slurm.get(key) for key in default} == default


def test_slurm_has_threads_for_each_rule_that_uses_some(root: Path, rules: str) -> None:
    found = re.findall(r"^rule (\w+):(?:(?!^rule ).)*?gpu=GPU_PER_JOB", rules, re.M | re.S)
    assert set(found) == GPU_RULES
    threads = dict(line.split("=") for line in profile(root, "slurm")["set-threads"])
    assert set(threads) == GPU_RULES | THREADED


def test_what_cannot_be_delivered_still_has_its_rows(root: Path) -> None:
    """A group fails as a whole: what the tables need is not in one with what may fail after it."""
    groups = dict(line.split("=") for line in profile(root, "slurm")["groups"])
    assert groups == {"deliver": "product", "draw": "product"}


def test_every_rule_that_is_submitted_says_what_it_needs(rules: str, root: Path) -> None:
    local = re.search(r"^localrules:\n((?:    \w+,\n)+)", (root / "Snakefile").read_text(), re.M)
    assert local is not None
    bodies = dict(re.findall(r"^rule (\w+):\n((?:(?!^rule ).)*)", rules, re.M | re.S))
    submitted = set(bodies) - set(re.findall(r"\w+", local[1]))
    assert submitted == GPU_RULES | {
        "stage", "verify", "deliver", "gather", "write_uvh5", "draw", "manifest",
    }  # fmt: skip
    for name in submitted:
        assert "**asks(" in bodies[name], name


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ("executor: [slurm", "config.yaml: not valid YAML: "),
        ("[slurm]", "config.yaml: must be a mapping of options"),
        ("exectuor: slurm", "exectuor: must be an option of Snakemake; did you mean 'executor'?"),
        ("executor: slrum", "got 'slrum'; did you mean 'slurm'?"),
    ],
)
def test_each_mistake_is_one_line(tmp_path: Path, profile: str, message: str) -> None:
    """Snakemake says it below 150 lines of its own usage."""
    (tmp_path / "config.yaml").write_text(profile)
    with pytest.raises(ProfileError) as error:
        check_profile(tmp_path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("profile", ["executor: $WHERE", "--jobs: 4", "__use_yte__: true\nx: 1"])
def test_what_snakemake_alone_can_read_is_left_to_it(tmp_path: Path, profile: str) -> None:
    (tmp_path / "config.yaml").write_text(profile)
    check_profile(tmp_path)


@pytest.mark.parametrize("name", ["default", "slurm"])
def test_ours_are_right(root: Path, name: str) -> None:
    check_profile(root / "profiles" / name)


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


def test_the_conda_environment_is_named_where_it_is_made(root: Path, tmp_path: Path) -> None:
    study = "device: cpu\nworkloads: {x: {kind: softmax, rows: 2, columns: 2}}\n"
    (tmp_path / "study.yaml").write_text(study)
    (tmp_path / "own.parsed.py").write_text(PARSED)
    done = run_beside_snakemake(tmp_path / "own.parsed.py", str(root / "Snakefile"))
    assert done.returncode == 0, done.stderr
    conda, without = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
    assert int(conda[0]) == int(without[0]) > 10
    assert conda[1].endswith("environment.yaml")
    assert without[1] == "None"


HIDDEN = """
import sys
HIDDEN = {hidden!r}
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"{{name}} is not in envs/cpu.txt", name=name)
sys.meta_path.insert(0, Finder())
"""


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(root: Path) -> set[str]:
    """The lock's packages; Snakemake imports every plugin that is installed, so also Slurm's."""
    text = "".join((root / "envs" / f"{name}.txt").read_text() for name in ("cpu", "slurm"))
    return {normal(name) for name in re.findall(r"^([A-Za-z0-9._-]+)(?:\[.*\])?==", text, re.M)}


def hidden(root: Path) -> list[str]:
    """Modules of packages that are installed here and not in the lock."""
    known = locked(root) | {"argand", "pip", "setuptools"}
    return sorted(
        module
        for module, owners in packages_distributions().items()
        if module.isidentifier() and not known & set(map(normal, owners))
    )


def test_a_plan_needs_the_locked_packages_alone(root: Path, tmp_path: Path) -> None:
    """An empty folder and ``pip install --require-hashes -r envs/cpu.txt`` are enough."""
    left_out = hidden(root)
    assert {"pytest", "xarray", "hypothesis"} <= set(left_out)
    (tmp_path / "sitecustomize.py").write_text(HIDDEN.format(hidden=set(left_out)))
    folder = tmp_path / "empty"
    folder.mkdir()
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(root / "Snakefile")]
    done = subprocess.run(
        [*command, "--cores", "1", "--dry-run"], cwd=folder, env=environ, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "would do  answer   results/config/answer.html" in done.stderr
    assert not (folder / "results").exists()


def test_the_catalogue_promises_what_was_seen(root: Path) -> None:
    """No conda channel and no image registry was reached: environments were written, not built."""
    usage = yaml.safe_load((root / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert usage["software-stack-deployment"] == {"conda": False}
    assert usage["report"] is True
    assert "envs/cpu.txt" in usage["mandatory-flags"]["desc"]
