"""The page of all files has each folder of the package, and a sentence of each file."""

from __future__ import annotations

from pathlib import Path

from tests.tools.test_pages import ROOT
from tools.docs.file_tables import FILE_TABLES


def test_every_folder_is_on_the_page() -> None:
    page = (ROOT / "docs/kernels/files.md").read_text(encoding="utf-8")
    assert [name for name in FILE_TABLES if f"<!-- table: {name} -->" not in page] == []


def test_every_file_says_what_it_is() -> None:
    rows = [line for table in FILE_TABLES.values() for line in table(Path()).splitlines()[2:]]
    assert len([row for row in rows if row]) > 500
    assert [row for row in rows if row and not row.rstrip(" |").endswith(".")] == []
