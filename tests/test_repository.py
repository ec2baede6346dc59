"""Rules of the repository's own files."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

LOCKS = ("cpu", "dev", "gpu-cuda12", "gpu-cuda13", "slurm")


def _requirements(text: str) -> dict[str, str]:
    """Each pinned requirement of a lock with what follows it (its hashes)."""
    parts = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)
    return {part.split("==")[0]: part for part in parts if part.strip()}


@pytest.mark.parametrize("name", LOCKS)
def test_locks_pin_every_version_with_hashes_and_hold_no_url(root: Path, name: str) -> None:
    text = (root / "envs" / f"{name}.txt").read_text()
    assert "://" not in text
    found = _requirements(text)
    assert found
    for requirement, part in found.items():
        assert "==" in part, requirement
        assert "--hash=sha256:" in part, requirement


def _versions(root: Path, name: str) -> dict[str, list[str]]:
    """Each package of a lock with its versions, of which a Python may have its own."""
    found: dict[str, list[str]] = {}
    text = (root / "envs" / f"{name}.txt").read_text()
    for package, version in re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", text, re.M):
        found.setdefault(package, []).append(version)
    return found


def test_what_the_workflow_needs_is_what_the_tests_run_with(root: Path) -> None:
    run, dev = _versions(root, "cpu"), _versions(root, "dev")
    assert {name: dev.get(name) for name in run} == run


def test_the_lock_for_slurm_changes_nothing_that_is_installed(root: Path) -> None:
    dev, slurm = _versions(root, "dev"), _versions(root, "slurm")
    assert "snakemake-executor-plugin-slurm" in slurm
    assert {name: slurm[name] for name in slurm if name in dev} == {
        name: dev[name] for name in dev if name in slurm
    }


def test_a_release_has_one_version(root: Path) -> None:
    files = {
        "pyproject.toml": r'^version = "(.*)"$',
        "CITATION.cff": r"^version: (.*)$",
        "kernels/argand/__init__.py": r'^__version__ = "(.*)"$',
    }
    found = {re.findall(x, (root / name).read_text(), re.MULTILINE)[0] for name, x in files.items()}
    assert len(found) == 1


def test_no_registry_is_named(root: Path) -> None:
    hosts = ["py" + "pi.org", "python" + "hosted.org", "deb." + "debian.org", "registry." + "npmjs"]
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    for name in filter(None, listed):
        text = (root / name).read_text(errors="ignore") if (root / name).is_file() else ""
        assert not [host for host in hosts if host in text], name


def test_files_of_code_have_at_most_300_lines(root: Path) -> None:
    """A longer one has several subjects; what programs generate is not read."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "*.py", "*.cuh", "*.smk", "*.sh", "*.html", "Makefile",
         "Snakefile"],
        cwd=root, capture_output=True, text=True, check=True,
    ).stdout.split("\0")  # fmt: skip
    lengths = {
        name: (root / name).read_text().count("\n") for name in listed if (root / name).is_file()
    }
    assert len(lengths) > 500
    assert {name: lines for name, lines in lengths.items() if lines > 300} == {}


def test_lines_of_cuda_have_at_most_100_columns(root: Path) -> None:
    """As those of Python, whose linter no kernel passes."""
    kernels = sorted((root / "kernels" / "argand" / "cuda").rglob("*.cuh"))
    assert len(kernels) > 100
    lines = [(path.name, line) for path in kernels for line in path.read_text().splitlines()]
    assert [found for found in lines if len(found[1]) > 100] == []


def test_assembly_has_no_constraint_that_nvrtc_lacks_before_cuda_12_5(root: Path) -> None:
    """A string in asm, by "C": every product failed to compile there."""
    kernels = sorted((root / "kernels" / "argand").rglob("*.cuh"))
    kernels += sorted((root / "kernels" / "argand").rglob("*.py"))
    assert [path.name for path in kernels if '"C"(' in path.read_text()] == []


def test_pages_are_short(root: Path) -> None:
    """A longer page answers several questions. Rows of generated tables are not counted."""
    pages = {root / "README.md": 130, root / "docs/performance.md": 130}
    pages |= dict.fromkeys((root / "docs/kernels").glob("*.md"), 200)
    generated = re.compile(r"<!-- table: .*?<!-- end -->", re.DOTALL)
    lengths = {page: generated.sub("", page.read_text()).count("\n") for page in pages}
    assert {page.name: lengths[page] for page, most in pages.items() if lengths[page] > most} == {}


def test_files_of_tests_have_names_of_their_own(root: Path) -> None:
    """In folders that are not packages, pytest takes one of two for the other."""
    names = [path.name for path in (root / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
