"""Every generated file of the repository is in step with the code and the records."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from tools.docs.pages import COMMAND, ROOT, generated

GENERATED = generated()


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: str(path.relative_to(ROOT)))
def test_generated_files_are_in_step(path: Path) -> None:
    wanted = GENERATED[path].splitlines(keepends=True)
    found = path.read_text(encoding="utf-8").splitlines(keepends=True)
    diff = "".join(difflib.unified_diff(found, wanted, f"{path.name} now", "generated"))
    assert not diff, f"run {COMMAND}\n{diff}"
