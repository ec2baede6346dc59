"""The reference page of argand's public names, from their docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import argand

_SECTION = re.compile(r"^(Args|Returns|Raises|Example|Attributes|Note|Yields):$", re.MULTILINE)
_ANNOTATION = re.compile(r": (?:ForwardRef\()?'([^']*)'\)?")
TITLE = """# Reference

Every public name of `argand`, as its docstring says it (`python -m tools.docs` writes this page).
The examples run in the tests, after `import argand` and `import numpy as np`.
[python.md](python.md) shows how the calls belong together.
"""


def reference_page() -> str:
    """The whole page: functions first, then the classes that they take and return."""
    names = sorted(argand.__all__, key=str.lower)
    functions = [name for name in names if inspect.isfunction(inspect.unwrap(_of(name)))]
    objects = [name for name in names if name not in functions]
    parts = [TITLE, *_chapter("Functions", functions), *_chapter("Classes and values", objects)]
    return "\n".join(parts)


def documented(name: str) -> Any:
    """What has the docstring of a public name: the object, or the class of a value."""
    found = _of(name)
    return found if inspect.isroutine(found) or inspect.isclass(found) else type(found)


def _of(name: str) -> Any:
    return getattr(argand, name)


def _chapter(title: str, names: list[str]) -> Iterator[str]:
    yield f"## {title}\n"
    yield ", ".join(f"[`{name}`](#{name.lower()})" for name in names) + "\n"
    for name in names:
        yield f"### {name}\n"
        signature = _signature(name)
        if signature:
            yield f"```python\n{signature}\n```\n"
        yield _body(inspect.getdoc(documented(name)) or "")


def _signature(name: str) -> str:
    """The call, an argument a line where it is long; empty for a value or an error."""
    found = _of(name)
    if not callable(found) or (inspect.isclass(found) and issubclass(found, Exception)):
        return ""
    signature = inspect.signature(found)
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


def _body(docstring: str) -> str:
    """The docstring as Markdown: arguments in a list, the example as code."""
    pieces = _SECTION.split(docstring)
    text = [_marked(pieces[0].strip()) + "\n"]
    for title, piece in zip(pieces[1::2], pieces[2::2], strict=True):
        content = inspect.cleandoc("\n" + piece)
        if title == "Example":
            text.append(f"```pycon\n{content}\n```\n")
            continue
        if title in ("Returns", "Yields"):
            text.append(f"{title}: {_marked(content)}\n")
            continue
        listed = re.sub(r"\n {2,}", " ", content)
        items = [re.sub(r"^([^:]{1,80}): ", r"**\1**: ", line) for line in listed.splitlines()]
        text.append(f"{title}:\n\n" + "".join(f"- {_marked(item)}\n" for item in items if item))
    return "\n".join(text)


def _marked(text: str) -> str:
    """Reference marks of docstrings as Markdown's; a star or a bar is itself."""
    return text.replace("``", "`").replace("|", "\\|").replace(" * ", " \\* ")
