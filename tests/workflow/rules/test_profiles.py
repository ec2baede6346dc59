"""The profiles: each repeats the default one, names existing rules, and mistakes are one line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

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
