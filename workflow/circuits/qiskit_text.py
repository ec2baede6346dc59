"""Circuits in Qiskit's QPY or OpenQASM 3 as OpenQASM 2, which is counted and read as any other."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

from workflow.circuits import qiskit_reader
from workflow.circuits.matrix_gates import Matrix, matrices_in
from workflow.circuits.qasm_text import QasmError
from workflow.storage.memory import in_words

MAGIC = b"QISKIT"
"""The first bytes of a QPY file; the next one is the version of the format."""
OLDEST_VERSION = 13
"""The version that Qiskit 1.3 writes. Expressions in older files are text for Python's eval or a
symengine archive, by which a file may run code (CVE-2025-2000); they are not read, whatever Qiskit
is here."""
LONGEST_NAME = 64
"""Characters of a register's name that are kept."""
_LONGEST_S = 300
"""Wall-clock seconds on a machine under load; `qiskit_reader` limits processor time itself."""
_VERSION_3 = re.compile(rb"(?:\s|//[^\n]*+|/\*.*?\*/)*+OPENQASM\s+3\b", re.DOTALL)
_NAMES = {"qpy": "QPY", "qasm3": "OpenQASM 3"}
_READ = {
    "qpy": "",
    "qasm3": "; what is read: registers, gates of stdgates.inc and of definitions, modifiers of "
    "both, measurements, constants, loops over them, and angles made of numbers by + - * / % **",
}
"""The end of a message that quotes Qiskit, which names what it does not read, not what it does."""


def form_of(content: bytes) -> str | None:
    """Return the form that Qiskit reads in a process of its own: ``qpy``, ``qasm3`` or neither."""
    if content.startswith(MAGIC):
        return "qpy"
    return "qasm3" if _VERSION_3.match(content) else None


@lru_cache(maxsize=4)
def as_version_2(content: bytes, form: str, most_bytes: int) -> str:
    """Return the circuit of a file in OpenQASM 2, up to a global phase.

    Raises QasmError for QPY of an older format, of several circuits or none, and for a circuit that
    has unbound parameters or classical control, is damaged or says what Qiskit does not read, or
    takes more memory, time or text than is allowed.
    """
    if form == "qpy":
        _check_version(content)
    name = _NAMES[form]
    with tempfile.TemporaryFile() as said:
        done = _read(content, form, most_bytes, said.fileno())
        if done is None:
            raise QasmError(f"it is {name} that Qiskit did not read in {_LONGEST_S} s")
        if done.returncode == qiskit_reader.FAILED:
            last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
            raise QasmError(
                f"it is {name} that cannot be read as a circuit: {''.join(last)}{_READ[form]}"
            )
        if done.returncode:
            raise QasmError(
                f"it is {name} that Qiskit cannot read within "
                f"{in_words(qiskit_reader.MEMORY_BYTES)} of memory, {qiskit_reader.CPU_SECONDS} s "
                f"and {in_words(most_bytes)} of text"
            )
        said.seek(0)
        return said.read().decode()


def names_of(text: str) -> dict[str, str]:
    """Return the own names of registers in what `as_version_2` returns, by those that they have.

    They are cut to `LONGEST_NAME` characters, and characters that cannot be shown are replaced.
    """
    named = json.loads(text.partition("\n")[0].removeprefix(qiskit_reader.NAMES))
    return {
        f"{plain}{number}": "".join(c if c.isprintable() else "_" for c in name[:LONGEST_NAME])
        for plain, names in zip(qiskit_reader.PLAIN, named, strict=False)
        for number, name in enumerate(names)
    }


def said_in(text: str) -> dict[str, str]:
    """Return the name, and the metadata as JSON, of a circuit in QPY that `as_version_2` read."""
    second = text.split("\n", 2)[1]
    said: dict[str, str] = json.loads(second.removeprefix(qiskit_reader.SAID))
    return said


def matrices_of(text: str) -> dict[str, Matrix]:
    """Return the matrices of gates that have no other definition there, by the gates' names."""
    return matrices_in(text.split("\n", 3)[2])


def _check_version(content: bytes) -> None:
    version = content[len(MAGIC)] if len(content) > len(MAGIC) else 0
    if version < OLDEST_VERSION:
        raise QasmError(
            f"it is QPY of version {version}; version {OLDEST_VERSION} (Qiskit 1.3) or newer is "
            "read, because files of older ones may hold code that runs; write the circuit by "
            "qiskit.qasm2.dump"
        )


def _read(
    content: bytes, form: str, most_bytes: int, said: int
) -> subprocess.CompletedProcess[bytes] | None:
    """Return the process that read the content and wrote to ``said``.

    It is None where the process took too long.
    """
    command = [sys.executable, "-P", str(Path(qiskit_reader.__file__)), form, str(most_bytes)]
    # Threads of BLAS would count against its memory, and nothing here needs one.
    environ = os.environ | {"OPENBLAS_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"}
    try:
        return subprocess.run(
            command, input=content, stdout=said, stderr=subprocess.PIPE, check=False,
            timeout=_LONGEST_S, env=environ,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None
