"""The reader of a config's YAML: it means what its author sees, and costs what it looks like.

Scalars are those of YAML 1.2's core schema, as editors check them: ``1e-5`` is a number, ``1:30``
and ``no`` are text. PyYAML by itself reads the first as text and the others as 90 and false, and
lets the last of two equal keys win. Only plain data is read: no tag makes an object, and a few
lines of aliases cannot stand for gigabytes.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NoReturn

import yaml

from workflow.config.mistakes import StudyError

_YAML = "tag:yaml.org,2002:"
_MAX_BYTES = 1 << 20
_MAX_DEPTH = 32
_MAX_VALUES = 100_000
"""Values of a config with aliases written out; a study of a thousand workloads has a tenth."""
_MAX_DIGITS = 400
"""Python takes the square of the digits to read a whole number; the largest double has 309."""


class _Loader(yaml.SafeLoader):
    """YAML 1.2 scalars, no equal keys, keys that are text, nothing but plain data."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._values: dict[int, int] = {}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Check each value as it is read, before anything is made of it."""
        untyped: Any = self
        line = untyped.peek_event().start_mark.line + 1
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            self._refuse(line, f"values may be nested {_MAX_DEPTH} deep, these are deeper")
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        if node is not None:
            self._check_tag(node)
            self._count(node, line)
        return node

    def _check_tag(self, node: yaml.Node) -> None:
        line, tag = node.start_mark.line + 1, node.tag.removeprefix(_YAML)
        if isinstance(node, yaml.ScalarNode):
            try:
                node.value.encode()
            except UnicodeEncodeError:
                self._refuse(line, f"{node.value!a:.60} is not Unicode text")
            untyped: Any = self
            looks = untyped.resolve(yaml.ScalarNode, node.value, (True, False)).removeprefix(_YAML)
            allowed = {"str", looks} | ({"float"} if looks == "int" else set())
            if tag in ("int", "float") and len(node.value) > _MAX_DIGITS:
                self._refuse(
                    line, f"a number may have {_MAX_DIGITS} digits, got {node.value:.20}..."
                )
        else:
            allowed = {"map"} if isinstance(node, yaml.MappingNode) else {"seq"}
        if tag not in allowed:
            self._refuse(line, f"the tag of a value must be one of {sorted(allowed)}, got {tag!r}")

    def _count(self, node: yaml.Node, line: int) -> None:
        """Count the values that a node stands for where each alias is written out."""
        if id(node) in self._values:
            return
        parts: list[Any] = []
        if isinstance(node, yaml.MappingNode):
            parts = [part for pair in node.value for part in pair]
        elif isinstance(node, yaml.SequenceNode):
            parts = node.value
        # A part that is not counted yet is an alias to a node around it: data that holds itself.
        if any(id(part) not in self._values for part in parts):
            self._refuse(line, "not plain data: a value is part of itself")
        self._values[id(node)] = total = 1 + sum(self._values[id(part)] for part in parts)
        if total > _MAX_VALUES:
            self._refuse(line, f"a config may hold {_MAX_VALUES} values, got {total} or more")

    def _refuse(self, line: int, text: str) -> NoReturn:
        raise StudyError([f"{self.name}, line {line}: {text}"])

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Check the keys as they are written, before merge keys are replaced."""
        seen: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if key.tag not in (f"{_YAML}str", f"{_YAML}merge"):
                found = repr(key.value) if isinstance(key.value, str) else f"a {key.id}"
                self._refuse(line, f"a key must be text, got {found:.60}")
            if key.value in seen:
                self._refuse(line, f"the key {key.value!r:.60} is in line {seen[key.value]} too")
            seen[key.value] = line
        return super().construct_mapping(node, deep)


_SCALARS = (
    ("merge", r"<<", "<"),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+0123456789.",
    ),
)
for _tag, _pattern, _first in _SCALARS:
    _Loader.add_implicit_resolver(
        f"{_YAML}{_tag}",
        re.compile(f"^(?:{_pattern})$"),
        ["" if letter == "\0" else letter for letter in _first],
    )


_ADVICE = {
    r"character '\t'": "indent with spaces",
    "mapping values are not": "a key ends with a colon and a space, as in 'kind: gemm'",
    "another document": "a study is one document, so '---' stands at most once, before it",
    "expected <block end>": "the keys of one mapping begin in the same column",
}
"""Advice for the commonest errors, by a part of PyYAML's words."""


def _advice(problem: str) -> str:
    return next((f"; {text}" for part, text in _ADVICE.items() if part in problem), "")


def read_study_file(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML file, as it stands there.

    Raises StudyError for a file that is not there or not UTF-8 text, a syntax error (with line and
    column), a key given twice, a key that is not text, a tag that is not of plain data, values
    nested too deep or too many (aliases written out), and anything but a mapping.
    """
    try:
        if not path.is_file() and not path.is_dir() and path.exists():
            raise OSError("a pipe or a device, which jobs cannot read again; name a file")
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
        text = content.decode("utf-8")
    except FileNotFoundError as error:
        raise StudyError([f"there is no file {path} (looked in {Path.cwd()})"]) from error
    except UnicodeDecodeError as error:
        said = f"{path}: is not UTF-8 text ({error}); save it as UTF-8"
        raise StudyError([said]) from error
    except (OSError, ValueError) as error:
        raise StudyError([f"{path}: cannot be read ({error})"]) from error
    if len(content) > _MAX_BYTES:
        raise StudyError([f"{path}: a config may have {_MAX_BYTES} bytes, this has more"])
    return _content(text, path)


def _content(text: str, path: Path) -> dict[str, Any]:
    try:
        loader = _Loader(text)
    except yaml.YAMLError as error:  # characters that YAML does not allow
        raise StudyError([f"{path}: not valid YAML: {error}"]) from error
    loader.name = str(path)
    try:
        content = loader.get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        said = f"{path}{where}: not valid YAML: {error.problem}{_advice(str(error.problem))}"
        raise StudyError([said]) from error
    except yaml.YAMLError as error:
        raise StudyError([f"{path}: not valid YAML: {error}"]) from error
    finally:
        loader.dispose()
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise StudyError([f"{path}: must be a mapping of keys to values, got {content!r:.60}"])
    return content
