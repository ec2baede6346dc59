"""docs/reliability.md names tests: they exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path


def test_every_test_that_is_named_exists(root: Path) -> None:
    text = (root / "docs" / "reliability.md").read_text()
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)
    assert len(named) > 20
    by_hand = re.sub(r"<!-- table: .*?<!-- end -->", "", text, flags=re.DOTALL)
    rows = [line for line in by_hand.splitlines() if line.startswith("| ")]
    assert not [row for row in rows if "| test |" not in row and "::" not in row]
    tests = {
        file: {node.name for node in ast.walk(ast.parse((root / file).read_text()))
               if isinstance(node, ast.FunctionDef)}
        for file in {file for file, _ in named}
    }  # fmt: skip
    assert [f"{file}::{name}" for file, name in named if name not in tests[file]] == []
