"""Reading a config's YAML, so that it means what its author sees.

Scalars are those of YAML 1.2's core schema, as editors check them: ``1e-5`` is a number, ``1:30``
and ``no`` are text. PyYAML by itself reads the first as text and the others as 90 and false, and
lets the last of two equal keys win.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from workflow.config.mistakes import StudyError


class _Loader(yaml.SafeLoader):
    """YAML 1.2 scalars, no equal keys, keys that are text."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Check the keys as they are written, before merge keys are replaced."""
        seen: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            at = f"{self.name}, line {line}"
            if key.tag not in ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"):
                raise StudyError([f"{at}: a key must be text, got {key.value!r:.60}"])
            if key.value in seen:
                raise StudyError([f"{at}: {key.value!r} stands in line {seen[key.value]} too"])
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
        f"tag:yaml.org,2002:{_tag}",
        re.compile(f"^(?:{_pattern})$"),
        ["" if letter == "\0" else letter for letter in _first],
    )


def read_study_file(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file, as it stands there.

    Raises StudyError for a file that is not there or not UTF-8 text, a syntax error (with line and
    column), a key given twice, a key that is not text, and anything but a mapping.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError([f"{path}: cannot be read ({error})"]) from error
    loader = _Loader(text)
    loader.name = str(path)
    try:
        content = loader.get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise StudyError([f"{path}{where}: not valid YAML: {error.problem}"]) from error
    except yaml.YAMLError as error:
        raise StudyError([f"{path}: not valid YAML: {error}"]) from error
    finally:
        loader.dispose()
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise StudyError([f"{path}: must be a mapping of keys to values, got {content!r:.60}"])
    return content
