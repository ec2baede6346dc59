"""The tokens of an OpenQASM 2 text, statement by statement, as Qiskit's own lexer cuts them.

Comments and white space are gone, file names stand in either kind of quotes, and may stand on
another line than their ``include``. The cost of a text is counted on these tokens, and the text
that Qiskit parses is written from them (`statement_text`): whatever is not seen here is not parsed
either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_TOKENS = 3_000_000
"""Tokens of a text, 30 for each gate that a circuit may have; they take two seconds."""
_MAX_TOKENS_TOGETHER = 20_000
"""Tokens of a statement: a barrier on thousands of qubits is shorter."""
_TOKEN = re.compile(
    r"[ \t\r]*(?:"
    r"(?P<line>\n)|(?P<comment>//[^\n]*)|"
    r"(?P<word>[A-Za-z][A-Za-z0-9_]*)|"
    r"(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|"
    r"(?P<symbol>->|==|[-+*/^;,()\[\]{}])|"
    r"(?P<name>\"[^\"\r\n]*\"|'[^'\r\n]*')|"
    r"(?P<other>.)|(?P<end>\Z))",
    re.DOTALL,
)


class QasmError(ValueError):
    """A text that is not OpenQASM 2, or would cost or reach too much."""


@dataclass(frozen=True)
class Statement:
    """The tokens up to and with a ``;``, or with a ``{`` or ``}``, and the line of the first."""

    line: int
    tokens: list[str]


def statements(text: str) -> Iterator[Statement]:
    """Yield a text's statements; raises QasmError for what begins no token, and for too many.

    The first one must be the version. So an error about what follows, which quotes it, says
    nothing of a file that is not a circuit.
    """
    tokens: list[str] = []
    line = first = 1
    count, known = 0, False
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind == "line":
            line += 1
        elif kind not in ("comment", "end"):
            token = match[str(kind)]
            if not known and token != "OPENQASM":
                raise QasmError("it must begin with OPENQASM 2.0; or OPENQASM 3.0;")
            if kind == "other":
                raise QasmError(f"line {line}: {token!r} begins no word, number or symbol")
            if kind == "name" and tokens != ["include"]:
                raise QasmError(f"line {line}: {token:.60} is a file's name in no include")
            if not tokens:
                first = line
            tokens.append(token)
            known, count = True, count + 1
            if count > MAX_TOKENS or len(tokens) > _MAX_TOKENS_TOGETHER:
                raise QasmError(
                    f"it has more than {MAX_TOKENS} words, numbers and symbols, or "
                    f"{_MAX_TOKENS_TOGETHER} without a semicolon"
                )
            if token in (";", "{", "}"):
                yield Statement(first, tokens)
                tokens = []
    if not known:
        raise QasmError("it must begin with OPENQASM 2.0; or OPENQASM 3.0;")
    if tokens:
        raise QasmError(f"line {first}: the statement has no end")


def statement_text(statement: Statement, line: int) -> str:
    """Return a statement as text from its own line on, where what stands before ends at ``line``.

    So Qiskit's messages name the lines of the file.
    """
    return "\n" * (statement.line - line) + " ".join(statement.tokens) + " "


def parser_message(said: str, *, is_written: bool) -> str:
    """Return what Qiskit's parser says of a text, which ``is_written`` by Qiskit or of a file.

    Columns refer to the text that was written from the tokens, and so do lines of another form.
    """
    what = "cannot be written as" if is_written else "is not"
    said = re.sub(r"<input>:(\d+),\d+: ", "" if is_written else r"line \1: ", said)
    advice = '; include "qelib1.inc"; defines it' if said.endswith("before definition") else ""
    return f"{what} OpenQASM 2: {said}{advice}"
