"""The wheel: built, installed where nothing else of this tree is found, used as users do."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from email import message_from_bytes
from pathlib import Path

import argand
import pytest
from argand.command import study

from tools.wheel_metadata import urls

REPOSITORY = "https://code.example/argand"
TINY = """
device: cpu
precisions: [fp32]
baselines: none
workloads:
  product: {kind: gemm, m: 8, n: 9, k: 10}
"""


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(
        command, cwd=root, check=True, capture_output=True,
        env={**os.environ, "ARGAND_REPOSITORY": REPOSITORY},
    )  # fmt: skip
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Path:
    """A virtual environment with the wheel, beside what the locks install and without this tree."""
    place = wheel.parent / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    (packages,) = place.glob("lib/python*/site-packages")
    # The folder of a line goes onto sys.path; what adds this tree there is not read in it.
    (packages / "locked.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    python = str(place / "bin" / "python")
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "install",
         "--quiet", "--no-deps", "--no-index", "--no-compile", str(wheel)],
        check=True,
    )  # fmt: skip
    return place


def call(installed: Path, *words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program of the environment in a folder, without what this process inherited."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(
        [str(installed / "bin" / words[0]), *words[1:]], cwd=folder, env=environment, text=True,
        capture_output=True, check=False,
    )  # fmt: skip


def test_it_has_one_package_with_every_file(wheel: Path, root: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name.partition("/")[0] for name in names} == {
        "argand", f"argand-{argand.__version__}.dist-info"
    }  # fmt: skip
    listed = subprocess.run(
        ["git", "ls-files", "-z", "kernels", "workflow", "benchmarks/peers", "profiles", "config"],
        cwd=root, capture_output=True, text=True, check=True,
    ).stdout.split("\0")  # fmt: skip
    tracked = [name for name in listed if name and (root / name).is_file()]
    inside = {
        name.removeprefix("kernels/") if name.startswith("kernels/") else f"argand/study/{name}"
        for name in tracked
    }
    assert inside - names == set()


def test_its_metadata_names_where_the_project_is(wheel: Path, root: Path) -> None:
    inside = f"argand-{argand.__version__}.dist-info/METADATA"
    said = message_from_bytes(zipfile.ZipFile(wheel).read(inside))
    addresses = dict(line.split(", ") for line in said.get_all("Project-URL") or [])
    assert addresses["Source"] == REPOSITORY
    assert all(address.startswith(REPOSITORY) for address in addresses.values())
    assert said["Description-Content-Type"] == "text/markdown"
    page = str(said.get_payload())
    links = re.findall(r"\]\(([^)]+)\)", page)
    assert len(links) > 20
    for address in (*links, addresses["Documentation"], addresses["Changelog"]):
        found = re.fullmatch(re.escape(REPOSITORY) + r"/(blob|raw)/main/([^#]+)(#.*)?", address)
        assert found, address
        assert (root / found[2]).exists(), address


def test_without_an_address_it_names_none(root: Path) -> None:
    code = (
        "from hatchling.metadata.core import ProjectMetadata; "
        "from hatchling.plugin.manager import PluginManager; "
        "core = ProjectMetadata('.', PluginManager()).core; "
        "print(core.urls, len(core.readme) > 1000)"
    )
    environment = {name: given for name, given in os.environ.items() if name != "ARGAND_REPOSITORY"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, env=environment, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout == "{} True\n"


@pytest.mark.parametrize(
    "address", ["code.example/argand", "ssh://code.example/argand", "https://"]
)
def test_an_address_that_is_none_of_the_web_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match=r"ARGAND_REPOSITORY is '.*': give an address such as"):
        urls(address)


def test_the_quick_start_of_the_readme(installed: Path, root: Path, tmp_path: Path) -> None:
    (code,) = re.findall(r"## Python in ten lines\n\n```python\n(.*?)```",
                         (root / "README.md").read_text(), re.DOTALL)  # fmt: skip
    said = f"{code}\nimport argand\nprint(argand.__file__, abs(c - a @ b).max() < 1e-4)"
    done = call(installed, "python", "-c", said, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    where, right = done.stdout.split()
    assert Path(where).is_relative_to(installed)
    assert right == "True"


def test_what_would_be_used(installed: Path, tmp_path: Path) -> None:
    done = call(installed, "argand", "doctor", folder=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    (studies,) = re.findall(r"^studies +by the workflow in (.*)$", done.stdout, re.MULTILINE)
    assert Path(studies).is_relative_to(installed)


def test_a_study_is_checked(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(TINY)
    done = call(installed, "argand", "check", "tiny.yaml", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 workload (product)" in done.stdout


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_study_is_run(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(TINY)
    done = call(installed, "argand", "run", "tiny.yaml", "--cores", "2", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    results = tmp_path / "results" / "tiny"
    assert (results / "products" / "product.h5").is_file()
    assert (results / "report.html").is_file()


def test_what_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(study, "needed_packages", lambda: ["numpy", "no_such_package"])
    assert study.main(["run"]) == 2
    assert "no_such_package, not installed" in capsys.readouterr().err
