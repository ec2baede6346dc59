"""Every generated file of the repository is in step with the code and the records."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import pytest

from tools.docs.file_tables import FILE_TABLES
from tools.docs.pages import COMMAND, DATA, ROOT, generated


@pytest.fixture(scope="module")
def files() -> Mapping[Path, str]:
    return generated()


def test_generated_files_are_in_step(files: Mapping[Path, str]) -> None:
    diffs = [
        difflib.unified_diff(
            path.read_text(encoding="utf-8").splitlines(keepends=True),
            expected.splitlines(keepends=True), f"{path.relative_to(ROOT)} now", "generated",
        )
        for path, expected in files.items()
    ]  # fmt: skip
    diff = "".join(chain.from_iterable(diffs))
    assert not diff, f"run {COMMAND}\n{diff}"


def test_every_record_is_on_a_page(files: Mapping[Path, str]) -> None:
    pages = [path for path in files if path.suffix == ".md"]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert [path.name for path in sorted(DATA.iterdir()) if path.name not in text] == []


def test_commands_that_recorded_tables_are_there() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs/tables").iterdir())
    modules = set(re.findall(r"python -m ([\w.]+)", text))
    assert modules
    assert [name for name in sorted(modules) if find_spec(name) is None] == []


def test_every_folder_of_the_package_has_a_page() -> None:
    pages = sorted((ROOT / "docs/kernels/files").iterdir())
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    listed = (ROOT / "docs/kernels/files.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"<!-- table: (\S+) -->", text)) == sorted(FILE_TABLES)
    assert [page.name for page in pages if f"(files/{page.name})" not in listed] == []


def test_every_file_of_the_package_says_what_it_is() -> None:
    rows = [line for table in FILE_TABLES.values() for line in table(Path()).splitlines()[2:]]
    assert len([row for row in rows if row]) > 500
    assert [row for row in rows if row and not row.rstrip(" |").endswith(".")] == []
