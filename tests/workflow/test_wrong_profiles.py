"""Mistakes in a profile, which Snakemake says below 150 lines of its own usage."""

from __future__ import annotations

from pathlib import Path

import pytest

from workflow.profile import ProfileError, check_profile


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ("executor: [slurm", "config.yaml: not valid YAML: "),
        ("[slurm]", "config.yaml: must be a mapping of options"),
        ("exectuor: slurm", "exectuor: must be an option of Snakemake; did you mean 'executor'?"),
        ("executor: slrum", "got 'slrum'; did you mean 'slurm'?"),
    ],
)
def test_each_is_one_line(tmp_path: Path, profile: str, message: str) -> None:
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
