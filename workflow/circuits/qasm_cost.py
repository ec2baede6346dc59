"""The cost of reading an OpenQASM text, from its tokens before Qiskit reads it.

A line can declare 10^9 qubits, fifty definitions of gates 2^50 gates, an include any file of the
machine. Qiskit would begin to build or read all of it.
"""

from __future__ import annotations

import codecs
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from workflow.circuits import qiskit_text
from workflow.circuits.matrix_gates import Matrix
from workflow.circuits.qasm3_modifiers import OF_FILE, OPERATIONS
from workflow.circuits.qasm_text import QasmError, statement_text, statements
from workflow.config.circuit import MAX_GATES
from workflow.counted import counted
from workflow.storage.memory import in_words

LIBRARY = "qelib1.inc"
"""The one file that a text may include: Qiskit has its gates in itself and opens nothing for it."""
_MAX_BYTES = 32 << 20
_MAX_BITS = 4096
"""Qubits and, apart, classical bits; the caller has a lower limit for what it can compute."""
_MAX_NESTED = 64
"""Parentheses of an expression: Qiskit's parser calls itself for each."""
_MAX_DEEP = 64
"""Definitions of gates by gates that are defined: each is a call within a call."""
_MAX_SIGNS = 256
"""Signs and powers of the parameters of one call: the parser calls itself for them too."""
_MAX_DIGITS = 18
"""Digits of an index or a version, which Qiskit reads into 64 bits."""
_PARAMETER_TOKENS = 16
"""Tokens of parameters that are worked out in the time that a gate takes."""


@dataclass(frozen=True)
class Parsable:
    """A text that Qiskit may be given, its qubits, and how many gates it stands for at most."""

    text: str
    qubits: int
    gates: int
    names: Mapping[str, str] = field(default_factory=dict)
    """Own names of registers that are in another form, by those in the text."""
    said: Mapping[str, str] = field(default_factory=dict)
    """Name and metadata, of QPY."""
    matrices: Mapping[str, Matrix] = field(default_factory=dict)
    """Matrices of gates that are opaque in the text, by the gates' names."""
    opaque: frozenset[str] = frozenset()
    """Gates that the reader knows and the text declares as opaque ones: it has no declaration."""
    is_written: bool = False
    """Whether Qiskit wrote the text, so that its lines are not those of the file."""


def parsable(path: Path, known: Mapping[str, int] = MappingProxyType({})) -> Parsable:
    """Return a file's circuit in OpenQASM 2, written from its tokens, with `LIBRARY` included.

    ``known`` has the gates that the reader knows, and how many parameters each takes. A gate that
    the file defines is renamed where it has the name of one of these: the reader would take its
    own. One that the file declares as opaque has no declaration (`Parsable.opaque`): behind it
    Qiskit's parser takes for each gate that is defined the one before.

    Raises QasmError, which names the file, where it includes another file, declares or repeats
    beyond measure, calls a gate without its parameters, or is not made of OpenQASM 2's tokens; with
    the line where that is the file's.
    """
    try:
        content = _content(path)
        form = qiskit_text.form_of(content)
        if form is None:
            return _Reader(known, lines=True).read(content.decode("utf-8", "replace"))
        text = qiskit_text.as_version_2(content, form, _MAX_BYTES)
        names, said = qiskit_text.names_of(text), qiskit_text.said_in(text)
        matrices = qiskit_text.matrices_of(text)
        found = _Reader({**known, **dict.fromkeys(matrices, 0)}, lines=False).read(text)
        return replace(found, names=names, said=said, matrices=matrices, is_written=True)
    except QasmError as error:
        raise QasmError(f"{path}: {error}") from None


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise QasmError(f"it cannot be read ({error})") from error
    if len(content) > _MAX_BYTES:
        raise QasmError(f"it has more than the {in_words(_MAX_BYTES)} that are allowed")
    return content.removeprefix(codecs.BOM_UTF8)  # which some editors begin a text with


class _Reader:
    """One walk through a text, which counts what each statement adds."""

    def __init__(self, known: Mapping[str, int], *, lines: bool) -> None:
        self.known, self.lines = known, lines
        self.parameters = {"U": 3, **known}
        """How many each gate takes, where that is known."""
        self.bits = {"qreg": 0, "creg": 0}
        self.registers: dict[str, int] = {}
        self.sizes: dict[str, int] = {}
        """Gates that each gate defined by the text stands for."""
        self.depths: dict[str, int] = {}
        self.gates = 0
        self.renamed: dict[str, str] = {}
        """Other names of gates that the text defines and the reader would take for its own."""
        self.defined = ""
        """The gate whose definition is being read."""

    def read(self, text: str) -> Parsable:
        parts: list[str] = []
        opaque: set[str] = set()
        line = 1
        for statement in statements(text):
            try:
                self._take(statement.tokens)
            except QasmError as error:
                where = f"line {statement.line}: " if self.lines else ""
                raise QasmError(f"{where}{error}") from None
            is_opaque = statement.tokens[0] == "opaque" and not self.defined
            if is_opaque and (name := statement.tokens[1]) in self.known:
                opaque.add(name)
                continue
            tokens = [self.renamed.get(token, token) for token in statement.tokens]
            parts.append(statement_text(replace(statement, tokens=tokens), line))
            line = max(line, statement.line)
        if self.defined:
            raise QasmError(f"the definition of gate {self.defined} has no end")
        text = "".join(parts)
        return Parsable(text, self.bits["qreg"], self.gates, opaque=frozenset(opaque))

    def _take(self, tokens: list[str]) -> None:
        if max(map(len, tokens)) > _MAX_DIGITS:
            self._check_digits(tokens)
        first = tokens[0]
        if not first[0].isalpha() and first not in (";", "}"):
            raise QasmError(f"{first!r} begins no statement; a comment begins with //")
        if first in ("gate", "opaque") and len(tokens) > 2:
            taken = tokens[3 : tokens.index(")")] if tokens[2] == "(" and ")" in tokens else []
            self.parameters[tokens[1]] = len(taken) - taken.count(",")
        if first == "OPENQASM" and not re.fullmatch(r"2(\.0*)?", tokens[1]):
            raise QasmError(f"it is OPENQASM {tokens[1]:.20}; 2.0 and 3.0 are read")
        if first == "include":
            self._check_include(tokens)
        elif first in self.bits and not self.defined:
            self._declare(tokens)
        elif first == "gate" and tokens[-1] == "{" and not self.defined:
            self.defined = tokens[1]
            self.sizes[self.defined], self.depths[self.defined] = 0, 1
            if self.defined in self.known or self.defined in OPERATIONS:
                self.renamed[self.defined] = f"{self.defined}{OF_FILE}"
        elif self.defined:
            self._define(tokens)
        elif first not in ("OPENQASM", "opaque", ";"):
            each, repeated = self._call(tokens)
            self.gates += each * repeated
            _check_gates(self.gates)

    def _check_digits(self, tokens: Sequence[str]) -> None:
        for before, token in itertools.pairwise(tokens):
            if len(token) > _MAX_DIGITS and before in ("[", "OPENQASM") and token[0].isdigit():
                if tokens[0] in self.bits:
                    raise _too_many_bits(tokens[0])
                raise QasmError(f"a number may have {_MAX_DIGITS} digits there, got {token:.30}")

    def _check_include(self, tokens: Sequence[str]) -> None:
        if self.defined or len(tokens) != 3 or tokens[1][1:-1] != LIBRARY:
            name = tokens[1] if len(tokens) > 1 else ""
            raise QasmError(
                f"it includes {name:.200}; only {LIBRARY!r} may be included: write the gates of "
                "other files into this one"
            )

    def _declare(self, tokens: Sequence[str]) -> None:
        if not re.fullmatch(r"\w+ \[ \d+ \] ;", " ".join(tokens[1:])):
            raise QasmError(f"a register is declared as {tokens[0]} name[size];")
        size = int(tokens[3])
        self.bits[tokens[0]] += size
        if self.bits[tokens[0]] > _MAX_BITS:
            raise _too_many_bits(tokens[0])
        self.registers[tokens[1]] = size

    def _define(self, tokens: Sequence[str]) -> None:
        """Take a statement of the gate that is being defined, or its end."""
        if tokens[-1] == "{":
            raise QasmError(f"the definition of gate {self.defined} has a brace in it")
        if tokens[0] not in ("}", ";"):
            self.sizes[self.defined] += self._call(tokens)[0]
            _check_gates(self.sizes[self.defined])
            depth = max(self.depths[self.defined], 1 + self.depths.get(tokens[0], 0))
            self.depths[self.defined] = depth
            if depth > _MAX_DEEP:
                raise QasmError(f"definitions may be {_MAX_DEEP} deep, {self.defined} is deeper")
        if tokens[-1] == "}":
            self.defined = ""

    def _call(self, tokens: Sequence[str]) -> tuple[int, int]:
        """Return how many gates a call is, and on how many qubits of registers it is repeated."""
        at = tokens.index(")") + 1 if tokens[0] == "if" and ")" in tokens else 0
        name, rest = tokens[at], tokens[at + 1 :]
        if (needed := self.parameters.get(name, 0)) and rest and rest[0] != "(":
            taken = f"takes {counted(needed, 'parameter')} in parentheses behind its name"
            raise QasmError(f"gate {name} {taken}, got none")
        end = _parameters_end(rest)
        each = self.sizes.get(name, 1) + end // _PARAMETER_TOKENS
        whole = [
            self.registers.get(token, 1)
            for token, after in zip(rest[end:], rest[end + 1 :], strict=False)
            if after != "["
        ]
        return each, 1 if name == "barrier" else max(whole, default=1)


def _parameters_end(tokens: Sequence[str]) -> int:
    """Return how many tokens the parameters of a call take, with their parentheses."""
    depth = signs = 0
    for at, token in enumerate(tokens):
        if token == "(":
            depth += 1
        elif token == ")":
            depth -= 1
        if depth <= 0:
            return at + 1 if at else 0  # the first token is no parenthesis where there are none
        signs += token in ("-", "^")
        if depth > _MAX_NESTED:
            raise QasmError(f"an expression may nest {_MAX_NESTED} parentheses, got more")
        if signs > _MAX_SIGNS:
            raise QasmError(f"parameters may have {_MAX_SIGNS} signs and powers, got more")
    return len(tokens)


def _too_many_bits(register: str) -> QasmError:
    what = "qubits" if register == "qreg" else "classical bits"
    return QasmError(f"it declares more than {_MAX_BITS} {what}")


def _check_gates(gates: int) -> None:
    if gates > MAX_GATES:
        raise QasmError(f"it stands for {gates} gates or more; {MAX_GATES} are allowed")
