"""Files that follow from the study's models: the JSON schema, and tables of config/README.md.

``python -m tools.docs`` writes them with all other generated text.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from workflow.schemas.json_schema import study_schema
from workflow.schemas.key_tables import fill_tables

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "workflow" / "schemas" / "study.schema.json"
README = ROOT / "config" / "README.md"


def generated() -> Mapping[Path, str]:
    """Return the text that each generated file should hold now."""
    return {SCHEMA: study_schema(), README: fill_tables(README.read_text(encoding="utf-8"))}
