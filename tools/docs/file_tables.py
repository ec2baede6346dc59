"""Tables of the files of `argand`, a row each: the first sentence of what a file says of itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tools.docs.stubs import PACKAGE
from workflow.tables.readable import Column, markdown_table

_DOCSTRING = re.compile(r'(?:#.*\n|\n)*r?"""(.*?)"""', re.DOTALL)
_COMMENT = re.compile(r"(?:^//.*\n)+", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=\.) +")
_OUTSIDE = "modules"
"""The name of the table of modules that are in no folder of the package."""


def _first_sentence(path: Path) -> str:
    """Return the first sentence of a module's docstring, or of the comment that begins a header."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        found = _DOCSTRING.match(text)
        said = found[1] if found else ""
    else:
        found = _COMMENT.match(text)
        said = re.sub(r"^// ?", "", found[0] if found else "", flags=re.MULTILINE)
    paragraph = " ".join(said.split("\n\n")[0].split())
    return _SENTENCE_END.split(paragraph)[0].replace("``", "`").replace("|", "\\|")


def _files(folder: str) -> list[Path]:
    """Return the files of a folder of the package: its modules, then its CUDA C++."""
    if folder == _OUTSIDE:
        return sorted(path for path in PACKAGE.glob("*.py") if path.name != "__init__.py")
    folders = [PACKAGE / folder, PACKAGE / "cuda" / folder]
    modules = [path for path in sorted(folders[0].glob("*.py")) if path.name != "__init__.py"]
    return [*modules, *sorted(folders[1].glob("*.cuh"))]


def _table(folder: str, _: Path) -> str:
    columns = [Column("file", "file"), Column("what", "what")]
    rows = [
        {"file": f"`{path.relative_to(PACKAGE)}`", "what": _first_sentence(path)}
        for path in _files(folder)
    ]
    return markdown_table(columns, rows)


def folders() -> list[str]:
    """Return the folders of the package that have files of code, and the modules in none."""
    held = {path.parent.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")}
    held |= {
        path.parent.relative_to(PACKAGE / "cuda") for path in (PACKAGE / "cuda").rglob("*.cuh")
    }
    return [_OUTSIDE, *sorted(map(str, held - {Path()}))]


FILE_TABLES: dict[str, Callable[[Path], str]] = {
    f"files-{folder.replace('/', '-')}": partial(_table, folder) for folder in folders()
}
