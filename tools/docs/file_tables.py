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
    modules = [path for path in sorted((PACKAGE / folder).glob("*.py")) if path.stem != "__init__"]
    return [*modules, *_headers(folder)]


def _headers(folder: str) -> list[Path]:
    """Return the CUDA C++ of a folder of the package.

    It is in the folder of that name under ``cuda/``, or where there is none in the one above, in
    files that begin with the name: of ``gemm/sm90`` ``cuda/gemm/sm90_*.cuh``.
    """
    place = PACKAGE / "cuda" / folder
    if not place.is_dir():
        return sorted(place.parent.glob(f"{place.name}_*.cuh"))
    inner = [path.parent for path in (PACKAGE / folder).glob("*/__init__.py")]
    begins = tuple(f"{path.name}_" for path in inner if not (place / path.name).is_dir())
    return [path for path in sorted(place.glob("*.cuh")) if not path.name.startswith(begins)]


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
