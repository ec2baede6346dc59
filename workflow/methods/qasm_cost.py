"""What an OpenQASM 2 text costs to read, told from the text before Qiskit reads it.

A line can declare 10^9 qubits, fifty definitions of gates 2^50 gates, an include the file itself or
any other file of the machine. Qiskit would begin to build all of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

from workflow.storage.memory import in_words

_MOST_BYTES = 64 << 20
_MOST_BITS = 4096
"""Qubits and, apart, classical bits; the caller has a lower limit for what it can compute."""
_MOST_GATES = 1_000_000
_MOST_INCLUDES = 32
_MOST_NESTED = 64
"""Parentheses of an expression: Qiskit's parser calls itself for each."""

_SKIPPED = re.compile(r'//[^\n]*|("[^"\n]*")')
_INCLUDE = re.compile(r'\binclude\s*"([^"]*)"')
_REGISTER = re.compile(r"\b([qc])reg\s+\w+\s*\[\s*(\d+)\s*\]")
_GATE = re.compile(r"\bgate\s+(\w+)[^{;]*\{([^}]*)\}")
_CALL = re.compile(r"\s*(?:if\s*\([^)]*\)\s*)?(\w+)")


class QasmError(ValueError):
    """A text that would cost or reach too much; it names the file."""


def check_cost(path: Path, libraries: Sequence[Path]) -> None:
    """Raise QasmError where a text declares, repeats or includes beyond measure.

    Args:
        path: the file. What it includes must lie beside it or below.
        libraries: folders of files that any text may include.
    """
    bits = {"q": 0, "c": 0}
    sizes: dict[str, int] = {}
    gates = 0
    for text in _texts(path, libraries):
        for kind, digits in _REGISTER.findall(text):
            bits[kind] += int(digits[:10])
            if len(digits) > 10 or bits[kind] > _MOST_BITS:
                what = "qubits" if kind == "q" else "classical bits"
                raise QasmError(f"{path} declares more than {_MOST_BITS} {what}")
        _check_nesting(path, text)
        for name, body in _GATE.findall(text):
            sizes[name] = sum(sizes.get(callee, 1) for callee in _calls(body))
            _check_gates(path, sizes[name])
        # A gate on registers stands for one on each of their qubits.
        each = max(1, bits["q"])
        gates += each * sum(sizes.get(callee, 1) for callee in _calls(_GATE.sub("", text)))
        _check_gates(path, gates)


def _texts(path: Path, libraries: Sequence[Path]) -> Iterator[str]:
    """The files of a text without comments, those included before the one that includes them."""
    folder, seen, waiting = path.parent, [path], [path]
    texts: list[str] = []
    while waiting:
        current = waiting.pop()
        text = _read(current)
        texts.insert(0, text)
        for name in _INCLUDE.findall(text):
            found = _included(path, folder, name, libraries)
            if found is None:
                continue
            if found in seen or len(seen) > _MOST_INCLUDES:
                raise QasmError(
                    f"{current} includes {name} again; a file may be included once and "
                    f"{_MOST_INCLUDES} files in all"
                )
            seen.append(found)
            waiting.append(found)
    yield from texts


def _included(path: Path, folder: Path, name: str, libraries: Sequence[Path]) -> Path | None:
    """A file of the user's that a text includes; None for one of the libraries."""
    if PurePath(name).is_absolute() or ".." in PurePath(name).parts:
        raise QasmError(f"{path} includes {name}; only files beside it or below may be included")
    beside = folder / name
    if beside.is_file():
        if not beside.resolve().is_relative_to(folder.resolve()):
            raise QasmError(f"{path} includes {name}, which leads to {beside.resolve()}")
        return beside
    if any((library / name).is_file() for library in libraries):
        return None
    raise QasmError(f"{path} includes {name}, which is not in {folder}")


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise QasmError(f"{path} cannot be read ({error})") from error
    if len(content) > _MOST_BYTES:
        raise QasmError(f"{path} has more than {in_words(_MOST_BYTES)}")
    return _SKIPPED.sub(lambda match: match[1] or "", content.decode("utf-8", "replace"))


def _check_nesting(path: Path, text: str) -> None:
    depth = 0
    for bracket in re.findall(r"[()]", text):
        depth = max(0, depth + (1 if bracket == "(" else -1))
        if depth > _MOST_NESTED:
            raise QasmError(f"{path} nests more than {_MOST_NESTED} parentheses")


def _calls(body: str) -> Iterator[str]:
    """The first word of each statement."""
    for statement in body.split(";"):
        if match := _CALL.match(statement):
            yield match[1]


def _check_gates(path: Path, gates: int) -> None:
    if gates > _MOST_GATES:
        raise QasmError(f"{path} stands for {gates} gates or more; {_MOST_GATES} are allowed")
