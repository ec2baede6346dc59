"""Circuits in OpenQASM 3, written anew in OpenQASM 2: what both can say, statement by statement.

That is what tools export of a circuit without classical control: registers, the gates of
``stdgates.inc``, definitions of gates, measurements, barriers. The rest of the language (loops,
subroutines, classical types, modifiers, timing) is refused by name, so whatever is not seen here is
neither parsed nor run, and what a text costs is counted on OpenQASM 2 (`qasm_cost`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain

from workflow.circuits.qasm_text import MOST_TOKENS, QasmError

_COMMENT = r"//[^\n]*+|/\*.*?\*/"
_VERSION = re.compile(rf"(?:\s|{_COMMENT})*+OPENQASM\s+3\b", re.DOTALL)
_TOKEN = re.compile(
    rf"(?P<line>\n)|[ \t\r]+|(?P<comment>{_COMMENT})|"
    r"(?P<word>[^\W\d]\w*)|"
    r"(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|"
    r"(?P<symbol>\*\*|==|[-+*/^;:,()\[\]{}=@])|"
    r"(?P<name>\"[^\"\r\n]*\"|'[^'\r\n]*')|"
    r"(?P<other>.)",
    re.DOTALL,
)
_LIBRARY = "stdgates.inc"
_WORDS = {
    "π": "pi", "tau": "(2*pi)", "τ": "(2*pi)", "euler": "2.718281828459045",
    "ℇ": "2.718281828459045", "log": "ln", "arcsin": "asin", "arccos": "acos", "arctan": "atan",
    "phase": "p", "cphase": "cp", "**": "^",
}  # fmt: skip
"""Names that OpenQASM 2, or Qiskit's reader of it, has others for."""
_REFUSED = frozenset({
    "for", "while", "if", "else", "switch", "case", "default", "def", "defcal", "defcalgrammar",
    "cal", "extern", "return", "break", "continue", "end", "let", "const", "input", "output",
    "int", "uint", "float", "angle", "bool", "complex", "array", "box", "delay", "duration",
    "stretch", "pragma", "ctrl", "negctrl", "inv", "pow", "gphase", "opaque", "nop",
})  # fmt: skip
"""First words of statements that OpenQASM 2 has not, or means otherwise."""


def is_version_3(text: str) -> bool:
    """Whether a text says that it is OpenQASM 3."""
    return _VERSION.match(text) is not None


def as_version_2(text: str) -> str:
    """The same circuit in OpenQASM 2, each statement on its own line of the file.

    Raises QasmError, with the line, for what OpenQASM 2 cannot say.
    """
    parts: list[str] = []
    defined: set[str] = set()
    single: set[str] = set()
    in_gate = False
    at = 1
    for line, tokens in _statements(text):
        try:
            if not in_gate:  # a gate's qubits have names of their own
                tokens = _indexed(tokens, single)
            said = _translated(_renamed(tokens, defined))
            in_gate = (in_gate or tokens[0] == "gate") and tokens[-1] != "}"
        except QasmError as error:
            raise QasmError(f"line {line}: {error}") from None
        parts.append("\n" * (line - at) + said + " ")
        at = line
    return "".join(parts)


def _statements(text: str) -> Iterator[tuple[int, list[str]]]:
    """The line of each statement's first token, and its tokens with the ``;``, ``{`` or ``}``."""
    tokens: list[str] = []
    line = first = 1
    for count, match in enumerate(_TOKEN.finditer(text)):
        kind, token = match.lastgroup, match[0]
        if count > 2 * MOST_TOKENS:
            raise QasmError(f"it has more than {MOST_TOKENS} words, numbers and symbols")
        if kind == "other":
            raise QasmError(f"line {line}: {token!r} begins no word, number or symbol")
        if kind in ("word", "number", "symbol", "name"):
            first = first if tokens else line
            # A name of OpenQASM 2 begins with a letter; Qiskit exports others for a gate's qubits.
            tokens.append(f"v{token}" if token[0] == "_" else token)
            if token in (";", "{", "}"):
                yield first, tokens
                tokens = []
        line += token.count("\n")
    if tokens:
        raise QasmError(f"line {first}: the statement has no end")


def _indexed(tokens: list[str], single: set[str]) -> list[str]:
    """A statement in which a qubit or bit that is not a register is the one of a register."""
    if tokens[0] in ("qubit", "bit") and len(tokens) > 2 and tokens[1] != "[":
        single.add(tokens[1])
        return tokens
    if tokens[0] == "gate":
        return tokens
    return list(
        chain.from_iterable([one, "[", "0", "]"] if one in single else [one] for one in tokens)
    )


def _renamed(tokens: list[str], defined: set[str]) -> list[str]:
    """A statement in which the gates that the text defines have names that no library has.

    Those of OpenQASM 2 are more: exporters define rzz, which ``qelib1.inc`` has already.
    """
    if tokens[0] == "gate" and len(tokens) > 2:
        defined.add(tokens[1])
        return ["gate", f"g_{tokens[1]}", *tokens[2:]]
    return [f"g_{tokens[0]}", *tokens[1:]] if tokens[0] in defined else tokens


def _translated(tokens: Sequence[str]) -> str:
    first = tokens[0]
    if first in _REFUSED or "@" in tokens:
        what = "a modifier of gates (@)" if "@" in tokens else repr(first)
        raise QasmError(f"{what} of OpenQASM 3 is not read: unroll it into gates of stdgates.inc")
    if first == "OPENQASM":
        return "OPENQASM 2.0;"
    if first == "include":
        if len(tokens) != 3 or tokens[1][1:-1] != _LIBRARY:
            raise QasmError(f"only {_LIBRARY!r} may be included, got {' '.join(tokens[1:-1]):.200}")
        return 'include "qelib1.inc";'
    if first in ("qubit", "bit"):
        return _declared(tokens)
    if "=" in tokens:
        return _measured(tokens)
    if first == "measure":
        raise QasmError("a measurement must go to bits: c = measure q;")
    if list(tokens) == ["barrier", ";"]:
        return ""
    _check_expressions(tokens)
    return " ".join(_WORDS.get(token, token) for token in tokens)


def _declared(tokens: Sequence[str]) -> str:
    """``qubit[n] q;`` or ``bit[n] c;``, also of one without brackets, and with a measurement."""
    match = re.match(r"(qubit|bit) (?:\[ (\d+) \] )?(\w+) (;|= measure )", " ".join(tokens) + " ")
    if match is None or (match[4] != ";" and match[1] == "qubit"):
        raise QasmError("registers are declared as qubit[size] name; or bit[size] name;")
    kind = "qreg" if match[1] == "qubit" else "creg"
    said = f"{kind} {match[3]}[{match[2] or 1}];"
    if match[4] == ";":
        return said
    target = [match[3]] if match[2] else [match[3], "[", "0", "]"]
    return f"{said} {_measured([*target, *tokens[tokens.index('=') :]])}"


def _measured(tokens: Sequence[str]) -> str:
    """``c = measure q;``; nothing else is assigned."""
    at = tokens.index("=")
    if at + 2 >= len(tokens) or tokens[at + 1] != "measure" or tokens[-1] != ";":
        raise QasmError("only measurements are assigned: c = measure q;")
    return f"measure {' '.join(tokens[at + 2 : -1])} -> {' '.join(tokens[:at])};"


def _check_expressions(tokens: Sequence[str]) -> None:
    """Refuse what the two languages mean otherwise: ``^``, and a division of whole numbers."""
    for place, token in enumerate(tokens):
        if token == "^":
            raise QasmError("^ is the exclusive or of OpenQASM 3; a power is **")
        if token == "/" and not any(map(_is_real, _term(tokens[:place]))):
            raise QasmError(
                "a division of whole numbers is rounded in OpenQASM 3; write one of them as 1.0"
            )


def _term(before: Sequence[str]) -> Iterator[str]:
    """The tokens of the product that ends here, those in its parentheses too."""
    depth = 0
    for token in reversed(before):
        depth += (token == ")") - (token == "(")
        if depth < 0 or (depth == 0 and token in ("+", "-", ",")):
            return
        yield token


def _is_real(token: str) -> bool:
    """Whether it makes a number of an expression that is not whole: a constant, a parameter."""
    return token[0].isalpha() or token[0] == "_" or bool(re.search(r"[.eE]", token))
