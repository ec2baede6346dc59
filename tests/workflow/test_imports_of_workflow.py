"""Imports between packages of workflow, and of its processes: fifty start in the default study."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import argand
import pytest

import workflow

ROOT = Path(workflow.__file__).parent
ABOVE_KINDS = (
    "figures", "jobs", "outcome", "preflight", "tables", "schemas", "steps", "workloads",
)  # fmt: skip
NEVER = {
    "config": {
        "accuracy", "arrays", "circuits", "compare", "files", "inputs", "readers", *ABOVE_KINDS,
    },
    "accuracy": {"arrays", "circuits", "config", "records", *ABOVE_KINDS},
    "storage": {
        "arrays", "circuits", "config", "files", "inputs", "readers", "records", *ABOVE_KINDS,
    },
    "files": {"accuracy", "arrays", "circuits", "inputs", "readers", *ABOVE_KINDS},
    "readers": {"accuracy", "arrays", "circuits", "inputs", *ABOVE_KINDS},
    "inputs": {"accuracy", "arrays", "circuits", *ABOVE_KINDS},
    "arrays": {"accuracy", "circuits", "config", *ABOVE_KINDS},
    "circuits": {"accuracy", "arrays", *ABOVE_KINDS},
    "spectra": {"arrays", "circuits", "compare", "records", *ABOVE_KINDS},
    "compare": {
        "accuracy", "arrays", "circuits", "config", "preflight", "schemas", "steps", "workloads",
    },
    "tables": {
        "arrays", "circuits", "compare", "config", "figures", "preflight", "schemas", "steps",
        "workloads",
    },
    "figures": {
        "arrays", "circuits", "compare", "config", "preflight", "schemas", "steps", "workloads",
    },
    "jobs": {
        "accuracy", "arrays", "circuits", "config", "files", "inputs", "readers", "records",
        *(set(ABOVE_KINDS) - {"jobs"}),
    },
    "workloads": {"outcome", "preflight", "tables", "schemas", "steps"},
    "steps": {"outcome", "figures", "preflight", "tables", "schemas"},
    "preflight": {"outcome", "compare", "figures", "schemas"},
}  # fmt: skip
"""Each package, with those that none of its modules may import, not even in a function."""
ABOVE = {"tools", "benchmarks"}
"""Packages that use workflow and argand, and are used by neither, but for the peers."""


@cache
def imported(path: Path) -> list[str]:
    """Every module that a file imports, with the names that it takes from it."""
    return list(imported_by(path))


def imported_by(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def parts(path: Path) -> set[str]:
    """The packages of workflow, and the modules beside them, that a file imports."""
    return {name.split(".")[1] for name in imported(path) if name.startswith("workflow.")}


def arrows(package: str) -> list[str]:
    """Every import of another package of workflow, as "module -> package"."""
    found = []
    for path in sorted((ROOT / package).glob("*.py")):
        found += [f"{package}.{path.stem} -> {part}" for part in sorted(parts(path) - {package})]
    return found


@pytest.mark.parametrize("package", NEVER)
def test_arrows_point_down(package: str) -> None:
    found = arrows(package)
    assert found, f"{package} imports nothing of workflow: is it still there?"
    assert [arrow for arrow in found if arrow.partition(" -> ")[2] in NEVER[package]] == []


def test_packages_and_modules_beside_them_are_in_no_circle() -> None:
    arrows = {
        folder.parent.name: set().union(*map(parts, folder.parent.glob("*.py")))
        for folder in ROOT.glob("*/__init__.py")
    }
    arrows |= {path.stem: parts(path) for path in ROOT.glob("*.py")}
    assert "readers" in arrows["inputs"]
    while arrows:
        leaves = {name for name, others in arrows.items() if not others & arrows.keys() - {name}}
        assert leaves, f"circles among {sorted(arrows)}"
        arrows = {name: others for name, others in arrows.items() if name not in leaves}


def test_modules_are_in_no_circle() -> None:
    """Not even by imports in functions; a kind imports its variants, which it is the base of."""
    paths = {
        ".".join(path.relative_to(ROOT.parent).with_suffix("").parts): path
        for folder in ("workflow", "benchmarks", "tools")
        for path in (ROOT.parent / folder).rglob("*.py")
        if path.name != "__init__.py" and path.parent.name != "workloads"
    }
    arrows = {
        module: {name if name in paths else name.rpartition(".")[0] for name in imported(path)}
        for module, path in paths.items()
    }
    assert "benchmarks.beside.messages" in arrows["benchmarks.beside.side"]
    while arrows:
        leaves = {name for name, others in arrows.items() if not others & arrows.keys() - {name}}
        assert leaves, f"circles among {sorted(arrows)}"
        arrows = {name: others for name, others in arrows.items() if name not in leaves}


def upwards(folder: Path, above: set[str], *allowed: str) -> list[str]:
    """Every import of a package ``above``, but of what is allowed of it, as "file -> name"."""
    return [
        f"{path.relative_to(folder)} -> {name}"
        for path in sorted(folder.rglob("*.py"))
        for name in imported(path)
        if name.split(".")[0] in above and not name.startswith(allowed)
    ]


def test_nothing_imports_tools_or_benchmarks_but_peers() -> None:
    """The one arrow from workflow to benchmarks."""
    assert upwards(ROOT, ABOVE, "benchmarks.peers.") == []
    assert upwards(ROOT, ABOVE) != []
    assert upwards(Path(str(argand.__file__)).parent, {"workflow", *ABOVE}) == []


def test_benchmarks_import_no_tools() -> None:
    """Code that both need lies with the benchmarks, as `benchmarks.harness.recorded` does."""
    folder = ROOT.parent / "benchmarks"
    assert upwards(folder, {"tools"}) == []
    assert upwards(folder.with_name("tools"), {"benchmarks"}) != []


def test_peers_import_argand_alone() -> None:
    folder = ROOT.parent / "benchmarks" / "peers"
    assert upwards(folder, {"workflow", *ABOVE}, "benchmarks.peers.") == []


STEPS = (
    ("import argand", "scipy"),
    ("import workflow.study", "workflow.workloads.dft"),
    ("import workflow.workloads; workflow.workloads.KINDS['gemm']", "workflow.workloads.dft"),
    ("workflow.workloads.KINDS['dft']", "scipy"),
    ("import workflow.workloads.dft as dft; dft.check_window('hann')", "scipy"),
    ("import workflow.command", "matplotlib"),
    ("list(workflow.workloads.KINDS)", "matplotlib"),
    ("list(workflow.workloads.KINDS)", "qiskit"),
)
"""Steps of one process, and the modules that it has not imported after each."""


def test_not_what_it_does_not_need(root: Path) -> None:
    paths = os.pathsep.join((str(root / "kernels"), str(root)))
    lines = [f"{code}; print({absent!r} in sys.modules)" for code, absent in STEPS]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(["import sys", *lines])], text=True, capture_output=True,
        check=True, env=os.environ | {"PYTHONPATH": paths},
    )  # fmt: skip
    found = dict(zip(STEPS, done.stdout.split(), strict=True))
    assert [step for step, imported in found.items() if imported != "False"] == []
