"""Digests of the code of one operation: Python, kernels and headers."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from argand.runtime.compile import compiler

PACKAGE = Path(__file__).parents[2]
_IMPORT = re.compile(r"^\s*from argand\.(\w+)[. ]", re.MULTILINE)


@lru_cache(maxsize=32)
def kernel_digest(operation: str) -> str:
    """Return sixteen hexadecimal digits that change with an operation's code; needs no GPU.

    It covers the package ``argand/<operation>`` with those in it, the packages that it imports, the
    modules beside packages, and ``cuda/<package>`` of each with all headers, so that a result can
    be traced to its code and Snakemake knows what to run again. An operation without a package
    covers all of them.
    """
    texts = {path.name: path.read_text(encoding="utf-8") for path in PACKAGE.glob("*.py")}
    sources: list[str] = []
    for package in _packages(operation):
        for path in sorted((PACKAGE / package).rglob("*.py")):
            texts[path.relative_to(PACKAGE).as_posix()] = path.read_text(encoding="utf-8")
        headers = sorted((compiler.SOURCES / package).rglob("*.cuh"))
        sources += [x.relative_to(compiler.SOURCES).as_posix() for x in headers]
    # Together: a header that many include is read once.
    together = "".join(f'#include "{name}"\n' for name in sources)
    for name, text in compiler.with_headers(together, compiler.SOURCES).items():
        texts[f"cuda/{name}"] = text
    return compiler.source_digest(texts)[:16]


def _packages(operation: str) -> list[str]:
    """Return an operation's package and those that it imports, directly or not."""
    every = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
    found: set[str] = set()
    waiting = [operation] if operation in every else list(every)
    while waiting:
        package = waiting.pop()
        if package in found:
            continue
        found.add(package)
        for path in (PACKAGE / package).rglob("*.py"):
            waiting += _IMPORT.findall(path.read_text(encoding="utf-8"))
    return sorted(found & set(every))
