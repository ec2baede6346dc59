"""Every generated file of the repository is in step with the code and the records."""

from __future__ import annotations

import difflib
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from tools.docs.pages import COMMAND, DATA, ROOT, generated

GENERATED = generated()
PAGES = [path for path in GENERATED if path.suffix == ".md"]


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: str(path.relative_to(ROOT)))
def test_generated_files_are_in_step(path: Path) -> None:
    wanted = GENERATED[path].splitlines(keepends=True)
    found = path.read_text(encoding="utf-8").splitlines(keepends=True)
    diff = "".join(difflib.unified_diff(found, wanted, f"{path.name} now", "generated"))
    assert not diff, f"run {COMMAND}\n{diff}"


def test_every_record_is_on_a_page() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [path.name for path in sorted(DATA.iterdir()) if path.name not in text] == []


def test_commands_that_recorded_tables_are_there() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs/tables").iterdir())
    modules = set(re.findall(r"python -m ([\w.]+)", text))
    assert modules
    assert [name for name in sorted(modules) if find_spec(name) is None] == []
