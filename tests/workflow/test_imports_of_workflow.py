"""Which packages of workflow import which: what is shared knows no kinds, steps or tables."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import workflow

ROOT = Path(workflow.__file__).parent
NEVER = {
    "accuracy": {"config", "methods", "output", "schemas", "steps", "workloads"},
    "storage": {"methods", "output", "schemas", "steps", "workloads"},
    "methods": {"output", "schemas", "steps", "workloads"},
    "output": {"steps"},
}
"""By package the packages that none of its modules may import, not even in a function."""


def arrows(package: str) -> list[str]:
    """Every import of another package of workflow, as "module -> package"."""
    found = []
    for path in sorted((ROOT / package).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("workflow"):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                parts = {name.split(".")[1] for name in names}
                found += [f"{package}.{path.stem} -> {part}" for part in sorted(parts - {package})]
    return found


@pytest.mark.parametrize("package", NEVER)
def test_arrows_point_down(package: str) -> None:
    found = arrows(package)
    assert [arrow for arrow in found if arrow.partition(" -> ")[2] in NEVER[package]] == []
