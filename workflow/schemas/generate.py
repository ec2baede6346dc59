"""Write what follows from the study's models: ``python -m workflow.schemas.generate``.

The JSON schema, and the tables of keys in config/README.md. ``python -m tools.docs`` writes these
too, with all other generated text.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from workflow.schemas.json_schema import study_schema
from workflow.schemas.key_tables import fill_tables
from workflow.storage.files import atomic_text

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "workflow" / "schemas" / "study.schema.json"
README = ROOT / "config" / "README.md"


def generated() -> Mapping[Path, str]:
    """Return the text that each generated file should hold now."""
    return {SCHEMA: study_schema(), README: fill_tables(README.read_text(encoding="utf-8"))}


def main() -> None:
    """Write them all."""
    for path, text in generated().items():
        atomic_text(path, text)


if __name__ == "__main__":
    main()
