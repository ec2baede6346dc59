"""Each folder of the package has a page of its files, and each file a sentence there."""

from __future__ import annotations

from pathlib import Path

from tests.tools.test_pages import ROOT
from tools.docs.file_tables import FILE_TABLES


def test_every_folder_has_a_page() -> None:
    pages = ROOT / "docs/kernels/files"
    listed = (ROOT / "docs/kernels/files.md").read_text(encoding="utf-8")
    for name in FILE_TABLES:
        page = pages / f"{name.removeprefix('files-')}.md"
        assert f"<!-- table: {name} -->" in page.read_text(encoding="utf-8")
        assert f"(files/{page.name})" in listed
    assert len(list(pages.iterdir())) == len(FILE_TABLES)


def test_every_file_says_what_it_is() -> None:
    rows = [line for table in FILE_TABLES.values() for line in table(Path()).splitlines()[2:]]
    assert len([row for row in rows if row]) > 500
    assert [row for row in rows if row and not row.rstrip(" |").endswith(".")] == []
