"""The reference of argand's public names, a page for each subject, from their docstrings."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import argand

_SECTION = re.compile(r"^(Args|Returns|Raises|Example|Attributes|Note|Yields):$", re.MULTILINE)
_ANNOTATION = re.compile(r": (?:ForwardRef\()?'([^']*)'\)?")
_SUBJECTS = {
    "argand.gemm.pack.api": "operands", "argand.gemm.pack.packed": "operands",
    "argand.gemm.pairs": "operands",
    "argand.gates.circuit_search": "circuits", "argand.gates.circuits": "circuits",
    "argand.gates.prepared_circuit": "circuits", "argand.gates.trajectories": "circuits",
}  # fmt: skip
"""Modules whose names are on the page of another subject than their package's."""
INDEX = """# Reference

Every public name of `argand`, as its docstring says it, on a page for each package, one for forms
of operands and one for circuits (`python -m tools.docs` writes them). The examples run in the
tests, after `import argand` and `import numpy as np`. [python.md](python.md) shows how the calls
belong together; they take arrays of torch and JAX too ([frameworks.md](frameworks.md)).

| name | what |
|---|---|
"""


def reference_pages() -> dict[str, str]:
    """Return the index and the pages, by their paths below docs/."""
    names = sorted(argand.__all__, key=str.lower)
    on_page: dict[str, list[str]] = {}
    for name in names:
        on_page.setdefault(_page_of(name), []).append(name)
    rows = "".join(_row(name) for name in names)
    pages = {f"reference/{page}.md": _page(page, own) for page, own in on_page.items()}
    return {"reference.md": f"{INDEX}{rows}", **pages}


def documented(name: str) -> Any:
    """Return the object that has the docstring of a public name: itself, or a value's class."""
    found = _of(name)
    return found if inspect.isroutine(found) or inspect.isclass(found) else type(found)


def _of(name: str) -> Any:
    return getattr(argand, name)


def _docstring(name: str) -> str:
    """Return the docstring, or the text below the assignment of a value of a foreign type."""
    if documented(name).__module__.startswith("argand"):
        return inspect.getdoc(documented(name)) or ""
    source = Path(str(import_module(f"argand.{_package(name)}").__file__)).read_text("utf-8")
    found = re.search(rf'^{name}\b.*?^"""(.*?)"""$', source, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def _package(name: str) -> str:
    """Return the package of argand, or the module beside packages, that defines a name."""
    found = _of(name)
    module = getattr(found, "__module__", None) or documented(name).__module__
    return module.split(".")[1] if module.startswith("argand.") else "precision"


def _page_of(name: str) -> str:
    """Return the name of the page that has a public name."""
    return _SUBJECTS.get(documented(name).__module__) or _package(name)


def _row(name: str) -> str:
    sentence = " ".join(_docstring(name).partition("\n\n")[0].split()).partition(". ")[0]
    return f"| [`{name}`](reference/{_page_of(name)}.md#{name.lower()}) | {_marked(sentence)} |\n"


def _page(title: str, names: list[str]) -> str:
    parts = [f"# argand: {title}\n", "[All names](../reference.md)\n"]
    for name in names:
        parts.append(f"## {name}\n")
        signature = _signature(name)
        if signature:
            parts.append(f"```python\n{signature}\n```\n")
        parts.append(docstring_markdown(_docstring(name)))
    return "\n".join(parts)


def _signature(name: str) -> str:
    """Return the call, an argument a line if long; empty for an error and what is not called."""
    found = _of(name)
    if not callable(found) or (inspect.isclass(found) and issubclass(found, Exception)):
        return ""
    signature = inspect.signature(found)
    if inspect.isclass(found) and not signature.parameters:
        return ""
    words = []
    for parameter in signature.parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and "*" not in words:
            words.append("*")
        words.append(_ANNOTATION.sub(r": \1", str(parameter)))
    returned = "" if inspect.isclass(found) else f" -> {signature.return_annotation}"
    line = f"{name}({', '.join(words)}){returned}"
    if len(line) < 100:
        return line
    return f"{name}(\n{''.join(f'    {word},' + chr(10) for word in words)}){returned}"


def docstring_markdown(docstring: str) -> str:
    """Return the docstring as Markdown: arguments in a list, the example as code."""
    pieces = _SECTION.split(docstring)
    text = [_paragraphs(pieces[0])]
    for title, piece in zip(pieces[1::2], pieces[2::2], strict=True):
        # Text that is not indented follows the section.
        after = re.search(r"^\S", piece, re.MULTILINE)
        end = after.start() if after else len(piece)
        content = inspect.cleandoc("\n" + piece[:end])
        if title == "Example":
            text.append(f"```pycon\n{content}\n```\n")
        elif title in ("Returns", "Yields"):
            text.append(f"{title}: {_paragraphs(content)}")
        else:
            listed = re.sub(r"\n {2,}", " ", content)
            items = [re.sub(r"^([^:]{1,80}): ", r"**\1**: ", line) for line in listed.splitlines()]
            text.append(f"{title}:\n\n" + "".join(f"- {_marked(x)}\n" for x in items if x))
        if after:
            text.append(_paragraphs(piece[end:]))
    return "\n".join(text)


def _paragraphs(text: str) -> str:
    """Return the text with a line for each paragraph."""
    return re.sub(r"(?<=\S)\n(?=\S)", " ", _marked(text.strip())) + "\n"


def _marked(text: str) -> str:
    """Return reference marks of docstrings as Markdown's; a star or a bar is itself."""
    return text.replace("``", "`").replace("|", "\\|").replace(" * ", " \\* ")
