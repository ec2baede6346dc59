"""Every generated file of the repository, and what it should hold."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tools.docs.blocks import fill_tables
from tools.docs.reference import reference_pages
from tools.docs.stubs import PACKAGE, stub
from workflow.schemas.generated import ROOT
from workflow.schemas.generated import generated as files_of_models

DATA = ROOT / "docs" / "data"
COMMAND = "python -m tools.docs"


def generated() -> Mapping[Path, str]:
    """Return the text of each generated file: schema, keys of a study, tables, reference, types."""
    reference = {ROOT / "docs" / name: text for name, text in reference_pages().items()}
    written = set((ROOT / "docs").rglob("*.md")) - set(reference)
    pages = (ROOT / "README.md", *sorted(written))
    filled = {page: fill_tables(page.read_text(encoding="utf-8"), DATA) for page in pages}
    return {
        **files_of_models(),
        **filled,
        **reference,
        PACKAGE / "__init__.pyi": stub(),
    }
