"""Write what is generated from code and records: ``python -m workflow.schemas.generate``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tools.docs import blocks
from workflow.schemas.json_schema import study_schema
from workflow.schemas.key_tables import fill_tables
from workflow.storage.files import atomic_text

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "workflow" / "schemas" / "study.schema.json"
README = ROOT / "config" / "README.md"
COMMAND = "python -m workflow.schemas.generate"


def generated() -> Mapping[Path, str]:
    """What each generated file should hold now."""
    config = {SCHEMA: study_schema(), README: fill_tables(README.read_text(encoding="utf-8"))}
    return config | {
        page: blocks.fill_tables(page.read_text(encoding="utf-8"), ROOT / "docs" / "data")
        for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    }


def main() -> None:
    """Write them all."""
    for path, text in generated().items():
        atomic_text(path, text)


if __name__ == "__main__":
    main()
